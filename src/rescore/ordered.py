"""Linear graphs by order: least squares finds the order, an information criterion the edges.

If the noise of all variables has the same variance, the order of causes is the order in which
least squares leaves the smallest residual: every variable that comes too early keeps the noise
of its causes on top of its own.  Everything is read off the covariance S (d, d).
"""

import numpy as np
from numpy.typing import NDArray

from rescore.graph.paths import precedence
from rescore.moments import Matrix, Moments
from rescore.protocols import Mask, Problem

TINY = float(np.finfo(float).tiny)
TIE = 1e-9  # relative difference below which two variances count as equal
NEGLIGIBLE = 1e-12  # share of a variance below which a column is a combination of others
RIDGE = 1e-10  # trace of noise added to correlations

Indices = NDArray[np.intp]


def ordered_graph(problem: Problem, w: Matrix) -> tuple[Matrix, Matrix]:
    """The graph W (d, d) of the rows weighted by ``w``, and their mean (d,).

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(200, 1))
    >>> problem = Problem.unconstrained(np.hstack([x, x + x[::-1]]))
    >>> ordered_graph(problem, problem.prior)[0].round(1)
    array([[0., 1.],
           [0., 0.]])
    """
    moments = problem.rows.moments(w)
    mean, S = moments
    rows = problem.effective_rows(w)
    order = least_variance_order(S, problem.allowed, problem.required)
    W = regressions(S, order, problem.allowed, problem.required, rows)
    return beyond_chance(problem, w, moments, W, chance_level(rows, len(S))), mean


def chance_level(rows: float, d: int) -> float:
    """The squared t-value that chance alone may reach: extended BIC over d candidates.

    Examples
    --------
    >>> round(chance_level(100.0, 10), 2)
    9.21
    """
    return float(np.log(rows) + 2 * np.log(max(d, 2)))


def beyond_chance(
    problem: Problem, w: Matrix, moments: Moments, W: Matrix, chance: float
) -> Matrix:
    """W without edges whose t-value, with noise that may differ between rows, chance explains.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> problem, W = Problem.unconstrained(X), np.array([[0.0, 0.1], [0.0, 0.0]])
    >>> beyond_chance(problem, problem.prior, problem.rows.moments(problem.prior), W, 6.7).any()
    np.False_
    """
    counts = problem.prior * problem.effective_rows(problem.prior)
    W = W.copy()
    for j in np.flatnonzero(W.any(axis=0)):
        parents = np.flatnonzero(W[:, j])
        while len(parents):
            b, variance = problem.rows.coefficients(parents, int(j), moments, w, counts)
            with np.errstate(over="ignore"):  # no variance left: as far beyond chance as can be
                t = b**2 / np.maximum(variance, TINY)
            t[problem.required[parents, j]] = np.inf
            if t.min() >= chance:
                break
            parents, b = np.delete(parents, t.argmin()), np.zeros(0)
        W[:, j] = 0.0
        W[parents, j] = b
    return W


def least_variance_order(S: Matrix, allowed: Mask, required: Mask) -> list[int]:
    """Variables one by one, always the one with the least variance given those before it.

    Only allowed parents explain a variable.  Required parents come first, and so do variables that
    may be causes of another but not its effects.

    Examples
    --------
    >>> S = np.array([[5.0, 2.0], [2.0, 1.0]])  # x1 → x0 with coefficient 2, unit noise
    >>> anything, nothing = ~np.eye(2, dtype=bool), np.zeros((2, 2), dtype=bool)
    >>> least_variance_order(S, anything, nothing)
    [1, 0]
    """
    d = len(S)
    R = S.copy()  # covariance given the variables placed so far
    hindered = np.flatnonzero((~allowed).sum(axis=0) > 1)  # may not have all others as parents
    before = precedence(allowed, required)
    waiting = np.ones(d, dtype=bool)
    order: list[int] = []
    for _ in range(d):
        variance = np.diag(R).copy()
        for j in hindered[waiting[hindered]]:
            variance[j] = _residual_variance(S, [i for i in order if allowed[i, j]], int(j))
        ready = waiting & ~before[waiting].any(axis=0)
        j = first_of(np.where(ready, variance, np.inf), R)
        order.append(j)
        waiting[j] = False
        if R[j, j] > NEGLIGIBLE * S[j, j]:
            R -= np.outer(R[:, j], R[j] / R[j, j])
    return order


def first_of(variance: Matrix, R: Matrix) -> int:
    """The variable of least variance; among equals, the one that explains most of the others.

    Examples
    --------
    >>> first_of(np.array([2.0, 1.0, 1.0]), np.array([[2.0, 0, 1], [0, 1, 0], [1, 0, 1]]))
    2
    """
    least = variance.min()
    equals = np.flatnonzero(variance <= least + TIE * abs(least))
    if len(equals) == 1:
        return int(equals[0])
    explained = np.square(R[:, equals]).sum(axis=0) / np.maximum(variance[equals], TINY)
    # Rounded, so that the order of equals in this too is that of the columns, not of rounding.
    return int(equals[np.argmax(np.round(explained / max(explained.max(), TINY), 9))])


