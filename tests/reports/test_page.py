import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import rescore as rs
from rescore.graph.layout import placed
from rescore.reports.page import PIXELS, graph_data, render_page
from rescore.reports.run import Run, some_rows
from rescore.reports.run_tables import edge_changes
from rescore.tables.convert import DataWarning
from rescore.text import json_text


def table(columns=("a", "b", "c")):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    X[:, 1] += 2 * X[:, 0]
    X[:, 2] -= 1.5 * X[:, 1]
    return pd.DataFrame(X, columns=list(columns))


@pytest.fixture(scope="module")
def model():
    return rs.ReScore(rs.Notears(required=[("a", "c")])).fit(table())


class Page(HTMLParser):
    """Tags, attributes and texts, with a check that every tag is closed in order."""

    VOID = ("meta", "img", "link", "br", "input")

    def __init__(self, text):
        super().__init__()
        self.seen, self.open, self.texts = [], [], {"script": [], "style": []}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.open and self.open[-1] in self.texts:
            self.texts[self.open[-1]][-1] += data

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def full_page(model):
    scores = rs.evaluate(model.adjacency_matrix_, model)
    return render_page(
        Run(model, ["<i>u</i>"] * 60 + ["v"] * 60, scores, {"<b>": scores}, ("odd <u>",),
            "rescore fit '<s>'", "<q>.csv", plain=np.zeros((3, 3)), stability=np.ones((3, 3)))
    )  # fmt: skip


def test_the_page_is_complete_in_itself(model):
    text = full_page(model)
    page = Page(text)
    tags = {tag for tag, _ in page.seen}
    assert not tags & {"iframe", "form", "u", "s", "q", "i", "object", "base"}
    assert [a for tag, a in page.seen if tag == "link"] == [{"rel": "icon", "href": "data:,"}]
    assert not any("src" in a for tag, a in page.seen if tag == "script")
    images = [a for tag, a in page.seen if tag == "img"]
    assert len(images) == 4
    assert all(a["src"].startswith("data:image/svg+xml;base64,") and a["alt"] for a in images)
    assert not any(name.startswith("on") or name == "style" for _, a in page.seen for name in a)
    for library in page.texts["script"]:
        text = text.replace(library, "")
    assert not re.search(r"https?://", text)  # a licence's address in a comment fetches nothing
    for word in ("&lt;i&gt;u&lt;/i&gt;", "odd &lt;u&gt;", "tau", "share of weight",
                 "Heaviest rows", "rescore fit", "numpy", "With and without", "made by the units",
                 "For the methods section", "&lt;q&gt;.csv"):  # fmt: skip
        assert word in text


def test_the_policy_lets_in_exactly_the_scripts_and_styles_of_the_page(model):
    page = Page(full_page(model))
    policy = next(a["content"] for _, a in page.seen if "http-equiv" in a)
    rules = {words[0]: words[1:] for words in map(str.split, policy.split(";"))}
    assert rules["default-src"] == ["'none'"]
    assert rules["img-src"] == ["data:"]
    assert "unsafe" not in policy

    def sums(texts):
        sums = (base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in texts)
        return [f"'sha256-{s}'" for s in sums]

    data, *scripts = page.texts["script"]
    assert json.loads(data)["nodes"]
    assert rules["script-src"] == sums(scripts)
    assert rules["style-src"] == sums(page.texts["style"])


def test_the_vendored_library_is_the_one_described():
    folder = files("rescore.reports") / "vendor"
    found = hashlib.sha256((folder / "cytoscape.min.js").read_bytes()).hexdigest()
    assert found in (folder / "VENDORED.md").read_text()
    assert "Cytoscape Consortium" in (folder / "LICENSE").read_text()


@given(st.recursive(st.text() | st.integers(), st.lists))
def test_json_in_a_page_reads_back_and_never_ends_its_element(data):
    text = json_text(data)
    assert json.loads(text) == data
    assert not set(text) & set("<>&\u2028\u2029")


