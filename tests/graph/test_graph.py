from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rescore.graph.dag import (
    consistent_dag,
    cpdag,
    cut_to_dag,
    is_cpdag,
    is_dag,
    open_edges,
    skeleton,
    threshold,
    topological_order,
)

nx = pytest.importorskip("networkx")

weights = st.sampled_from([0, 0, 0, -2.0, -1.0, -0.5, 0.25, 0.5, 1.0, 1.5])
matrices = st.integers(0, 6).flatmap(lambda d: arrays(float, (d, d), elements=weights))
loop_free = matrices.map(lambda W: W * (1 - np.eye(len(W))))


def as_networkx(W):
    return nx.from_numpy_array(np.asarray(W), create_using=nx.DiGraph)


def all_dags(d):
    pairs = list(combinations(range(d), 2))
    for choice in product((None, False, True), repeat=len(pairs)):
        A = np.zeros((d, d), dtype=bool)
        for (i, j), flip in zip(pairs, choice, strict=True):
            if flip is not None:
                A[(j, i) if flip else (i, j)] = True
        if nx.is_directed_acyclic_graph(as_networkx(A)):
            yield A


def equivalence_key(A):
    """Two DAGs are Markov equivalent iff skeleton and v-structures agree."""
    joined = A | A.T
    colliders = {
        (a, c, b)
        for c in range(len(A))
        for a, b in combinations(np.flatnonzero(A[:, c]).tolist(), 2)
        if not joined[a, b]
    }
    return joined.tobytes(), frozenset(colliders)


def equivalence_classes(d):
    classes = {}
    for A in all_dags(d):
        classes.setdefault(equivalence_key(A), []).append(A)
    return classes


@given(matrices)
def test_is_dag_agrees_with_networkx(W):
    assert is_dag(W) == nx.is_directed_acyclic_graph(as_networkx(W))


@given(loop_free)
def test_topological_order_is_the_lexicographically_smallest_one(W):
    if is_dag(W):
        assert topological_order(W) == list(nx.lexicographical_topological_sort(as_networkx(W)))


def test_a_cycle_is_named_by_its_nodes():
    W = np.zeros((4, 4))
    W[0, 1] = W[1, 2] = W[2, 1] = 1
    with pytest.raises(ValueError, match=r"cycle, (1 -> 2 -> 1|2 -> 1 -> 2),"):
        topological_order(W)
    with pytest.raises(ValueError, match=r"(b -> c -> b|c -> b -> c)"):
        topological_order(W, names=list("abcd"))


def test_a_long_cycle_is_shortened_and_hostile_names_are_harmless():
    W = np.roll(np.eye(500), 1, axis=1)
    with pytest.raises(ValueError, match="cycle") as caught:
        topological_order(W, names=["\x1b[31m" + "x" * 10_000] * 500)
    assert len(str(caught.value)) < 1000
    assert "\x1b" not in str(caught.value)


@given(matrices, st.floats(0, 2))
def test_threshold_zeroes_what_is_weaker_and_nothing_else(W, at):
    keep = W < 0
    before = W.copy()
    result = threshold(W, at, keep)
    stays = (np.abs(W) >= at) | keep
    np.testing.assert_array_equal(result, np.where(stays, W, 0))
    np.testing.assert_array_equal(W, before)


@given(matrices)
def test_cut_to_dag_removes_only_weakest_edges_of_cycles(W):
    before = W.copy()
    result, removed = cut_to_dag(W)
    np.testing.assert_array_equal(W, before)
    assert is_dag(result)
    restored = result.copy()
    for i, j, weight in removed:
        restored[i, j] = weight
    np.testing.assert_array_equal(restored, W)
    strengths = [abs(weight) for *_, weight in removed]
    assert strengths == sorted(strengths)
    for i, j, weight in removed:  # weakest of a cycle of edges that all stay
        stronger = as_networkx(np.where(np.abs(result) >= abs(weight), result, 0))
        assert nx.has_path(stronger, j, i)


def weakest_first(W):
    """The obvious way: while there is a cycle, delete the weakest edge on any."""
    W = W.copy()
    while not is_dag(W):
        label = {
            v: k for k, c in enumerate(nx.strongly_connected_components(as_networkx(W))) for v in c
        }
        on_cycle = [(abs(W[i, j]), i, j) for i, j in np.argwhere(W) if label[i] == label[j]]
        _, i, j = min(on_cycle)
        W[i, j] = 0
    return W


@given(loop_free)
def test_cut_to_dag_keeps_at_least_what_deleting_the_weakest_keeps(W):
    distinct = W * (1 + 1e-6 * np.arange(W.size).reshape(W.shape))  # no ties
    kept = cut_to_dag(distinct)[0]
    plain = weakest_first(distinct)
    assert ((plain != 0) <= (kept != 0)).all()


@given(loop_free)
def test_cut_to_dag_never_removes_edges_to_keep(W):
    keep = np.triu(np.ones_like(W, dtype=bool), 1)
    result, removed = cut_to_dag(W, keep)
    assert is_dag(result)
    assert all(not keep[i, j] for i, j, _ in removed)


