from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import Bounds, minimize

from rescore import owlqn


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


def solve(f, x, penalty, **kw):
    options = {"max_iter": 5000, "rtol": 1e-14, "gtol": 1e-9} | kw
    return owlqn.minimise(f, jnp.asarray(x), jnp.asarray(penalty), **options)


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
    found = solve(f, np.zeros(len(b)), penalty)
    np.testing.assert_allclose(found.x, split_lbfgsb(Q, b, penalty), atol=1e-6)
    assert float(found.optimality) < 1e-6


def test_a_large_penalty_gives_exact_zeros():
    _, b, f = quadratic(0)
    found = solve(f, np.ones(len(b)), np.full(len(b), 100.0))
    assert not np.asarray(found.x).any()


def test_rosenbrock_is_solved():
    def f(x):
        value = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        return value, jnp.array(
            [-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)]
        )

    found = solve(f, [-1.2, 1.0], [0.0, 0.0])
    np.testing.assert_allclose(found.x, [1, 1], atol=1e-5)


def test_more_iterations_never_raise_the_value():
    _, b, f = quadratic(1)
    penalty = np.full(len(b), 0.5)
    values = [
        float(solve(f, np.ones(len(b)), penalty, max_iter=k, rtol=0.0).value) for k in range(12)
    ]
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
    assert float(jnp.abs(owlqn.steepest(x, f(x)[1], penalty)).max()) < 1e-5
    assert float(jnp.abs(owlqn.steepest(x + 1, f(x + 1)[1], penalty)).max()) > 0.1
