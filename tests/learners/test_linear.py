import numpy as np
import pytest
from scipy.optimize import minimize

from rescore.learners.straight_lines import noise_variance
from rescore.protocols import Problem
from rescore.solvers.lasso import lasso


def random_problem(seed, d=6):
    rng = np.random.default_rng(seed)
    S = np.cov(
        rng.normal(size=(40, d)) @ rng.normal(size=(d, d)) * 10 ** rng.uniform(-1, 1, d),
        rowvar=False,
    )
    W = np.triu(rng.normal(size=(d, d)), 1) * (rng.random((d, d)) < 0.7)
    penalty = np.where(rng.random((d, d)) < 0.2, 0.0, rng.uniform(0, 0.3, (d, d)) * np.diag(S))
    return S, W, penalty


@pytest.mark.parametrize("seed", range(20))
def test_the_lasso_is_optimal_on_the_edges_given(seed):
    """KKT: slope = −λ sign w where w ≠ 0, and within ±λ where an edge given came out zero."""
    S, W, penalty = random_problem(seed)
    found = lasso(S, W, penalty)
    slope = -S @ (np.eye(6) - found.W)
    scale = np.sqrt(np.outer(np.diag(S), np.diag(S)))
    on, off = found.W != 0, (found.W == 0) & (W != 0)
    assert (W[on] != 0).all()
    np.testing.assert_allclose(
        (slope / scale)[on], (-penalty * np.sign(found.W) / scale)[on], atol=1e-9
    )
    assert (np.abs(slope)[off] <= penalty[off] + 1e-9 * scale[off]).all()
    assert found.optimality < 1e-9


def test_the_lasso_agrees_with_a_bounded_solver():
    """W = P − N with P, N ≥ 0 turns the lasso into a smooth problem for L-BFGS-B."""
    S, W, penalty = random_problem(3)
    S = S / np.diag(S).mean()
    edges = W != 0

    def objective(x):
        P, N = x.reshape(2, -1)
        V = np.zeros_like(S)
        V[edges] = P - N
        R = np.eye(6) - V
        slope = -(S @ R)[edges]
        lam = penalty[edges]
        return np.vdot(R, S @ R) / 2 + lam @ (P + N), np.r_[slope + lam, lam - slope]

    bounds = [(0, None)] * (2 * edges.sum())
    options = {"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-10, "maxfun": 50_000}
    other = minimize(objective, np.zeros(len(bounds)), jac=True, bounds=bounds, options=options)
    assert lasso(S, W, penalty).objective == pytest.approx(other.fun, abs=1e-7)


def test_collinear_parents_are_no_trouble():
    x = np.random.default_rng(0).normal(size=(50, 1))
    S = np.cov(np.hstack([x, x, x]), rowvar=False)
    found = lasso(S, np.triu(np.ones((3, 3)), 1), np.full((3, 3), 0.01))
    assert np.isfinite(found.W).all()
    assert found.W[:, 2].sum() == pytest.approx(1 - 0.01 / S[0, 0])


def test_the_noise_variance_is_that_of_any_dag(chain):
    n = len(chain)
    noise = chain.copy()
    noise[:, 1:] -= 1.5 * chain[:, :-1]
    expected = np.linalg.det(np.cov(noise, rowvar=False) * (n - 1) / n) ** (1 / 5)
    assert noise_variance(Problem.unconstrained(chain)) == pytest.approx(expected)
    assert noise_variance(Problem.unconstrained(chain * 7)) == pytest.approx(49 * expected)


def test_the_noise_variance_of_constants_and_copies_is_positive(chain):
    assert noise_variance(Problem.unconstrained(np.ones((5, 2)))) == 1
    copies = np.hstack([chain, chain])
    assert 0 < noise_variance(Problem.unconstrained(copies)) < np.inf
