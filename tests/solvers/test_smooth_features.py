import numpy as np
import pytest
from scipy.integrate import quad_vec
from scipy.interpolate import CubicSpline

from rescore.equations import cubic
from rescore.moments import Rows, standardised
from rescore.protocols import Problem
from rescore.solvers.smooth_features import (
    FEATURES,
    KNOTS,
    Basis,
    bends_of,
    quantile_knots,
    roughness,
    smooth,
)

KNOTS_APART = np.array([-2.0, -0.5, 0.1, 1.0, 3.0])


def columns(z, w):
    """The features of one variable."""
    z = standardised(z[:, None], w).values[:, 0]
    found = smooth(z, w)
    own = cubic(z, found.knots, found.values, found.bends)
    return own + np.outer(z, found.slope) + found.constant, found.rough


def test_splines_are_the_natural_cubic_ones_and_constant_outside():
    values = np.random.default_rng(0).normal(size=(5, 2))
    ours = CubicSpline(KNOTS_APART, values, bc_type="natural")
    z = np.linspace(-2, 3, 101)
    found = cubic(z, KNOTS_APART, values, bends_of(KNOTS_APART) @ values)
    assert np.allclose(found, ours(z))
    outside = cubic(np.array([-9.0, 9.0]), KNOTS_APART, values, bends_of(KNOTS_APART) @ values)
    assert np.allclose(outside, values[[0, -1]])


def test_roughness_is_the_integral_of_the_squared_second_derivative():
    spline = CubicSpline(KNOTS_APART, np.eye(5), bc_type="natural")
    second = spline.derivative(2)
    wanted, _ = quad_vec(lambda t: np.outer(second(t), second(t)), -2, 3, points=KNOTS_APART[1:-1])
    assert np.allclose(roughness(KNOTS_APART, bends_of(KNOTS_APART)), wanted)


@pytest.mark.parametrize("shape", ["normal", "exponential", "standard_cauchy"])
def test_features_are_orthonormal_and_by_rising_roughness(shape):
    rng = np.random.default_rng(1)
    x, w = getattr(rng, shape)(size=700), rng.uniform(0.5, 2, 700)
    w /= w.sum()
    Phi, rough = columns(x, w)
    assert np.allclose((Phi.T * w) @ Phi, np.eye(FEATURES), atol=1e-6)
    assert np.allclose(w @ Phi, 0, atol=1e-9)
    assert (np.diff(rough) >= -1e-9).all()
    assert np.allclose(Phi[:, 0], standardised(x[:, None], w).values[:, 0])


def test_smooth_functions_are_nearly_in_their_span():
    z = np.random.default_rng(2).normal(size=2000)
    Phi, _ = columns(z, np.full(2000, 1 / 2000))
    for f in (np.sin(2 * z), np.abs(z), z**3, np.exp(-(z**2)), np.tanh(3 * z)):
        left = f - f.mean() - Phi @ (Phi.T @ (f - f.mean())) / 2000
        assert left.var() < 0.01 * f.var()


@pytest.mark.parametrize(("values", "features"), [([0, 1], 1), ([0, 1, 5], 2), ([0, 1, 2, 7], 3)])
def test_few_distinct_values_make_few_features(values, features):
    x = np.repeat(np.array(values, dtype=float), 30)
    Phi, _ = columns(x, np.full(len(x), 1 / len(x)))
    assert (Phi.any(axis=0)).sum() == features
    assert np.isfinite(Phi).all()


def test_a_constant_column_has_none():
    problem = Problem.unconstrained(np.c_[np.ones(50), np.arange(50.0)])
    Phi = Basis.of(problem).features(problem.rows.matrix())
    assert not Phi[:, :FEATURES].any()
    assert np.isfinite(Phi).all()


def test_an_outlying_value_moves_neither_knots_nor_bends():
    z = np.random.default_rng(3).normal(size=500)
    far = np.r_[z, 1e6]
    assert np.abs(quantile_knots(far) - quantile_knots(z)).max() < 0.5
    assert len(quantile_knots(far)) == KNOTS
    Phi, _ = columns(far, np.full(501, 1 / 501))
    f = np.sin(2 * far[:500])
    b, *_ = np.linalg.lstsq(np.c_[np.ones(500), Phi[:500]], f, rcond=None)
    assert (f - np.c_[np.ones(500), Phi[:500]] @ b).var() < 0.02 * f.var()


def test_repeated_rows_are_weights():
    rng = np.random.default_rng(4)
    x, k = rng.normal(size=200), rng.integers(1, 4, 200)
    Phi, rough = columns(x, k / k.sum())
    repeated, other = columns(np.repeat(x, k), np.full(k.sum(), 1 / k.sum()))
    assert np.allclose(rough, other)
    assert np.allclose(np.abs(np.repeat(Phi, k, axis=0)), np.abs(repeated), atol=1e-6)


def test_moments_of_features_are_those_of_the_whole_matrix(monkeypatch):
    rng = np.random.default_rng(5)
    X, w = rng.normal(size=(300, 3)), rng.uniform(size=300)
    w /= w.sum()
    basis = Basis.of(Problem.unconstrained(X))
    monkeypatch.setattr("rescore.moments.CHUNK", 64)
    mean, S = Rows(X).expanded(basis.features, basis.width).moments(w)
    Phi = basis.features(X)
    assert np.allclose(mean, w @ Phi)
    assert np.allclose(S, np.cov(Phi.T, aweights=w, ddof=0))
