import json
import pickle
from itertools import permutations, product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rescore import metrics
from rescore.graph.dag import cpdag, topological_order
from rescore.graph.io import read_graph, to_networkx
from rescore.metrics import cpdag_shd, evaluate, fdr, fpr, shd, sid, tpr

nx = pytest.importorskip("networkx")

SACHS = read_graph(Path(__file__).parents[1] / "golden" / "sachs_17.csv")
UNDIRECTED = np.array([[0, 1], [1, 0]])
DISTANCES = [metrics.sid, metrics.ancestor_aid, metrics.oset_aid, metrics.parent_aid]


def random_dag(rng, d, share=0.5):
    order = rng.permutation(d)
    return np.triu(rng.random((d, d)) < share, 1)[np.ix_(order, order)].astype(int)


dags = st.builds(
    lambda seed, d, share: [random_dag(np.random.default_rng([seed, k]), d, share) for k in (0, 1)],
    st.integers(0, 10**6),
    st.integers(2, 5),
    st.floats(0.1, 0.9),
)


# Golden values, which fix the convention of each metric.


def full_dag(order):
    rank = np.argsort(order)
    return (rank[:, None] < rank).astype(int)


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (np.zeros((11, 11)), (0, 0, 17, 53, 17)),
        (SACHS.to_numpy().T, (1, 0, 17, 62, 11)),
        (full_dag(topological_order(SACHS)), (0.690909, 1, 38, 0, 38)),
    ],
)
def test_golden_values_of_sachs(estimate, expected):
    assert SACHS.to_numpy().sum() == 17
    scores = evaluate(SACHS.to_numpy(), estimate)
    found = (scores.fdr, scores.tpr, scores.shd, scores.sid, scores.cpdag_shd)
    assert found == pytest.approx(expected, abs=5e-7)
    wrong = round(scores.fdr * scores.edges)
    assert scores.fpr == pytest.approx(wrong / (55 - 17))


# Independent references.


def brute_force_sid(truth, estimate):
    """Peters and Buehlmann's definition, with d-separation from networkx."""
    T = nx.from_numpy_array(truth, create_using=nx.DiGraph)
    E = nx.from_numpy_array(estimate, create_using=nx.DiGraph)
    wrong = 0
    for i, j in permutations(range(len(truth)), 2):
        parents = set(E.predecessors(i))
        if j in parents:
            wrong += j in nx.descendants(T, i)
        else:
            wrong += not is_valid_adjustment(T, i, j, parents)
    return wrong


def is_valid_adjustment(G, i, j, Z):
    """No forbidden node in Z, and Z blocks every path that is not causal (Shpitser et al.)."""
    on_causal_paths = (nx.descendants(G, i) & nx.ancestors(G, j)) | (
        {j} if j in nx.descendants(G, i) else set()
    )
    forbidden = on_causal_paths.union(*(nx.descendants(G, v) for v in on_causal_paths))
    proper_back_door = G.copy()
    proper_back_door.remove_edges_from([(i, v) for v in on_causal_paths if G.has_edge(i, v)])
    return not (Z & forbidden) and nx.is_d_separator(proper_back_door, {i}, {j}, Z)


@settings(max_examples=150, deadline=None)
@given(dags)
def test_sid_agrees_with_its_definition(pair):
    assert sid(*pair) == brute_force_sid(*pair)


@settings(max_examples=100, deadline=None)
@given(dags)
def test_rates_agree_with_sets_of_directed_edges(pair):
    cond, pred = ({(i, j) for i, j in np.argwhere(A).tolist()} for A in pair)
    d = len(pair[0])
    backwards = {(i, j) for i, j in pred if (j, i) in cond}
    extra = pred - cond - backwards
    missing = {(i, j) for i, j in cond if (i, j) not in pred and (j, i) not in pred}
    wrong = len(backwards) + len(extra)
    assert shd(*pair) == len(extra) + len(missing) + len(backwards)
    if cond:
        assert tpr(*pair) == len(pred & cond) / len(cond)
    if pred:
        assert fdr(*pair) == wrong / len(pred)
    if len(cond) < d * (d - 1) // 2:
        assert fpr(*pair) == wrong / (d * (d - 1) / 2 - len(cond))


@settings(max_examples=50, deadline=None)
@given(dags, st.randoms(use_true_random=False))
def test_every_metric_ignores_the_order_and_the_weights(pair, random):
    names = list("abcde")[: len(pair[0])]
    truth, estimate = (pd.DataFrame(A, index=names, columns=names) for A in pair)
    shuffled = random.sample(names, len(names))
    rows = random.sample(names, len(names))
    assert evaluate(truth, estimate) == evaluate(truth, -2.5 * estimate.loc[rows, shuffled])


