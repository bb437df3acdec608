"""Minimise a smooth function by limited-memory quasi-Newton steps, as one compiled loop."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rescore.owlqn import ARMIJO, MEMORY, ValueAndGradient, shrinkage

SHORTEST = 1e-10  # step length at which the line search gives up


class _Search(NamedTuple):
    x: Array
    value: Array
    gradient: Array
    steps: Array  # (MEMORY, size), newest first, as are the gradients' changes
    changes: Array  # (MEMORY, size)
    length: Array  # of the step to try next, 1 = the full quasi-Newton step
    iterations: Array
    stalled: Array


def minimise(
    f: ValueAndGradient, x: Array, max_iter: int | Array, rtol: float, gtol: float
) -> tuple[Array, Array]:
    """The point reached from ``x``, and the value of ``f`` there; traceable, so callers compile it.

    Stops when no slope exceeds ``gtol``, when a step lowers the value by less than ``rtol`` of
    it, or after ``max_iter`` evaluations.

    Examples
    --------
    >>> def f(x):  # (1 − x₀)² + 100 (x₁ − x₀²)²
    ...     value = lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    ...     return jax.value_and_grad(value)(x)
    >>> with jax.enable_x64(True):
    ...     x, value = minimise(f, jnp.array([-1.2, 1.0]), 100, 1e-12, 1e-8)
    >>> print(x.round(4))
    [1. 1.]
    """

    def unfinished(s: _Search) -> Array:
        steep = (s.iterations == 0) | (jnp.max(jnp.abs(s.gradient)) > gtol)
        return (s.iterations < max_iter) & ~s.stalled & steep

    empty = jnp.zeros((MEMORY, x.size), x.dtype)
    # The first time round only evaluates f where it is: so f is compiled once, not twice.
    infinite, one = jnp.full((), jnp.inf, x.dtype), jnp.ones((), x.dtype)
    start = _Search(
        x, infinite, jnp.zeros_like(x), empty, empty, one, jnp.array(0), jnp.array(False)
    )
    end = jax.lax.while_loop(unfinished, lambda s: _step(f, s, rtol), start)
    return end.x, end.value


def _step(f: ValueAndGradient, s: _Search, rtol: float) -> _Search:
    """Try one quasi-Newton step: take it, or shorten it for the next time round.

    The line search is folded into the main loop, because loops inside loops are slow in XLA.
    """
    direction = -_inverse_hessian_times(s.gradient, s.steps, s.changes)
    x = s.x + s.length * direction
    value, gradient = f(x)
    expected = s.length * (s.gradient @ direction)  # negative: what the slope alone promises
    good = (value <= s.value + ARMIJO * expected) & jnp.all(jnp.isfinite(gradient))
    enough = s.value - value > rtol * jnp.maximum(jnp.abs(value), 1.0)
    steps, changes = _remember(s, x - s.x, gradient - s.gradient, good)
    taken = (x, value, gradient, jnp.ones_like(s.length), ~enough)
    shorter = s.length * shrinkage(value - s.value, expected)
    kept = (s.x, s.value, s.gradient, shorter, s.length < SHORTEST)
    x, value, gradient, length, stalled = (
        jnp.where(good, a, b) for a, b in zip(taken, kept, strict=True)
    )
    return _Search(x, value, gradient, steps, changes, length, s.iterations + 1, stalled)


def _remember(s: _Search, step: Array, change: Array, good: Array) -> tuple[Array, Array]:
    """The newest pair in front and the oldest out, if the newest shows positive curvature."""
    good &= step @ change > 1e-10 * jnp.linalg.norm(step) * jnp.linalg.norm(change)
    good &= s.iterations > 0  # there is no change before the first gradient

    def put(table: Array, newest: Array) -> Array:
        return jnp.where(good, jnp.roll(table, 1, axis=0).at[0].set(newest), table)

    return put(s.steps, step), put(s.changes, change)


def _inverse_hessian_times(v: Array, steps: Array, changes: Array) -> Array:
    """The L-BFGS two-loop recursion; slots without a pair are zero and drop out.

    Before the first pair nothing is known of the curvature: the step then has length one at most.
    """
    curvature = jnp.sum(steps * changes, axis=1)  # (MEMORY,)
    inverse = jnp.where(curvature > 0, 1 / jnp.where(curvature > 0, curvature, 1.0), 0.0)
    q, along = v, []
    for k in range(MEMORY):
        along.append(inverse[k] * (steps[k] @ q))
        q = q - along[-1] * changes[k]
    unknown = 1 / jnp.maximum(jnp.sum(jnp.abs(v)), 1.0)
    newest = changes[0] @ changes[0]
    q = q * jnp.where(inverse[0] > 0, curvature[0] / jnp.where(newest > 0, newest, 1.0), unknown)
    for k in reversed(range(MEMORY)):
        q = q + (along[k] - inverse[k] * (changes[k] @ q)) * steps[k]
    return q
