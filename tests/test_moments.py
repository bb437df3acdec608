import ast
from pathlib import Path

import numpy as np
import pytest

from rescore import moments
from rescore.moments import Regression, Rows
from rescore.protocols import Problem


def row_by_row(X, w):
    mean = sum(w[i] * X[i] for i in range(len(X)))
    S = sum(w[i] * np.outer(X[i] - mean, X[i] - mean) for i in range(len(X)))
    return mean, S


@pytest.fixture(params=["one chunk", "many chunks"])
def chunked(request, monkeypatch):
    if request.param == "many chunks":
        monkeypatch.setattr(moments, "CHUNK", 7)


@pytest.mark.usefixtures("chunked")
@pytest.mark.parametrize("seed", range(5))
def test_moments_and_losses_equal_a_row_by_row_evaluation(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 4)) * 3 + 100
    w = rng.dirichlet(np.ones(50))
    W = rng.normal(size=(4, 4))
    mean, S = row_by_row(X, w)
    found = Rows(X).moments(w)
    np.testing.assert_allclose(found.mean, mean, atol=1e-10)
    np.testing.assert_allclose(found.covariance, S, atol=1e-10)
    losses = np.array([((x - mean) - (x - mean) @ W) ** 2 for x in X])
    np.testing.assert_allclose(Rows(X).squared_residuals(W, mean), losses, atol=1e-10)


def test_the_trace_form_equals_the_weighted_loss():
    rng = np.random.default_rng(0)
    X, w, W = rng.normal(size=(60, 3)), rng.dirichlet(np.ones(60)), rng.normal(size=(3, 3))
    mean, S = Rows(X).moments(w)
    R = np.eye(3) - W
    by_rows = w @ Rows(X).squared_residuals(W, mean).sum(axis=1)
    assert np.trace(R.T @ S @ R) == pytest.approx(by_rows, abs=1e-10)


def test_a_large_offset_does_not_cost_precision():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    w = np.full(1000, 1e-3)
    plain, shifted = Rows(X).moments(w), Rows(X + 1e6).moments(w)
    np.testing.assert_allclose(shifted.covariance, plain.covariance, atol=1e-8)


def test_effective_rows_lie_between_one_and_n_and_count_repetitions():
    problem = Problem.unconstrained(np.eye(20))
    assert problem.effective_rows(problem.prior) == pytest.approx(20)
    assert problem.effective_rows(np.eye(20)[0]) == pytest.approx(1)
    tripled = Problem(problem.rows, problem.prior, problem.allowed, problem.required, count=60)
    assert tripled.effective_rows(problem.prior) == pytest.approx(60)


def test_robust_variances_equal_the_spread_of_repeated_samples():
    """Noise that grows with the regressor: the classical variance would be several times off."""
    found, claimed = [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=200)
        X = np.column_stack([x, 2 * x + rng.normal(size=200) * x**2])
        w = np.full(200, 1 / 200)
        rows = Rows(X)
        moments = rows.moments(w)
        C = np.linalg.inv(moments.covariance[:1, :1])
        b = C @ moments.covariance[:1, 1]
        one = Regression(1, np.array([0]), b, C)
        [variance] = rows.coefficient_variances([one], w, np.ones(200), moments)
        found.append(b[0])
        claimed.append(variance[0])
    assert np.mean(found) == pytest.approx(2, abs=0.05)
    assert np.mean(claimed) == pytest.approx(np.var(found), rel=0.25)


def test_nothing_else_reads_the_rows_of_a_problem():
    """So that they can come from files or a cluster: every use has a name, a method of `Rows`."""
    package = Path(moments.__file__).parent
    readers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "_values"
    }
    assert readers == {"moments.py"}
    assert not hasattr(Rows(np.eye(2)), "values")


def test_parts_and_columns_are_those_of_the_rows():
    X = np.random.default_rng(0).normal(size=(6, 3))
    rows, used = Rows(X), np.array([True, False, True, True, False, True])
    np.testing.assert_array_equal(rows.part(used).matrix(), X[[0, 2, 3, 5]])
    columns = rows.columns(np.array([2, 0]))
    np.testing.assert_array_equal(columns, X[:, [2, 0]])
    columns[:] = 0.0
    np.testing.assert_array_equal(rows.matrix(), X)
    assert X.any()


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e149])
def test_standardised_columns_have_mean_zero_and_deviation_one(scale):
    rng = np.random.default_rng(0)
    X, w = scale * (rng.normal(size=(80, 3)) + 5), rng.dirichlet(np.ones(80))
    X[:, 1] = 0.1 * scale
    Z, mean, deviation = moments.standardised(X, w)
    np.testing.assert_allclose(w @ Z, 0.0, atol=1e-12)
    np.testing.assert_allclose(w @ Z**2, [1.0, 0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(mean + Z * deviation, X, rtol=1e-12)
