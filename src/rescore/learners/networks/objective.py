"""One stage of the path to a DAG of networks, as one compiled program."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from rescore.acyclicity import saturating
from rescore.learners.networks import mlp
from rescore.learners.networks.rows import Weighted
from rescore.solvers import quasi_newton

SMOOTH = 0.01  # below this norm the penalty on an edge is quadratic: it has a slope everywhere
SOLVED = (1e-7, 1e-6)  # least relative decrease and largest slope of a solved stage
SMALLEST_VARIANCE = 1e-9  # in units of the noise: the logarithm of a perfect fit stays finite


class Penalties(NamedTuple):
    """How much each thing costs."""

    edges: ArrayLike  # (d, d), λ₁ on the norm of an edge's first-layer weights
    weights: ArrayLike  # λ₂ on all squared weights, of all networks alike or of each, (d,)
    cycles: ArrayLike  # a on h


class Stage(NamedTuple):
    """Where a stage ended."""

    x: Array  # parameters; those of inputs without an edge are zero
    objective: Array  # score and penalties on edges and weights
    h: Array


@partial(jax.jit, static_argnames=("hidden", "activation", "equal"))
def run(
    x: Array,
    rows: Weighted,
    edges: Array,
    penalties: Penalties,
    max_iter: int,
    *,
    hidden: tuple[int, ...],
    activation: str,
    equal: bool,
) -> Stage:
    """Minimise the objective plus a·h over networks with the given edges (d, d), from x.

    The rows and the forward pass are in the precision of ``rows``, all else in that of x.
    """
    d = len(rows.XT)

    def parts(x: Array) -> tuple[Array, Array]:
        layers = mlp.masked(mlp.unflatten(x, d, hidden), edges)
        R = mlp.predict(mlp.cast(layers, rows.XT.dtype), rows.XT, activation)
        variances = over_rows(jnp.square(R - rows.targets), rows.w).astype(x.dtype)  # (d,)
        norms = mlp.squared_norms(layers)
        cost = jnp.sum(penalties.edges * (jnp.sqrt(norms + SMOOTH**2) - SMOOTH))
        return score(variances, equal) + cost + ridge(layers, penalties.weights), saturating(norms)

    def total(x: Array) -> Array:
        objective, h = parts(x)
        return objective + penalties.cycles * h

    unpenalised = jnp.zeros_like(x)
    found = quasi_newton.minimise(jax.value_and_grad(total), x, unpenalised, max_iter, *SOLVED)
    first = mlp.masked(mlp.unflatten(found.x, d, hidden), edges)[0][0]
    x = found.x.at[: first.size].set(first.ravel())
    return Stage(x, *parts(x))


def score(variances: Array, equal: bool) -> Array:
    """Half the sum of the residual variances if the noise has equal ones, else of their logs.

    Examples
    --------
    >>> float(score(jnp.array([1.0, 3.0]), equal=True))
    2.0
    """
    return jnp.sum(variances if equal else jnp.log(variances + SMALLEST_VARIANCE)) / 2


def over_rows(Z: Array, w: Array) -> Array:
    """``Σ_i w_i z_ji``, (d,), for Z (d, n) and weights of rows (n,) or of cells (d, n).

    Examples
    --------
    >>> Z = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> print(over_rows(Z, jnp.array([0.0, 1.0])), over_rows(Z, jnp.eye(2)))
    [2. 4.] [1. 4.]
    """
    return Z @ w if w.ndim == 1 else jnp.sum(Z * w, axis=1)


def ridge(layers: mlp.Layers, price: ArrayLike) -> Any:
    """``½ λ₂ |W|²``, with one price for all networks or one for each."""
    if jnp.ndim(price) == 0:
        return price * (sum(jnp.sum(jnp.square(W)) for W, _ in layers) / 2)
    return jnp.sum(price * sum(jnp.sum(jnp.square(W), axis=(1, 2)) for W, _ in layers) / 2)


@partial(jax.jit, static_argnames=("hidden", "activation"))
def residuals(
    x: Array, rows: Weighted, edges: Array, *, hidden: tuple[int, ...], activation: str
) -> Array:
    """Prediction minus target, (d, n)."""
    layers = mlp.masked(mlp.unflatten(x, len(rows.XT), hidden), edges)
    single = mlp.cast(layers, rows.XT.dtype)
    return mlp.predict(single, rows.XT, activation) - rows.targets