@settings(max_examples=50, deadline=None)
@given(dags)
def test_a_graph_is_at_no_distance_from_itself(pair):
    scores = evaluate(pair[0], pair[0])
    assert (scores.shd, scores.fdr, scores.cpdag_shd) == (0, 0, 0)
    assert all(metric(pair[0], pair[0]) == 0 for metric in DISTANCES)
    assert shd(*pair) == shd(*pair[::-1])
    assert cpdag_shd(pair[0], cpdag(pair[0])) == 0
    assert metrics.parent_aid(cpdag(pair[0]), cpdag(pair[0])) == 0


def looks(A):
    """What tells classes apart: the adjacent pairs, and the v-structures i -> k <- j."""
    joined = A | A.T
    vs = {
        (frozenset((i, j)), k)
        for i, j, k in permutations(range(len(A)), 3)
        if A[i, k] and A[j, k] and not joined[i, j]
    }
    return joined.tobytes(), frozenset(vs)


def every_dag(d):
    pairs = [(i, j) for i in range(d) for j in range(i)]
    for kinds in product((0, 1, 2), repeat=len(pairs)):
        A = np.zeros((d, d), dtype=bool)
        for (i, j), kind in zip(pairs, kinds, strict=True):
            A[(i, j) if kind == 1 else (j, i)] = kind > 0
        if nx.is_directed_acyclic_graph(nx.from_numpy_array(A, create_using=nx.DiGraph)):
            yield A


@pytest.mark.parametrize("d", [2, 3, 4])
def test_cpdag_shd_agrees_with_the_unions_of_whole_classes(d):
    members = {}
    for A in every_dag(d):
        members.setdefault(looks(A), []).append(A)
    classes = {key: np.logical_or.reduce(each) for key, each in members.items()}
    rng, keys = np.random.default_rng(0), list(classes)
    for _ in range(60):
        pair = [keys[k] for k in rng.integers(len(keys), size=2)]
        truth, estimate = (members[key][rng.integers(len(members[key]))] for key in pair)
        different = classes[pair[0]] != classes[pair[1]]
        expected = sum(bool(different[i, j] or different[j, i]) for i in range(d) for j in range(i))
        assert evaluate(truth, estimate).cpdag_shd == expected


def test_members_of_one_class_differ_by_shd_alone():
    forwards, backwards = np.eye(4, k=1), np.eye(4, k=-1)
    scores = evaluate(forwards, backwards)
    assert (scores.shd, scores.cpdag_shd) == (3, 0)


# Partially directed graphs.


def test_a_two_cycle_counts_as_one_true_positive():
    truth = [[0, 1], [0, 0]]
    assert (tpr(truth, UNDIRECTED), fdr(truth, UNDIRECTED), shd(truth, UNDIRECTED)) == (1, 0, 1)
    assert evaluate(truth, UNDIRECTED).edges == 1


def test_an_undirected_edge_between_strangers_is_one_false_positive():
    truth = np.zeros((3, 3))
    estimate = np.pad(UNDIRECTED, (0, 1))
    assert (fdr(truth, estimate), fpr(truth, estimate), shd(truth, estimate)) == (1, 1 / 3, 1)


@settings(max_examples=50, deadline=None)
@given(dags, st.randoms(use_true_random=False))
def test_an_optimistic_shd_forgives_undirected_edges_of_the_true_skeleton(pair, random):
    """As NOTEARS counts: extra pairs, missing pairs, and directed edges that are reversed."""
    truth, partial = (np.array(graph) != 0 for graph in pair)
    for i, j in np.argwhere(partial):
        partial[j, i] = random.random() < 0.5
    cond, pred = ({(i, j) for i, j in np.argwhere(A).tolist()} for A in (truth, partial))
    true_pairs, pairs = ({frozenset(edge) for edge in edges} for edges in (cond, pred))
    undirected = {frozenset((i, j)) for i, j in pred if (j, i) in pred}
    backwards = {(i, j) for i, j in pred if (j, i) in cond and (j, i) not in pred}
    expected = len(pairs ^ true_pairs) + len(backwards)
    assert shd(truth, partial, undirected_agrees=True) == expected
    assert shd(truth, partial) == expected + len(true_pairs & undirected)
    assert shd(partial, truth, undirected_agrees=True) == expected


def test_a_reversal_counts_once():
    truth, estimate = np.triu(np.ones((3, 3)), 1), np.triu(np.ones((3, 3)), 1)
    estimate[0, 1], estimate[1, 0] = 0, 1
    assert shd(truth, estimate) == 1
    assert cpdag_shd(truth, estimate) == 0


def test_a_cpdag_has_adjustment_distances_but_no_sid():
    scores = evaluate([[0, 1], [0, 0]], UNDIRECTED)
    assert scores.sid is None
    assert "DAG" in scores.undefined["sid"]
    assert scores.parent_aid == 2
    assert scores.cpdag_shd == 0