def test_the_drawn_edges_follow_the_layout(model):
    data = graph_data(Run(model))
    found = placed(model.adjacency_matrix_, ["a", "b", "c"])
    at = {node["id"]: np.array([node["x"], node["y"]]) for node in data["nodes"]}
    for edge, route in zip(data["edges"], found.routes.values(), strict=True):
        start = at[edge["source"]] + edge["leaves"]
        end = at[edge["target"]] + edge["enters"]
        line = end - start
        aside = np.array([-line[1], line[0]]) / np.hypot(*line)
        pulls = start + np.outer(edge["along"], line) + np.outer(edge["aside"], aside)
        inner = PIXELS * np.array(route[1:-1]).reshape(-1, 2) * [1, -1]
        np.testing.assert_allclose(pulls[1:-1], inner, atol=0.5)
        # It leaves and arrives vertically.
        np.testing.assert_allclose([pulls[0, 0], pulls[-1, 0]], [start[0], end[0]], atol=0.5)
    required = [(e["source"], e["target"]) for e in data["edges"] if e["known"] == "required"]
    assert required == [("n0", "n2")]


def test_differences_by_brute_force():
    rng = np.random.default_rng(1)
    for _ in range(20):
        W, plain = (np.triu(rng.integers(0, 2, (4, 4)), 1) for _ in range(2))
        if rng.random() < 0.5:
            plain = plain.T
        lines = edge_changes(W, plain, list("abcd"))
        words = {(r.cause, r.effect): r.change for r in lines.itertuples()}
        with_weights = {("abcd"[i], "abcd"[j]) for i, j in np.argwhere(W)}
        without = {("abcd"[i], "abcd"[j]) for i, j in np.argwhere(plain)}
        turned = {(i, j) for i, j in with_weights if (j, i) in without}
        expected = dict.fromkeys(with_weights & without, "in both fits")
        expected |= dict.fromkeys(turned, "turned round")
        expected |= dict.fromkeys(with_weights - without - turned, "only with row weights")
        gone = without - with_weights - {(j, i) for i, j in turned}
        assert words == expected | dict.fromkeys(gone, "only without row weights")


@pytest.mark.parametrize("name", ["plain", "stability"])
def test_a_matrix_of_another_graph_is_refused(model, name):
    with pytest.raises(ValueError, match=r"each of the 3 variables; got the shape \(2, 2\)"):
        Run(model, **{name: np.zeros((2, 2))})
    with pytest.raises(ValueError, match="between 0 and 1"):
        Run(model, stability=np.full((3, 3), 2.0))


def test_the_page_opens_with_the_graph_and_the_verdicts(model):
    text = full_page(model)
    first = text.index('id="graph"')
    assert text.index('class="tiles"') < first < text.index('id="edges"') < text.index('id="fit"')
    assert "Converged" not in text[:first]
    assert text.count("<tr data-edge=") == len(Run(model).edges)


def test_the_rows_of_a_page_are_few_and_those_of_the_table(model):
    X = table()
    found = some_rows(X)
    assert found.places == list(range(120))
    np.testing.assert_allclose(np.array(found.values).T, X, rtol=1e-3)
    assert len(some_rows(np.zeros((10_000, 3))).places) <= 400
    assert len(some_rows(np.zeros((10_000, 900))).places) == 60
    shown = graph_data(Run(model, rows=found))["rows"]
    expected = (model.cell_weight_ * 120).to_numpy()
    if shown["cells"] is not None:
        np.testing.assert_allclose(np.array(shown["cells"]).T, expected, atol=1e-3)
    else:
        np.testing.assert_allclose(shown["weight"], expected[:, 0], atol=1e-3)


def test_a_failed_fit_says_so_on_the_page():
    with pytest.warns((ConvergenceWarning, DataWarning)):
        model = rs.Notears(max_steps=1).fit(table())
    assert 'class="status bad">Not converged' in render_page(Run(model))
