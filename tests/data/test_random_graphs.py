import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rescore.data.simulate import erdos_renyi, named_adjacency, relabel, scale_free
from rescore.graph.dag import topological_order


def acyclic(A: np.ndarray) -> bool:
    return nx.is_directed_acyclic_graph(nx.from_numpy_array(A, create_using=nx.DiGraph))


@given(st.integers(1, 30), st.integers(0, 6), st.integers(0, 2**32))
def test_erdos_renyi_is_a_dag_with_exactly_nodes_times_degree_edges(nodes, degree, seed):
    degree = min(degree, (nodes - 1) // 2)
    A = erdos_renyi(nodes, degree, np.random.default_rng(seed))
    assert A.sum() == nodes * degree
    assert set(np.unique(A)) <= {0, 1}
    assert acyclic(A)


@given(st.integers(1, 30), st.integers(0, 6), st.integers(0, 2**32))
def test_scale_free_is_a_dag_in_which_newcomers_send_degree_edges(nodes, degree, seed):
    degree = min(degree, nodes - 1)
    A = scale_free(nodes, degree, np.random.default_rng(seed))
    assert A.sum() == sum(min(older, degree) for older in range(nodes))
    assert A.sum(axis=1).max() == degree
    assert acyclic(A)


def test_every_ordered_pair_is_an_er_edge_equally_often():
    rng = np.random.default_rng(0)
    draws = 4000
    share = sum(erdos_renyi(6, 1, rng).astype(float) for _ in range(draws)) / draws
    off_diagonal = share[~np.eye(6, dtype=bool)]
    expected = 6 / 30  # six edges on thirty ordered pairs
    assert np.abs(off_diagonal - expected).max() < 5 * np.sqrt(expected * (1 - expected) / draws)


def test_scale_free_prefers_nodes_with_many_incoming_edges():
    # Three nodes of one edge each: the third chooses node 0 (in-degree 1) over node 1 with 2 : 1.
    rng = np.random.default_rng(0)
    draws = 6000
    stars = sum(scale_free(3, 1, rng).sum(axis=0).max() == 2 for _ in range(draws)) / draws
    assert abs(stars - 2 / 3) < 5 * np.sqrt(2 / 9 / draws)


def test_scale_free_hubs_are_common_effects():
    A = scale_free(300, 2, np.random.default_rng(0))
    assert A.sum(axis=1).max() == 2
    assert A.sum(axis=0).max() > 15  # an ER graph of this size stays below ten or so


def test_scale_free_labels_do_not_tell_the_age():
    rng = np.random.default_rng(0)
    first_is_hub = [scale_free(5, 1, rng).sum(axis=0).argmax() == 0 for _ in range(500)]
    assert np.mean(first_is_hub) < 0.35


def test_relabel_keeps_the_graph_up_to_names():
    A = erdos_renyi(8, 2, np.random.default_rng(1))
    B = relabel(A, np.random.default_rng(2))
    as_graph = [nx.from_numpy_array(M, create_using=nx.DiGraph) for M in (A, B)]
    assert nx.is_isomorphic(*as_graph)
    assert not (A == B).all()


@given(st.integers(0, 2**32))
def test_topological_order_puts_parents_first(seed):
    A = erdos_renyi(12, 3, np.random.default_rng(seed))
    place = np.argsort(topological_order(A))
    cause, effect = np.nonzero(A)
    assert (place[cause] < place[effect]).all()


def test_named_adjacency_keeps_names_and_leaves_the_input_alone():
    graph = pd.DataFrame([[0.0, 1.0], [0.0, 0.0]], index=["a", "b"], columns=["a", "b"])
    before = graph.copy()
    named = named_adjacency(graph)
    assert list(named.columns) == list(named.index) == ["a", "b"]
    assert (named.dtypes == np.int8).all()
    pd.testing.assert_frame_equal(graph, before)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (np.array([[0, 1], [1, 0]]), "has a cycle"),
        (np.array([[1]]), "has a cycle"),
        (np.zeros((2, 3)), "square"),
        (np.zeros(4), "square"),
        (np.zeros((0, 0)), "square"),
        (np.array([[0, 0.7], [0, 0]]), "only 0 and 1"),
        (np.array([[0, np.nan], [0, 0]]), "only 0 and 1"),
        (np.array([["0", "1"], ["0", "0"]]), "only 0 and 1"),
        (pd.DataFrame(np.zeros((2, 2)), index=["b", "a"], columns=["a", "b"]), "same order"),
        (pd.DataFrame(np.zeros((2, 2)), index=["a", "a"], columns=["a", "a"]), "twice"),
    ],
)
def test_a_bad_graph_is_refused(graph, words):
    with pytest.raises(ValueError, match=words):
        named_adjacency(graph)


@pytest.mark.parametrize("draw", [erdos_renyi, scale_free])
@pytest.mark.parametrize(("nodes", "degree"), [(0, 1), (-3, 1), (5, -1), (5, 5), (1, 2)])
def test_impossible_sizes_are_refused(draw, nodes, degree):
    with pytest.raises(ValueError, match=r"at (least|most)"):
        draw(nodes, degree, np.random.default_rng(0))


@pytest.mark.parametrize("bad", [True, 3.0, "3", None, np.nan])
def test_sizes_must_be_whole_numbers(bad):
    for nodes, degree in ((bad, 1), (9, bad)):
        with pytest.raises(TypeError, match="whole number"):
            erdos_renyi(nodes, degree, np.random.default_rng(0))
