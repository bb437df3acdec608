import numpy as np
import pytest
from scipy import stats

from rescore.pruning.cam import (
    cross_products,
    fitted,
    p_values,
    significant,
    smooth_term,
    wald_p_value,
)


def equal(n):
    return np.full(n, 1 / n)


def nested_f_test(terms, y, i):
    """Least squares with and without term i."""
    n = len(y)

    def rss(kept):
        A = np.column_stack([np.ones(n), *(term.columns for term in kept)])
        r = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
        return r @ r, n - A.shape[1]

    full, left = rss(terms)
    without, _ = rss(terms[:i] + terms[i + 1 :])
    k = terms[i].columns.shape[1]
    return stats.f.sf((without - full) / k / (full / left), k, left)


@pytest.mark.parametrize("seed", range(4))
def test_without_a_penalty_it_is_the_nested_f_test(seed):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(250, 3))
    P[:, 1] += P[:, 0]
    y = np.sin(P[:, 0]) + 0.2 * P[:, 2] ** 2 + rng.normal(size=250)
    y = (y - y.mean()) / y.std()
    terms = [
        smooth_term(x, equal(250), functions) for x, functions in zip(P.T, (10, 6, 2), strict=True)
    ]
    given = cross_products(terms, y, equal(250), 250)
    fit = fitted(given, np.zeros(3))
    for i in range(3):
        own = given.term == i
        p = wald_p_value(
            fit.coefficients[own],
            fit.covariance[np.ix_(own, own)],
            fit.taken[own].sum(),
            fit.left,
        )
        assert p == pytest.approx(nested_f_test(terms, y, i), rel=1e-8)


@pytest.mark.parametrize("rank", [1, 3, 4])
def test_a_whole_rank_gives_uniform_p_values(rank):
    p = null_p_values(rank, runs=4000)
    assert stats.kstest(p, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("rank", [1.05, 1.3, 2.5, 3.9])
def test_a_rank_in_between_errs_on_the_safe_side(rank):
    """The mean of the p-values of two signs is less often small than either, by up to a half."""
    p = null_p_values(rank, runs=4000)
    assert 0.05 < (p < 0.1).mean() < 0.11
    assert 0.02 < (p < 0.05).mean() < 0.06


def null_p_values(rank, runs):
    rng = np.random.default_rng(int(10 * rank))
    A = rng.normal(size=(4, 4))
    scale = np.sqrt(30 / rng.chisquare(30, size=(runs, 1)))  # the noise is estimated
    draws = scale * (rng.normal(size=(runs, 4)) @ A)
    return np.array([wald_p_value(b, A.T @ A, rank, 30) for b in draws])


def simulated_p_values(runs, n, correlation, seed):
    """Of a parent without effect, beside one with a clear nonlinear effect."""
    rng = np.random.default_rng(seed)
    out = np.empty(runs)
    for r in range(runs):
        a, b, noise = rng.normal(size=(3, n))
        b = correlation * a + np.sqrt(1 - correlation**2) * b
        out[r] = p_values(np.column_stack([a, b]), np.sin(2 * a) + noise, equal(n), n)[1]
    return out


@pytest.mark.parametrize(("n", "correlation"), [(150, 0.0), (300, 0.7)])
def test_parents_without_effect_are_rejected_as_often_as_stated(n, correlation):
    """Small p-values are as frequent as they should be; those near one a little too rare.

    Over 2,000 runs the shares below 0.05 were 0.048 and 0.056, below 0.001 0 and 0.0005, and the
    largest distance from the uniform distribution 0.07, at p = 0.6.
    """
    p = simulated_p_values(400, n, correlation, seed=n)
    assert stats.kstest(p, "uniform").statistic < 0.13
    assert 0.02 < (p < 0.05).mean() < 0.085
    assert (p < 0.01).mean() < 0.03
    assert (p < 0.001).sum() <= 4


def test_weights_that_only_compare_leave_the_level_where_it_is():
    """Over 1,500 runs with exponential weights the shares were 0.053 at 0.05, 0.013 at 0.01."""
    rng = np.random.default_rng(3)
    p = []
    for _ in range(300):
        a, b, noise = rng.normal(size=(3, 200))
        w = rng.dirichlet(np.ones(200))
        p.append(p_values(np.column_stack([a, b]), np.sin(2 * a) + noise, w, 1 / (w @ w))[1])
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.09
    assert np.mean(np.array(p) < 0.01) < 0.035


def test_the_same_rows_twice_are_rows_of_weight_two():
    rng = np.random.default_rng(5)
    P, times = rng.normal(size=(120, 3)), rng.integers(0, 4, size=120)
    y = 0.4 * np.sin(2 * P[:, 0]) + 0.1 * P[:, 1] + rng.normal(size=120)
    total = times.sum()
    weighted = p_values(P, y, times / total, total)
    repeated = p_values(np.repeat(P, times, 0), np.repeat(y, times), equal(total), total)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-5)


