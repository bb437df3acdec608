"""A softmax whose weights stay inside C(τ), and which way its logits should move."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

SMALLEST = 1e-300  # weight below which there is none


def capped_softmax(
    logits: Any, prior: Any, tau: Any, shift: Any = 0.0, steps: int = 8
) -> tuple[Array, Array]:
    """``w_i = s_i·clip(exp(f_i − μ), τ, 1/τ)`` with μ such that Σ w_i = 1; returns w and μ.

    The cut-offs of C(τ) on a softmax, normalised so that they keep the sum: the point of C(τ)
    nearest to the softmax in Kullback-Leibler divergence.  Zero logits give the prior; as
    the logits grow apart, w becomes the exact solution for losses in the order of the logits.
    The search for μ starts from ``shift`` and makes so many ``steps``: Newton's, or a halving of
    the bracket where Newton's would leave it.

    Examples
    --------
    >>> import numpy as np
    >>> with jax.enable_x64(True):
    ...     w, _ = capped_softmax(np.array([0.0, 9.0, 5.0]), np.full(3, 1 / 3), 0.5, steps=40)
    >>> print(w.round(3))
    [0.167 0.667 0.167]
    """
    reach = -jnp.log(tau)  # |f − μ| from which a weight is at a bound

    def step(_: Any, at: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        shift, low, high = at
        w, free = _weights(logits - shift, prior, reach)
        excess = w.sum() - 1  # falls as μ grows
        low, high = jnp.where(excess > 0, shift, low), jnp.where(excess > 0, high, shift)
        newton = shift + excess / jnp.maximum(jnp.sum(w * free), SMALLEST)
        good = (low <= newton) & (newton <= high)
        return jnp.where(good, newton, (low + high) / 2), low, high

    bracket = jnp.min(logits) - reach, jnp.max(logits) + reach
    start = (jnp.clip(shift, *bracket), *bracket)
    shift = jax.lax.fori_loop(0, steps, step, start, unroll=steps <= 8)[0]
    return _weights(logits - shift, prior, reach)[0], shift


def ascent(losses: Any, logits: Any, prior: Any, tau: Any, shift: Any) -> Array:
    """The slope of ``Σ_i w_i ℓ_i`` along each logit, and a way back for rows at the wrong bound.

    ``w_i (ℓ_i − ℓ̄)`` with ℓ̄ the mean loss of the rows that are at no bound: raising one logit
    takes its weight from those.  A row at a bound has slope zero.  It keeps it if it is at the
    right one; a row with a loss above ℓ̄ at the floor, or below ℓ̄ at the ceiling, would stay
    there for good, and is moved as if it were free.

    Examples
    --------
    >>> import numpy as np
    >>> losses, logits = np.array([9.0, 1.0, 5.0, 7.0]), np.array([-9.0, 9.0, 0.0, 0.1])
    >>> with jax.enable_x64(True):
    ...     print(jnp.sign(ascent(losses, logits, np.full(4, 1 / 4), 0.1, 0.0)))
    [ 1. -1. -1.  1.]
    """
    reach = -jnp.log(tau)
    w, free = _weights(logits - shift, prior, reach)
    balance = jnp.where(free.any(), jnp.sum(w * free * losses), jnp.sum(w * losses))
    mean = balance / jnp.where(free.any(), jnp.sum(w * free), jnp.sum(w))
    slope = w * (losses - mean)
    wrong = slope * (logits - shift) < 0
    return jnp.where(free | wrong, slope, 0.0)


def _weights(logits: Any, prior: Any, reach: Array) -> tuple[Array, Array]:
    """The weights of shifted logits, and which of them are not at a bound."""
    return prior * jnp.exp(jnp.clip(logits, -reach, reach)), jnp.abs(logits) < reach
