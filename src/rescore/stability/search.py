"""The search of `rescore.ordered` on many covariances at once.

Matrices of one size are solved in one call, and numbers come out as in the search one by one but
for rounding.  Every edge may and none must be there: for anything else, search one by one.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix
from rescore.ordered import NEGLIGIBLE, RIDGE, TIE, chance_level, first_of, over_all_before

__all__ = ["by_size", "orders", "parent_sets", "submatrices"]

Indices = NDArray[np.intp]
Masks = NDArray[np.bool_]


def orders(S: Matrix) -> Indices:
    """The order of least variance of each covariance in S (B, d, d), as positions (B, d).

    Examples
    --------
    >>> orders(np.array([[[5.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [2.0, 5.0]]]))
    array([[1, 0],
           [0, 1]])
    """
    B, d, _ = S.shape
    every, R = np.arange(B), S.copy()  # R: covariance given the variables placed so far
    waiting = np.ones((B, d), dtype=bool)
    order = np.empty((B, d), dtype=np.intp)
    for place in range(d):
        variance = np.where(waiting, np.einsum("bii->bi", R), np.inf)
        j = _least(variance, R)
        order[:, place] = j
        waiting[every, j] = False
        own = R[every, j, j]
        left = own > NEGLIGIBLE * S[every, j, j]
        scaled = R[every, j] / np.where(left, own, 1.0)[:, None] * left[:, None]
        R -= R[every, :, j][:, :, None] * scaled[:, None, :]
    return order


def _least(variance: Matrix, R: Matrix) -> Indices:
    least = variance.min(axis=1)
    equals = variance <= (least + TIE * np.abs(least))[:, None]
    j = equals.argmax(axis=1)
    for b in np.flatnonzero(equals.sum(axis=1) > 1):
        j[b] = first_of(variance[b], R[b])
    return j


def parent_sets(S: Matrix, order: Indices, rows: float) -> Masks | None:
    """``[b, i, j]`` where j has the parent i, (B, d, d): before j, and explaining enough of it.

    ``rows`` is the effective number of rows.  None if some covariance is singular to working
    precision.

    Examples
    --------
    >>> S = np.array([[[5.0, 2.0], [2.0, 1.0]]])
    >>> parent_sets(S, np.array([[1, 0]]), 100.0)
    array([[[False, False],
            [ True, False]]])
    """
    B, d, _ = S.shape
    R = _correlations(submatrices(S, np.arange(B), order))  # from here on in the order's positions
    over_all = over_all_before(R)
    if over_all is None:
        return None
    chance = chance_level(rows, d)
    before = np.broadcast_to(np.tri(d, k=-1, dtype=bool), R.shape)  # [b, p, q]: q before p
    few = before & (over_all[0] >= chance / rows / 4)
    # As one by one: the others go at once unless together they explain more than chance could.
    place = np.arange(d)
    others = place - few.sum(axis=2)
    rise = (_left(R, few) / over_all[1] - 1) * np.maximum(rows - place, 1.0)
    at_once = rise <= others + 3 * np.sqrt(2 * others) + chance
    kept = _eliminate(R, np.where(at_once[:, :, None], few, before), chance / rows)
    found = np.zeros_like(kept)
    found[np.arange(B)[:, None, None], order[:, None, :], order[:, :, None]] = kept
    return found


def _correlations(S: Matrix) -> Matrix:
    scale = np.sqrt(np.einsum("bii->bi", S))
    scale[scale == 0] = 1.0
    R = S / (scale[:, :, None] * scale[:, None, :])
    np.einsum("bii->bi", R)[...] += RIDGE
    return R


def by_size(sets: Masks) -> Iterator[tuple[Indices, Indices]]:
    """Sets (T, d) in turn by size, largest first: their numbers (m,) and members (m, size).

    A set may lose members between turns; it comes again when its turn has come.

    Examples
    --------
    >>> [(t.tolist(), i.tolist()) for t, i in by_size(np.array([[1, 0], [0, 0], [1, 1]]) > 0)]
    [([2], [[0, 1]]), ([0], [[0]])]
    """
    for size in range(sets.shape[1], 0, -1):
        tasks = np.flatnonzero(sets.sum(axis=1) == size)
        if len(tasks):
            yield tasks, np.nonzero(sets[tasks])[1].reshape(-1, size)


def submatrices(A: Matrix, b: Indices, index: Indices) -> Matrix:
    """``A[b_m]`` at the rows and columns ``index[m]``, for every m; (m, size, size).

    Examples
    --------
    >>> submatrices(np.arange(9.0).reshape(1, 3, 3), np.array([0]), np.array([[0, 2]]))
    array([[[0., 2.],
            [6., 8.]]])
    """
    return A[b[:, None, None], index[:, :, None], index[:, None, :]]


def _left(R: Matrix, sets: Masks) -> Matrix:
    """The share of each variable's variance that its set leaves unexplained, (B, d)."""
    B, d, _ = R.shape
    left = np.ones(B * d)
    for tasks, index in by_size(sets.reshape(B * d, d)):
        b, p = np.divmod(tasks, d)
        r = R[b[:, None], index, p[:, None]]
        solved = np.linalg.solve(submatrices(R, b, index), r[:, :, None])[:, :, 0]
        left[tasks] = np.maximum(1 - (r * solved).sum(axis=1), NEGLIGIBLE)
    return left.reshape(B, d)


def _eliminate(R: Matrix, sets: Masks, least_gain: float) -> Masks:
    """Drop the parent that explains least until all explain enough."""
    B, d, _ = R.shape
    kept = sets.reshape(B * d, d).copy()
    for tasks, index in by_size(kept):
        b, p = np.divmod(tasks, d)
        r = R[b[:, None], index, p[:, None]]
        inverse = np.linalg.inv(submatrices(R, b, index))
        beta = np.einsum("mij,mj->mi", inverse, r)
        residual = np.maximum(1 - (beta * r).sum(axis=1), NEGLIGIBLE)
        gain = beta**2 / (np.einsum("mii->mi", inverse) * residual[:, None])
        weakest = gain.argmin(axis=1)
        short = np.flatnonzero(gain.min(axis=1) < least_gain)
        kept[tasks[short], index[short, weakest[short]]] = False
    return kept.reshape(B, d, d)
