"""The covariance of a Gaussian process with a relevance per input: its factor, slopes, information.

    C = K + P Pᵀ + v D,    K_ab = A exp(−½ Σ_i ρ_i (x_ai − x_bi)²),    D = diag(1 / precision)

P Pᵀ is there where rows belong to groups, P being who belongs to which (n, K): each group has a
level of its own, of a deviation of one before anything is seen.

The information is estimated from the data themselves and a few rows drawn from the model:
½ qᵢᵀ C⁻¹ qⱼ with qᵢ = (∂C/∂θᵢ) C⁻¹ y, whose mean is ½ tr(C⁻¹ ∂ᵢC C⁻¹ ∂ⱼC).  It takes matrices
times a few vectors.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix

JITTER = 1e-6  # of the amplitude, on the diagonal: nearby rows make K singular
PROBES = 2  # rows of noise drawn from the model for the information, beside the data


class Target(NamedTuple):
    """One variable to be explained: inputs (n, d), its values (n,), its noise's relative size."""

    X: NDArray[np.float32]
    y: NDArray[np.float32]
    noise: Matrix  # (n,), one where a row counts as one row
    groups: Matrix | None = None  # (n, K) memberships, where levels differ between groups

    def part(self, rows: NDArray[np.intp] | slice) -> "Target":
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return Target(self.X[rows], self.y[rows], self.noise[rows], groups)


def kernel(theta: Matrix, X: NDArray[Any], Y: NDArray[Any], dtype: Any = np.float64) -> Any:
    """``A exp(−½ Σ_i ρ_i (x_ai − y_bi)²)``, (rows of X, rows of Y).

    Examples
    --------
    >>> theta = np.array([2.0, 0.0, 0.0])  # relevance two, amplitude one
    >>> print(kernel(theta, np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3))
    [[1.    0.368]]
    """
    active = np.flatnonzero(theta[:-2] > 0)
    if len(active) == 0:  # of nothing there is no function: columns have mean zero
        return np.zeros((len(X), len(Y)), dtype)
    root = np.sqrt(theta[active])
    U, V = ((Z[:, active] * root).astype(dtype) for Z in (X, Y))
    u, v = (-np.square(Z).sum(axis=1, keepdims=True) / 2 for Z in (U, V))
    one = np.ones_like  # the squares as two more columns: one product instead of three passes
    R = np.hstack((U, u, one(u))) @ np.hstack((V, one(v), v + dtype(theta[-2]))).T
    np.minimum(R, dtype(theta[-2]), out=R)
    np.exp(R, out=R)
    return R


class Factored(NamedTuple):
    """The covariance C = K + P Pᵀ + v D, factored, and the evidence that it gives."""

    K: Any
    factor: Any  # lower triangle
    dual: Any  # (n,), C⁻¹ y
    value: float  # ½ yᵀ C⁻¹ y + ½ log |C|


def factored(theta: Matrix, target: Target, dtype: Any = np.float32) -> Factored | None:
    """In single precision, in double where that fails, None where both do."""
    from scipy.linalg import lapack

    K = kernel(theta, target.X, target.X, dtype)
    factor, logdet = lower_factor(K, theta, target.noise, target.groups)
    if factor is None:
        return factored(theta, target, np.float64) if dtype == np.float32 else None
    y = target.y.astype(dtype)
    solve = lapack.spotrs if dtype == np.float32 else lapack.dpotrs
    dual = solve(factor, y, lower=1)[0]
    return Factored(K, factor, dual, float(y @ dual) / 2 + logdet)


def lower_factor(
    R: Any, theta: Matrix, noise: Matrix, groups: Matrix | None = None
) -> tuple[Any, float]:
    """The Cholesky factor of C and half its log-determinant; None where there is none."""
    from scipy.linalg import lapack

    C = np.array(R.T, order="F")  # R is symmetric: this way the numbers stay as they lie
    if groups is not None:
        P = groups.astype(C.dtype)
        C += (P @ P.T).T
    diagonal = np.diag_indices(len(C))
    C[diagonal] += (np.exp(theta[-1]) * noise + JITTER * np.exp(theta[-2])).astype(C.dtype)
    factorise = lapack.spotrf if C.dtype == np.float32 else lapack.dpotrf
    factor, failed = factorise(C, lower=1, clean=1, overwrite_a=1)
    if failed:
        return None, np.inf
    return factor, float(np.log(np.diag(factor).astype(np.float64)).sum())


