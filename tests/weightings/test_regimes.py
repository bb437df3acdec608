import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import PolynomialFeatures

from rescore.protocols import Problem
from rescore.solvers.order_search import edge_price
from rescore.weightings.regimes import (
    _two_lines,
    description_length,
    sharpened,
    white,
    with_regimes,
)

NOBODY = np.zeros(1, dtype=bool)


def fork(seed, n=1200, changed=0.0, noise="normal"):
    """x0 -> x2 <- x1, whose coefficients are others in the first rows."""
    rng = np.random.default_rng(seed)
    x0, x1 = rng.normal(size=(2, n))
    other = np.arange(n) < changed * n
    e = rng.standard_t(3, n) if noise == "tails" else rng.normal(size=n)
    return np.c_[x0, x1, np.where(other, -1.5 * x0 + x1, 1.5 * x0 + x1) + e], other


EDGES = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)


def test_whites_statistic_is_that_of_the_auxiliary_regression():
    rng = np.random.default_rng(0)
    Z, counts = rng.normal(size=(300, 3)), rng.integers(1, 4, 300)
    r = rng.normal(size=300) * (1 + 0.3 * Z[:, 0] ** 2)
    Q = PolynomialFeatures(2, include_bias=False).fit_transform(Z)[:, 3:]
    share = LinearRegression().fit(Q, r**2, counts).score(Q, r**2, counts)
    expected = (counts.sum() * share - 6) / np.sqrt(12)
    assert white(r, Z, counts.astype(float)) == pytest.approx(expected)


def test_residuals_of_one_size_do_not_depend_on_anything():
    Z = np.random.default_rng(0).normal(size=(8, 1))
    assert white(np.tile([1.0, -1.0], 4), Z, np.ones(8)) == 0.0


@pytest.mark.parametrize("own", [True, False])
def test_no_step_of_two_lines_lowers_their_likelihood(own):
    X, _ = fork(0, changed=0.3)
    X = X - X.mean(axis=0)
    start = np.random.default_rng(1).random(len(X))
    reached = [
        _two_lines(X[:, 2], X[:, :2], np.ones(len(X)), start, own, steps)[0]
        for steps in (1, 2, 3, 5, 8, 13)
    ]
    assert (np.diff(reached) > -1e-9).all()


def test_rows_with_other_coefficients_are_found_and_know_it():
    X, other = fork(1, changed=0.25)
    members = with_regimes(Problem.unconstrained(X), EDGES, np.ones((len(X), 1)), NOBODY, 4)
    assert members.shape[1] == 2
    np.testing.assert_allclose(members.sum(axis=1), 1)
    assert np.mean((members[:, 1] > 0.5) == other) > 0.85


@pytest.mark.parametrize("noise", ["normal", "tails"])
@pytest.mark.parametrize("seed", range(5))
def test_rows_alike_have_one_regime_whatever_their_noise(seed, noise):
    problem = Problem.unconstrained(fork(seed, noise=noise)[0])
    members = with_regimes(problem, EDGES, np.ones((problem.rows.shape[0], 1)), NOBODY, 4)
    assert members.shape[1] == 1


def test_a_row_repeated_counts_as_often():
    X, _ = fork(2, n=500, changed=0.25)
    counts = np.random.default_rng(0).integers(1, 4, len(X))
    again = Problem.unconstrained(X.repeat(counts, axis=0))
    prior = counts / counts.sum()
    once = Problem.unconstrained(X)
    once = type(once)(once.rows, prior, once.allowed, once.required, float(counts.sum()))
    members = [
        with_regimes(each, EDGES, np.ones((each.rows.shape[0], 1)), NOBODY, 3)
        for each in (once, again)
    ]
    np.testing.assert_allclose(members[0].repeat(counts, axis=0), members[1], atol=1e-6)


def test_one_group_costs_what_a_gaussian_does():
    X, _ = fork(3)
    problem = Problem.unconstrained(X)
    S = np.cov(X.T, bias=True)
    b = np.linalg.solve(S[:2, :2], S[:2, 2])
    v = [S[0, 0], S[1, 1], S[2, 2] - S[:2, 2] @ b]
    Z = X - X.mean(axis=0)
    R = np.c_[Z[:, :2], Z[:, 2] - Z[:, :2] @ b]
    likelihood = norm.logpdf(R, scale=np.sqrt(v)).sum() + len(X) * 0.5 * np.log(np.diag(S)).sum()
    price = 2 * edge_price(len(X), 3, 0.0) + 3 * np.log(len(X))
    cost = description_length(problem, EDGES, np.ones((len(X), 1)), NOBODY, np.zeros((1, 3), bool))
    assert cost == pytest.approx(price - likelihood)


def test_memberships_are_those_of_groups_with_mechanisms_of_their_own():
    X, other = fork(4, n=3000, changed=0.4)
    own = np.zeros((2, 3), dtype=bool)
    own[1, 2] = True
    labelled = np.c_[~other, other].astype(float)
    found = sharpened(Problem.unconstrained(X), EDGES, labelled, np.zeros(2, dtype=bool), own)
    densities = [
        (1 - 0.4 + (2 * 0.4 - 1) * k)
        * multivariate_normal(np.zeros(3), np.linalg.inv(B @ B.T)).pdf(X)
        for k, B in enumerate(
            np.array([[1, 0, -sign * 1.5], [0, 1, -1], [0, 0, 1.0]]) for sign in (1, -1)
        )
    ]
    true = densities[1] / np.sum(densities, axis=0)
    assert np.abs(found[:, 1] - true).mean() < 0.03
