"""The network behind learned row weights, and one compiled loop that trains it."""

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore.moments import Matrix
from rescore.weightings.capped import ascent, capped_softmax

MOMENTUM, MEMORY = 0.9, 0.99  # of the gradients and of their squares, as Adam averages them
# Added to Adam's denominator: a gradient this small is what is left when nearly all rows are at
# a bound, and steps of full length along it would only amplify rounding.
DAMPING = 0.1

Layers = tuple[tuple[Any, Any], ...]  # (weights (outputs, inputs), bias (outputs,)) of each layer


class Training(NamedTuple):
    """Where the training stands; the next outer step goes on from here."""

    layers: Layers
    mean: Layers  # of the gradients
    square: Layers  # of their squares
    epoch: Any  # epochs so far: Adam's clock, and the place in the stream of noise
    shift: Any  # the normaliser of the last weights, where the search for the next one starts

    @classmethod
    def start(cls, layers: Layers) -> "Training":
        """Nothing learned yet; arrays throughout, so that all calls share one compiled program."""
        zero = jax.tree.map(np.zeros_like, layers)
        return cls(layers, zero, zero, np.zeros((), np.int64), np.zeros(()))


def initial(d: int, hidden: tuple[int, ...], rng: np.random.Generator) -> Layers:
    """Random hidden layers, a last layer of zeros.

    A unit of the first hidden layer starts with the same weight for every variable, so that the
    order of the columns does not matter; training then tells them apart.

    Examples
    --------
    >>> [(W.shape, b.shape) for W, b in initial(3, (10,), np.random.default_rng(0))]
    [((10, 3), (10,)), ((1, 10), (1,))]
    """
    layers: list[tuple[Matrix, Matrix]] = []
    for inputs, outputs in pairwise((d, *hidden)):
        columns = 1 if not layers else inputs
        W = rng.normal(size=(outputs, columns)) * np.sqrt(2 / inputs)
        layers.append((np.tile(W, (1, inputs // columns)), rng.uniform(-1, 1, outputs)))
    inputs = hidden[-1] if hidden else d
    return (*layers, (np.zeros((1, inputs)), np.zeros(1)))


def logits(layers: Layers, Z: Any) -> Any:
    """``f(z_i)`` of every row of Z (n, d), with ReLU between the layers, (n,).

    Examples
    --------
    >>> print(logits(((np.ones((1, 2)), np.ones(1)),), np.array([[1.0, 2.0]])))
    [4.]
    """
    *before, (W, b) = layers
    for V, c in before:
        Z = jnp.maximum(Z @ V.T + c, 0.0)
    return Z @ W[0] + b[0]


@partial(jax.jit, static_argnames=("noise",))
def train(
    training: Training,
    Z: Array,
    prior: Array,
    rates: tuple[Array, Array, Array],
    epochs: Array,
    seed: Array,
    noise: bool,
) -> tuple[Training, Array]:
    """All epochs in one loop, and the weights they end with."""
    tau, temperature, rate = rates

    def epoch(_: Any, at: Training) -> Training:
        G = jnp.zeros(len(Z))
        if noise:
            key = jax.random.fold_in(jax.random.key(seed), at.epoch)
            G = jax.random.gumbel(key, (len(Z),))
        gradient, shift = uphill(at.layers, Z, prior, G, tau, temperature, at.shift)
        return _ascend(at, gradient, rate)._replace(shift=shift)

    end = jax.lax.fori_loop(0, epochs, epoch, training)
    f = logits(end.layers, Z) / temperature
    w, shift = capped_softmax(f, prior, tau, end.shift, steps=60)
    return end._replace(shift=shift), w


def uphill(
    layers: Layers, Z: Any, prior: Any, noise: Any, tau: Any, temperature: Any, shift: Any
) -> tuple[Layers, Array]:
    """The direction that raises ``Σ_i w_i Σ_j z_ij``, its gradient while no row is at a bound.

    And the normaliser of the weights.
    """
    f, back = jax.vjp(lambda layers: (logits(layers, Z) + noise) / temperature, layers)
    _, shift = capped_softmax(f, prior, tau, shift)
    (gradient,) = back(ascent(Z.sum(axis=1), f, prior, tau, shift))
    return gradient, shift


def _ascend(at: Training, gradient: Layers, rate: Array) -> Training:
    """One step of Adam."""
    # A row far from all others has a slope that would fill Adam's memory for the whole training.
    leaves = jax.tree.leaves(gradient)
    size = jnp.sqrt(sum(jnp.sum(g**2) for g in leaves) / sum(g.size for g in leaves))
    gradient = jax.tree.map(lambda g: g / jnp.maximum(size, 1.0), gradient)
    t = at.epoch + 1
    mean = jax.tree.map(lambda m, g: MOMENTUM * m + (1 - MOMENTUM) * g, at.mean, gradient)
    square = jax.tree.map(lambda v, g: MEMORY * v + (1 - MEMORY) * g**2, at.square, gradient)
    fresh, old = 1 - MOMENTUM**t, 1 - MEMORY**t

    def moved(p: Array, m: Array, v: Array) -> Array:
        return p + rate * (m / fresh) / (jnp.sqrt(v / old) + DAMPING)

    layers = jax.tree.map(moved, at.layers, mean, square)
    return Training(layers, mean, square, t, at.shift)
