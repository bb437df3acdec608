"""Few rows in an order of their own, equal ones merged.

With hardly more rows than columns many graphs fit alike, and the last bit of a sum would choose
between them.  Sums over sorted, distinct rows are the same to the last bit however the rows were
ordered, and whether a row was repeated or weighted.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.tables.table import Table

__all__ = ["Distinct", "distinct_rows"]

FEW = 2  # rows per column
BITS = 40  # of a merged weight that do not depend on how it was added up


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct rows of a table with their weights, and the way back to its n rows."""

    table: Table
    weight: NDArray[np.float64]
    groups: NDArray[np.intp] | None = None  # of the distinct rows, where there are any
    place: NDArray[np.intp] | None = None  # (n,), which distinct row each row is; None, itself
    share: NDArray[np.float64] | float = 1.0  # (n,), of its distinct row's weight


def distinct_rows(
    table: Table, weight: NDArray[np.float64], groups: NDArray[np.intp] | None = None
) -> Distinct:
    """The rows of a small table, sorted and merged within groups; other tables as they are.

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> merged = distinct_rows(as_table([[5, 1], [3, 2], [5, 1]]), np.array([0.25, 0.5, 0.25]))
    >>> print(merged.table.values, merged.weight, merged.place, merged.share)
    [[3. 2.]
     [5. 1.]] [0.5 0.5] [1 0 1] [0.5 1.  0.5]
    """
    n, d = table.values.shape
    if n > FEW * d:
        return Distinct(table, weight, groups)
    columns = table.values if groups is None else np.column_stack([table.values, groups])
    values, first, place = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    if len(values) < 2:
        return Distinct(table, weight, groups)
    place = place.ravel()
    total = np.bincount(place, weight)
    fraction, exponent = np.frexp(total)
    rounded = np.ldexp(np.round(np.ldexp(fraction, BITS)), exponent - BITS)
    merged = replace(table, values=values[:, :d], index=pd.RangeIndex(len(values)))
    kept = None if groups is None else groups[first]
    return Distinct(merged, rounded / rounded.sum(), kept, place, weight / total[place])
