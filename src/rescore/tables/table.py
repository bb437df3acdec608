"""Any container of numbers as one float64 table; its labels, rows like its own."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rescore.tables.convert import unpack
from rescore.tables.findings import Spread, spread
from rescore.text import listing, printable

LARGEST = 1e150  # the square of anything larger overflows float64 once a few are added
FEWEST_ROWS = 2  # of a group: one row alone has no spread
FEW = 2  # rows per column
BITS = 40  # of a merged weight that do not depend on how it was added up


@dataclass(frozen=True, eq=False)
class Table:
    """Finite numbers in rows and named columns, made by `as_table`; nothing in it can be changed.

    `values` is (n, d), float64, in C order and read-only; `names` are the labels of its columns
    and `index` those of its rows.  Of a column that is a category `levels` has the words, and the
    cells are their numbers.  `receipt` says what was filled in or left out (`opening`).

    Examples
    --------
    >>> table = as_table([[1, 2], [3, 4]])
    >>> table.values.flags.writeable, table.names
    (False, ('x0', 'x1'))
    """

    values: NDArray[np.float64]
    names: tuple[Hashable, ...]
    index: pd.Index
    levels: Mapping[Hashable, tuple[Hashable, ...]] = field(default_factory=dict)
    receipt: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def spread(self) -> Spread:
        """How wide the columns are, and how they lie to each other; computed once.

        Examples
        --------
        >>> as_table([[1, 2], [3, 6]]).spread.deviation
        array([1., 2.])
        """
        return spread(self.values)

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
        of = dict(zip(self.names, names, strict=True))
        levels = {of[name]: words for name, words in self.levels.items()}
        return replace(self, names=tuple(names), levels=levels)

    def part(self, columns: ArrayLike) -> "Table":
        """The columns at these positions alone; itself if that is all of them, in their order.

        Examples
        --------
        >>> as_table([[1, 2], [3, 4]]).part([1]).names
        ('x1',)
        """
        keep = np.asarray(columns, dtype=int)
        if np.array_equal(keep, np.arange(len(self.names))):
            return self
        values = np.ascontiguousarray(self.values[:, keep])
        values.flags.writeable = False
        return replace(self, values=values, names=tuple(self.names[j] for j in keep))

    @property
    def frame(self) -> pd.DataFrame:
        """The table as pandas has it, categories as words.

        Examples
        --------
        >>> as_table([[1, 2], [3, 4]]).frame.shape
        (2, 2)
        """
        frame = pd.DataFrame(self.values, self.index, names_index(self.names), copy=False)
        for name, words in self.levels.items():
            codes = frame[name].to_numpy().astype(int)
            frame[name] = pd.Categorical.from_codes(codes, pd.Index(list(words)))
        return frame

    def rows(self, used: NDArray[np.bool_]) -> "Table":
        """The rows for which ``used`` (n,) is true; itself if that is all of them.

        Examples
        --------
        >>> as_table([[1, 2], [3, 4], [5, 6]]).rows(np.array([True, False, True])).values
        array([[1., 2.],
               [5., 6.]])
        """
        if used.all():
            return self
        values = self.values[used]
        _refuse_too_small(values.shape)
        values.flags.writeable = False
        return replace(self, values=values, index=self.index[used])


# What a fit takes: a DataFrame, an array, lists of lists, whatever numpy makes an array of.
TableLike = pd.DataFrame | ArrayLike | Table


def names_index(names: Iterable[Hashable]) -> pd.Index:
    """The names as a flat pandas axis; tuples among them stay labels.

    Examples
    --------
    >>> names_index([("a", 1), ("b", 2)]).nlevels
    1
    """
    return pd.Index(list(names), tupleize_cols=False)


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


def has_names(X: Any) -> bool:
    """Whether the columns of X came with names, rather than being given some by `as_table`.

    Examples
    --------
    >>> has_names(pd.DataFrame({"a": [1, 2]})), has_names([[1], [2]])
    (True, False)
    """
    return isinstance(X, Table) or hasattr(X, "columns") or hasattr(X, "column_names")


def _refuse_duplicates(names: tuple[Hashable, ...]) -> None:
    """Two columns of the same name could not be told apart in the graph."""
    if len(set(names)) < len(names):
        twice = [name for name, count in pd.Series(list(names)).value_counts().items() if count > 1]
        raise ValueError(
            f"Column names must differ, but {listing(twice)} occur(s) more than once. "
            "Rename or drop the duplicates."
        )
    empty = [position for position, name in enumerate(names) if isinstance(name, str) and not name]
    if empty:
        raise ValueError(
            f"Column {empty[0]} (counted from 0) has an empty name, which no file of a graph can "
            "hold. Name it, or drop it."
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
        f"{', '.join(parts)}{more}. Leave those rows out with missing='drop', or fill them in with "
        "missing='em'; nothing is imputed silently."
    )


def rows_like(X: Any, names: tuple[Hashable, ...], learner: str) -> Table:
    """New rows for a learner of the columns ``names``: matched by name, or by position if unnamed.

    Examples
    --------
    >>> rows_like(pd.DataFrame({"b": [1.0], "a": [2.0]}), ("a", "b"), "Linear").values
    array([[2., 1.]])
    >>> rows_like(pd.DataFrame({"a": [1.0], "c": [2.0]}), ("a", "b"), "Linear")
    Traceback (most recent call last):
        ...
    ValueError: The columns of X are not those of the fit: 'b' missing, 'c' unknown. ...
    """
    table = _some_rows(X)
    if table.names == names:
        return table
    if has_names(X):
        _refuse_other_names(table.names, names)
        at = {name: j for j, name in enumerate(table.names)}
        return replace(table, values=table.values[:, [at[name] for name in names]], names=names)
    if len(table.names) != len(names):
        raise ValueError(
            f"X has {len(table.names)} features, but {learner} is expecting {len(names)} features "
            "as input. Give the columns of the fit, in their order."
        )
    return replace(table, names=names)


def _some_rows(X: Any) -> Table:
    """X checked as for a fit, which takes two rows; here one will do."""
    if isinstance(X, Table):
        return X
    raw = unpack(X)
    if raw.shape[0] != 1:
        return as_table(X, copy=False)
    names = names_index(raw.names)
    values = np.vstack([raw.to_float64(), np.zeros(len(names))])
    two = as_table(pd.DataFrame(values, columns=names))
    return replace(two, values=two.values[:1], index=raw.index)


def _refuse_other_names(got: tuple[Hashable, ...], names: tuple[Hashable, ...]) -> None:
    missing = [name for name in names if name not in got]
    unknown = [name for name in got if name not in names]
    if missing or unknown:
        parts = [f"{listing(missing)} missing"] if missing else []
        parts += [f"{listing(unknown)} unknown"] if unknown else []
        raise ValueError(
            f"The columns of X are not those of the fit: {', '.join(parts)}. Rename or select "
            "columns, or pass an array to match them by position."
        )


def row_labels(groups: Any, index: pd.Index) -> NDArray[Any]:
    """One group label per row, checked against the rows of X.

    Examples
    --------
    >>> row_labels(["u", "v"], pd.RangeIndex(2))
    array(['u', 'v'], dtype=object)
    """
    if isinstance(groups, pd.Series) and not groups.index.equals(index):
        raise ValueError(
            "groups is a Series on another index than X. Reindex it, or give groups.to_numpy() if "
            "it is already in the order of the rows."
        )
    if np.shape(groups) != (len(index),):
        raise ValueError(
            f"groups must hold one label for each of the {len(index)} rows; its shape is "
            f"{np.shape(groups)}."
        )
    labels = pd.Series(list(groups)).to_numpy(copy=True)  # numpy alone would turn 1 into '1'
    if pd.isna(labels).any():
        raise ValueError(
            f"groups has {int(pd.isna(labels).sum())} missing label(s); name the group of every "
            "row, for example with fillna('unknown')."
        )
    labels.flags.writeable = False
    return labels


def group_codes(labels: NDArray[Any]) -> NDArray[np.intp]:
    """The groups numbered by their first row, (n,); each must have two rows or more.

    Examples
    --------
    >>> group_codes(np.array(["v", "u", "u", "v"]))
    array([0, 1, 1, 0])
    """
    codes, names = pd.factorize(labels)
    small = names[np.bincount(codes) < FEWEST_ROWS]
    if len(small):
        raise ValueError(
            f"The group(s) {listing(small)} have fewer than {FEWEST_ROWS} rows, too few to learn "
            "from. Merge them with others, or leave these rows out."
        )
    return codes


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
