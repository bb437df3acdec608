import numpy as np
import pytest

from rescore.solvers import grow_shrink, regression
from rescore.solvers.order_search import OrderSearch


def covariance(d, seed, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + rng.normal(size=(d, d)) / 8)
    return np.corrcoef(X.T)


def left(S, j, parents):
    """The variance that a regression leaves, by the normal equations."""
    return S[j, j] - S[j, parents] @ np.linalg.solve(S[np.ix_(parents, parents)], S[parents, j])


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_gains_are_those_of_regressions_with_one_parent_more(seed, K):
    S = np.array([covariance(7, seed + k) for k in range(K)])
    weight, parents, j = np.random.default_rng(seed).uniform(1, 2, K), [4, 1, 6], 2
    U, gain = np.zeros((3, 7)), np.empty(7)
    for m, p in enumerate(parents):
        regression.orthogonal_row(S, weight, p, U, m)
    variance = regression.gains(S, weight, j, 100.0, U, 3, gain)
    pooled = np.tensordot(weight, S, axes=1)
    assert variance == pytest.approx(left(pooled, j, parents))
    for i in (0, 3, 5):
        expected = 50 * np.log(variance / left(pooled, j, [*parents, i]))
        assert gain[i] == pytest.approx(expected, rel=1e-6)
    assert (gain[parents] == 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_sweep_is_a_regression_and_its_own_inverse(seed):
    S, P = covariance(6, seed), np.array([5, 0, 3])
    M = regression.swept_on(S, 2, P, 3)
    b = np.linalg.solve(S[np.ix_(P, P)], S[P, 2])
    np.testing.assert_allclose(M[:3, -1], b, rtol=1e-6)
    assert M[-1, -1] == pytest.approx(left(S, 2, P), rel=1e-6)
    regression.swept(M, 1)
    np.testing.assert_allclose(M, _as_placed(regression.swept_on(S, 2, P[[0, 2]], 2), M), rtol=1e-6)


def _as_placed(fewer, M):
    """Without the second variable, whose row and column are not looked at."""
    out = M.copy()
    out[np.ix_([0, 2, 3], [0, 2, 3])] = fewer
    return out


@pytest.mark.parametrize("seed", range(5))
def test_parents_swept_out_are_those_that_regressions_without_each_take_out(seed):
    S, d = covariance(9, seed)[None], 9
    free = ~np.eye(d, dtype=bool)
    search = OrderSearch(S, np.full((1, d), 300.0), free, ~free & False, penalty=15.0)
    fewer = 0
    for j in range(d):
        P = np.flatnonzero(np.arange(d) != j)
        Q = P.copy()
        value, k = grow_shrink._swept_out(search.scores, j, P, d - 1, 0)
        expected, m = grow_shrink._fitted_without(search.scores, j, Q, d - 1, 0)
        assert k == m
        fewer += d - 1 - k
        np.testing.assert_array_equal(P[:k], Q[:k])
        assert value == pytest.approx(expected, abs=1e-6)
    assert fewer > d


@pytest.mark.parametrize("seed", range(5))
def test_parents_do_not_depend_on_what_was_asked_before(seed):
    """The rows of the path looked at last are used again, of required causes too."""
    S, d, rng = covariance(8, seed)[None], 8, np.random.default_rng(seed)
    free, required = ~np.eye(d, dtype=bool), np.zeros((d, d), dtype=bool)
    required[[6, 7], 0] = True
    allowed = free.copy()
    allowed[0, [6, 7]] = False

    def search():
        return OrderSearch(S, np.full((1, d), 300.0), allowed, required, penalty=5.0)

    used = search()
    for _ in range(60):
        j, before = rng.integers(d), rng.random(d) < 0.6
        before[j] = False
        before |= required[:, j]
        np.testing.assert_array_equal(used.parents(j, before), search().parents(j, before))
