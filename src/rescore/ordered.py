"""Linear graphs by order: least squares finds the order, an information criterion the edges.

If the noise of all variables has the same variance, the order of causes is the order in which
least squares leaves the smallest residual: every variable that comes too early keeps the noise
of its causes on top of its own.  Everything is read off the covariance S (d, d).
"""

import numpy as np

from rescore.moments import Matrix, Moments
from rescore.protocols import Mask, Problem

TINY = float(np.finfo(float).tiny)
TIE = 1e-9  # relative difference below which two variances count as equal
NEGLIGIBLE = 1e-12  # share of a variance below which a column is a combination of others


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
    return _beyond_chance(problem, w, moments, W, _chance(rows, len(S))), mean


def _chance(rows: float, d: int) -> float:
    """The squared t-value that chance alone may reach: extended BIC over d candidates."""
    return float(np.log(rows) + 2 * np.log(max(d, 2)))


def _beyond_chance(
    problem: Problem, w: Matrix, moments: Moments, W: Matrix, chance: float
) -> Matrix:
    """W without edges whose t-value, with noise that may differ between rows, chance explains."""
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

    Only allowed parents explain a variable, and required parents come first.

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
    waiting = np.ones(d, dtype=bool)
    order: list[int] = []
    for _ in range(d):
        variance = np.diag(R).copy()
        for j in hindered[waiting[hindered]]:
            variance[j] = _residual_variance(S, [i for i in order if allowed[i, j]], int(j))
        ready = waiting & ~required[waiting].any(axis=0)
        j = _first(np.where(ready, variance, np.inf), R)
        order.append(j)
        waiting[j] = False
        if R[j, j] > NEGLIGIBLE * S[j, j]:
            R -= np.outer(R[:, j], R[j] / R[j, j])
    return order


def _first(variance: Matrix, R: Matrix) -> int:
    """The variable of least variance; among equals, the one that explains most of the others."""
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
    least_gain = _chance(effective_rows, d) / effective_rows
    W = np.zeros((d, d))
    for position, j in enumerate(order):
        candidates = [i for i in order[:position] if allowed[i, j]]
        parents, b = _eliminate(S, candidates, j, required[:, j], least_gain)
        W[parents, j] = b
    return W


def _eliminate(
    S: Matrix, candidates: list[int], j: int, required: Mask, least_gain: float
) -> tuple[list[int], Matrix]:
    """Backward elimination: drop the parent that explains least until all explain enough."""
    parents = np.array(candidates, dtype=int)
    far = least_gain / 4  # so little that these can all go at once
    while len(parents):
        b, gain = _explained(S, parents, j)
        gain[required[parents]] = np.inf
        if gain.min() >= least_gain:
            return list(parents), b
        hopeless = gain < far
        parents = parents[~hopeless] if hopeless.any() else np.delete(parents, gain.argmin())
        far = 0.0
    return [], np.zeros(0)


def _explained(S: Matrix, parents: Matrix, j: int) -> tuple[Matrix, Matrix]:
    """Coefficients, and the relative rise of the residual variance without each parent."""
    inverse = _inverse(S[np.ix_(parents, parents)])
    b = inverse @ S[parents, j]
    residual = max(S[j, j] - b @ S[parents, j], NEGLIGIBLE * S[j, j], TINY)
    return b, b**2 / (np.diag(inverse) * residual)


def _residual_variance(S: Matrix, parents: list[int], j: int) -> float:
    if not parents:
        return float(S[j, j])
    b = _inverse(S[np.ix_(parents, parents)]) @ S[parents, j]
    return float(S[j, j] - b @ S[parents, j])


def _inverse(A: Matrix) -> Matrix:
    """The inverse of a covariance; a trace of noise keeps collinear columns from dividing by 0."""
    scale = np.sqrt(np.diag(A))
    scale[scale == 0] = 1.0  # so small that its square is zero
    correlation = A / np.outer(scale, scale)
    correlation[np.diag_indices_from(A)] += 1e-10
    return np.linalg.inv(correlation) / np.outer(scale, scale)
