"""Adam: steps in units of how large the gradients have been (Kingma and Ba 2015)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

MOMENTUM, MEMORY = 0.9, 0.99  # of the gradients and of their squares, as they are averaged


class Averages(NamedTuple):
    """What is remembered of the gradients, in trees of arrays like theirs; zeros to begin with."""

    mean: Any  # of the gradients
    square: Any  # of their squares
    count: Any  # of the gradients so far


def adam(averages: Averages, gradient: Any, rate: Any, damping: float) -> tuple[Any, Averages]:
    """``rate · m / (√v + damping)``, m and v the unbiased averages with the gradient in; and those.

    A move to add to the parameters if the way is up, to take from them if it is down.  At first it
    is the gradient's signs alone.

    Examples
    --------
    >>> start = Averages(jnp.zeros(2), jnp.zeros(2), count=0)
    >>> print(adam(start, jnp.array([3.0, -0.2]), rate=0.5, damping=0.0)[0].round(3))
    [ 0.5 -0.5]
    """
    count = averages.count + 1
    mean = jax.tree.map(lambda m, g: MOMENTUM * m + (1 - MOMENTUM) * g, averages.mean, gradient)
    square = jax.tree.map(lambda v, g: MEMORY * v + (1 - MEMORY) * g**2, averages.square, gradient)

    def move(m: Array, v: Array) -> Array:
        return rate * m / (1 - MOMENTUM**count) / (jnp.sqrt(v / (1 - MEMORY**count)) + damping)

    return jax.tree.map(move, mean, square), Averages(mean, square, count)