def half_inverse(factor: Any) -> Any:
    """The lower triangle of the inverse, with half the diagonal: C⁻¹ is that and its transpose."""
    from scipy.linalg import lapack

    invert = lapack.spotri if factor.dtype == np.float32 else lapack.dpotri
    half, _ = invert(factor, lower=1, overwrite_c=1)
    half[np.diag_indices(len(half))] *= half.dtype.type(0.5)
    return half


def gradient(theta: Matrix, target: Target, parts: Factored, half: Any) -> Matrix:
    """With G = (C⁻¹y yᵀC⁻¹ − C⁻¹) ∘ K: −½ Σ G ∂log K, from one half of the symmetric matrices."""
    H = np.multiply.outer(parts.dual, parts.dual / 2).T  # all laid out as the factor is
    H -= half
    H *= parts.K.T
    sums = (H.sum(axis=0) + H.sum(axis=1)).astype(np.float64)  # of the rows of G
    X = target.X.astype(H.dtype)
    products = 2 * np.einsum("ai,ai->i", X, H @ X).astype(np.float64)  # xᵀ G x
    squares = 2 * (sums @ np.square(X, dtype=np.float64) - products)  # Σ_ab G_ab (x_a − x_b)²
    left = np.square(parts.dual.astype(np.float64)) - 2 * np.diag(half).astype(np.float64)
    by_noise = -np.exp(theta[-1]) / 2 * (left @ target.noise)
    jitter = -JITTER * np.exp(theta[-2]) / 2 * left.sum()
    return np.r_[squares / 4, jitter - sums.sum() / 2, by_noise]


def drawn(factor: Any) -> Any:
    """``C⁻¹ y`` for a few y ~ N(0, C), always from the same numbers, (n, PROBES)."""
    from scipy.linalg import lapack

    z = np.random.default_rng(1).standard_normal((len(factor), PROBES)).astype(factor.dtype)
    solve = lapack.strtrs if factor.dtype == np.float32 else lapack.dtrtrs
    return solve(factor, z, lower=1, trans=1)[0]


def information(
    theta: Matrix, target: Target, K: Any, half: Any, duals: Any, inputs: NDArray[np.intp]
) -> Matrix:
    """Of the evidence, about the relevances of these inputs, log A and log v."""
    from scipy.linalg import blas

    multiply = blas.ssymm if K.dtype == np.float32 else blas.dsymm
    X = target.X[:, inputs].astype(K.dtype)
    noise = (np.exp(theta[-1]) * target.noise).astype(K.dtype)
    squared, p = np.square(X), len(inputs)
    factors = np.hstack((np.ones_like(X[:, :1]), X, squared))
    moved = K @ np.hstack([a[:, None] * factors for a in duals.T])  # K a, K (a ∘ x), K (a ∘ x²)
    Q = np.empty((len(X), (p + 2) * duals.shape[1]), K.dtype, order="F")
    for a, q, m in zip(duals.T, _parts(Q, p + 2), _parts(moved, 2 * p + 1), strict=True):
        q[:, :p] = X * m[:, 1 : p + 1] - (squared * m[:, :1] + m[:, p + 1 :]) / 2
        q[:, p], q[:, p + 1] = m[:, 0], noise * a
    Z = multiply(1.0, half, Q, lower=1) + np.diag(half)[:, None] * Q
    pairs = zip(_parts(Q, p + 2), _parts(Z, p + 2), strict=True)
    return sum((q.T @ z).astype(np.float64) for q, z in pairs) / (2 * duals.shape[1])


def _parts(A: Any, width: int) -> list[Any]:
    """So many columns of A each."""
    return [A[:, k : k + width] for k in range(0, A.shape[1], width)]
