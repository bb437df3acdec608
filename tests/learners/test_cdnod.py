import contextlib
import io
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.graph.dag import is_dag, skeleton
from rescore.learners.cdnod import _dag
from rescore.tables.convert import DataWarning

pytest.importorskip("causallearn")
PLACES = np.repeat(["north", "south", "west"], [200, 300, 100])


@pytest.fixture(scope="module")
def data():
    """A chain whose first variable, and collider whose last, change with the place."""
    rng = np.random.default_rng(100)
    shift = pd.factorize(PLACES)[0]
    a = rng.normal(size=600) + 2 * shift
    b = a + rng.normal(size=600)
    c = rng.normal(size=600)
    d = b + c + rng.normal(size=600) - 2 * shift
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d})


def by_causal_learn(X, codes, alpha):
    """The library's own function, progress bar and all."""
    from causallearn.search.ConstraintBased.CDNOD import cdnod

    with contextlib.redirect_stderr(io.StringIO()):
        ends = cdnod(X, codes[:, None].astype(float), alpha).G.graph[:-1, :-1]
    arrows, tails = ends == 1, ends == -1
    return (tails & arrows.T) | (tails & tails.T) | (arrows & arrows.T)


def test_the_place_tells_causes_from_effects(data):
    model = rs.CDNOD(alpha=0.01).fit(data, groups=PLACES)
    expected = {("a", "b"), ("b", "d"), ("c", "d")}
    assert set(model.causal_graph_.edges) == expected
    assert model.diagnostics_["undirected_edges"] == []
    assert model.sample_weight_.to_numpy() == pytest.approx(np.full(600, 1 / 600))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("seed", range(100, 104))
def test_it_is_causal_learn_s_graph_and_a_dag_that_extends_it(seed, alpha):
    sim = rs.simulate("ER", nodes=7, degree=2, samples=400, random_state=seed)
    codes = np.repeat([0, 1], 200)
    model = rs.CDNOD(alpha).fit(sim.X, groups=codes)
    P = model.partial_graph_.to_numpy()
    assert (by_causal_learn(sim.X.to_numpy(), codes, alpha) == P).all()
    A = model.adjacency_matrix_.to_numpy() != 0
    undirected = int((P & P.T).sum()) // 2
    assert len(model.diagnostics_["undirected_edges"]) == undirected
    assert int(A.sum()) == int(skeleton(P).sum()) // 2 - len(model.diagnostics_["removed_edges"])
    assert not (A & (P == 0)).any()
    assert model.history_["edges"].tolist() == [int(A.sum())]


def test_undirected_edges_are_scored_by_either_direction():
    """Nothing changes with the group and there is no collider: no direction is known."""
    x = np.random.default_rng(100).normal(size=(200, 1))
    X = pd.DataFrame(np.tile(np.hstack([x, x + x[::-1]]), (2, 1)), columns=["a", "b"])
    model = rs.CDNOD().fit(X, groups=np.repeat(["u", "v"], 200))
    assert model.partial_graph_.to_numpy().tolist() == [[0, 1], [1, 0]]
    assert model.diagnostics_["undirected_edges"] == [{"from": "a", "to": "b"}]  # to the wider one
    truth = pd.DataFrame([[0, 0], [1, 0]], X.columns, X.columns)
    scores = rs.evaluate(truth, model.partial_graph_)
    assert (scores.tpr, scores.fdr, scores.shd) == (1, 0, 1)
    assert rs.evaluate(truth, model).shd == 1


def test_where_no_dag_fits_edges_point_at_wider_variables_and_cycles_are_cut():
    S = np.diag([1.0, 2.0, 3.0, 4.0])
    square = np.zeros((4, 4), dtype=bool)  # without a chord: every extension has a new collider
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 0)):
        square[i, j] = square[j, i] = True
    assert (_dag(square, S) == np.triu(square)).all()
    cycle = np.zeros((4, 4), dtype=bool)
    cycle[[0, 1, 2], [1, 2, 0]] = True
    A = _dag(cycle, S)
    assert is_dag(A)
    assert (A & cycle == A).all()
    assert A.sum() == 2


def test_cut_edges_are_told_and_are_still_in_the_partial_graph():
    """Sachs, whose graph by causal-learn has a directed cycle."""
    sachs = rs.load_sachs()
    with pytest.warns(DataWarning) as told:
        model = rs.CDNOD().fit(sachs.X, groups=sachs.groups)
    assert [str(w.message) for w in told if "Cut because" in str(w.message)] == [
        "Cut because they closed a cycle: 'PKC -> Jnk'."
    ]
    assert model.partial_graph_.loc["PKC", "Jnk"] == 1
    codes = pd.factorize(sachs.groups)[0]
    expected = by_causal_learn(sachs.X.to_numpy(), codes, 0.05)
    assert (model.partial_graph_.to_numpy() == expected).all()


