import html
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rescore.graph import io as gio
from rescore.graph.formats import escape_name, unescape_name
from rescore.graph.io import from_adjacency, to_adjacency

nx = pytest.importorskip("networkx")

FORMATS = {
    "json": (gio.to_json, gio.from_json),
    "edge list": (gio.to_edge_list, gio.from_edge_list),
    "graphml": (gio.to_graphml, gio.from_graphml),
    "adjacency": (to_adjacency, from_adjacency),
    "networkx": (gio.to_networkx, gio.from_networkx),
}
WRITE = {form: write for form, (write, _) in FORMATS.items()} | {
    "dagitty": gio.to_dagitty,
    "dot": gio.to_dot,
}
WRITERS = {
    ".json": gio.to_json,
    ".csv": gio.to_edge_list,
    ".graphml": gio.to_graphml,
}

HOSTILE = [
    "<script>alert('x')</script>",
    "quotes \" ' ` \\",
    "line\nbreak\r\nand\rreturn",
    "\N{RIGHT-TO-LEFT OVERRIDE}abc\N{ZERO WIDTH SPACE}",
    "\N{PILE OF POO}\U000e0001\N{BYTE ORDER MARK}",
    "\0",
    "\x1b[31mred",
    "\ufffe\uffff\x85\u2028",
    "x" * 10_000,
    "1",
    "1e5",
    "nan",
    "=cmd()|' /C calc'!A0",
    "../../x",
    " leading and trailing ",
    "a,b;c\td",
    "]]>&amp;<!--",
    "\\u0041",
    "&#0;",
    "n0",
    "from",
    "to",
    "from\\to",
    "weight",
    "a -> b",
    "{}[];",
]

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def graphs(draw):
    labels = draw(st.lists(names | st.sampled_from(HOSTILE), unique=True, max_size=5))
    d = len(labels)
    cells = draw(st.lists(st.just(0.0) | finite, min_size=d * d, max_size=d * d))
    return np.array(cells, dtype=float).reshape(d, d), labels


def all_hostile():
    d = len(HOSTILE)
    W = np.random.default_rng(0).normal(size=(d, d)) * (np.arange(d) % 3 == 0)
    return W, HOSTILE


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=60, deadline=None)
@given(graphs())
@example(all_hostile())
def test_what_was_written_reads_back_exactly(form, graph):
    write, read = FORMATS[form]
    W, labels = graph
    before = W.copy()
    again, labels_again = read(write(W, labels))
    assert labels_again == labels
    assert again.shape == W.shape
    np.testing.assert_array_equal(again, W)
    np.testing.assert_array_equal(W, before)


@pytest.mark.parametrize("suffix", [*WRITERS, "adjacency.csv", ".tsv"])
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(graphs())
@example(all_hostile())
def test_files_read_back_exactly(suffix, tmp_path, graph):
    W, labels = graph
    path = tmp_path / f"graph{suffix}"
    if suffix in WRITERS:
        path.write_bytes(WRITERS[suffix](W, labels).encode())
    else:
        gio.write_adjacency(path, pd.DataFrame(W, index=labels, columns=labels))
    frame = gio.read_graph(path)
    assert list(frame.index) == list(frame.columns) == labels
    np.testing.assert_array_equal(frame.to_numpy(), W)


@given(st.text())
def test_escaped_names_are_visible_and_reversible(text):
    text = text.encode("utf-8", "ignore").decode()
    assert escape_name(text).isprintable()
    assert unescape_name(escape_name(text)) == text


def test_ordinary_names_are_not_altered():
    for name in ["Raf", "PIP3", "β2cAMP", "a b", "温度"]:
        assert escape_name(name) == name


# Other programmes agree on what the files say.


def test_networkx_reads_our_graphml(tmp_path):
    W, labels = all_hostile()
    path = tmp_path / "g.graphml"
    path.write_text(gio.to_graphml(W, labels), encoding="utf-8", newline="")
    G = nx.read_graphml(path)
    assert [unescape_name(label) for _, label in G.nodes(data="label")] == labels
    again = nx.to_numpy_array(G, weight="weight")
    np.testing.assert_array_equal(again, W)


