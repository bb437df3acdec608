"""What a fitted estimator shows: a picture, HTML, its help, a page."""

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import rescore as rs
from rescore.learners import LEARNERS, load_learner

NAMES = ["<script>", "b&c", "d"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    a, b, e = rng.normal(size=(3, 300))
    return pd.DataFrame(dict(zip(NAMES, (a, b, a + 2 * b + e), strict=True)))


@pytest.fixture(scope="module")
def model(table):
    return rs.Linear().fit(table)


def test_plot_draws_names_and_edges_into_the_axes_given(model):
    axes = Figure(figsize=(3, 2)).add_subplot()
    assert model.plot(axes) is axes
    texts = {text.get_text() for text in axes.texts}
    assert set(NAMES) <= texts
    assert len(axes.patches) == 3 + 2 * len(model.edges_)  # boxes; lines and their heads
    assert max(text.get_fontsize() for text in axes.texts) < 9  # names shrink with the boxes


def test_plot_makes_a_figure_of_the_right_size(model):
    from matplotlib import pyplot

    axes = model.plot()
    width, height = axes.figure.get_size_inches()
    assert 3 < width < 12
    assert 1 < height < 12
    pyplot.close(axes.figure)
    with pytest.raises(ValueError, match="not fitted yet"):
        rs.Linear().plot()


def test_html_has_the_graph_and_the_edges_and_escapes_names(model):
    text = model._repr_html_()
    assert "data:image/svg+xml;base64," in text
    assert "<script>" not in text
    assert "&lt;script&gt; →" in text
    assert "v-structures" not in rs.Linear()._repr_html_()


@pytest.mark.parametrize("name", [*LEARNERS, "ReScore"])
def test_help_tells_what_is_learned(name):
    kind = rs.ReScore if name == "ReScore" else load_learner(name)
    text = kind.__doc__
    assert len(re.findall(r"^    Attributes$", text, flags=re.MULTILINE)) == 1
    for attribute in ("adjacency_matrix_", "edges_", "cpdag_", "diagnostics_"):
        assert f"    {attribute} :" in text
    assert "Parameters" in text
    assert text.index("Parameters") < text.index("    Attributes\n")


def test_report_writes_one_page(model, table, tmp_path):
    found = rs.bootstrap(model, table, resamples=2)
    path = rs.report(model, table, tmp_path / "new/page.html", stability=found, source="<x>.csv")
    text = path.read_text()
    assert "2 bootstrap resamples" in text
    assert "&lt;x&gt;.csv" in text
    assert "carries 300 rows" in text
    assert "carries" not in rs.report(model, path=tmp_path / "bare.html").read_text()
    with pytest.raises(ValueError, match="fitted to 300 rows, and X has 299"):
        rs.report(model, table[1:], tmp_path / "page.html")


def test_what_check_finds_is_printed_in_a_notebook_too(table):
    found = rs.check(table)
    assert repr(found) == str(found)
    assert found.findings[0].message in repr(found)
