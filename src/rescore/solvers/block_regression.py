"""Parents that act by several features each, grown and shrunk by evidence instead of by columns.

The moves of the order search are those of `grow_shrink`; what differs is what a parent is.  Each
variable has m features, the first of which is the variable itself, and a parent has the code
``i + d·level``: variable i with a function of that smoothness.  Its straight line is free; its
other coefficients b are Gaussian with the precisions N·ridge in units of the noise, and are
integrated out.  With k parents a variable costs

    ½ Σ_k n_kj log v_kj + ½ k log N + ½ log|A given the lines| − ½ Σ log(ω·ridge) + penalty·k,
    A = Σ_k n_kj/v_kj S_k + ω diag(ridge),   ω = Σ_k n_kj/v_kj,

v_kj what b leaves in group k, plus bᵀ diag(ridge) b.  So lines pay as in BIC, and a function for
the degrees of freedom that it takes.  With one group of rows this is exact.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from rescore.solvers import grow_shrink
from rescore.solvers.compilation import compiled
from rescore.solvers.grow_shrink import LEAST_GAIN
from rescore.solvers.regression import NEGLIGIBLE, SETTLED, SMALLEST, Floats, Ints

# Sums in any order, so that they can be made four or eight at a time.
FAST = {"reassoc", "contract", "nsz"}
ROUNDS = 10  # of weighted least squares; of changes, so many for each parent


class BlockScores(NamedTuple):
    """What the score of every variable is made from; the features of a variable are adjacent."""

    S: Floats  # (K, d·m, d·m) covariances of the features in every group
    n: Floats  # (K, d) rows that count in each variable's regression
    ridge: Floats  # (L, d·m) of every level of smoothness; zero for the straight lines
    width: Ints  # (L,) features that a parent of each level has
    allowed: NDArray[np.bool_]  # (d, d) which edges may be
    required: NDArray[np.bool_]  # (d, d) and must be
    penalty: float  # of one edge, besides what its features cost
    most_parents: int


@compiled()
def gathered(scores: Any, P: Any, k: int, F: Any, r: Any) -> int:
    """The features and ridges of the first k codes, straight lines first; returns how many."""
    d = scores.allowed.shape[0]
    m, p = scores.ridge.shape[1] // d, k
    for at in range(k):
        i, level = P[at] % d, P[at] // d
        F[at], r[at] = i * m, 0.0
        for f in range(i * m + 1, i * m + scores.width[level]):
            F[p], r[p] = f, scores.ridge[level, f]
            p += 1
    return p


@compiled(fastmath=FAST)
def factored(A: Any, u: Any, p: int) -> None:
    """A (p, p) becomes its Cholesky factor L, and u becomes ``L⁻¹u``."""
    for a in range(p):
        whole = A[a, a]
        for c in range(a + 1):
            left = A[a, c]
            for q in range(c):
                left -= A[a, q] * A[c, q]
            A[a, c] = left / A[c, c] if c < a else np.sqrt(max(left, NEGLIGIBLE * whole + 1e-300))
        left = u[a]
        for q in range(a):
            left -= A[a, q] * u[q]
        u[a] = left / A[a, a]


@compiled(fastmath=FAST)
def inverted(A: Any, p: int) -> None:
    """The inverse of a lower triangular matrix, in its place."""
    for a in range(p):
        own = 1.0 / A[a, a]
        for c in range(a):
            A[a, c] *= -own
        A[a, a] = own
        for q in range(a):  # row a of the inverse, from the rows above it
            slope = A[a, q]
            A[a, q] = slope * A[q, q]
            for c in range(q):
                A[a, c] += slope * A[q, c]


@compiled(fastmath=FAST)
def weighted(scores: Any, j: int, F: Any, r: Any, p: int, v: Any, A: Any, u: Any) -> float:
    """The factor of the matrix A above, and ``u = L⁻¹c``; returns ω."""
    S, n = scores.S, scores.n
    y = j * (S.shape[1] // scores.allowed.shape[0])
    total = 0.0
    for a in range(p):
        u[a] = 0.0
        for c in range(p):  # the upper half too, which stays zero
            A[a, c] = 0.0
    for g in range(S.shape[0]):
        if n[g, j] > 0:
            weight = n[g, j] / v[g]
            total += weight
            for a in range(p):
                row = S[g, F[a]]
                u[a] += weight * row[y]
                for c in range(a + 1):
                    A[a, c] += weight * row[F[c]]
    for a in range(p):
        A[a, a] += total * r[a]
    factored(A, u, p)
    return total


@compiled(fastmath=FAST)
def variances(scores: Any, j: int, F: Any, r: Any, p: int, b: Any, v: Any) -> float:
    """What b leaves in every group, with its ridge, into ``v`` (K,); returns ½ Σ n log v."""
    S, n = scores.S, scores.n
    y = j * (S.shape[1] // scores.allowed.shape[0])
    total, mass = 0.0, 0.0
    for g in range(S.shape[0]):
        v[g] = 1.0
        if n[g, j] > 0:
            left = S[g, y, y]
            for a in range(p):
                row = S[g, F[a]]
                inner = (row[F[a]] + r[a]) * b[a] - 2.0 * row[y]
                for c in range(a):
                    inner += 2.0 * b[c] * row[F[c]]
                left += b[a] * inner
            v[g] = left
            total += n[g, j] * left
            mass += n[g, j]
    least = max(SMALLEST * total / max(mass, 1e-300), NEGLIGIBLE)
    value = 0.0
    for g in range(S.shape[0]):
        if n[g, j] > 0:
            v[g] = max(v[g], least)
            value += 0.5 * n[g, j] * np.log(v[g])
    return value


@compiled(fastmath=FAST)
def evidence(scores: Any, j: int, P: Any, k: int, b: Any, v: Any) -> float:
    """What variable j costs with the first k codes of P, but for the penalty.

    Coefficients, lines first, are left in ``b``, and the noise of the groups in ``v``.
    """
    room = max(k, 1) * (scores.S.shape[1] // scores.allowed.shape[0])
    F, r = np.empty(room, dtype=np.int64), np.empty(room)
    p = gathered(scores, P, k, F, r)
    nothing: Any = np.int64(0)  # a literal would be compiled for itself
    value = variances(scores, j, F, r, nothing, b, v)
    if p == 0:
        return value
    A, u, total = np.empty((p, p)), np.empty(p), 0.0
    for _ in range(ROUNDS if scores.S.shape[0] > 1 else 1):
        total = weighted(scores, j, F, r, p, v, A, u)
        for a in range(p - 1, -1, -1):  # b = L⁻ᵀu
            left = u[a]
            for q in range(a + 1, p):
                left -= A[q, a] * b[q]
            b[a] = left / A[a, a]
        better = variances(scores, j, F, r, p, b, v)
        settled = value - better < SETTLED
        value = better
        if settled:
            break
    rows = 0.0
    for g in range(scores.S.shape[0]):
        rows += scores.n[g, j]
    value += 0.5 * k * np.log(max(rows, 2.0))
    for a in range(k, p):
        value += np.log(A[a, a]) - 0.5 * np.log(total * r[a])
    return value


@compiled()
def block_gain(
    R: Any, c: Any, r: Any, width: int, line: float, total: float, left: float, rows: float
) -> float:
    """The evidence that a parent brings, given all others.

    Its features have the Gram matrix R (m, m) given the others', and the covariances c with what
    these leave of the variable, ``left``; the line has the variance ``line`` given other lines.
    """
    L, u = np.empty((width, width)), np.empty(width)
    for a in range(width):
        u[a] = c[a]
        for q in range(a + 1):
            L[a, q] = R[a, q]
        if a > 0:
            L[a, a] += total * r[a]
    factored(L, u, width)
    explained, price = 0.0, 0.5 * np.log(max(rows, 2.0)) - 0.5 * np.log(line)
    for a in range(width):
        explained += u[a] * u[a]
        price += np.log(L[a, a])
        if a > 0:
            price -= 0.5 * np.log(total * r[a])
    return -0.5 * rows * np.log(max(1.0 - explained / left, NEGLIGIBLE)) - price


@compiled()
def best_level(
    scores: Any,
    i: int,
    R: Any,
    c: Any,
    most: int,
    line: float,
    total: float,
    left: float,
    rows: float,
    own: int,
) -> tuple[float, int, float]:
    """The gain at the best level of at most ``most`` features, that level, the gain at ``own``."""
    m = scores.S.shape[1] // scores.allowed.shape[0]
    best, level, now = -np.inf, 0, 0.0
    for each in range(len(scores.width)):
        if scores.width[each] <= most:
            r = scores.ridge[each, i * m : i * m + m]
            one = block_gain(R, c, r, scores.width[each], line, total, left, rows)
            if one > best:
                best, level = one, each
            if each == own:
                now = one
    return best, level, now


@compiled(fastmath=FAST)
def projected(scores: Any, j: int, P: Any, k: int, v: Any, U: Any, u: Any) -> int:
    """``U = L⁻¹ A`` between the parents' features and all, (p, d·m), and ``u = L⁻¹c``."""
    S, n = scores.S, scores.n
    F, r = np.empty(len(u), dtype=np.int64), np.empty(len(u))
    p = gathered(scores, P, k, F, r)
    A = np.empty((p, p))
    weighted(scores, j, F, r, p, v, A, u)
    for a in range(p):
        into = U[a]
        for f in range(len(into)):
            into[f] = 0.0
        for g in range(S.shape[0]):
            weight, row = n[g, j] / v[g], S[g, F[a]]
            for f in range(len(into)):
                into[f] += weight * row[f]
        for q in range(a):
            slope, earlier = A[a, q], U[q]
            for f in range(len(into)):
                into[f] -= slope * earlier[f]
        scale = 1.0 / A[a, a]
        for f in range(len(into)):
            into[f] *= scale
    return p