def test_units_do_not_matter():
    rng = np.random.default_rng(6)
    P = rng.normal(size=(200, 2))
    y = 0.3 * P[:, 0] ** 2 + rng.normal(size=200)
    plain = p_values(P, y, equal(200), 200)
    moved = p_values(P * [1e-120, -3e140] + [0, 1e140], 7 - 1e100 * y, equal(200), 200)
    np.testing.assert_allclose(moved, plain, rtol=1e-4)


def test_what_cannot_matter_has_p_value_one():
    rng = np.random.default_rng(7)
    a, noise = rng.normal(size=(2, 100))
    P = np.column_stack([a, np.full(100, 3.0), a, -2 * a + 1])
    p = p_values(P, a + 0.1 * noise, equal(100), 100)
    assert p[0] < 1e-20
    np.testing.assert_array_equal(p[1:], 1)
    np.testing.assert_array_equal(p_values(P, np.zeros(100), equal(100), 100), 1)


def test_discrete_parents_and_a_relation_without_noise():
    rng = np.random.default_rng(8)
    coin, die, x = rng.integers(0, 2, 300), rng.integers(0, 6, 300), rng.normal(size=300)
    P = np.column_stack([coin, die, x]).astype(float)
    p = p_values(P, np.abs(die - 2.5) + rng.normal(size=300), equal(300), 300)
    assert p[1] < 1e-6
    assert p[0] > 1e-3
    assert p[2] > 1e-3
    exact = p_values(P, 2.0 * coin - x, equal(300), 300)
    assert exact[0] < 1e-200
    assert exact[2] < 1e-200
    assert exact[1] > 1e-3


@pytest.mark.parametrize("n", [5, 6, 8, 12, 20, 40])
def test_few_rows_give_p_values_all_the_same(n):
    rng = np.random.default_rng(n)
    p = p_values(rng.normal(size=(n, 3)), rng.normal(size=n), equal(n), n)
    assert ((p >= 0) & (p <= 1)).all()


def test_with_hardly_any_rows_it_is_the_linear_f_test():
    rng = np.random.default_rng(9)
    P, y = rng.normal(size=(12, 3)), rng.normal(size=12)
    terms = [smooth_term(x, equal(12), 2) for x in P.T]
    expected = [nested_f_test(terms, y - y.mean(), i) for i in range(3)]
    np.testing.assert_allclose(p_values(P, y, equal(12), 12), expected, rtol=1e-8)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match=r"3 parent\(s\) .* worth 4; at least 5 are needed"):
        p_values(np.eye(4)[:, :3], np.arange(4.0), equal(4), 4)


def test_only_edges_that_were_there_are_tested():
    X = np.random.default_rng(0).normal(size=(200, 4))
    X[:, 3] += 2 * X[:, 0] + 2 * X[:, 1]
    edges = np.zeros((4, 4), dtype=bool)
    edges[[0, 2], 3] = True
    kept = significant(X, edges, equal(200), 200, cutoff=0.001)
    assert np.argwhere(kept).tolist() == [[0, 3]]
