from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import Bounds, minimize

from rescore.solvers import descent


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


def solve(f, x, penalty, **kw):
    # No step counts as too small: a decrease of rtol·|f| still leaves slopes of √(2 L rtol |f|), L
    # the largest curvature, which for rtol = 1e-14 is more than the KKT residuals asked for below.
    options = {"max_iter": 5000, "rtol": 0.0, "gtol": 1e-9} | kw
    return descent.minimise(f, jnp.asarray(x), jnp.asarray(penalty), **options)


def quadratic(seed, size=12):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size))
    Q, b = root @ root.T + 0.1 * np.eye(size), rng.normal(size=size) * 3
    return Q, b, lambda x: (x @ Q @ x / 2 - b @ x, Q @ x - b)


def split_lbfgsb(Q, b, penalty):
    """The same lasso by SciPy: x = u − v with u, v ≥ 0."""
    size = len(b)

    def f(z):
        x = z[:size] - z[size:]
        g = Q @ x - b
        return x @ Q @ x / 2 - b @ x + penalty @ (z[:size] + z[size:]), np.r_[
            g + penalty, penalty - g
        ]

    z = minimize(
        f,
        np.zeros(2 * size),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(0, np.inf),
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 50_000, "maxfun": 100_000},
    ).x
    return z[:size] - z[size:]


@pytest.mark.parametrize("seed", range(4))
def test_lasso_equals_scipy(seed):
    Q, b, f = quadratic(seed)
    penalty = np.linspace(0, 2, len(b))
    found, x = solve(f, np.zeros(len(b)), penalty), split_lbfgsb(Q, b, penalty)
    np.testing.assert_allclose(found.x, x, atol=1e-6)
    assert float(found.value) <= f(x)[0] + penalty @ np.abs(x) + 1e-11
    assert float(found.optimality) < 1e-5  # which moves the value by no more than its rounding


def test_a_large_penalty_gives_exact_zeros():
    _, b, f = quadratic(0)
    found = solve(f, np.ones(len(b)), np.full(len(b), 100.0))
    assert not np.asarray(found.x).any()


def rosenbrock(x):
    """A curved valley in any number of dimensions, its floor at one everywhere."""
    return jnp.sum((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2)


@pytest.mark.parametrize("size", [2, 30])
def test_without_a_penalty_a_curved_valley_takes_no_more_steps_than_scipy(size):
    f, start = jax.jit(jax.value_and_grad(rosenbrock)), np.tile([-1.2, 1.0], size // 2)
    found = solve(f, start, np.zeros(size))
    theirs = minimize(
        f, start, jac=True, method="L-BFGS-B", options={"ftol": 0.0, "gtol": 1e-9, "maxiter": 5000}
    )
    np.testing.assert_allclose(found.x, 1, atol=1e-7)
    assert int(found.iterations) < 1.5 * theirs.nfev


def test_without_a_penalty_a_quadratic_is_solved_exactly():
    Q, b, f = quadratic(0)
    found = solve(f, np.ones(len(b)), np.zeros(len(b)))
    np.testing.assert_allclose(found.x, np.linalg.solve(Q, b), atol=1e-7)
    assert float(found.value) == pytest.approx(-b @ np.linalg.solve(Q, b) / 2)


@pytest.mark.parametrize(
    ("penalty", "held", "reached"), [(0.0, 0, -0.5), (0.1, 0, 0.0), (0.0, 5, 0.0)]
)
def test_only_a_variable_penalised_or_held_stops_at_zero(penalty, held, reached):
    """The first step down ½(x + 1)² has length one: from 0.5 it leads beyond zero."""
    f = lambda x: ((x + 1) @ (x + 1) / 2, x + 1)  # noqa: E731
    found = solve(f, [0.5], [penalty], max_iter=1, held=held)
    assert float(found.x[0]) == pytest.approx(reached)


def test_more_iterations_never_raise_the_value():
    _, b, f = quadratic(1)
    penalty = np.full(len(b), 0.5)
    run = jax.jit(lambda most: solve(f, np.ones(len(b)), penalty, max_iter=most).value)
    values = [float(run(most)) for most in range(12)]
    assert values[0] == pytest.approx(float(f(np.ones(len(b)))[0] + penalty.sum()))
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(values))
    assert values[-1] < values[0]


def test_steps_into_non_finite_values_are_taken_back():
    def f(x):  # a wall at x = 1: infinite beyond
        value = jnp.where(
            x[0] < 1, -x[0] - jnp.log1p(-jnp.minimum(x[0], 1 - 1e-16)) * 1e-3, jnp.inf
        )
        return value, jnp.where(x < 1, -1 + 1e-3 / (1 - x), jnp.nan)

    found = solve(f, [0.0], [0.0])
    assert float(found.x[0]) == pytest.approx(0.999, abs=1e-4)


def test_no_kkt_residual_at_a_minimum_and_one_elsewhere():
    Q, b, f = quadratic(2)
    penalty = np.ones(len(b))
    x = jnp.asarray(split_lbfgsb(Q, b, penalty))
    x = jnp.where(jnp.abs(x) < 1e-9, 0.0, x)
    assert float(jnp.abs(descent.steepest(x, f(x)[1], penalty)).max()) < 1e-5
    assert float(jnp.abs(descent.steepest(x + 1, f(x + 1)[1], penalty)).max()) > 0.1


def test_moves_of_adam_are_those_of_weighted_means_over_all_gradients():
    """Unbiased running averages, written as what they are: means with weights that fade."""
    gradients = np.random.default_rng(0).normal(size=(20, 3))
    averages = descent.Averages((jnp.zeros(3),), (jnp.zeros(3),), 0)
    for gradient in gradients:
        (move,), averages = descent.adam(averages, (jnp.asarray(gradient),), 0.1, 0.01)
    ages = np.arange(20)[::-1]
    mean = np.average(gradients, axis=0, weights=0.9**ages)
    square = np.average(gradients**2, axis=0, weights=0.99**ages)
    np.testing.assert_allclose(move, 0.1 * mean / (np.sqrt(square) + 0.01), rtol=1e-12)
    assert averages.count == 20
