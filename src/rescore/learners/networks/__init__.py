"""Learners whose equations are small neural networks, and the rows as they see them.

Rows are centred, in single precision, in an order of their own: columns are sorted by their spread
and rows by their values, equal rows are merged.  Starting values and rounding then depend on what a
column or row holds and not on where it stands, so that permuted or repeated rows and permuted
columns give the very same networks.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.learners.straight_lines import noise_variance
from rescore.moments import Cells, Matrix, Weights, simplest
from rescore.protocols import Mask, Problem


class Weighted(NamedTuple):
    """What a compiled program needs of the rows: inputs and outputs (d, n), and their weights.

    The weights are of rows (n,) or of cells (d, n).
    """

    XT: Any
    targets: Any
    w: Any


class Inputs(NamedTuple):
    """The table turned round, and the way back."""

    XT: NDArray[np.float32]  # (d, distinct rows), what the networks take in
    targets: NDArray[np.float32]  # (d, distinct rows), what they predict
    unit: float  # variance in which predictions are measured
    columns: NDArray[np.intp]  # (d,): XT[k] is the table's column columns[k]
    distinct: NDArray[np.intp]  # (n,): row i of the table is column distinct[i] of XT


def prepare(problem: Problem, deviation: float | None) -> Inputs:
    """Centred under the prior; inputs of the given deviation, outputs in units of the noise.

    With None both are in the units of the data.  Columns that may have no edge at all are zero.

    Examples
    --------
    >>> inputs = prepare(Problem.unconstrained(np.array([[0.0, 8.0], [2.0, 0.0]])), deviation=1.0)
    >>> inputs.XT
    array([[-1.,  1.],
           [ 1., -1.]], dtype=float32)
    >>> print((inputs.targets * np.sqrt(inputs.unit)).round(3))
    [[-1.  1.]
     [ 4. -4.]]
    """
    X = problem.rows.matrix()
    mean, S = problem.moments(problem.prior)
    columns = np.lexsort((mean, np.ptp(X, axis=0)))
    used = (problem.allowed.any(axis=0) | problem.allowed.any(axis=1)) & (np.diag(S) > 0)
    unit = 1.0 if deviation is None else noise_variance(problem)
    shrink = 1.0 if deviation is None else deviation / np.sqrt(np.where(used, np.diag(S), 1.0))
    Z = np.where(used, X - mean, 0.0)[:, columns]
    _, first, distinct = np.unique(
        Z.astype(np.float32), axis=0, return_index=True, return_inverse=True
    )
    Z = np.ascontiguousarray(Z[first].T)  # (d, distinct rows)
    XT = Z * np.broadcast_to(shrink, len(S))[columns, None]
    targets = (Z / np.sqrt(unit)).astype(np.float32)
    return Inputs(XT.astype(np.float32), targets, unit, columns, distinct.ravel())


def weighted(inputs: Inputs, w: Weights) -> Weighted:
    """The distinct rows, each with the sum of its rows' weights; cells where variables differ.

    Examples
    --------
    >>> inputs = prepare(Problem.unconstrained(np.array([[1.0, 2.0], [1.0, 2.0]])), None)
    >>> weighted(inputs, np.array([0.25, 0.75])).w
    array([1.], dtype=float32)
    >>> weighted(inputs, np.array([[0.25, 0.5], [0.75, 1.0]])).w
    array([[1. ],
           [1.5]], dtype=float32)
    """
    w = simplest(w)
    # A small network leaves more of a strong signal than quiet noise does.  By the root of its
    # precision a cell counts halfway between equal noise and noise that is all there is.
    v = w.membership @ np.sqrt(w.precision) if isinstance(w, Cells) else w
    if v.ndim == 1:
        return Weighted(inputs.XT, inputs.targets, _merged(inputs, v[:, None])[0])
    return Weighted(inputs.XT, inputs.targets, _merged(inputs, v[:, inputs.columns]))


def _merged(inputs: Inputs, w: Matrix) -> NDArray[np.float32]:
    """Each column of w (n, k), summed over equal rows, (k, distinct rows)."""
    return np.array([np.bincount(inputs.distinct, column) for column in w.T], np.float32)


def effective_rows(problem: Problem, w: Weights) -> Any:
    """How many rows of equal weight would be as informative: for all variables, or each, (d,).

    In single precision, so that sums in another order give the same.  Of groups that differ in
    their noise every row is one, however loud: what chance explains is counted in that noise.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(4))
    >>> effective_rows(problem, np.array([0.5, 0.5, 0.0, 0.0]))
    2.0
    >>> effective_rows(problem, np.array([[0.5, 1, 1, 1], [0.5, 0, 0, 1], [0] * 4, [0] * 4]))
    array([2., 1., 1., 2.])
    """
    w = simplest(w)
    if w.ndim == 1:
        return float(np.float32(problem.effective_rows(w)))
    if isinstance(w, Cells):
        rows = problem.effective_rows(problem.prior) * w.membership.sum(axis=0) @ (w.precision > 0)
    else:
        rows = np.array([problem.effective_rows(column / column.sum()) for column in w.T])
    return rows.astype(np.float32).astype(np.float64)


def inward(inputs: Inputs, A: Any) -> Any:
    """A (d, d) in the order of the networks' columns.

    Examples
    --------
    >>> inputs = prepare(Problem.unconstrained(np.array([[9.0, 2.0], [1.0, 2.5]])), None)
    >>> inward(inputs, np.array([[1, 2], [3, 4]]))
    array([[4, 3],
           [2, 1]])
    """
    return A[np.ix_(inputs.columns, inputs.columns)]


def outward(inputs: Inputs, A: Any) -> Any:
    """A (d, d) in the order of the table's columns; undoes `inward`."""
    place = np.argsort(inputs.columns)
    return A[np.ix_(place, place)]


def squared_residuals(inputs: Inputs, R: Any) -> Matrix:
    """``R²``, (n, d), for residuals R (d, distinct rows): rows, columns and units of the table."""
    squares = np.square(np.asarray(R, dtype=np.float64)) * inputs.unit
    return squares[np.argsort(inputs.columns)][:, inputs.distinct].T


def possible_edges(problem: Problem) -> Mask:
    """Allowed edges that close no cycle with the required ones.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(2))
    >>> required = np.array([[False, True], [False, False]])
    >>> possible_edges(Problem(problem.rows, problem.prior, problem.allowed, required))
    array([[False,  True],
           [False, False]])
    """
    reach = problem.required.copy()
    for k in range(len(reach)):
        reach |= np.outer(reach[:, k], reach[k])
    return problem.allowed & ~reach.T