def test_a_constant_column_is_alone_and_saving_keeps_the_partial_graph(data, tmp_path):
    with pytest.warns(match="Constant"):
        model = rs.CDNOD().fit(data.assign(same=1.0), groups=PLACES)
    P = model.partial_graph_
    assert not P.loc["same"].any()
    assert not P["same"].any()
    pd.testing.assert_frame_equal(
        P.iloc[:-1, :-1], rs.CDNOD().fit(data, groups=PLACES).partial_graph_
    )
    rs.save(model, tmp_path)
    pd.testing.assert_frame_equal(rs.load(tmp_path).partial_graph_, P)


@pytest.mark.parametrize("weigh", ["rows", "rescore"])
def test_weights_are_refused(data, weigh):
    if weigh == "rows":
        model, weight = rs.CDNOD(), np.linspace(1, 2, 600)
    else:
        model, weight = rs.ReScore(rs.CDNOD(), tau=0.5), None
    with pytest.raises(ValueError, match="CD-NOD cannot weigh rows"):
        model.fit(data, sample_weight=weight, groups=PLACES)


def test_equal_weights_are_no_weights(data):
    plain = rs.CDNOD().fit(data, groups=PLACES).partial_graph_
    for weight in (np.full(600, 0.3), np.ones(600), 1.0):
        same = rs.CDNOD().fit(data, sample_weight=weight, groups=PLACES).partial_graph_
        pd.testing.assert_frame_equal(same, plain)
    left_out = rs.CDNOD().fit(data, sample_weight=(PLACES != "west") * 1.0, groups=PLACES)
    subset = rs.CDNOD().fit(data[PLACES != "west"], groups=PLACES[PLACES != "west"])
    pd.testing.assert_frame_equal(left_out.partial_graph_, subset.partial_graph_)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (None, "CDNOD needs the group of each row"),
        (PLACES[:-1], "one label for each of the 600 rows"),
        (np.r_[["alone"], PLACES[1:]], "'alone' have fewer than 2 rows"),
        (np.r_[[None], PLACES[1:]], "1 missing label"),
        (pd.Series(PLACES, np.arange(600) + 7), "another index than X"),
        (np.full(600, "everywhere"), "name two groups or more"),
    ],
)
def test_bad_groups_are_named_with_a_remedy(data, groups, words):
    with pytest.raises(ValueError, match=words):
        rs.CDNOD().fit(data, groups=groups)


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_tested_is_refused(data):
    with pytest.raises(ValueError, match="linear combination of others"):
        rs.CDNOD().fit(data.assign(twice=2 * data["a"]), groups=PLACES)
    with pytest.raises(ValueError, match="linear combination of others"):
        rs.CDNOD().fit(data.assign(place=pd.factorize(PLACES)[0]), groups=PLACES)
    few = data.iloc[[0, 1, 2, 598, 599, 597, 3]]
    with pytest.raises(ValueError, match="need at least 8 rows for 4 variables, got 7"):
        rs.CDNOD().fit(few, groups=np.repeat([0, 1], [3, 4]))
    with pytest.raises(ValueError, match="alpha must be a number above 0 and below 1, got 1"):
        rs.CDNOD(alpha=1).fit(data, groups=PLACES)


def test_without_causal_learn_a_sentence_says_what_to_install(data, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "causallearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "causallearn", None)
    with pytest.raises(ImportError, match=r'pip install "rescore\[causal-learn\]"'):
        rs.CDNOD().fit(data, groups=PLACES)


def test_neither_streams_nor_filters_change(data, capfd):
    before = warnings.filters[:]
    rs.CDNOD().fit(data, groups=PLACES)
    assert warnings.filters == before
    assert capfd.readouterr() == ("", "")


def test_ctrl_c_keeps_the_partial_graph(data):
    def stop(record):
        raise KeyboardInterrupt

    model = rs.CDNOD()
    with pytest.raises(KeyboardInterrupt):
        model.fit(data, groups=PLACES, on_step=stop)
    expected = rs.CDNOD().fit(data, groups=PLACES).partial_graph_
    pd.testing.assert_frame_equal(model.partial_graph_, expected)


def test_on_the_command_line_it_is_not_wrapped_unless_weights_are_asked_for():
    from rescore.cli.learners import model_of

    around = {"tau": None, "weighting": None, "loss": None}
    assert isinstance(model_of("cd-nod", {"random_state": 0}, around), rs.CDNOD)
    assert isinstance(model_of("ges", {"random_state": 0}, around), rs.ReScore)
    assert isinstance(model_of("cd-nod", {}, around | {"weighting": "uniform"}), rs.ReScore)
