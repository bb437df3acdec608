"""How wide the columns of a table are, and how they lie to each other, for huge tables too."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Spread", "spread"]

Matrix = NDArray[np.float64]

CELLS = 2**15  # per block of rows: what is computed from a block stays in the cache
FEWEST_ROWS = 256  # per block, for wide tables: products of fewer rows are slow
LINE = 1024  # cells side by side in which the least and the largest are looked for


@dataclass(frozen=True, eq=False)
class Spread:
    """Mean, standard deviation and largest deviation of each column, (d,) each.

    Examples
    --------
    >>> spread(np.array([[1.0, 7, 2], [2.0, 7, 0], [3.0, 7, -2]])).correlation.round(6)
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    mean: Matrix
    deviation: Matrix  # standard deviation, exactly 0 for a constant column
    reach: Matrix  # max |x - mean|, exactly 0 for a constant column
    correlation: Matrix  # Pearson's, of the k columns that vary, (k, k)

    @property
    def varying(self) -> NDArray[np.int64]:
        """The positions of the columns that are not constant."""
        return np.flatnonzero(self.deviation > 0)

    @property
    def scale_ratio(self) -> float:
        """The largest standard deviation over the smallest of those that vary; 1 if none does.

        Examples
        --------
        >>> spread(np.array([[0.0, 0.0], [1.0, 1000.0]])).scale_ratio
        1000.0
        """
        deviation = self.deviation[self.varying]
        if deviation.size == 0:
            return 1.0
        with np.errstate(over="ignore"):  # 1e150 over a denormal is beyond float64: inf says it
            return float(deviation.max() / deviation.min())

    @property
    def condition_number(self) -> float:
        """Largest over smallest eigenvalue of the correlation matrix; inf if it is singular.

        Examples
        --------
        >>> spread(np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])).condition_number
        inf
        """
        if self.correlation.size == 0:
            return 1.0
        eigenvalues = np.linalg.eigvalsh(self.correlation)
        if eigenvalues[0] <= eigenvalues[-1] * len(eigenvalues) * np.finfo(float).eps:
            return float("inf")
        return float(eigenvalues[-1] / eigenvalues[0])


def spread(X: Matrix) -> Spread:
    """Means, deviations and correlations of the columns of X (n, d), over blocks of rows.

    Deviations are divided by the largest before they are squared, so that neither 1e150 nor
    1e-310 leaves the range of float64.

    Examples
    --------
    >>> spread(np.array([[1e-300, 5.0], [3e-300, 5.0]])).deviation
    array([1.e-300, 0.e+000])
    """
    n, d = X.shape
    low, high = _extreme(np.minimum, X), _extreme(np.maximum, X)
    # Relative to the lowest value a column cannot overflow, nor a constant one differ by rounding.
    total = sum((np.ones(len(block)) @ (block - low) for block in _blocks(X)), np.zeros(d))
    mean = low + total / n
    reach = np.maximum(high - mean, mean - low)
    unit = np.where(reach > 0, reach, 1.0)
    C = np.zeros((d, d))
    for block in _blocks(X):
        Z = (block - mean) / unit
        C += Z.T @ Z
    C /= n
    in_units = np.sqrt(C.diagonal())
    deviation = unit * in_units
    varies = deviation > 0
    R = C[np.ix_(varies, varies)] / np.outer(in_units[varies], in_units[varies])
    np.fill_diagonal(R, 1.0)
    return Spread(mean, deviation, reach, R)


def _extreme(which: np.ufunc, X: Matrix) -> Matrix:
    """The least or the largest of each column: many rows at a time, one alone is a short loop."""
    n, d = X.shape
    k = min(max(LINE // d, 1), n)
    whole = n // k * k
    lines = which.reduce(X[:whole].reshape(-1, k * d)).reshape(k, d)
    return np.asarray(which.reduce(np.vstack([lines, X[whole:]])))


def _blocks(X: Matrix) -> Iterator[Matrix]:
    """Views of successive rows."""
    size = max(CELLS // X.shape[1], FEWEST_ROWS)
    return (X[start : start + size] for start in range(0, len(X), size))
