"""Ways down, compiled: quasi-Newton for smooth functions plus a weighted L1 norm, and Adam.

Orthant-wise limited-memory quasi-Newton (OWL-QN): L-BFGS on the piece of space where no penalised
variable changes sign, with the line search projected onto it.  Zeros are exact zeros, which is
what makes the learned graphs sparse without a threshold.  Variables without a penalty are free to
change sign, and where there is no penalty at all this is L-BFGS.

Adam takes steps in units of how large the gradients have been (Kingma and Ba 2015).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

ValueAndGradient = Callable[[Array], tuple[Array, Array]]
MEMORY = 10  # pairs kept for the quasi-Newton matrix
ARMIJO = 1e-4  # least share of the predicted decrease a step must bring
SHORTEST = 1e-12  # step length at which the line search gives up
MOMENTUM, OF_SQUARES = 0.9, 0.99  # in which Adam averages the gradients and their squares


class Minimum(NamedTuple):
    """Where the search ended: the point, the penalised value, and how well it is solved."""

    x: Array
    value: Array  # f(x) + Σ λ|x|
    optimality: Array  # largest component of the minimum-norm subgradient (KKT residual)
    iterations: Array  # steps tried, taken or not


class _Memory(NamedTuple):
    """The latest steps and gradient changes, oldest first, and their products.

    Slots not yet filled are zero and drop out.
    """

    steps: Array  # (MEMORY, size)
    changes: Array  # (MEMORY, size)
    step_change: Array  # (MEMORY, MEMORY) steps @ changes.T
    change_change: Array  # (MEMORY, MEMORY) changes @ changes.T


class _Search(NamedTuple):
    x: Array
    value: Array
    gradient: Array  # of the smooth part
    slope: Array  # of the whole: its minimum-norm subgradient
    memory: _Memory
    length: Array  # of the step to try next, 1 = the full quasi-Newton step
    iterations: Array  # steps tried; −1 before f is known where the search starts
    stalled: Array


def minimise(
    f: ValueAndGradient,
    x: Array,
    penalty: Array,
    max_iter: int | Array,
    rtol: float,
    gtol: float,
    held: int | Array = 0,
) -> Minimum:
    """Minimise ``f(x) + Σ penalty·|x|`` from ``x``; traceable, so callers compile it.

    Stops when the KKT residual falls below ``gtol``, when a step lowers the value by less than
    ``rtol`` of it, or after ``max_iter`` steps.  Variables whose gradient ``f`` keeps at zero
    stay where they are.  For the first ``held`` steps, variables without a penalty keep to their
    orthant too, which is slower, and leads to other minima where there are many.

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
        steep = (s.iterations < 0) | (jnp.max(jnp.abs(s.slope)) > gtol)
        return (s.iterations < max_iter) & ~s.stalled & steep

    def step(s: _Search) -> _Search:
        free = (penalty == 0) & (s.iterations >= held)
        return _step(f, s, penalty, free, rtol)

    end = jax.lax.while_loop(unfinished, step, _start(x))
    return Minimum(end.x, end.value, jnp.max(jnp.abs(end.slope)), end.iterations)


def _start(x: Array) -> _Search:
    """Nothing known but x: on no slope the first step stands still, which evaluates f there.

    So f is compiled once, inside the loop, and not a second time before it.
    """
    flat, worst, full = jnp.zeros_like(x), jnp.full((), jnp.inf, x.dtype), jnp.ones((), x.dtype)
    pairs, products = jnp.zeros((MEMORY, x.size), x.dtype), jnp.zeros((MEMORY, MEMORY), x.dtype)
    memory = _Memory(pairs, pairs, products, products)
    return _Search(x, worst, flat, flat, memory, full, jnp.array(-1), jnp.array(False))


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