def test_we_read_the_graphml_of_networkx(tmp_path):
    G = nx.DiGraph()
    G.add_node("lonely")
    G.add_edge("a", "b", weight=-0.1)
    G.add_edge("b\\u0041", "a", weight=2.5)
    nx.write_graphml(G, tmp_path / "g.graphml")
    frame = gio.read_graph(tmp_path / "g.graphml")
    assert list(frame) == ["lonely", "a", "b", "b\\u0041"]
    assert frame.loc["a", "b"] == -0.1
    assert frame.loc["b\\u0041", "a"] == 2.5
    assert (frame.to_numpy() != 0).sum() == 2


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")  # of pyparsing, in pydot
def test_pydot_reads_our_dot():
    pydot = pytest.importorskip("pydot")
    W, labels = all_hostile()
    (graph,) = pydot.graph_from_dot_data(gio.to_dot(W, labels))
    drawn = [node.get("label")[1:-1].replace('\\"', '"') for node in graph.get_nodes()]
    shown = [html.unescape(label.replace("\\\\", "\\")) for label in drawn]
    assert [unescape_name(label) for label in shown] == labels
    edges = {(edge.get_source(), edge.get_destination()): edge for edge in graph.get_edges()}
    assert len(edges) == np.count_nonzero(W)
    for i, j in np.argwhere(W).tolist():
        assert float(edges[f"n{i}", f"n{j}"].get("coefficient")[1:-1]) == W[i, j]


def test_pandas_reads_our_csv(tmp_path):
    W, labels = np.array([[0, -1 / 3], [0, 0]]), ["=1+1", 'say "hi", now']
    gio.write_adjacency(tmp_path / "g.csv", pd.DataFrame(W, index=labels, columns=labels))
    frame = pd.read_csv(tmp_path / "g.csv", index_col=0)
    assert frame.index.name == "from\\to"
    assert frame.loc["'=1+1", 'say "hi", now'] == -1 / 3  # text, for a spreadsheet too
    edges = pd.read_csv(pd.io.common.StringIO(gio.to_edge_list(W, labels)))
    assert edges.to_dict("records") == [{"from": "'=1+1", "to": labels[1], "weight": -1 / 3}]


def test_networkx_graphs_keep_order_and_isolated_nodes():
    G = gio.to_networkx([[0, 0, 0], [0, 0, 0], [0.5, 0, 0]], ["c", "a", "b"])
    assert list(G) == ["c", "a", "b"]
    assert list(G.edges(data=True)) == [("b", "c", {"weight": 0.5, "directed": True})]


# DAGitty's language, from the grammar of its documentation: chains, groups, attributes, settings.

DRAWN = """strict dag "a drawing" {
bb="0,0,1,1"
Smoking [exposure,pos="0.2,0.5"]
"Lung cancer" [outcome, pos = "0.8,0.5"; label="cancer"]
Smoking->Tar->"Lung cancer"<-Genes [beta=-.6]; Genes -> Smoking
{ Age ; "the \\"other\\" sex" } -> { Smoking "Lung cancer" }
Alone 1.5
}
"""


@pytest.mark.parametrize("name", ["g.dagitty", "g.txt", "g.DAGITTY"])
def test_a_graph_drawn_in_dagitty_is_read(tmp_path, name):
    (tmp_path / name).write_text(DRAWN)
    frame = gio.read_graph(tmp_path / name)
    sex = 'the "other" sex'
    assert list(frame) == ["Smoking", "Lung cancer", "Tar", "Genes", "Age", sex, "Alone", "1.5"]
    weak = {(cause, effect): 1.0 for cause in ("Age", sex) for effect in ("Smoking", "Lung cancer")}
    weak |= {("Genes", "Smoking"): 1.0, ("Smoking", "Tar"): -0.6, ("Tar", "Lung cancer"): -0.6}
    expected = weak | {("Genes", "Lung cancer"): -0.6}
    found = {(frame.index[i], frame.columns[j]): w for (i, j), w in np.ndenumerate(frame) if w}
    assert found == expected