@compiled(fastmath=FAST)
def given_parents(
    scores: Any, i: int, j: int, v: Any, U: Any, u: Any, p: int, R: Any, c: Any
) -> None:
    """The Gram matrix R of variable i's features and their covariances c, given the parents."""
    S, n, m = scores.S, scores.n, len(c)
    for a in range(m):
        c[a] = 0.0
        for q in range(a + 1):
            R[a, q] = 0.0
    for g in range(S.shape[0]):
        weight = n[g, j] / v[g]
        for a in range(m):
            row = S[g, i * m + a]
            c[a] += weight * row[j * m]
            for q in range(a + 1):
                R[a, q] += weight * row[i * m + q]
    for s in range(p):
        block = U[s, i * m : i * m + m]
        for a in range(m):
            c[a] -= block[a] * u[s]
            for q in range(a + 1):
                R[a, q] -= block[a] * block[q]


@compiled()
def remaining(scores: Any, j: int, v: Any, u: Any, p: int) -> tuple[float, float, float]:
    """What is left of variable j in units of its noise, ω, and its rows."""
    y = j * (scores.S.shape[1] // scores.allowed.shape[0])
    total, left, rows = 0.0, 0.0, 0.0
    for g in range(scores.S.shape[0]):
        weight = scores.n[g, j] / v[g]
        total += weight
        rows += scores.n[g, j]
        left += weight * scores.S[g, y, y]
    for q in range(p):
        left -= u[q] * u[q]
    return max(left, NEGLIGIBLE * total), total, rows


@compiled()
def screened(scores: Any, j: int, P: Any, k: int, v: Any, gain: Any, level: Any) -> None:
    """What every candidate would gain at its best level with the noise as it is, (d,) each."""
    d = scores.allowed.shape[0]
    m = scores.S.shape[1] // d
    U, u = np.empty((max(k, 1) * m, d * m)), np.zeros(max(k, 1) * m)
    p = projected(scores, j, P, k, v, U, u)
    left, total, rows = remaining(scores, j, v, u, p)
    R, c = np.empty((m, m)), np.empty(m)
    for i in range(d):
        gain[i], level[i] = -np.inf, 0
        if scores.allowed[i, j]:
            given_parents(scores, i, j, v, U, u, p, R, c)
            line = 0.0
            for g in range(scores.S.shape[0]):
                line += scores.n[g, j] / v[g] * scores.S[g, i * m, i * m]
            whole = line
            for s in range(k):
                line -= U[s, i * m] * U[s, i * m]
            if R[0, 0] > NEGLIGIBLE * whole:  # else the parents make it up
                gain[i], level[i], _ = best_level(
                    scores, i, R, c, m, line, total, left, rows, level[i]
                )


@compiled()
def changes(
    scores: Any, j: int, P: Any, k: int, b: Any, v: Any, fixed: int, level: Any
) -> tuple[int, int]:
    """The best ``level`` of every parent given the others, from one inverse C of A.

    Given all others a parent's features have the Gram matrix ``(C_ii)⁻¹`` less the ridge.  Returns
    the place of the parent that gains most by a change, and of the one that is least worth its
    penalty; -1 where there is none.
    """
    d = scores.allowed.shape[0]
    m = scores.S.shape[1] // d
    F, r = np.empty(k * m, dtype=np.int64), np.empty(k * m)
    p = gathered(scores, P, k, F, r)
    A, u = np.empty((p, p)), np.empty(p)
    weighted(scores, j, F, r, p, v, A, u)
    inverted(A, p)
    left, total, rows = remaining(scores, j, v, u, p)
    single, most, weakest, least = -1, LEAST_GAIN, -1, scores.penalty - LEAST_GAIN
    own, c, start = np.empty(m, dtype=np.int64), np.empty(m), k
    for at in range(k):
        now, width = P[at] // d, scores.width[P[at] // d]
        own[0] = at
        for x in range(1, width):
            own[x] = start + x - 1
        start += width - 1
        R = given_others(A, p, own, width)
        explained = 0.0
        for x in range(width):
            c[x] = 0.0
            for y in range(width):
                c[x] += R[x, y] * b[own[y]]
            explained += c[x] * b[own[x]]
        for x in range(width):
            R[x, x] -= total * r[own[x]]
        line = 0.0
        for a in range(at, k):
            line += A[a, at] * A[a, at]
        best, level[at], held = best_level(
            scores, P[at] % d, R, c, width, 1.0 / line, total, left + explained, rows, now
        )
        if best - held > most:
            single, most = at, best - held
        if at >= fixed and best < least:
            weakest, least = at, best
    return single, weakest


@compiled(fastmath=FAST)
def given_others(A: Any, p: int, own: Any, width: int) -> Any:
    """``(C_ii)⁻¹`` of the features ``own``, with ``C = AᵀA`` and A lower triangular."""
    C, nothing = np.zeros((width, width)), np.zeros(width)
    for a in range(own[0], p):
        for x in range(width):
            for y in range(x + 1):
                C[x, y] += A[a, own[x]] * A[a, own[y]]
    factored(C, nothing, width)
    inverted(C, width)
    R = np.zeros((width, width))
    for a in range(width):
        for x in range(a + 1):
            for y in range(a + 1):
                R[x, y] += C[a, x] * C[a, y]
    return R


@compiled()
def settled(scores: Any, j: int, P: Any, k: int, fixed: int, b: Any, v: Any) -> tuple[float, int]:
    """Change levels and take out parents, but the first ``fixed``, while the score falls.

    All levels at once, and the weakest parent out; where that does not help, one change alone.
    """
    d = scores.allowed.shape[0]
    for s in range(k):  # a line may have come in before others showed its bends
        P[s] += d * (P[s] < d)
    value = evidence(scores, j, P, k, b, v)
    trial, other, noise = P[:k].copy(), b.copy(), v.copy()
    level, together = np.empty(k, dtype=np.int64), True
    for _ in range(ROUNDS * max(k, 1)):
        if k == 0:
            break
        single, weakest = changes(scores, j, P, k, b, v, fixed, level)
        if single < 0 and weakest < 0:
            break
        fewer: Any = np.int64(0)
        for s in range(k):
            if s != weakest:
                trial[fewer] = P[s] % d + d * level[s] if together or s == single else P[s]
                fewer += 1
        one = evidence(scores, j, trial, fewer, other, noise)
        if one + scores.penalty * fewer < value + scores.penalty * k - LEAST_GAIN:
            value, k = one, fewer
            for s in range(k):
                P[s] = trial[s]
            for a in range(len(b)):
                b[a] = other[a]
            for g in range(len(v)):
                v[g] = noise[g]
        elif together:
            together = False
        else:
            break
    return value + scores.penalty * k, k


def shrunk(scores: Any, j: int, P: Any, k: int) -> tuple[float, int]:
    """The parents that stay, those required among them, at their best levels."""
    fixed: Any = np.int64(0)
    room = max(k, 1) * (scores.S.shape[1] // scores.allowed.shape[0])
    for i in range(scores.required.shape[0]):
        fixed += scores.required[i, j]
    return settled(scores, j, P, k, fixed, np.zeros(room), np.empty(scores.S.shape[0]))


@compiled()
def parents_at(scores: Any, forest: Any, j: int, node: int, P: Any) -> int:
    """The codes at a node, required parents first at a middle level, into P; returns how many."""
    d, k = scores.allowed.shape[0], 0
    for i in range(d):
        if scores.required[i, j]:
            P[k] = i + d * (len(scores.width) // 2)
            k += 1
    while forest.above[node] >= 0:
        P[k] = forest.added[node]
        k += 1
        node = forest.above[node]
    return k


def expand(scores: Any, forest: Any, j: int, node: int) -> bool:
    """Find the branches of a node, the best first; false if there is no more room."""
    d = scores.allowed.shape[0]
    P, v = np.empty(d + 1, dtype=np.int64), np.empty(scores.S.shape[0])
    k = parents_at(scores, forest, j, node, P)
    evidence(scores, j, P, k, np.zeros(max(k, 1) * (scores.S.shape[1] // d)), v)
    gain, level = np.full(d, -np.inf), np.zeros(d, dtype=np.int64)
    if k < scores.most_parents:
        screened(scores, j, P, k, v, gain, level)
    for at in range(k):
        gain[P[at] % d] = -np.inf
    return grow_shrink.branch(forest, node, gain, level, 0.0)


@overload(grow_shrink.parents_at, strict=False)
def _parents_at(scores: Any, forest: Any, j: Any, node: Any, P: Any) -> Any:
    if scores.instance_class is BlockScores:
        return parents_at.py_func
    return None


@overload(grow_shrink.expand, strict=False)
def _expand(scores: Any, forest: Any, j: Any, node: Any) -> Any:
    if scores.instance_class is BlockScores:
        return expand
    return None


@overload(grow_shrink.shrunk, strict=False)
def _shrunk(scores: Any, j: Any, P: Any, k: Any) -> Any:
    if scores.instance_class is BlockScores:
        return shrunk
    return None
