"""One small network per variable: parameters, initial values, forward pass, first-layer norms.

Network j predicts variable j from all d variables.  A layer is ``(weights, bias)``, weights
``(d, outputs, inputs)`` and bias ``(d, outputs)``, the networks along the first axis; between the
layers activations are ``(d, units, n)``, which is faster than rows first.  Optimisers see all
layers as one flat vector.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore.moments import Matrix
from rescore.validation import check_choice, check_integer

Layers = tuple[tuple[Array, Array], ...]
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": jax.nn.sigmoid,
    "relu": jax.nn.relu,
}


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