def _step(f: ValueAndGradient, s: _Search, penalty: Array, free: Array, rtol: float) -> _Search:
    """Try one quasi-Newton step, projected onto the orthant: take it, or halve it for next time.

    The line search is folded into the main loop, one evaluation of ``f`` each time round: a loop
    inside the loop costs XLA more than the occasional repeated direction, above all under vmap.
    """
    x = _moved(s, free)
    smooth, gradient = f(x)
    value = smooth + penalty @ jnp.abs(x)
    expected = s.slope @ (x - s.x)  # negative: what the slope alone promises
    good = (value <= s.value + ARMIJO * expected) & jnp.all(jnp.isfinite(gradient))
    enough = s.value - value > rtol * jnp.maximum(jnp.abs(value), 1.0)
    memory = _remember(s.memory, x - s.x, gradient - s.gradient, good)
    slope = steepest(x, gradient, penalty)
    taken = (x, value, gradient, slope, _next_length(s, slope), ~enough)
    shorter = s.length * shrinkage(value - s.value, expected)
    kept = (s.x, s.value, s.gradient, s.slope, shorter, s.length < SHORTEST)
    x, value, gradient, slope, length, stalled = (
        jnp.where(good, a, b) for a, b in zip(taken, kept, strict=True)
    )
    return _Search(x, value, gradient, slope, memory, length, s.iterations + 1, stalled)


def _moved(s: _Search, free: Array) -> Array:
    """Where the step leads: downhill in every variable not free, none of which passes zero."""
    direction = -_inverse_hessian_times(s.slope, s.memory)
    direction = jnp.where(free | (direction * s.slope < 0), direction, 0.0)
    orthant = jnp.where(s.x == 0, -jnp.sign(s.slope), jnp.sign(s.x))
    x = s.x + s.length * direction
    return jnp.where(free | (x * orthant > 0), x, 0.0)


def _next_length(s: _Search, slope: Array) -> Array:
    """The full step; from the start, where no curvature is known, one of length one at most."""
    return jnp.where(s.iterations < 0, 1 / jnp.maximum(jnp.sum(jnp.abs(slope)), 1.0), 1.0)


def shrinkage(rise: Array, expected: Array) -> Array:
    """Where the parabola through the failed step has its minimum, kept within 0.1 and 0.5.

    The step raised the value by ``rise`` where its slope had promised ``expected``, below zero.

    Examples
    --------
    >>> print(shrinkage(jnp.array(1.0), jnp.array(-1.0)))
    0.25
    """
    at = -expected / (2 * (rise - expected))
    return jnp.where(jnp.isfinite(at), jnp.clip(at, 0.1, 0.5), 0.1)


def _remember(memory: _Memory, step: Array, change: Array, good: Array) -> _Memory:
    """Push the newest pair out at one end and in at the other, if it shows positive curvature."""
    curvature = step @ change
    good &= curvature > 1e-10 * jnp.linalg.norm(step) * jnp.linalg.norm(change)
    steps = jnp.concatenate([memory.steps[1:], step[None]])
    changes = jnp.concatenate([memory.changes[1:], change[None]])
    step_change = _push(memory.step_change, steps @ change, changes @ step)
    change_change = _push(memory.change_change, changes @ change, changes @ change)
    new = _Memory(steps, changes, step_change, change_change)
    return _Memory(*(jnp.where(good, a, b) for a, b in zip(new, memory, strict=True)))


def _push(products: Array, column: Array, row: Array) -> Array:
    """Move all products up and left by one, and put in those of the newest pair."""
    moved = jnp.zeros_like(products).at[:-1, :-1].set(products[1:, 1:])
    return moved.at[:, -1].set(column).at[-1].set(row)


def _inverse_hessian_times(v: Array, memory: _Memory) -> Array:
    """The L-BFGS direction in compact form (Byrd, Nocedal and Schnabel 1994, theorem 2.2).

    Four products of the whole memory with a vector, where the two-loop recursion makes forty
    small steps one after the other.
    """
    curvature = jnp.diag(memory.step_change)
    R = jnp.triu(memory.step_change) + jnp.diag(jnp.where(curvature > 0, 0.0, 1.0))
    scale = jnp.where(curvature[-1] > 0, curvature[-1] / memory.change_change[-1, -1], 1.0)
    along = solve_triangular(R, memory.steps @ v)
    against = curvature * along + scale * (memory.change_change @ along - memory.changes @ v)
    back = solve_triangular(R, against, trans=1)
    return scale * v + back @ memory.steps - scale * (along @ memory.changes)


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
    square = jax.tree.map(
        lambda v, g: OF_SQUARES * v + (1 - OF_SQUARES) * g**2, averages.square, gradient
    )

    def move(m: Array, v: Array) -> Array:
        return rate * m / (1 - MOMENTUM**count) / (jnp.sqrt(v / (1 - OF_SQUARES**count)) + damping)

    return jax.tree.map(move, mean, square), Averages(mean, square, count)
