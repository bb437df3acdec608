"""GraN-DAG's objective, and one compiled loop that lowers it on mini-batches.

Network j gives the mean of variable j, Gaussian with a learned variance.  The parameters are one
flat vector: the layers of all networks, as in `networks`, and then d log-variances.
"""

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from rescore.acyclicity import expm1
from rescore.learners.networks import mlp
from rescore.solvers.descent import Averages, adam

SLOPE = 0.01  # of the activation below zero
LEAST_LOG_VARIANCE = -14.0  # of a variable in its own units: less is rounding in single precision
DAMPING = 1e-8  # of Adam, against a division by zero


class Rows(NamedTuple):
    """What a loss is taken over: variables by rows, and the weights of rows or of cells."""

    XT: Any  # (d, n)
    w: Any  # (n,), or (d, n)


class Penalty(NamedTuple):
    """The augmented Lagrangian ``λ h + ½ μ h²``, and where edges are clamped away."""

    multiplier: float  # λ
    mu: float
    clamp: float  # edges with a connectivity below this are gone for good
    required: Any  # (d, d), edges that count as there however weak, and are never clamped


def initial(d: int, hidden: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    """Weights uniform with variance 2/(inputs + outputs) (Glorot), biases zero, variances one.

    Examples
    --------
    >>> initial(3, (10, 10), np.random.default_rng(0)).shape
    (486,)
    """
    parts = []
    for inputs, outputs in pairwise((d, *hidden, 1)):
        bound = np.sqrt(6 / (inputs + outputs))
        parts += [rng.uniform(-bound, bound, d * outputs * inputs), np.zeros(d * outputs)]
    return np.concatenate([*parts, np.zeros(d)]).astype(np.float32)


def predict(layers: mlp.Layers, XT: Any) -> Array:
    """The means of all variables, (d, n)."""
    Z = mlp.first_layer(layers, XT)
    for W, b in layers[1:]:
        Z = jnp.einsum("jab,jbn->jan", W, _activate(Z)) + b[:, :, None]
    return Z[:, 0]


def connectivity(layers: mlp.Layers) -> Array:
    """``A[i, j]``: the mean over all paths from input i to output j of |product of weights|.

    The paths through ``|W₃||W₂||W₁|``, divided by their number so that A does not grow with the
    width.  Zero exactly if network j ignores variable i (Lachapelle et al. 2020, section 3.1).

    Examples
    --------
    >>> layers = mlp.unflatten(np.full(mlp.size(2, (3,)), -2.0), 2, (3,))
    >>> print(connectivity(mlp.masked(layers, ~np.eye(2, dtype=bool))))
    [[0. 4.]
     [4. 0.]]
    """
    product = jnp.abs(layers[-1][0])
    for W, _ in reversed(layers[:-1]):
        product = jnp.einsum("jab,jbc->jac", product, jnp.abs(W)) / W.shape[1]
    return product[:, 0, :].T


def constraint(A: Array, required: Any) -> Array:
    """``h = tr e^A − d`` in double precision, each required edge counting with weight one.

    A required edge then cannot escape a cycle by growing weak; the others on it must.
    """
    return _trace_exponential(jnp.where(required, 1.0, A.astype(jnp.float64)))


@jax.custom_jvp
def _trace_exponential(A: Array) -> Array:
    return jnp.trace(expm1(A))


@_trace_exponential.defjvp
def _slope(at: tuple[Array], along: tuple[Array]) -> tuple[Array, Array]:
    """``∇h = (e^A)ᵀ``: one exponential for both, where following its steps back takes three."""
    F = expm1(at[0])
    return jnp.trace(F), jnp.sum((F + jnp.eye(len(F))).T * along[0])


def negative_log_likelihood(x: Array, edges: Array, rows: Rows, hidden: tuple[int, ...]) -> Array:
    """``½ Σ_ij w_i ((x_ij − f_j(x_i))² / v_j + log v_j)``, f_j blind to all but its parents."""
    d = len(rows.XT)
    layers = mlp.masked(mlp.unflatten(x, d, hidden), edges)
    log_variance = jnp.maximum(x[-d:], LEAST_LOG_VARIANCE)
    squares = mlp.over_rows(jnp.square(rows.XT - predict(layers, rows.XT)), rows.w)
    return 0.5 * jnp.sum(squares * jnp.exp(-log_variance) + log_variance * rows.w.sum(axis=-1))


def augmented_lagrangian(
    x: Array, edges: Array, rows: Rows, penalty: Penalty, hidden: tuple[int, ...]
) -> tuple[Array, Array]:
    """``NLL + λ h(A) + ½ μ h(A)²``, and the connectivity A of the edges, (d, d)."""
    layers = mlp.masked(mlp.unflatten(x, len(edges), hidden), edges)
    A = connectivity(jax.tree.map(lambda p: p.astype(jnp.float64), layers))
    h = constraint(A, penalty.required)
    likelihood = negative_log_likelihood(x, edges, rows, hidden)
    return likelihood + penalty.multiplier * h + 0.5 * penalty.mu * h**2, A


def batches(n: int, size: int, count: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Which rows each step sees, (count, size): all of them once, in a new order, and again.

    Examples
    --------
    >>> chosen = batches(6, 2, 5, np.random.default_rng(0))
    >>> chosen.shape, sorted(chosen[:3].ravel().tolist())
    ((5, 2), [0, 1, 2, 3, 4, 5])
    """
    each = n // size
    orders = [rng.permutation(n)[: each * size] for _ in range(-(-count // each))]
    return np.concatenate(orders).reshape(-1, size)[:count].astype(np.int32)


@partial(jax.jit, static_argnames=("hidden",))
def train(
    x: Array,
    edges: Array,
    rows: Rows,
    penalty: Penalty,
    chosen: Array,
    rate: float,
    hidden: tuple[int, ...],
) -> tuple[Array, Array]:
    """Parameters and edges after a step of Adam on each batch of rows in ``chosen``.

    Losses of rows count with their weights, scaled so that a batch estimates the whole sum
    without bias.  Drawing rows by their weights would be as unbiased, but noisier, and which rows
    come when would change with every change of the weights.
    """
    share = chosen.shape[1] / rows.XT.shape[1]
    slope = jax.grad(augmented_lagrangian, has_aux=True)

    def step(at: Any, batch: Array) -> tuple[Any, None]:
        x, averages, edges = at
        part = Rows(rows.XT[:, batch], rows.w[..., batch] / share) if share < 1 else rows
        gradient, A = slope(x, edges, part, penalty, hidden)
        move, averages = adam(averages, gradient, rate, DAMPING)
        kept = edges * ((penalty.clamp <= A) | penalty.required)
        return (x - move, averages, kept.astype(edges.dtype)), None

    averages = Averages(jnp.zeros_like(x), jnp.zeros_like(x), jnp.zeros((), x.dtype))
    (x, _, edges), _ = jax.lax.scan(step, (x, averages, edges), chosen)
    return x, edges


class Summary(NamedTuple):
    """Where the training stands, over all rows."""

    likelihood: Array  # negative log-likelihood
    h: Array
    jacobian: Array  # (d, d), the weighted mean of |∂f_j/∂x_i|


@partial(jax.jit, static_argnames=("hidden",))
def summary(
    x: Array, edges: Array, rows: Rows, required: Array, hidden: tuple[int, ...]
) -> Summary:
    """The likelihood and the constraint at x, and how far each output moves with each input."""
    layers = mlp.masked(mlp.unflatten(x, len(edges), hidden), edges)
    A = connectivity(jax.tree.map(lambda p: p.astype(jnp.float64), layers))
    likelihood = negative_log_likelihood(x, edges, rows, hidden)
    return Summary(likelihood, constraint(A, required), _mean_jacobian(layers, rows))


def _mean_jacobian(layers: mlp.Layers, rows: Rows) -> Array:
    """``Σ_i w_i |∂f_j/∂x_i|`` by the chain rule, layer by layer from the outputs, (d, d)."""
    received = [mlp.first_layer(layers, rows.XT)]
    for W, b in layers[1:-1]:
        received.append(jnp.einsum("jab,jbn->jan", W, _activate(received[-1])) + b[:, :, None])
    back = jnp.broadcast_to(layers[-1][0][:, 0, :, None], received[-1].shape)  # (d, units, n)
    for Z, (W, _) in zip(reversed(received[1:]), reversed(layers[1:-1]), strict=True):
        back = jnp.einsum("jab,jan->jbn", W, back * jnp.where(Z > 0, 1.0, SLOPE))
    back = back * jnp.where(received[0] > 0, 1.0, SLOPE)
    by_input = jnp.moveaxis(layers[0][0], 2, 0)  # (d, d, units); one at a time: n·d, not n·d²

    def moved(W: Array) -> Array:
        return mlp.over_rows(jnp.abs(jnp.einsum("ja,jan->jn", W, back)), rows.w)

    return jax.lax.map(moved, by_input)


def _activate(Z: Array) -> Array:
    return jnp.maximum(Z, SLOPE * Z)
