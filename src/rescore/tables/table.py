"""Any container of numbers, checked and turned into one float64 table."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rescore.tables.containers import DataWarning, unpack
from rescore.text import listing, printable

__all__ = ["LARGEST", "DataWarning", "Table", "as_table"]

LARGEST = 1e150  # the square of anything larger overflows float64 once a few are added


@dataclass(frozen=True, eq=False)
class Table:
    """Finite numbers in rows and named columns, made by `as_table`; nothing in it can be changed.

    `values` is (n, d), float64, in C order and read-only; `names` are the labels of its columns
    and `index` those of its rows.

    Examples
    --------
    >>> table = as_table([[1, 2], [3, 4]])
    >>> table.values.flags.writeable, table.names
    (False, ('x0', 'x1'))
    """

    values: NDArray[np.float64]
    names: tuple[Hashable, ...]
    index: pd.Index

    def renamed(self, names: Sequence[Hashable]) -> "Table":
        """The same rows under other column names.

        Examples
        --------
        >>> as_table([[1, 2], [3, 4]]).renamed(["a", "b"]).names
        ('a', 'b')
        """
        if len(names) != len(self.names):
            raise ValueError(
                f"{len(names)} name(s) were given for {len(self.names)} column(s); give one each."
            )
        _refuse_duplicates(tuple(names))
        return replace(self, names=tuple(names))

    def part(self, columns: ArrayLike) -> "Table":
        """The columns at these positions alone.

        Examples
        --------
        >>> as_table([[1, 2], [3, 4]]).part([1]).names
        ('x1',)
        """
        keep = np.asarray(columns, dtype=int)
        values = np.ascontiguousarray(self.values[:, keep])
        values.flags.writeable = False
        return replace(self, values=values, names=tuple(self.names[j] for j in keep))


def as_table(X: Any, *, copy: bool = True) -> Table:
    """The rows of X as float64, in memory of their own, with their names; or a sentence why not.

    Without ``copy`` rows that are float64 already stay where they are, for as long as nobody
    changes X.

    X may be a numpy array, a list of rows, or a pandas, polars or pyarrow table. Missing and
    infinite values, text, categories, dates, complex numbers, sparse and masked arrays are
    refused, never repaired. Columns without names are called x0, x1, and so on.

    Examples
    --------
    >>> as_table(pd.DataFrame({"a": [True, False], "b": [1, 2]}, index=["u", "v"])).values
    array([[1., 1.],
           [0., 2.]])
    >>> as_table([[1.0, float("nan")], [2.0, 3.0]])
    Traceback (most recent call last):
        ...
    ValueError: X has 1 cell(s) that are NaN, missing or infinite: column 'x1' (1 NaN). ...
    """
    if isinstance(X, Table):
        return X
    raw = unpack(X)
    _refuse_duplicates(raw.names)
    _refuse_too_small(raw.shape)
    values = raw.to_float64()
    if values is X or not values.flags.owndata:
        values = values.copy() if copy else values.view()
    _refuse_unusable(values, raw.names)
    values.flags.writeable = False
    return Table(values, raw.names, raw.index)


def _refuse_duplicates(names: tuple[Hashable, ...]) -> None:
    """Two columns of the same name could not be told apart in the graph."""
    if len(set(names)) < len(names):
        twice = [name for name, count in pd.Series(list(names)).value_counts().items() if count > 1]
        raise ValueError(
            f"Column names must differ, but {listing(twice)} occur(s) more than once. "
            "Rename or drop the duplicates."
        )


def _refuse_too_small(shape: tuple[int, int]) -> None:
    """The wording is what scikit-learn's estimator checks look for."""
    n, d = shape
    if d < 1:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required. "
            "Give a table with at least one column."
        )
    if n < 2:
        raise ValueError(
            f"Found array with {n} sample(s) (shape=({n}, {d})) while a minimum of 2 is required. "
            "Give a table with more rows."
        )


def _refuse_unusable(values: NDArray[np.float64], names: tuple[Hashable, ...]) -> None:
    """Raise for NaN, infinity, and numbers whose squares overflow."""
    # NaN survives min and max, so two passes without a temporary array find all three faults.
    if values.min() >= -LARGEST and values.max() <= LARGEST:
        return
    nan, infinite = np.isnan(values).sum(axis=0), np.isinf(values).sum(axis=0)  # (d,)
    if nan.any() or infinite.any():
        raise ValueError(_not_finite(nan, infinite, names))
    largest = np.abs(values).max(axis=0)
    j = int(largest.argmax())
    raise ValueError(
        f"Column '{printable(names[j])}' holds {largest[j]:.3g}; numbers beyond {LARGEST:g} cannot "
        f"be squared in float64. Divide the column by a suitable unit. "
        f"({int((largest > LARGEST).sum())} column(s) are affected.)"
    )


def _not_finite(
    nan: NDArray[np.int64], infinite: NDArray[np.int64], names: tuple[Hashable, ...]
) -> str:
    """The sentence on NaN and inf, with the columns and how many of each."""
    bad = np.flatnonzero(nan + infinite)
    parts = []
    for j in bad[:5]:
        counts = [f"{c} {word}" for c, word in ((nan[j], "NaN"), (infinite[j], "inf")) if c]
        parts.append(f"column '{printable(names[j])}' ({', '.join(counts)})")
    more = f" and {len(bad) - 5} more column(s)" if len(bad) > 5 else ""
    return (
        f"X has {int((nan + infinite).sum())} cell(s) that are NaN, missing or infinite: "
        f"{', '.join(parts)}{more}. Drop those rows or columns, or fill them in yourself; "
        "nothing is imputed silently."
    )
