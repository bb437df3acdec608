"""Regressions of one variable on others, from the covariances of groups of rows; compiled.

    ½ Σ_k n_kj log v_kj(b),      v_kj(b) the variance that b leaves in group k,

is minimised over b.  One group is ordinary least squares, of which a regression on more or fewer
variables is a step away; several are a few rounds in which every group counts inversely to the
noise it is left with.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rescore.solvers.compilation import compiled

NEGLIGIBLE = 1e-12  # share of a variance below which a column is a combination of others
SMALLEST = 1e-3  # of the pooled noise: no group's noise counts as less
SETTLED = 1e-3  # gain in log-likelihood that ends the rounds of weighted least squares
ROUNDS = 20
RIDGE = 1e-10  # of every variance, so that columns that are nearly combinations can be solved for

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@compiled()
def _solve(A: Any, c: Any, k: int, b: Any) -> None:
    """``A b = c`` for a positive definite A (k, k), which is overwritten by its Cholesky factor."""
    for i in range(k):
        for m in range(i + 1):
            total = A[i, m]
            for q in range(m):
                total -= A[i, q] * A[m, q]
            if i == m:
                A[i, i] = np.sqrt(max(total, NEGLIGIBLE * NEGLIGIBLE))
            else:
                A[i, m] = total / A[m, m]
    for i in range(k):
        total = c[i]
        for q in range(i):
            total -= A[i, q] * b[q]
        b[i] = total / A[i, i]
    for i in range(k - 1, -1, -1):
        total = b[i]
        for q in range(i + 1, k):
            total -= A[q, i] * b[q]
        b[i] = total / A[i, i]


@compiled()
def variances(S: Any, n: Any, j: int, P: Any, k: int, b: Any, v: Any) -> float:
    """What coefficients leave in every group, into ``v`` (K,); returns ½ Σ n log v."""
    K = S.shape[0]
    total, mass = 0.0, 0.0
    for g in range(K):
        if n[g, j] == 0:
            v[g] = 1.0
            continue
        left = S[g, j, j]
        for i in range(k):
            inner = -2.0 * S[g, P[i], j]
            for m in range(k):
                inner += b[m] * S[g, P[i], P[m]]
            left += b[i] * inner
        v[g] = left
        total += n[g, j] * left
        mass += n[g, j]
    least = max(SMALLEST * total / max(mass, 1e-300), NEGLIGIBLE)
    value = 0.0
    for g in range(K):
        if n[g, j] > 0:
            v[g] = max(v[g], least)
            value += 0.5 * n[g, j] * np.log(v[g])
    return value


@compiled()
def profiled(S: Any, n: Any, j: int, P: Any, k: int, b: Any, v: Any) -> float:
    """½ Σ_k n_kj log v_kj at its least over coefficients of the first k of P, left in ``b``.

    Each round is weighted least squares, which never raises it: the logarithm lies below its
    tangent.  ``b`` is also where the first round starts.
    """
    K = S.shape[0]
    value = variances(S, n, j, P, k, b, v)
    if k == 0:
        return value
    A, c, last = np.empty((k, k)), np.empty(k), np.empty(k)
    for _ in range(ROUNDS):
        for i in range(k):
            c[i] = 0.0
            last[i] = b[i]
            for g in range(K):
                c[i] += n[g, j] / v[g] * S[g, P[i], j]
            for m in range(i + 1):
                A[i, m] = 0.0
                for g in range(K):
                    A[i, m] += n[g, j] / v[g] * S[g, P[i], P[m]]
            A[i, i] *= 1.0 + RIDGE
        _solve(A, c, k, b)
        better = variances(S, n, j, P, k, b, v)
        if better > value:
            for i in range(k):
                b[i] = last[i]
            return variances(S, n, j, P, k, b, v)
        if value - better < SETTLED:
            return better
        value = better
    return value


@compiled()
def orthogonal_row(S: Any, weight: Any, p: int, U: Any, m: int) -> None:
    """Row m of U (·, d): the weighted covariances with variable p, given those of the rows above.

    Scaled so that what all rows explain of a variable's variance is its sum of squares; zero if
    those above explain p.  As in a pivoted Cholesky decomposition.
    """
    d, whole = S.shape[1], 0.0
    for i in range(d):
        U[m, i] = 0.0
    for g in range(len(weight)):
        whole += weight[g] * S[g, p, p]
        for i in range(d):
            U[m, i] += weight[g] * S[g, p, i]
    for q in range(m):
        slope = U[q, p]
        for i in range(d):
            U[m, i] -= slope * U[q, i]
    left = U[m, p]
    scale = 1.0 / np.sqrt(left) if left > NEGLIGIBLE * whole else 0.0
    for i in range(d):
        U[m, i] *= scale


@compiled()
def gains(S: Any, weight: Any, j: int, rows: float, U: Any, k: int, gain: Any) -> float:
    """What every variable would gain as one more parent of j, into ``gain`` (d,).

    The first k rows of U are those of the parents.  Exactly so in one group; in several, their
    noise changes in turn.
    """
    d = len(gain)
    whole, own, with_j = np.zeros(d), np.empty(d), np.zeros(d)
    for g in range(len(weight)):
        for i in range(d):
            whole[i] += weight[g] * S[g, i, i]
            with_j[i] += weight[g] * S[g, j, i]
    for i in range(d):
        own[i] = whole[i]
    for m in range(k):
        slope = U[m, j]
        for i in range(d):
            own[i] -= U[m, i] * U[m, i]
            with_j[i] -= slope * U[m, i]
    left = max(own[j], NEGLIGIBLE * whole[j])
    for i in range(d):
        gain[i] = 0.0
        if own[i] > NEGLIGIBLE * whole[i] and left > 0:
            share = min(with_j[i] * with_j[i] / (own[i] * left), 1.0)
            gain[i] = -0.5 * rows * np.log(max(1.0 - share, NEGLIGIBLE))
    return left


@compiled()
def swept(M: Any, p: int) -> None:
    """Goodnight's sweep of M (·, ·) on p, which is its own inverse.

    Swept on some variables, the covariance with y in the last row and column holds the inverse of
    theirs, their coefficients for y in the last column, and what they leave of y in the corner.
    """
    pivot, size = M[p, p], len(M)
    for m in range(size):
        M[p, m] /= pivot
    for i in range(size):
        if i != p:
            slope = M[i, p]
            for m in range(size):
                M[i, m] -= slope * M[p, m]
            M[i, p] = -slope / pivot
    M[p, p] = 1.0 / pivot


@compiled()
def swept_on(S: Any, j: int, P: Any, k: int) -> Any:
    """The covariance S (d, d) of the first k of P and of j, the last, swept on those k."""
    M = np.empty((k + 1, k + 1))
    for i in range(k + 1):
        at = P[i] if i < k else j
        for m in range(k):
            M[i, m] = S[at, P[m]]
        M[i, k] = S[at, j]
        if i < k:
            M[i, i] = (1.0 + RIDGE) * M[i, i] + NEGLIGIBLE * NEGLIGIBLE  # constants too
    for p in range(k):
        swept(M, p)
    return M
