from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from rescore.data.simulate import simulate
from rescore.graph.dag import topological_order
from rescore.pruning.cam import cam_prune, term_p_values


def table(n=400, seed=0):
    """c depends on a and b in curves, d on nothing."""
    X = pd.DataFrame(np.random.default_rng(seed).normal(size=(n, 4)), columns=list("abcd"))
    X["c"] += np.cos(2 * X["a"]) + 0.4 * X["b"] ** 2
    return X


def every_edge_along(order):
    place = np.argsort(order)
    return (place[:, None] < place).astype(float)


def test_a_table_gives_a_table_in_its_own_order_and_keeps_the_values():
    X = table()
    names = ["d", "c", "b", "a"]
    graph = pd.DataFrame(0.0, index=names, columns=names)
    graph.loc["a", "c"], graph.loc["b", "c"], graph.loc["d", "c"], graph.loc["a", "b"] = 2, -3, 4, 5
    before = graph.copy()
    pruned = cam_prune(X, graph)
    pd.testing.assert_frame_equal(graph, before)
    expected = pd.DataFrame(0.0, index=names, columns=names)
    expected.loc["a", "c"], expected.loc["b", "c"] = 2, -3
    pd.testing.assert_frame_equal(pruned, expected)
    model = SimpleNamespace(adjacency_matrix_=graph)
    pd.testing.assert_frame_equal(cam_prune(X, model), expected)


@pytest.mark.parametrize("dtype", [bool, np.int8, float])
def test_an_array_gives_an_array_of_the_same_type(dtype):
    graph = np.triu(np.ones((4, 4)), 1).astype(dtype)
    pruned = cam_prune(table().to_numpy(), graph)
    assert pruned.dtype == dtype
    assert np.argwhere(pruned).tolist() == [[0, 2], [1, 2]]


def test_an_edge_stays_up_to_the_cutoff_and_what_stays_is_never_more():
    X, graph = table(), np.triu(np.ones((4, 4)), 1)
    p = term_p_values(X, "d", ["a", "b", "c"]).to_numpy()
    for cutoff in (0, 0.001, *p, 1):
        np.testing.assert_array_equal(cam_prune(X, graph, cutoff)[:3, 3], p <= cutoff)
    assert cam_prune(X, graph, cutoff=1).sum() == 6


def test_weights_count_rows_or_compare_them():
    X, graph = table(), np.triu(np.ones((4, 4)), 1)
    p = term_p_values(X, "c", ["b", "a"])
    for w in (1 / 400, np.full(400, 0.3), np.ones(400, dtype=int)):
        pd.testing.assert_series_equal(term_p_values(X, "c", ["b", "a"], w), p, rtol=1e-6)
    times = np.arange(400) % 3
    pd.testing.assert_series_equal(
        term_p_values(X, "d", ["b", "a"], times),
        term_p_values(X.loc[X.index.repeat(times)], "d", ["b", "a"]),
        rtol=1e-5,
    )
    assert (cam_prune(X, graph, sample_weight=np.full(400, 0.3)) == cam_prune(X, graph)).all()


def test_rows_of_weight_zero_are_not_there():
    X = table()
    spoiled = pd.concat([X, pd.DataFrame(1e9, index=range(5), columns=X.columns)])
    weights = np.append(np.ones(400, dtype=int), np.zeros(5, dtype=int))
    pd.testing.assert_series_equal(
        term_p_values(spoiled, "c", ["a", "d"], weights), term_p_values(X, "c", ["a", "d"])
    )


@pytest.mark.parametrize(("mechanism", "least_kept"), [("gp-add", 0.97), ("gp", 0.6)])
def test_of_all_edges_along_the_true_order_the_true_ones_stay(mechanism, least_kept):
    """Seven nodes, 14 true edges and 7 others each.

    One joint function of four or more parents ("gp") is far from additive: there, parents are lost.
    """
    kept = true = removed = false = 0
    for seed in range(100, 105):
        data = simulate(
            "ER", degree=2, nodes=7, samples=600, mechanism=mechanism, random_state=seed
        )
        truth = data.truth.to_numpy() != 0
        full = every_edge_along(topological_order(truth))
        pruned = cam_prune(data.X, pd.DataFrame(full, data.names, data.names)).to_numpy() != 0
        kept, true = kept + (pruned & truth).sum(), true + truth.sum()
        false += (full != 0).sum() - truth.sum()
        removed += ((full != 0) & ~truth & ~pruned).sum()
    assert kept / true >= least_kept
    assert removed / false >= 0.97


def test_errors_are_sentences():
    X, graph = table(), np.triu(np.ones((4, 4)), 1)
    with pytest.raises(ValueError, match="cutoff must be a number of at least 0"):
        cam_prune(X, graph, cutoff=-1)
    with pytest.raises(ValueError, match=r"3 node\(s\) but the data 4"):
        cam_prune(X, np.zeros((3, 3)))
    with pytest.raises(ValueError, match="self-loop"):
        cam_prune(X, np.eye(4))
    with pytest.raises(ValueError, match="names of the data's columns"):
        cam_prune(X, pd.DataFrame(graph))
    with pytest.raises(ValueError, match="one weight for each of the 400 rows"):
        cam_prune(X, graph, sample_weight=[1, 2])
    with pytest.raises(ValueError, match="no column 'e'"):
        term_p_values(X, "e", ["a"])
    with pytest.raises(ValueError, match="differ from each other and from the target"):
        term_p_values(X, "a", ["a"])
    assert term_p_values(X, "a", []).empty