def regressions(
    S: Matrix, order: list[int], allowed: Mask, required: Mask, effective_rows: float
) -> Matrix:
    """W (d, d): each variable regressed on those before it that explain enough of it.

    A parent stays if dropping it raises the residual variance by more than the share
    ``(log n + 2 log d) / n`` that chance alone could explain (extended BIC), n the effective rows.

    Examples
    --------
    >>> S = np.array([[5.0, 2.0], [2.0, 1.0]])
    >>> anything, nothing = ~np.eye(2, dtype=bool), np.zeros((2, 2), dtype=bool)
    >>> regressions(S, [1, 0], anything, nothing, effective_rows=100)
    array([[0., 0.],
           [2., 0.]])
    """
    d = len(S)
    least_gain = chance_level(effective_rows, d) / effective_rows
    scale = _deviations(S)
    R = _correlation(S, scale)
    over_all = over_all_before(R[np.ix_(order, order)])
    W = np.zeros((d, d))
    for position, j in enumerate(order):
        before = np.array(order[:position], dtype=int)
        before = before[allowed[before, j]]
        if over_all is None or len(before) < position:
            gain, left = _explained(R, before, j)[1], _left(R, before, j)
        else:
            gain, left = over_all[0][position, :position], over_all[1][position]
        few = before[required[before, j] | (gain >= least_gain / 4)]
        # The others can all go at once, unless they stand in for each other: then together they
        # explain more than so many could by chance, a chi-squared of as many degrees.
        others = len(before) - len(few)
        rise = (_left(R, few, j) / left - 1) * max(effective_rows - len(before), 1.0)
        at_once = rise <= others + 3 * np.sqrt(2 * others) + chance_level(effective_rows, d)
        parents, b = _eliminate(R, few if at_once else before, j, required[:, j], least_gain)
        W[parents, j] = b * scale[j] / scale[parents]
    return W


def over_all_before(R: Matrix) -> tuple[Matrix, Matrix] | None:
    """How much each variable before explains of each, given all others before, (..., d, d).

    And the share of the variance that all of them leave, (..., d).  R may be a stack of matrices.

    With ``R = L Lᵀ`` and ``M = L⁻¹``, the leading blocks of M invert those of L: row p of M holds
    the coefficients of variable p, the rows above it the inverse of what they are regressed on.

    Examples
    --------
    >>> gains, left = over_all_before(np.array([[1.0, 0.6], [0.6, 1.0]]))
    >>> gains.round(4)[1, 0], left.round(4)
    (np.float64(0.5625), array([1.  , 0.64]))
    """
    try:
        M = np.linalg.inv(np.linalg.cholesky(R))
    except np.linalg.LinAlgError:  # not positive definite to working precision
        return None
    own = np.diagonal(M, axis1=-2, axis2=-1)[..., None]
    residual = np.maximum(1 / own**2 - RIDGE, NEGLIGIBLE)
    precision = np.cumsum(np.square(M), axis=-2) - np.square(M)  # diagonals of the inverses
    gains = np.zeros_like(M)
    np.divide(
        np.square(M / own), precision * residual, out=gains, where=np.tri(M.shape[-1], k=-1) > 0
    )
    return gains, residual[..., 0]


def _eliminate(
    R: Matrix, parents: Indices, j: int, required: Mask, least_gain: float
) -> tuple[Indices, Matrix]:
    """Backward elimination: drop the parent that explains least until all explain enough."""
    while len(parents):
        b, gain = _explained(R, parents, j)
        gain[required[parents]] = np.inf
        weakest = gain.argmin()
        if gain[weakest] >= least_gain:
            return parents, b
        parents = np.delete(parents, weakest)
    return parents, np.zeros(0)


def _explained(R: Matrix, parents: Indices, j: int) -> tuple[Matrix, Matrix]:
    """Coefficients in units of correlation, and the rise of the variance without each parent."""
    inverse = np.linalg.inv(R[parents[:, None], parents])
    r = R[parents, j]
    b = inverse @ r
    return b, b**2 / (inverse.diagonal() * max(1 - b @ r, NEGLIGIBLE))


def _left(R: Matrix, parents: Indices, j: int) -> float:
    """The share of the variance of j that its parents leave unexplained."""
    r = R[parents, j]
    return max(1 - float(r @ np.linalg.solve(R[parents[:, None], parents], r)), NEGLIGIBLE)


def _residual_variance(S: Matrix, parents: list[int], j: int) -> float:
    if not parents:
        return float(S[j, j])
    b = steady_inverse(S[np.ix_(parents, parents)]) @ S[parents, j]
    return float(S[j, j] - b @ S[parents, j])


def steady_inverse(A: Matrix) -> Matrix:
    """The inverse of a covariance; a trace of noise keeps collinear columns from dividing by 0.

    Examples
    --------
    >>> steady_inverse(np.diag([4.0, 0.5])).round(6)
    array([[0.25, 0.  ],
           [0.  , 2.  ]])
    """
    scale = _deviations(A)
    return np.linalg.inv(_correlation(A, scale)) / np.outer(scale, scale)


def _deviations(S: Matrix) -> Matrix:
    deviations = np.sqrt(S.diagonal())
    deviations[deviations == 0] = 1.0  # so small that its square is zero
    return deviations


def _correlation(S: Matrix, deviations: Matrix) -> Matrix:
    R = S / np.outer(deviations, deviations)
    R[np.diag_indices_from(R)] += RIDGE
    return R
