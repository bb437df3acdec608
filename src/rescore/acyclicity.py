"""Smooth measures of how far a weighted graph is from a DAG, with their gradients.

Each function maps ``W`` (d, d) to ``(h, ∇h)`` with ``h ≥ 0`` and ``h = 0`` exactly for DAGs; only
`saturating` takes squared weights, and leaves the gradient to who differentiates it with the rest.
All work on a non-negative matrix such as ``A = W∘W``.  In float32 a back-edge of 1e-3 already
gives ``h = 0.0``, so anything but float64 is refused; call these inside ``jax.enable_x64(True)``.

For non-negative ``A`` the series of ``e^A − I`` and ``(I + A/d)^d − I`` have no negative term.
Both are computed as such, never as a difference from ``I``: no cancellation, every cycle shows
in ``h`` to full relative precision, and ``h`` cannot come out negative.
"""

from math import ceil, factorial, log2

import jax.numpy as jnp
from jax import Array

HALVINGS = 10  # A is divided by 2^10 before its Taylor series is summed


def trace_exponential(W: Array) -> tuple[Array, Array]:
    """``h = tr e^{W∘W} − d`` and ``∇h = (e^{W∘W})ᵀ ∘ 2W`` (the paper's Section 2, NOTEARS).

    Examples
    --------
    >>> import jax, numpy as np
    >>> two_cycle = np.array([[0.0, 1e-3], [1e-3, 0.0]])
    >>> with jax.enable_x64(True):
    ...     h, gradient = trace_exponential(two_cycle)
    >>> print(f"{h:.3e}")
    1.000e-12
    """
    A = _squared(W)
    F = expm1(A)
    return jnp.trace(F), 2 * W * (F + jnp.eye(len(A))).T


def polynomial(W: Array) -> tuple[Array, Array]:
    """``h = tr (I + W∘W/d)^d − d`` and its gradient ``((I + W∘W/d)^{d−1})ᵀ ∘ 2W``.

    Examples
    --------
    >>> import jax, numpy as np
    >>> chain = np.array([[0.0, 2.0], [0.0, 0.0]])
    >>> with jax.enable_x64(True):
    ...     print(float(polynomial(chain)[0]))
    0.0
    """
    A = _squared(W)
    d = len(A)
    F = A / d
    G = _power_minus_one(F, d - 1)
    return jnp.trace(F + G + G @ F), 2 * W * (G + jnp.eye(d)).T


def log_det(W: Array, s: float | Array = 1.0) -> tuple[Array, Array]:
    """``h = −log det(sI − W∘W) + d log s`` and ``∇h = 2W ∘ (sI − W∘W)^{−ᵀ}`` (DAGMA).

    Defined where the spectral radius of ``W∘W`` is below ``s``; that is where the inverse is
    non-negative.  Outside, ``h`` is infinite, so that a line search steps back.

    Examples
    --------
    >>> import jax, numpy as np
    >>> with jax.enable_x64(True):
    ...     h, _ = log_det(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> print(float(h))
    inf
    """
    A = _squared(W)
    d = len(A)
    inverse = jnp.linalg.inv(jnp.eye(d) - A / s)
    inside = jnp.all(inverse >= -1e-12) & jnp.all(jnp.isfinite(inverse))
    h = -jnp.linalg.slogdet(jnp.eye(d) - A / s)[1]
    return jnp.where(inside, jnp.maximum(h, 0.0), jnp.inf), 2 * W * inverse.T / s


def saturating(squares: Array) -> Array:
    """``h = tr (I + A/k)^k − d``, ``A = s/(1+s)`` for squares s (d, d), k a power of 2 ≥ d.

    A stays below one: long cycles of large weights cost no more than they must.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> with jax.enable_x64(True):
    ...     print(saturating(jnp.array([[0.0, 9.0], [0.0, 0.0]])), saturating(jnp.ones((2, 2))) > 0)
    0.0 True
    """
    squares = _in_double_precision(squares)
    doublings = ceil(log2(max(len(squares), 2)))
    F = squares / (1 + squares) / 2**doublings
    for _ in range(doublings):
        F = 2 * F + F @ F
    return jnp.trace(F)


def expm1(A: Array) -> Array:
    """``e^A − I`` for a non-negative ``A``, to full relative precision in every entry.

    Taylor polynomial of ``A/2¹⁰``, then ten times ``(I + F)² − I = 2F + F²``: exact to 1e-13
    for norms up to 500, to 1e-6 up to 2,000.  Overflow shows as a non-finite entry.

    Examples
    --------
    >>> import jax, numpy as np
    >>> with jax.enable_x64(True):
    ...     print(np.allclose(expm1(np.diag([1.0, 2.0])), np.diag(np.expm1([1.0, 2.0]))))
    True
    """
    F = _taylor_minus_one(A / 2.0**HALVINGS)
    # Unrolled on purpose: XLA runs matrix products inside a loop in a loop ten times slower.
    for _ in range(HALVINGS):
        F = 2 * F + F @ F
    return F


def _taylor_minus_one(B: Array) -> Array:
    """``Σ_{k=1}^{12} B^k/k!`` in five products; the rest is below 1e-13 of B when |B| ≤ 1/2."""
    B2 = B @ B
    B3 = B2 @ B
    B4 = B2 @ B2

    def block(first: int) -> Array:
        c = [1 / factorial(first + i) for i in range(4)]
        return c[0] * B + c[1] * B2 + c[2] * B3 + c[3] * B4

    # Σ_{k=1}^{12}: three blocks of B..B⁴, each multiplied by a power of B⁴ (Paterson–Stockmeyer).
    return block(1) + B4 @ (block(5) + B4 @ block(9))


def _power_minus_one(F: Array, exponent: int) -> Array:
    """``(I + F)^exponent − I`` by binary powering, from ``(I+P)(I+Q) − I = P + Q + PQ``."""
    result = jnp.zeros_like(F)
    while exponent:
        if exponent % 2:
            result = result + F + result @ F
        exponent //= 2
        if exponent:
            F = 2 * F + F @ F
    return result


def _squared(W: Array) -> Array:
    W = _in_double_precision(W)
    return W * W


def _in_double_precision(W: Array) -> Array:
    W = jnp.asarray(W)
    if W.dtype != jnp.float64:
        raise TypeError(
            f"The acyclicity constraint needs float64, got {W.dtype}: smaller types hide small "
            "cycles. Pass a float64 array inside `with jax.enable_x64(True):`."
        )
    return W