def test_cut_to_dag_prefers_a_weak_kept_edge_over_a_strong_one():
    keep = np.array([[False, True], [False, False]])
    result, removed = cut_to_dag([[0, 0.1], [5.0, 0]], keep)
    assert removed == [(1, 0, 5.0)]
    assert result[0, 1] == 0.1


def test_edges_to_keep_must_be_acyclic():
    with pytest.raises(ValueError, match="cycle among themselves"):
        cut_to_dag(np.ones((2, 2)), np.ones((2, 2), dtype=bool))


def test_ties_are_broken_by_index():
    assert cut_to_dag([[0, 1.0], [1.0, 0]])[1] == [(1, 0, 1.0)]


@pytest.mark.parametrize("d", [0, 1, 2, 3, 4])
def test_cpdag_is_the_union_of_every_equivalence_class(d):
    for members in equivalence_classes(d).values():
        union = np.logical_or.reduce(members)
        for A in members:
            np.testing.assert_array_equal(cpdag(A), union)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_an_edge_is_open_where_another_member_turns_it_round(d):
    for members in equivalence_classes(d).values():
        for A in members:
            turned = np.logical_or.reduce([A & B.T for B in members])
            np.testing.assert_array_equal(open_edges(A, cpdag(A)), turned)
            assert not open_edges(A, None).any()


@pytest.mark.parametrize(
    "directions", [[[0, 0], [1, 0]], [[0, 0], [0, 0]], [[0]], [[0, 1, 0], [0, 0, 0], [0, 0, 0]]]
)
def test_a_graph_and_the_class_of_another_are_refused(directions):
    with pytest.raises(ValueError, match="not a member of the class"):
        open_edges([[0, 1], [0, 0]], directions)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_consistent_dag_is_in_the_class_it_came_from(d):
    for key, members in equivalence_classes(d).items():
        P = np.logical_or.reduce(members)
        assert is_cpdag(P)
        assert equivalence_key(consistent_dag(P) != 0) == key


@pytest.mark.parametrize("d", [2, 3])
def test_is_cpdag_accepts_nothing_else(d):
    valid = {np.logical_or.reduce(members).tobytes() for members in equivalence_classes(d).values()}
    off_diagonal = np.argwhere(~np.eye(d, dtype=bool))
    for choice in product((False, True), repeat=len(off_diagonal)):
        P = np.zeros((d, d), dtype=bool)
        P[tuple(off_diagonal[list(choice)].T)] = True
        assert is_cpdag(P) == (P.tobytes() in valid)


def random_dag(rng, d, share):
    order = rng.permutation(d)
    return np.triu(rng.random((d, d)) < share, 1)[np.ix_(order, order)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 12), st.floats(0.1, 0.6))
def test_cpdag_of_larger_graphs_is_closed_and_stable(seed, d, share):
    A = random_dag(np.random.default_rng(seed), d, share)
    P = cpdag(A)
    np.testing.assert_array_equal(skeleton(P), skeleton(A))
    assert ((P == 1) >= A).all()
    B = consistent_dag(P) != 0
    assert equivalence_key(A) == equivalence_key(B)
    np.testing.assert_array_equal(cpdag(B), P)


def test_no_dag_for_a_chordless_undirected_square():
    P = np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1)
    with pytest.raises(ValueError, match="No DAG"):
        consistent_dag(P)
    assert not is_cpdag(P)


def test_a_thousand_nodes_take_seconds_not_minutes():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(1000, 1000)) * (rng.random((1000, 1000)) < 0.01)
    result, _ = cut_to_dag(W)
    assert is_dag(result)
    assert is_cpdag(cpdag(result))


@pytest.mark.parametrize("function", [is_dag, topological_order, cut_to_dag, cpdag, skeleton])
@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (np.zeros((2, 3)), ValueError),
        (np.zeros(4), ValueError),
        ([[0, np.nan], [0, 0]], ValueError),
        ([[0, np.inf], [0, 0]], ValueError),
        ([["0", "1"], ["0", "0"]], TypeError),
        (np.zeros((2, 2), dtype=complex), TypeError),
    ],
)
def test_what_is_not_a_graph_is_refused(function, bad, error):
    with pytest.raises(error):
        function(bad)


@pytest.mark.parametrize("keep", [np.zeros((2, 2)), np.zeros((3, 3), dtype=bool)])
def test_a_mask_is_boolean_and_of_the_same_shape(keep):
    with pytest.raises(ValueError, match="boolean matrix"):
        threshold(np.zeros((2, 2)), 0.1, keep)
    with pytest.raises(ValueError, match="boolean matrix"):
        cut_to_dag(np.zeros((2, 2)), keep)


@pytest.mark.parametrize("at", [-0.1, np.nan, np.inf])
def test_a_threshold_is_a_finite_number(at):
    with pytest.raises(ValueError, match="finite"):
        threshold(np.zeros((2, 2)), at)