def test_one_line_without_blanks_and_groups_within_groups():
    W, labels = gio.from_dagitty("DAG{a->b->c<-d}")
    assert labels == ["a", "b", "c", "d"]
    assert [(i, j) for i, j in np.argwhere(W).tolist()] == [(0, 1), (1, 2), (3, 2)]
    W, labels = gio.from_dagitty("dag { {a -> b} -> {c {d}} }")
    assert [(labels[i], labels[j]) for i, j in np.argwhere(W).tolist()] == [
        ("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")
    ]  # fmt: skip


@st.composite
def dags(draw):
    W, labels = draw(graphs())
    order = draw(st.permutations(range(len(labels))))
    return np.triu(W, 1)[np.ix_(order, order)], labels


def all_hostile_dag():
    labels = [*HOSTILE, "graph", "node", "\\", 'a\\"', "dag", "beta", "-1", "subgraph"]
    rng = np.random.default_rng(0)
    W = rng.normal(size=(len(labels),) * 2) * 10.0 ** rng.integers(-300, 300, (len(labels),) * 2)
    return np.triu(W, 1), labels


@settings(max_examples=60, deadline=None)
@given(dags())
@example(all_hostile_dag())
def test_dagitty_reads_back_exactly(graph):
    W, labels = graph
    again, labels_again = gio.from_dagitty(gio.to_dagitty(W, labels))
    assert labels_again == labels
    np.testing.assert_array_equal(again, W)
    again, _ = gio.from_dagitty(gio.to_dagitty(W, labels, coefficients=False))
    np.testing.assert_array_equal(again, W != 0)


@settings(max_examples=60, deadline=None)
@given(dags())
@example(all_hostile_dag())
def test_dagitty_text_obeys_its_grammar_line_by_line(graph):
    # As in its parser: quotes hold no control characters, and \\ escapes nothing but a quote.
    name = r'(?:[0-9a-zA-Z_.]+|"(?:\\"|[^"\\\x00-\x1f\x7f]|\\(?!"))*")'
    edge = re.compile(rf"{name} -> {name} \[beta=-?[0-9.]+\]")
    W, labels = graph
    first, *body, last, rest = gio.to_dagitty(W, labels).split("\n")
    assert first in ("dag {", "dag rescore {")
    assert (last, rest) == ("}", "")
    assert all(re.fullmatch(name, line) for line in body[: len(labels)])
    assert all(edge.fullmatch(line) for line in body[len(labels) :])
    assert not {"graph", "node", '"graph"', '"node"'} & set(body)


def test_ordinary_dagitty_names_are_plain_or_quoted_and_never_escaped():
    text = gio.to_dagitty(np.zeros((4, 4)), ["Raf", "wet grass", "温度", 'say "hi"'])
    assert text == 'dag {\nRaf\n"wet grass"\n"温度"\n"say \\"hi\\""\n}\n'


def test_a_cycle_is_no_dag_for_dagitty():
    with pytest.raises(ValueError, match="a -> b -> a"):
        gio.to_dagitty([[0, 1], [1, 0]], ["a", "b"])


# Directions that are open.

MEMBER = np.array([[0, 0.5, 0], [0, 0, 0], [0, -2.0, 0]])  # a -> b <- c
SOME_OPEN = np.array([[0, 1, 0], [1, 0, 0], [0, 1, 0]])  # as if a - b were open


def told_directed(form, text):
    """Whether each edge is directed, by the words of the format itself."""
    if form == "json":
        return [edge["directed"] for edge in json.loads(text)["edges"]]
    if form == "dot":
        return ["dir=none" not in line for line in text.splitlines() if "->" in line]
    if form == "graphml":
        return [directed for *_, directed in nx.parse_graphml(text).edges(data="directed")]
    if form == "networkx":
        return [directed for *_, directed in text.edges(data="directed")]
    return [" -> " in line for line in text.splitlines() if " -" in line]


@pytest.mark.parametrize("form", ["json", "dot", "graphml", "networkx", "dagitty"])
def test_an_open_direction_is_told_in_every_format(form):
    for directions, expected in ((None, [True, True]), (SOME_OPEN, [False, True])):
        written = WRITE[form](MEMBER, list("abc"), cpdag=directions)
        assert told_directed(form, written) == expected
        if form in FORMATS:  # the DAG itself reads back all the same
            np.testing.assert_array_equal(FORMATS[form][1](written)[0], MEMBER)


