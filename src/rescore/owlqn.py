"""Minimise a smooth function plus a weighted L1 norm, as one compiled loop.

Orthant-wise limited-memory quasi-Newton (OWL-QN): L-BFGS on the piece of space where no variable
changes sign, with the line search projected onto it.  Zeros are exact zeros, which is what makes
the learned graphs sparse without a threshold.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

ValueAndGradient = Callable[[Array], tuple[Array, Array]]

MEMORY = 10  # pairs kept for the quasi-Newton matrix
ARMIJO = 1e-4  # least share of the predicted decrease a step must bring
SHORTEST = 1e-12  # step length at which the line search gives up


class Minimum(NamedTuple):
    """Where the search ended: the point, the penalised value, and how well it is solved."""

    x: Array
    value: Array  # f(x) + Σ λ|x|
    optimality: Array  # largest component of the minimum-norm subgradient (KKT residual)
    iterations: Array


class _Memory(NamedTuple):
    """The latest steps and gradient changes, from which L-BFGS builds its quadratic model."""

    steps: Array  # (MEMORY, size)
    changes: Array  # (MEMORY, size)
    inverse_curvature: Array  # (MEMORY,) 1 / step·change
    stored: Array  # pairs stored so far; the next goes to slot stored % MEMORY


class _Search(NamedTuple):
    x: Array
    value: Array
    gradient: Array  # of the smooth part
    memory: _Memory
    length: Array  # of the step to try next, 1 = the full quasi-Newton step
    iterations: Array
    stalled: Array


def minimise(
    f: ValueAndGradient, x: Array, penalty: Array, max_iter: int, rtol: float, gtol: float
) -> Minimum:
    """Minimise ``f(x) + Σ penalty·|x|`` from ``x``; traceable, so callers compile it.

    Stops when the KKT residual falls below ``gtol``, when a step lowers the value by less than
    ``rtol`` of it, or after ``max_iter`` steps.  Variables whose gradient ``f`` keeps at zero
    stay where they are.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> def f(x):  # ½|x − (3, 0.5)|²
    ...     r = x - jnp.array([3.0, 0.5])
    ...     return r @ r / 2, r
    >>> with jax.enable_x64(True):
    ...     found = minimise(f, jnp.zeros(2), jnp.ones(2), 100, 1e-12, 1e-8)
    >>> [float(v) for v in found.x]
    [2.0, 0.0]
    """

    def unfinished(s: _Search) -> Array:
        residual = jnp.max(jnp.abs(steepest(s.x, s.gradient, penalty)))
        return (s.iterations < max_iter) & ~s.stalled & (residual > gtol)

    value, gradient = f(x)
    value = value + penalty @ jnp.abs(x)
    empty = jnp.zeros((MEMORY, x.size), x.dtype)
    memory = _Memory(empty, empty, jnp.zeros(MEMORY, x.dtype), jnp.array(0))
    # Nothing is known of the curvature yet, so the first step has length one at most.
    length = 1.0 / jnp.maximum(jnp.sum(jnp.abs(steepest(x, gradient, penalty))), 1.0)
    start = _Search(x, value, gradient, memory, length, jnp.array(0), jnp.array(False))
    end = jax.lax.while_loop(unfinished, lambda s: _step(f, s, penalty, rtol), start)
    residual = jnp.max(jnp.abs(steepest(end.x, end.gradient, penalty)))
    return Minimum(end.x, end.value, residual, end.iterations)


def steepest(x: Array, gradient: Array, penalty: Array) -> Array:
    """The minimum-norm subgradient of ``f + Σ penalty·|x|``: zero exactly at a KKT point.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> print(steepest(jnp.array([0.0, 0.0]), jnp.array([0.5, -3.0]), jnp.ones(2)))
    [ 0. -2.]
    """
    at_zero = jnp.sign(gradient) * jnp.maximum(jnp.abs(gradient) - penalty, 0.0)
    return jnp.where(x == 0, at_zero, gradient + jnp.sign(x) * penalty)


def _step(f: ValueAndGradient, s: _Search, penalty: Array, rtol: float) -> _Search:
    """Try one quasi-Newton step, projected onto the orthant: take it, or halve it for next time.

    The line search is folded into the main loop, one evaluation of ``f`` each time round: a loop
    inside the loop costs XLA more than the occasional repeated direction, above all under vmap.
    """
    slope = steepest(s.x, s.gradient, penalty)
    direction = -_inverse_hessian_times(slope, s.memory)
    direction = jnp.where(direction * slope < 0, direction, 0.0)
    orthant = jnp.where(s.x == 0, -jnp.sign(slope), jnp.sign(s.x))
    x = s.x + s.length * direction
    x = jnp.where(x * orthant > 0, x, 0.0)
    smooth, gradient = f(x)
    value = smooth + penalty @ jnp.abs(x)
    expected = slope @ (x - s.x)  # negative: what the slope alone promises
    good = (value <= s.value + ARMIJO * expected) & jnp.all(jnp.isfinite(gradient))
    enough = s.value - value > rtol * jnp.maximum(jnp.abs(s.value), 1.0)
    memory = _remember(s.memory, x - s.x, gradient - s.gradient, good)
    taken = (x, value, gradient, jnp.ones(()), ~enough)
    shorter = s.length * _shrinkage(value - s.value, expected)
    halved = (s.x, s.value, s.gradient, shorter, s.length < SHORTEST)
    x, value, gradient, length, stalled = (
        jnp.where(good, a, b) for a, b in zip(taken, halved, strict=True)
    )
    return _Search(x, value, gradient, memory, length, s.iterations + 1, stalled)


def _shrinkage(rise: Array, expected: Array) -> Array:
    """Where the parabola through the failed step has its minimum, kept within 0.1 and 0.5."""
    at = -expected / (2 * (rise - expected))
    return jnp.where(jnp.isfinite(at), jnp.clip(at, 0.1, 0.5), 0.1)


def _remember(memory: _Memory, step: Array, change: Array, good: Array) -> _Memory:
    """Overwrite the oldest pair with the newest one, if that shows positive curvature."""
    curvature = step @ change
    good &= curvature > 1e-10 * jnp.linalg.norm(step) * jnp.linalg.norm(change)
    slot = memory.stored % MEMORY

    def put(table: Array, newest: Array) -> Array:  # in place: the table itself is never copied
        return table.at[slot].set(jnp.where(good, newest, table[slot]))

    return _Memory(
        put(memory.steps, step),
        put(memory.changes, change),
        put(memory.inverse_curvature, 1 / curvature),
        memory.stored + good,
    )


def _inverse_hessian_times(v: Array, memory: _Memory) -> Array:
    """The L-BFGS two-loop recursion; empty memory slots are zero and drop out."""
    slots = [(memory.stored - k) % MEMORY for k in range(1, MEMORY + 1)]  # newest first
    q, along = v, []
    for k in slots:
        along.append(memory.inverse_curvature[k] * (memory.steps[k] @ q))
        q = q - along[-1] * memory.changes[k]
    newest = memory.changes[slots[0]]
    scale = 1 / (memory.inverse_curvature[slots[0]] * (newest @ newest))
    q = q * jnp.where(memory.stored > 0, scale, 1.0)
    for k, a in zip(reversed(slots), reversed(along), strict=True):
        q = q + (a - memory.inverse_curvature[k] * (memory.changes[k] @ q)) * memory.steps[k]
    return q
