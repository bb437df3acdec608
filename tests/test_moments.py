import numpy as np
import pytest

from rescore import moments
from rescore.moments import Rows, effective_rows


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
    mean, S, _ = Rows(X).moments(w)
    R = np.eye(3) - W
    by_rows = w @ Rows(X).squared_residuals(W, mean).sum(axis=1)
    assert np.trace(R.T @ S @ R) == pytest.approx(by_rows, abs=1e-10)


def test_a_large_offset_does_not_cost_precision():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    w = np.full(1000, 1e-3)
    plain, shifted = Rows(X).moments(w), Rows(X + 1e6).moments(w)
    np.testing.assert_allclose(shifted.covariance, plain.covariance, atol=1e-8)


def test_effective_rows_lie_between_one_and_n():
    assert effective_rows(np.full(20, 0.05)) == pytest.approx(20)
    assert effective_rows(np.eye(20)[0]) == 1