def test_a_class_in_dagitty_reads_back_as_the_class():
    text = gio.to_dagitty(MEMBER, ["a", "node", "c"], cpdag=SOME_OPEN)
    assert text.startswith("pdag rescore {")
    assert "beta" not in text
    W, labels = gio.from_dagitty(text)
    assert labels == ["a", "node", "c"]
    np.testing.assert_array_equal(W, SOME_OPEN)
    W, _ = gio.from_dagitty("PDAG { a -- {b c} <- d }")
    assert [(i, j) for i, j in np.argwhere(W).tolist()] == [
        (0, 1), (0, 2), (1, 0), (2, 0), (3, 1), (3, 2)
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")  # of pyparsing, in pydot
def test_pydot_draws_no_head_where_the_direction_is_open():
    pydot = pytest.importorskip("pydot")
    (graph,) = pydot.graph_from_dot_data(gio.to_dot(MEMBER, list("abc"), SOME_OPEN))
    assert [edge.get("dir") for edge in graph.get_edges()] == ["none", None]


# The direction of a matrix.

MATRIX = "a,b\n0,2\n0,0\n"


@pytest.mark.parametrize(
    "text", [MATRIX, ",a,b\na,0,2\nb,0,0\n", "a,b\na,0,2\nb,0,0\n", ",a,b\nb,0,0\na,0,2\n"]
)
def test_a_matrix_of_others_needs_a_direction(tmp_path, text):
    path = tmp_path / "m.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"'from row to column'.*'from column to row'"):
        gio.read_graph(path)
    assert gio.read_graph(path, "from row to column").loc["a", "b"] == 2
    assert gio.read_graph(path, "from column to row").loc["b", "a"] == 2


def test_a_direction_that_contradicts_the_file_is_refused(tmp_path):
    frame = pd.DataFrame([[0, 1], [0, 0]], index=["a", "b"], columns=["a", "b"])
    gio.write_adjacency(tmp_path / "m.csv", frame)
    (tmp_path / "e.csv").write_text("from,to\na,b\n")
    (tmp_path / "g.json").write_text(gio.to_json(frame, list(frame)))
    for name in ("m.csv", "e.csv", "g.json"):
        assert gio.read_graph(tmp_path / name, "from row to column").loc["a", "b"] == 1
        with pytest.raises(ValueError, match="edge_direction"):
            gio.read_graph(tmp_path / name, "from column to row")


# Files that are refused.

BAD_FILES = {
    "empty.csv": ("", "empty"),
    "header.csv": ("a,b\n", "0 row"),
    "one.csv": ("a\n", "0 row"),
    "corner.csv": ("from\\to,a\n0,1\n0,0\n", "header of names"),
    "numbers.csv": ("0,1\n0,1\n0,0\n", "names of the nodes"),
    "savetxt.csv": ("0,1\n1,0\n", "names of the nodes"),
    "semicolon.csv": ("a;b\n0;1\n0;0\n", "';' the delimiter"),
    "comma.csv": ('a,b\n0,"0,5"\n0,0\n', "line 2"),
    "missing.csv": ("a,b\n0,\n0,0\n", "line 2"),
    "nan.csv": ("a,b\n0,1\nnan,0\n", "line 3"),
    "inf.csv": ("a,b\n0,inf\n0,0\n", "finite"),
    "underscore.csv": ("a,b\n0,1_0\n0,0\n", "finite number"),
    "extra.csv": ("a,b\n0,1\n0,0,0\n", "Line 3"),
    "tall.csv": ("a,b\n0,1\n0,0\n0,0\n", "3 row"),
    "twice.csv": ("a,a\n0,1\n0,0\n", "'a'"),
    "nameless.csv": ("a,\n0,1\n0,0\n", "empty name"),
    "stranger.csv": (",a,b\na,0,1\nc,0,0\n", "'c'"),
    "quote.csv": ('a,b\n0,"1\n0,0\n', "CSV"),
    "words.tsv": ("a\tb\n0\tx\n0\t0\n", "line 2"),
    "short.csv": ("from,to,weight\na,b\n", "Line 2"),
    "zero.csv": ("from,to,weight\na,b,0\n", "no edge"),
    "again.csv": ("from,to\na,b\na,b\n", "twice"),
    "halfedge.csv": ("from,to,weight\na,,1\n", "empty name"),
    "broken.json": ("{", "JSON"),
    "list.json": ("[1]", "JSON"),
    "nested.json": ("[" * 100_000, "JSON"),
    "names.json": ('{"nodes": [1, 2], "edges": []}', "text"),
    "unhashable.json": ('{"nodes": [[]], "edges": []}', "JSON"),
    "same.json": ('{"nodes": ["a", "a"], "edges": []}', "'a'"),
    "unknown.json": ('{"nodes": ["a"], "edges": [{"from": "a", "to": "b"}]}', "among the nodes"),
    "nan.json": ('{"nodes": ["a"], "edges": [{"from": "a", "to": "a", "weight": NaN}]}', "finite"),
    "big.json": (
        '{"nodes": ["a"], "edges": [{"from": "a", "to": "a", "weight": 1e999}]}',
        "finite",
    ),
    "true.json": (
        '{"nodes": ["a"], "edges": [{"from": "a", "to": "a", "weight": true}]}',
        "finite",
    ),
    "graph.dagitty": ("mag {a -> b}", "begin with 'dag {' or 'pdag {'"),
    "both.dagitty": ("pdag {a -- b\n b -> a}", "twice"),
    "bow.dagitty": ("pdag {a -- b\n b <-> a}", "Line 2 has <->.*-> or <- or --"),
    "twoway.dagitty": ("dag {a -> b\n b <-> c}", "Line 2 has <->"),
    "undirected.dagitty": ("dag {\na -- b}", "Line 2 has --"),
    "partial.dagitty": ("dag {a @-> b}", "has @->"),
    "latent.dagitty": ('dag {a\nU [pos="0,1", latent]}', "Line 2.*'U' is not observed"),
    "hidden.dagitty": ("dag {x[e]y[o]z[u] x<-z->y}", "'z' is not observed"),
    "group.dagitty": ("dag {{a b} -> c [beta=0.5]}", "one beta for a group"),
    "word.dagitty": ("dag {a -> b [beta=strong]}", "finite number.*'strong'"),
    "bare.dagitty": ("dag {a -> b [beta]}", "finite number"),
    "zero.dagitty": ("dag {a -> b [beta=0]}", "no edge"),
    "again.dagitty": ("dag {a -> b b <- a}", "twice"),
    "open.dagitty": ("dag {\na -> b\n", "Line 3 has 'the end'"),
    "more.dagitty": ("dag {a}\n}", "Line 2 goes on"),
    "half.dagitty": ("dag {a ->}", "where name or {"),
    "dangling.dagitty": ("dag {a [pos=]}", "where name"),
    "quote.dagitty": ('dag {\n"a -> b\n}', "Line 2"),
    "backslash.dagitty": ('dag {"a\\" -> b}', "no part of DAGitty's language"),
    "nameless.dagitty": ('dag {"" -> b}', "empty name"),
    "deep.dagitty": ("dag " + "{" * 100_000, "braces"),
    "prose.txt": ("A dag is a graph.", "begin with 'dag {'"),
    "graph.dot": ("digraph {\n a -> b\n}", r"\.csv, \.tsv, \.json, \.graphml or \.dagitty"),
    "doctype.graphml": ('<!DOCTYPE x [<!ENTITY a "b">]><graphml/>', "DOCTYPE"),
    "cut.graphml": ("<graphml>", "XML"),
    "plain.graphml": ("<graphml/>", "one graph"),
    "other.xml": ("<graphml/>", "ends in"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused_in_a_sentence(tmp_path, name):
    text, words = BAD_FILES[name]
    (tmp_path / name).write_text(text)
    direction = "from row to column" if name.endswith((".csv", ".tsv")) else None
    with pytest.raises((ValueError, TypeError), match=words):
        gio.read_graph(tmp_path / name, direction)


def graphml(body, edgedefault="directed"):
    space = "http://graphml.graphdrawing.org/xmlns"
    return f'<graphml xmlns="{space}"><graph edgedefault="{edgedefault}">{body}</graph></graphml>'


NODES = '<node id="a"/><node id="b"/>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (graphml(NODES, "undirected"), "directed"),
        (graphml(NODES + '<edge source="a" target="b" directed="false"/>'), "directed"),
        (graphml(NODES + NODES), "differ"),
        (graphml('<node id="a"><graph edgedefault="directed"/></node>'), "one graph"),
        (graphml(NODES + '<edge source="a" target="c"/>'), "among the nodes"),
        (graphml(NODES + 2 * '<edge source="a" target="b"/>'), "twice"),
        (graphml("<node/>"), "empty name"),
        (graphml('<node id="a"><data key="?">x</data></node>'), "networkx cannot read"),
    ],
)
def test_graphml_that_means_something_else_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        gio.from_graphml(text)


def test_an_entity_is_never_expanded():
    bomb = '<!DOCTYPE b [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>' + graphml("<node id='&b;'/>")
    with pytest.raises(ValueError, match="DOCTYPE"):
        gio.from_graphml(bomb)
    ET.fromstring(bomb)  # the standard parser would have


def test_not_text_and_not_there(tmp_path):
    (tmp_path / "latin.csv").write_bytes("from,to\nä,b\n".encode("latin-1"))
    with pytest.raises(ValueError, match="UTF-8"):
        gio.read_graph(tmp_path / "latin.csv")
    (tmp_path / "bom.csv").write_bytes("from,to\na,b\n".encode("utf-8-sig"))
    assert list(gio.read_graph(tmp_path / "bom.csv")) == ["a", "b"]
    with pytest.raises(OSError, match=r"none\.csv"):
        gio.read_graph(tmp_path / "none.csv")


# Graphs that are not written.


@pytest.mark.parametrize("form", WRITE)
@pytest.mark.parametrize(
    ("W", "labels", "error"),
    [
        (np.zeros((2, 2)), ["a", "a"], ValueError),
        (np.zeros((2, 2)), ["a"], ValueError),
        (np.zeros((2, 3)), ["a", "b"], ValueError),
        ([[0, np.nan], [0, 0]], ["a", "b"], ValueError),
    ],
)
def test_what_is_not_a_named_graph_is_not_written(form, W, labels, error):
    with pytest.raises(error):
        WRITE[form](W, labels)


@pytest.mark.parametrize("form", sorted(set(WRITE) - {"networkx"}))
@pytest.mark.parametrize(
    ("label", "error"), [("", ValueError), ("\ud800", ValueError), (1, TypeError)]
)
def test_text_formats_need_text_names(form, label, error):
    with pytest.raises(error):
        WRITE[form]([[0.0]], [label])


def test_rows_and_columns_must_agree_to_be_written(tmp_path):
    with pytest.raises(ValueError, match="same names"):
        gio.write_adjacency(tmp_path / "x.csv", pd.DataFrame([[0]], index=["a"], columns=["b"]))
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize("G", [nx.Graph([(0, 1)]), nx.MultiDiGraph([(0, 1)])])
def test_only_directed_networkx_graphs_are_read(G):
    with pytest.raises(TypeError, match="DiGraph"):
        gio.from_networkx(G)


@pytest.mark.parametrize("weight", [0, np.nan, None, "x", True])
def test_weights_in_networkx_must_be_numbers(weight):
    G = nx.DiGraph()
    G.add_edge("a", "b", weight=weight)
    with pytest.raises(ValueError, match="weight"):
        gio.from_networkx(G)


def test_names_must_be_those_of_the_networkx_graph():
    with pytest.raises(ValueError, match="'c'"):
        gio.from_networkx(nx.DiGraph([("a", "b")]), names=["a", "b", "c"])


def test_json_is_ascii_and_standard():
    W, labels = all_hostile()
    text = gio.to_json(W, labels)
    assert text.isascii()
    assert json.loads(text)["nodes"] == labels
