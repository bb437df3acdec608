"""A table as Gaussian processes see it: distinct rows in standard units, what every cell counts."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Cells, Matrix, Weights, standardised
from rescore.protocols import Mask, Problem

TINY = float(np.finfo(float).tiny)
FAINTEST = 1e-6  # of a row that counts as one: what a cell of weight zero counts


class Inputs(NamedTuple):
    """The distinct rows in standard units, rows and columns in an order of their own.

    So that permuted or repeated rows and permuted columns give the very same fits.
    """

    X: NDArray[np.float32]  # (distinct rows, d)
    columns: NDArray[np.intp]  # (d,): column k of X is the table's columns[k]
    distinct: NDArray[np.intp]  # (n,): row i of the table is row distinct[i] of X
    mean: Matrix  # (d,), of the table's columns
    deviation: Matrix  # (d,)

    def outward(self, A: Matrix) -> Matrix:
        """A (d, d) in the order of the table's columns."""
        place = np.argsort(self.columns)
        return A[np.ix_(place, place)]

    def inward(self, A: Mask) -> Mask:
        """A (d, d) in the order of these columns."""
        return A[np.ix_(self.columns, self.columns)]


def prepare(problem: Problem) -> Inputs:
    """Standard units under the prior, equal rows merged.

    Examples
    --------
    >>> inputs = prepare(Problem.unconstrained(np.array([[1.0, 6.0], [1.0, 6.0], [4.0, 0.0]])))
    >>> print(inputs.X.round(2))
    [[-0.71  0.71]
     [ 1.41 -1.41]]
    """
    X = problem.rows.matrix()
    Z, mean, deviation = standardised(X, problem.prior)
    columns = np.lexsort((mean, np.ptp(X, axis=0)))
    used = problem.allowed.any(axis=0) | problem.allowed.any(axis=1)
    single = np.where(used, Z, 0.0)[:, columns].astype(np.float32)
    distinct, place = np.unique(single, axis=0, return_inverse=True)
    return Inputs(distinct, columns, place.ravel(), mean, deviation)


def relative_noise(problem: Problem, w: Weights, inputs: Inputs) -> Matrix:
    """The relative noise variance of every cell, (distinct rows, d): one over the rows it counts.

    In single precision: sums of weights in another order give the same.
    """
    cells = np.asarray(w) * problem.effective_rows(problem.prior)
    cells = cells[:, inputs.columns] if cells.ndim == 2 else cells[:, None]
    counted = [np.bincount(inputs.distinct, column) for column in cells.T]
    counts = np.column_stack(counted).astype(np.float32)
    noise = 1 / np.maximum(counts, FAINTEST).astype(np.float64)
    return np.broadcast_to(noise, inputs.X.shape)


def memberships(w: Weights, inputs: Inputs) -> Matrix | None:
    """Who belongs to which group, (distinct rows, K), where the weights know groups.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> memberships(problem.prior, prepare(problem)) is None
    True
    """
    return shares(w.membership, inputs) if isinstance(w, Cells) else None


def shares(M: Matrix, inputs: Inputs) -> Matrix:
    """What every distinct row has in each of K groups, if row i has M_ik there.

    Examples
    --------
    >>> inputs = prepare(Problem.unconstrained(np.array([[1.0, 0.0], [1.0, 0.0], [4.0, 1.0]])))
    >>> shares(np.array([[0.3, 0.0], [0.0, 0.1], [0.0, 0.4]]), inputs).round(2)
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    P = np.column_stack([np.bincount(inputs.distinct, part) for part in M.T])
    return P / np.maximum(P.sum(axis=1, keepdims=True), TINY)


def spread_rows(n: int, most: int) -> NDArray[np.intp]:
    """So many of n rows at most, drawn at random, always the same, in their order.

    Examples
    --------
    >>> spread_rows(3, most=5)
    array([0, 1, 2])
    """
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:most])