def test_a_cyclic_estimate_gets_counts_and_reasons():
    names = ["a", "b", "c"]
    cycle = pd.DataFrame(np.roll(np.eye(3), 1, axis=1), index=names, columns=names)
    truth = cycle.copy()
    truth.loc["c", "a"] = 0
    scores = evaluate(truth, cycle)
    assert (scores.shd, scores.fpr) == (1, 1)
    assert {"sid", "cpdag_shd", "ancestor_aid", "oset_aid", "parent_aid"} == set(scores.undefined)
    assert "a -> b -> c -> a" in scores.undefined["sid"]
    for metric in DISTANCES:
        with pytest.raises(ValueError, match="estimate"):
            metric(truth, cycle)


def test_a_pdag_that_is_no_cpdag_is_refused_before_gadjid_sees_it():
    square = np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1)
    for metric in DISTANCES:
        with pytest.raises(ValueError, match="estimate"):
            metric(np.zeros((4, 4)), square)


# Edges of the definitions.


def test_without_true_edges_there_is_no_tpr():
    scores = evaluate(np.zeros((3, 3)), np.zeros((3, 3)))
    assert np.isnan(tpr(np.zeros((3, 3)), np.zeros((3, 3))))
    assert (scores.tpr, scores.fdr, scores.fpr) == (None, 0, 0)
    assert "truth" in scores.undefined["tpr"]


def test_a_complete_truth_has_no_fpr():
    truth = np.triu(np.ones((3, 3)), 1)
    assert np.isnan(fpr(truth, truth))
    assert evaluate(truth, truth).fpr is None


@pytest.mark.parametrize("d", [0, 1])
def test_graphs_of_less_than_two_nodes_have_distance_zero(d):
    scores = evaluate(np.zeros((d, d)), np.zeros((d, d)))
    assert (scores.shd, scores.sid, scores.ancestor_aid, scores.edges) == (0, 0, 0, 0)


# Inputs.


def test_all_forms_of_a_graph_give_the_same_scores():
    rng = np.random.default_rng(3)
    estimate = pd.DataFrame(random_dag(rng, 11), index=SACHS.index, columns=SACHS.columns)
    shuffled = estimate.sample(frac=1, random_state=0)
    graph = to_networkx(shuffled[shuffled.index].to_numpy(), list(shuffled.index))
    expected = evaluate(SACHS, estimate)
    for form in (graph, shuffled, SimpleNamespace(adjacency_matrix_=estimate), estimate.to_numpy()):
        assert evaluate(SACHS, form) == expected
    assert evaluate(to_networkx(SACHS.to_numpy(), list(SACHS)), estimate) == expected


def test_numbered_networkx_nodes_are_positions_whatever_their_order():
    graph = nx.DiGraph([(2, 0), (0, 1)])
    assert list(graph) == [2, 0, 1]
    assert shd([[0, 0, 0], [0, 0, 0], [1, 0, 0]], graph) == 1


def test_names_that_do_not_match_are_listed():
    with pytest.raises(ValueError, match=r"truth has: 'Raf'.*estimate has: 'RAF'"):
        evaluate(SACHS, SACHS.rename(index={"Raf": "RAF"}, columns={"Raf": "RAF"}))


def test_a_named_networkx_graph_is_not_matched_by_position():
    with pytest.raises(ValueError, match="cannot be matched"):
        evaluate(SACHS.to_numpy(), to_networkx(SACHS.to_numpy(), list(SACHS)))


@pytest.mark.parametrize(
    ("estimate", "error"),
    [
        (np.eye(2), ValueError),
        (np.zeros((3, 3)), ValueError),
        (np.full((2, 2), np.nan), ValueError),
        (nx.Graph([(0, 1)]), TypeError),
        (nx.MultiDiGraph([(0, 1)]), TypeError),
        ("graph", TypeError),
        (None, TypeError),
        (pd.DataFrame(np.zeros((2, 2)), columns=["a", "b"]), ValueError),
        (pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"], index=["a", "a"]), ValueError),
    ],
)
def test_what_cannot_be_compared_is_refused(estimate, error):
    with pytest.raises(error):
        evaluate(np.zeros((2, 2)), estimate)


def test_scores_are_a_value():
    scores = evaluate(SACHS, SACHS.T)
    assert dict(scores) == scores.as_dict() == json.loads(json.dumps(scores.as_dict()))
    assert pickle.loads(pickle.dumps(scores)) == scores
    assert scores.to_series()["shd"] == 17
    assert list(scores.keys())[:6] == ["tpr", "fdr", "fpr", "shd", "sid", "edges"]
    assert len(str(scores).splitlines()) == 10
    assert "sid           62" in str(scores)
    with pytest.raises(KeyError, match="no metric"):
        scores["undefined"]
