"""How wide the columns of a table are, and how they lie to each other, for huge tables too."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rescore.tables.table import Table

__all__ = ["Spread", "condition_number", "correlation", "scale_ratio", "spread"]

CHUNK = 65_536  # rows per block: bounds the working memory, and fits the cache for narrow tables


@dataclass(frozen=True, eq=False)
class Spread:
    """Mean, standard deviation and largest deviation of each column, (d,) each."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]  # standard deviation, exactly 0 for a constant column
    reach: NDArray[np.float64]  # max |x - mean|, exactly 0 for a constant column

    @property
    def varying(self) -> NDArray[np.int64]:
        """The positions of the columns that are not constant."""
        return np.flatnonzero(self.deviation > 0)


def spread(table: Table) -> Spread:
    """Column means and deviations in two passes over blocks of rows.

    Deviations are divided by the largest before they are squared, so that neither 1e150 nor
    1e-310 leaves the range of float64.

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> spread(as_table([[1e-300, 5.0], [3e-300, 5.0]])).deviation
    array([1.e-300, 0.e+000])
    """
    X = table.values  # (n, d)
    low, high = X.min(axis=0), X.max(axis=0)
    # Relative to the lowest value a column cannot overflow, nor a constant one differ by rounding.
    mean = low + sum(
        ((block - low).sum(axis=0) for block in _blocks(X)), np.zeros(X.shape[1])
    ) / len(X)
    reach = np.maximum(high - mean, mean - low)
    unit = np.where(reach > 0, reach, 1.0)
    squares = sum(
        (np.square((block - mean) / unit).sum(axis=0) for block in _blocks(X)), np.zeros(X.shape[1])
    )
    deviation = np.where(reach > 0, unit * np.sqrt(squares / len(X)), 0.0)
    return Spread(mean, deviation, reach)


def correlation(table: Table, width: Spread | None = None) -> NDArray[np.float64]:
    """Pearson's correlation of the columns that vary, (k, k), summed over blocks of rows.

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> correlation(as_table([[1, 7, 2], [2, 7, 0], [3, 7, -2]])).round(6)
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    width = spread(table) if width is None else width
    keep = width.varying
    R = np.zeros((len(keep), len(keep)))
    for block in _blocks(table.values):
        Z = (block[:, keep] - width.mean[keep]) / width.deviation[keep]
        R += Z.T @ Z
    R /= len(table.values)
    np.fill_diagonal(R, 1.0)
    return R


def scale_ratio(table: Table, width: Spread | None = None) -> float:
    """The largest standard deviation over the smallest, constant columns aside; 1 if none is left.

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> scale_ratio(as_table([[0.0, 0.0], [1.0, 1000.0]]))
    1000.0
    """
    deviation = (spread(table) if width is None else width).deviation
    deviation = deviation[deviation > 0]
    if deviation.size == 0:
        return 1.0
    with np.errstate(over="ignore"):  # 1e150 over a denormal is beyond float64: inf says it well
        return float(deviation.max() / deviation.min())


def condition_number(table: Table, width: Spread | None = None) -> float:
    """Largest over smallest eigenvalue of the correlation matrix; inf if it is singular.

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> round(condition_number(as_table([[1, 1], [1, -1], [-1, 1], [-1, -1]])), 6)
    1.0
    >>> condition_number(as_table([[1, 2], [2, 4], [3, 6]]))
    inf
    """
    R = correlation(table, width)
    if R.size == 0:
        return 1.0
    eigenvalues = np.linalg.eigvalsh(R)
    if eigenvalues[0] <= eigenvalues[-1] * len(R) * np.finfo(float).eps:
        return float("inf")
    return float(eigenvalues[-1] / eigenvalues[0])


def _blocks(X: NDArray[np.float64]) -> "list[NDArray[np.float64]]":
    """Views of successive rows."""
    return [X[start : start + CHUNK] for start in range(0, len(X), CHUNK)]
