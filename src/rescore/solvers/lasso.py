"""The lasso on the edges of a DAG, solved exactly from second moments; quadratics in a box."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix
from rescore.protocols import Mask


class Lasso(NamedTuple):
    """Coefficients that minimise the score plus the penalty on given edges."""

    W: Matrix  # (d, d)
    objective: float  # score + Σ penalty·|W|
    optimality: float  # largest slope left on an edge that is not zero, in units of correlation


class Column(NamedTuple):
    """The same for one variable."""

    coefficients: Matrix  # (d,)
    objective: float
    optimality: float


def lasso(S: Matrix, W: Matrix, penalty: Matrix, edges: Mask | None = None) -> Lasso:
    """``min ½ tr (I−W)ᵀ S (I−W) + Σ penalty·|W|`` over the edges of a DAG, exactly, from W.

    The edges are those of W unless others are given.

    S is (d, d), or (d, d, d) with one for each variable.

    Given the edges this is convex and falls apart into columns, so where the search for them
    stopped leaves no trace.

    Examples
    --------
    >>> S = np.array([[1.0, 1.0], [1.0, 2.0]])
    >>> print(lasso(S, np.array([[0, 0.3], [0, 0]]), np.full((2, 2), 0.1)).W)
    [[0.  0.9]
     [0.  0. ]]
    """
    among = (W != 0) if edges is None else edges
    parents = [np.flatnonzero(among[:, j]) for j in range(len(S))]
    return joined([column(own(S, j), penalty, j, parents[j], W[:, j]) for j in range(len(S))])


def own(S: Matrix, j: int) -> Matrix:
    """The covariance (d, d) that counts for variable j: the same for all, or its own of (d, d, d).

    Examples
    --------
    >>> own(np.array([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]]]), 1)
    array([[2., 1.],
           [1., 2.]])
    """
    return S if S.ndim == 2 else S[j]


def joined(columns: Sequence[Column]) -> Lasso:
    """The regressions of all variables, in their order, as one solution.

    Examples
    --------
    >>> joined([Column(np.zeros(2), 0.5, 0.0), Column(np.array([1.0, 0.0]), 1.5, 1e-9)]).objective
    2.0
    """
    coefficients, objectives, optimalities = zip(*columns, strict=True)
    return Lasso(np.stack(coefficients, axis=1), sum(objectives), max(optimalities))


def column(S: Matrix, penalty: Matrix, j: int, parents: NDArray[np.intp], start: Matrix) -> Column:
    """The lasso of variable j on ``parents``, from the coefficients ``start`` (d,).

    Examples
    --------
    >>> S = np.array([[1.0, 1.0], [1.0, 2.0]])
    >>> found = column(S, np.full((2, 2), 0.1), 1, np.array([0]), np.zeros(2))
    >>> print(found.coefficients, round(found.objective, 3))
    [0.9 0. ] 0.595
    """
    # In units of each variable's deviation, so that scales do not look like collinearity.
    deviations = np.sqrt(np.where(np.diag(S) > 0, np.diag(S), 1.0))
    units = deviations[j] / deviations[parents]
    C = S[np.ix_(parents, parents)] / np.outer(deviations[parents], deviations[parents])
    target = S[parents, j] / deviations[parents] / deviations[j]
    lam = penalty[parents, j] / deviations[parents] / deviations[j]
    beta = _active_sets(C, target, start[parents] / units, lam)
    slope = np.where(beta != 0, C @ beta - target + lam * np.sign(beta), 0.0)
    share = 1 - 2 * beta @ target + beta @ C @ beta  # of the variance that is left
    b = np.zeros(len(S))
    b[parents] = beta * units
    objective = S[j, j] * (share / 2 + lam @ np.abs(beta))
    return Column(b, float(objective), float(np.abs(slope).max(initial=0.0)))


def _active_sets(C: Matrix, target: Matrix, b: Matrix, penalty: Matrix) -> Matrix:
    """Minimise ``½ bᵀCb − bᵀtarget + Σ penalty·|b|`` from b.

    Solve on the orthant of b; if the way there crosses zero, stop at the first coefficient that
    does and let it rest.  A resting one wakes when its slope exceeds its penalty.  Every move
    lowers the value and there are finitely many orthants; in practice a few solves are enough.
    """
    b, signs = b.copy(), np.sign(b)
    for _ in range(20 * len(b)):
        on = np.flatnonzero(signs)
        right: Matrix = (target - penalty * signs)[on]
        aim = np.linalg.lstsq(C[np.ix_(on, on)], right, rcond=1e-13)[0].astype(np.float64)
        crossing = (aim * signs[on] < 0) & (penalty[on] > 0)
        if crossing.any():
            _stop_at_zero(b, signs, on, aim, crossing)
            continue
        b[on] = aim
        slope = C @ b - target
        excess = np.where(signs == 0, np.abs(slope) - penalty, 0.0)
        woken = np.argmax(excess)
        if excess[woken] <= 1e-12:
            break
        signs[woken] = -np.sign(slope[woken])
    return b


def _stop_at_zero(
    b: Matrix, signs: Matrix, on: NDArray[np.intp], aim: Matrix, crossing: NDArray[np.bool_]
) -> None:
    """Move b towards its aim until the first coefficient is zero."""
    share = np.where(crossing, b[on] / np.where(crossing, b[on] - aim, 1.0), np.inf)
    first = np.argmin(share)
    b[on] += share[first] * (aim - b[on])
    b[on[first]] = signs[on[first]] = 0.0


def inside(slope: Matrix, F: Matrix, lowest: Matrix, highest: Matrix) -> Matrix:
    """The least ``slope·s + ½ sᵀ F s`` inside a box, coordinate by coordinate.

    Examples
    --------
    >>> F, one = np.array([[2.0, 1.0], [1.0, 2.0]]), np.ones(2)
    >>> print(inside(np.array([-9.0, 0.0]), F, -one, one).round(3))
    [ 1.  -0.5]
    """
    step = np.zeros(len(slope))
    for _ in range(60):
        before = step.copy()
        for i, row in enumerate(F):
            best = step[i] - (slope[i] + row @ step) / row[i]
            step[i] = min(max(best, lowest[i]), highest[i])
        if np.abs(step - before).max() < 1e-4:
            break
    return step
