"""One stage of the path to a DAG of networks, as one compiled program."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from rescore.backbones import lbfgs, networks
from rescore.backbones.inputs import Weighted

SMOOTH = 0.01  # below this norm the penalty on an edge is quadratic: it has a slope everywhere
SOLVED = (1e-7, 1e-6)  # least relative decrease and largest slope of a solved stage
SMALLEST_VARIANCE = 1e-9  # in units of the noise: the logarithm of a perfect fit stays finite


class Penalties(NamedTuple):
    """How much each thing costs."""

    edges: ArrayLike  # (d, d), λ₁ on the norm of an edge's first-layer weights
    weights: ArrayLike  # λ₂ on all squared weights
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
        layers = networks.masked(networks.unflatten(x, d, hidden), edges)
        R = networks.predict(networks.cast(layers, rows.XT.dtype), rows.XT, activation)
        variances = (jnp.square(R - rows.targets) @ rows.w).astype(x.dtype)  # (d,)
        norms = networks.squared_norms(layers)
        ridge = sum(jnp.sum(jnp.square(W)) for W, _ in layers) / 2
        cost = jnp.sum(penalties.edges * (jnp.sqrt(norms + SMOOTH**2) - SMOOTH))
        return score(variances, equal) + cost + penalties.weights * ridge, cycles(norms)

    def total(x: Array) -> Array:
        objective, h = parts(x)
        return objective + penalties.cycles * h

    x, _ = lbfgs.minimise(jax.value_and_grad(total), x, max_iter, *SOLVED)
    first = networks.masked(networks.unflatten(x, d, hidden), edges)[0][0]
    x = x.at[: first.size].set(first.ravel())
    return Stage(x, *parts(x))


def score(variances: Array, equal: bool) -> Array:
    """Half the sum of the residual variances if the noise has equal ones, else of their logs.

    Examples
    --------
    >>> float(score(jnp.array([1.0, 3.0]), equal=True))
    2.0
    """
    return jnp.sum(variances if equal else jnp.log(variances + SMALLEST_VARIANCE)) / 2


def cycles(norms: Array) -> Array:
    """``h = tr (I + A/k)^k − d``, ``A = s/(1+s)`` for squared norms s (d, d), k a power of 2 ≥ d.

    Zero exactly for DAGs.  A saturates: long cycles of large weights cost no more than they must.

    Examples
    --------
    >>> with jax.enable_x64(True):
    ...     print(cycles(jnp.array([[0.0, 9.0], [0.0, 0.0]])), cycles(jnp.ones((2, 2))) > 0)
    0.0 True
    """
    doublings = int(np.ceil(np.log2(max(len(norms), 2))))
    F = norms / (1 + norms) / 2**doublings
    for _ in range(doublings):  # (I + F)² − I, without a difference from I
        F = 2 * F + F @ F
    return jnp.trace(F)


@partial(jax.jit, static_argnames=("hidden", "activation"))
def residuals(
    x: Array, rows: Weighted, edges: Array, *, hidden: tuple[int, ...], activation: str
) -> Array:
    """Prediction minus target, (d, n)."""
    layers = networks.masked(networks.unflatten(x, len(rows.XT), hidden), edges)
    single = networks.cast(layers, rows.XT.dtype)
    return networks.predict(single, rows.XT, activation) - rows.targets
