"""One small network per variable: parameters, forward pass, and a stage of their way to a DAG.

Network j predicts variable j from all d variables.  A layer is ``(weights, bias)``, weights
``(d, outputs, inputs)`` and bias ``(d, outputs)``, the networks along the first axis; between the
layers activations are ``(d, units, n)``, which is faster than rows first.  Optimisers see all
layers as one flat vector.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from rescore.acyclicity import saturating
from rescore.learners.networks import Weighted
from rescore.moments import Matrix
from rescore.solvers import descent
from rescore.validation import check_choice, check_integer

Layers = tuple[tuple[Array, Array], ...]
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": jax.nn.sigmoid,
    "relu": jax.nn.relu,
}
SMOOTH = 0.01  # below this norm the penalty on an edge is quadratic: it has a slope everywhere
SOLVED = (1e-7, 1e-6)  # least relative decrease and largest slope of a solved stage
SMALLEST_VARIANCE = 1e-9  # in units of the noise: the logarithm of a perfect fit stays finite


def check_architecture(hidden: Any, activation: Any) -> None:
    """Refuse anything but a tuple of layer widths and a known activation.

    Examples
    --------
    >>> check_architecture((10, 0), "sigmoid")
    Traceback (most recent call last):
        ...
    ValueError: Each width in hidden must be a whole number of at least 1, got 0.
    """
    if not isinstance(hidden, tuple | list) or not hidden:
        raise TypeError(f"hidden must be a tuple of layer widths such as (10,), got {hidden!r}.")
    for width in hidden:
        check_integer("Each width in hidden", width, at_least=1)
    check_choice("activation", activation, ACTIVATIONS)


def size(d: int, hidden: tuple[int, ...]) -> int:
    """The number of parameters of d networks.

    Examples
    --------
    >>> size(3, (10,))  # 3 networks with 10 units of 3 inputs, and their biases
    153
    """
    return sum(d * outputs * (inputs + 1) for inputs, outputs in pairwise((d, *hidden, 1)))


def unflatten(x: Any, d: int, hidden: tuple[int, ...]) -> Layers:
    """The layers in a flat vector of parameters.

    Examples
    --------
    >>> layers = unflatten(np.zeros(size(3, (10,))), 3, (10,))
    >>> [(W.shape, b.shape) for W, b in layers]
    [((3, 10, 3), (3, 10)), ((3, 1, 10), (3, 1))]
    """
    layers, at = [], 0
    for inputs, outputs in pairwise((d, *hidden, 1)):
        middle, end = at + d * outputs * inputs, at + d * outputs * (inputs + 1)
        layers.append((x[at:middle].reshape(d, outputs, inputs), x[middle:end].reshape(d, outputs)))
        at = end
    return tuple(layers)


def initial(d: int, hidden: tuple[int, ...], rng: np.random.Generator) -> Matrix:
    """Weights uniform within ``±1/√inputs``, hidden biases within ±1, the last bias zero; flat.

    Examples
    --------
    >>> x = initial(3, (10,), np.random.default_rng(0))
    >>> bool(abs(x).max() < 1), unflatten(x, 3, (10,))[-1][1].ravel()
    (True, array([0., 0., 0.]))
    """
    parts = []
    for inputs, outputs in pairwise((d, *hidden, 1)):
        parts.append(rng.uniform(-1, 1, d * outputs * inputs) / np.sqrt(inputs))
        parts.append(rng.uniform(-1, 1, d * outputs))
    parts[-1] = np.zeros(d)
    return np.concatenate(parts)


def masked(layers: Layers, edges: Any) -> Layers:
    """The same networks blind to every input i of network j with ``edges[i, j]`` false.

    Examples
    --------
    >>> layers = unflatten(np.ones(size(2, (1,))), 2, (1,))
    >>> squared_norms(masked(layers, ~np.eye(2, dtype=bool)))
    array([[0., 1.],
           [1., 0.]])
    """
    (W, b), *rest = layers
    return ((W * edges.T[:, None, :], b), *rest)


def cast(layers: Layers, dtype: Any) -> Layers:
    """The same networks in another precision.

    Examples
    --------
    >>> layers = unflatten(np.ones(size(2, (1,))), 2, (1,))
    >>> print(cast(layers, np.float32)[0][0].dtype)
    float32
    """
    return tuple((W.astype(dtype), b.astype(dtype)) for W, b in layers)


def squared_norms(layers: Layers) -> Any:
    """``Σ_m W[j, m, i]²`` at ``[i, j]``, (d, d): zero exactly if network j ignores variable i."""
    W = layers[0][0]
    return (W**2).sum(axis=1).T


def first_layer(layers: Layers, XT: Array) -> Array:
    """What the first hidden layer receives, (d, m, n), from variables by rows XT (d, n)."""
    W, b = layers[0]
    d, m, _ = W.shape
    return (W.reshape(d * m, d) @ XT + b.reshape(-1, 1)).reshape(d, m, -1)


def later_layers(layers: Layers, Z: Array, activation: str) -> Array:
    """The outputs, (d, n), from what the first hidden layer receives, (d, m, n)."""
    for W, b in layers[1:-1]:
        Z = jnp.einsum("dkm,dmn->dkn", W, ACTIVATIONS[activation](Z)) + b[:, :, None]
    W, b = layers[-1]
    # A product and a sum: XLA fuses these with the activation, and a batched product it does not.
    return (W[:, 0, :, None] * ACTIVATIONS[activation](Z)).sum(axis=1) + b


def predict(layers: Layers, XT: Array, activation: str) -> Array:
    """The outputs of all networks, (d, n), from variables by rows XT (d, n).

    Examples
    --------
    >>> layers = unflatten(np.zeros(size(2, (3,))), 2, (3,))
    >>> predict(layers, jnp.ones((2, 4)), "sigmoid").shape
    (2, 4)
    """
    return later_layers(layers, first_layer(layers, XT), activation)


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
def run_stage(
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
        layers = masked(unflatten(x, d, hidden), edges)
        R = predict(cast(layers, rows.XT.dtype), rows.XT, activation)
        variances = over_rows(jnp.square(R - rows.targets), rows.w).astype(x.dtype)  # (d,)
        norms = squared_norms(layers)
        cost = jnp.sum(penalties.edges * (jnp.sqrt(norms + SMOOTH**2) - SMOOTH))
        return score(variances, equal) + cost + ridge(layers, penalties.weights), saturating(norms)

    def total(x: Array) -> Array:
        objective, h = parts(x)
        return objective + penalties.cycles * h

    unpenalised = jnp.zeros_like(x)
    found = descent.minimise(jax.value_and_grad(total), x, unpenalised, max_iter, *SOLVED)
    first = masked(unflatten(found.x, d, hidden), edges)[0][0]
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


def ridge(layers: Layers, price: ArrayLike) -> Any:
    """``½ λ₂ |W|²``, with one price for all networks or one for each."""
    if jnp.ndim(price) == 0:
        return price * (sum(jnp.sum(jnp.square(W)) for W, _ in layers) / 2)
    return jnp.sum(price * sum(jnp.sum(jnp.square(W), axis=(1, 2)) for W, _ in layers) / 2)


@partial(jax.jit, static_argnames=("hidden", "activation"))
def residuals(
    x: Array, rows: Weighted, edges: Array, *, hidden: tuple[int, ...], activation: str
) -> Array:
    """Prediction minus target, (d, n)."""
    layers = masked(unflatten(x, len(rows.XT), hidden), edges)
    single = cast(layers, rows.XT.dtype)
    return predict(single, rows.XT, activation) - rows.targets
