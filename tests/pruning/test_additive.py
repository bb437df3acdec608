import numpy as np
import pytest
from scipy.optimize import root

from rescore.pruning.cam import (
    cross_products,
    fitted,
    likeliest_smoothing,
    restricted_likelihood,
    smooth_term,
)


def products(P, y, functions=10):
    n = len(y)
    w = np.full(n, 1 / n)
    terms = [smooth_term(x, w, functions) for x in P.T]
    return cross_products(terms, (y - y.mean()) / y.std(), w, n), terms


def table(name):
    """Three candidate parents, the first two of which may matter; used for the reference too."""
    seed = ["strong", "weak", "null", "correlated", "nonlinear"].index(name) + 1
    a, b, c, noise = np.random.default_rng(seed).normal(size=(4, 400))
    if name == "correlated":
        b = 0.8 * a + 0.6 * b
    mean = {
        "strong": np.sin(2 * a) + b,
        "weak": 0.12 * a + 0.1 * b**2,
        "null": 0 * a,
        "correlated": np.tanh(a),
        "nonlinear": np.cos(2 * a) + 0.3 * b**2,
    }[name]
    return np.column_stack([a, b, c]), mean + noise


# statsmodels 0.15.0: GLMGam(y, np.ones((400, 1)), smoother=BSplines(P, df=[10] * 3,
# degree=[3] * 3), alpha=[2, 20, 0.2]).fit(); effective degrees of freedom of each term, and the
# Wald statistics of test_significance, which uses the same (Bayesian) covariance at full rank.
STATSMODELS = {
    "strong": ([3.415912, 1.958407, 5.949351], [89.0857, 339.68943, 4.96039]),
    "weak": ([3.397509, 1.948267, 5.835101], [1.6015, 4.65058, 6.24086]),
    "null": ([3.594829, 1.917003, 5.769754], [4.17197, 2.83536, 3.19144]),
    "correlated": ([3.493192, 1.835032, 6.150289], [68.04498, 1.53282, 4.31203]),
    "nonlinear": ([3.393082, 1.917611, 5.652123], [105.84468, 44.54043, 7.80954]),
}


@pytest.mark.parametrize("name", STATSMODELS)
def test_the_fit_is_that_of_statsmodels_at_the_same_smoothness(name):
    """Knots differ in their fourth decimal, so the statistics agree to a few parts in 10,000."""
    freedom, statistics = STATSMODELS[name]
    given, _ = products(*table(name))

    def excess(log_smoothing):
        P = np.diag(np.exp(log_smoothing)[given.term] * given.penalty)
        F = np.linalg.solve(given.gram + P, given.gram)
        return np.bincount(given.term, np.diag(F)) - freedom

    fit = fitted(given, np.exp(root(excess, np.full(3, -4.0)).x))
    assert fit.left == pytest.approx(400 - 1 - sum(freedom))
    for i, statistic in enumerate(statistics):
        own = given.term == i
        b, V = fit.coefficients[own], fit.covariance[np.ix_(own, own)]
        assert b @ np.linalg.solve(V, b) == pytest.approx(statistic, rel=5e-4)


def test_without_smoothing_it_is_least_squares():
    P, y = table("nonlinear")
    given, terms = products(P, y)
    fit = fitted(given, np.zeros(3))
    A = np.column_stack([np.ones(400), *(term.columns for term in terms)])
    b, rss, *_ = np.linalg.lstsq(A, (y - y.mean()) / y.std(), rcond=None)
    np.testing.assert_allclose(fit.coefficients, b[1:], atol=1e-9)
    covariance = rss[0] / (400 - 28) * np.linalg.inv(A.T @ A)[1:, 1:]
    np.testing.assert_allclose(fit.covariance, covariance, atol=1e-9)
    np.testing.assert_allclose(fit.taken, 1, atol=1e-9)


def test_the_likelihood_is_that_of_the_mixed_model():
    """Penalised coefficients as random effects: REML with the n x n covariance, by brute force."""
    P, y = table("weak")
    P, y = P[:80, :2], y[:80]
    y = (y - y.mean()) / y.std()
    given, terms = products(P, y, functions=5)
    Z = np.hstack([term.columns for term in terms])
    fixed = np.column_stack([np.ones(80), Z[:, given.penalty == 0]])

    def brute_force(smoothing):
        rough = given.penalty > 0
        precision = 80 * (smoothing[given.term] * given.penalty)[rough]
        K = np.eye(80) + (Z[:, rough] / precision) @ Z[:, rough].T
        inverse = np.linalg.inv(K)
        A = fixed.T @ inverse @ fixed
        r = y - fixed @ np.linalg.solve(A, fixed.T @ inverse @ y)
        free = 80 - fixed.shape[1]
        return free * np.log(r @ inverse @ r) + np.linalg.slogdet(K)[1] + np.linalg.slogdet(A)[1]

    one, other = np.array([0.01, 0.3]), np.array([2.0, 1e-4])
    rise = restricted_likelihood(one, given)[0] - restricted_likelihood(other, given)[0]
    assert rise == pytest.approx(brute_force(one) - brute_force(other), rel=1e-8)


def test_the_gradient_is_that_of_finite_differences():
    given, _ = products(*table("nonlinear"))
    at, h = np.array([-6.0, -1.0, 2.0]), 1e-5
    for i in range(3):
        e = h * np.eye(3)[i]
        rise = [restricted_likelihood(np.exp(at + s * e), given)[0] for s in (1, -1)]
        slope = restricted_likelihood(np.exp(at), given)[1][i]
        assert slope == pytest.approx((rise[0] - rise[1]) / (2 * h), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", STATSMODELS)
def test_no_other_smoothing_is_likelier(name):
    given, _ = products(*table(name))
    best = likeliest_smoothing(given)
    value = restricted_likelihood(best, given)[0]
    rng = np.random.default_rng(0)
    for size in (0.1, 1.0, 4.0):
        others = np.clip(best * np.exp(size * rng.normal(size=(100, 3))), 1e-8, 1e8)
        values = [restricted_likelihood(other, given)[0] for other in others]
        assert min(values) >= value - 1e-5


def test_columns_that_others_make_up_are_dropped():
    a, b = np.random.default_rng(0).normal(size=(2, 200))
    given, _ = products(np.column_stack([a, b, a, a + b]), a)
    assert set(given.term) == {0, 1, 3}
    assert (given.term == 3).sum() == 8  # its straight line is that of a and b
    assert np.linalg.cond(given.gram) < 1e10
