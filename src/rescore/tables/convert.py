"""What kind of container X is, and its columns as float64, exactly or with a warning."""

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.text import listing, printable

EXACT = 2**53  # every integer up to here is a float64
NOT_NUMBERS = {
    "U": "text",
    "S": "bytes",
    "T": "text",
    "M": "dates",
    "m": "durations",
    "V": "records",
}


@dataclass(frozen=True)
class Unpacked:
    """A container whose outside was checked; its cells are converted on demand."""

    shape: tuple[int, int]
    names: tuple[Hashable, ...]
    index: pd.Index
    to_float64: Callable[[], NDArray[np.float64]]


def unpack(X: Any) -> Unpacked:
    """The shape, names and cells of X, whatever container it is.

    Examples
    --------
    >>> raw = unpack([[1, 2], [3, 4], [5, 6]])
    >>> raw.shape, raw.names
    ((3, 2), ('x0', 'x1'))
    >>> raw.to_float64().dtype
    dtype('float64')
    """
    if hasattr(X, "todense"):  # scipy.sparse and its relatives, without importing them
        raise TypeError(
            f"X is a sparse container ({type(X).__name__}); sparse input is not supported. "
            "Pass X.toarray()."
        )
    if isinstance(X, pd.DataFrame):
        return _from_pandas(X)
    if isinstance(X, (str, bytes, PathLike)):
        raise TypeError("X is a path or text, not a table. Read a file with rescore.Dataset.read.")
    if isinstance(X, (list, tuple)):
        return _from_array(_from_rows(X))
    if isinstance(X, np.ma.MaskedArray):
        return _from_array(_unmasked(X))
    if isinstance(X, (np.ndarray, pd.Series)):
        return _from_array(np.asarray(X))
    return _from_foreign(X)


def _from_pandas(frame: pd.DataFrame) -> Unpacked:
    """A pandas table; its index is kept for the weights, and plays no part in a fit."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise ValueError(
            f"X has columns of {frame.columns.nlevels} levels (a MultiIndex). Flatten them, for "
            "example X.columns = ['_'.join(map(str, name)) for name in X.columns]."
        )
    names = tuple(frame.columns)
    if set(frame.dtypes) == {np.dtype(np.float64)}:  # the usual table, often without a copy
        return Unpacked(
            frame.shape, names, frame.index, lambda: as_float64(frame.to_numpy(), names)
        )
    for name, dtype in zip(names, frame.dtypes, strict=True):
        _refuse_pandas_dtype(dtype, name)

    def column(j: int) -> NDArray[Any]:
        return _pandas_cells(frame.iloc[:, j])

    return Unpacked(
        frame.shape, names, frame.index, lambda: _stacked(column, names, frame.shape[0])
    )


def _refuse_pandas_dtype(dtype: Any, name: Hashable) -> None:
    """Only numbers, booleans, and objects that may turn out to be numbers go on."""
    if isinstance(dtype, pd.SparseDtype):
        raise TypeError(
            f"Column '{printable(name)}' is sparse; sparse input is not supported. "
            "Pass X.sparse.to_dense()."
        )
    if isinstance(dtype, np.dtype):
        refuse_dtype(dtype, f"Column '{printable(name)}'")
    elif not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)):
        raise TypeError(
            f"Column '{printable(name)}' holds {dtype}, not numbers. "
            "Convert it to numbers yourself, leave it out, or see categories='exogenous'."
        )


def _pandas_cells(column: pd.Series) -> NDArray[Any]:
    """The cells as numpy has them; pd.NA of a nullable column becomes NaN."""
    if not isinstance(column.dtype, np.dtype) and column.hasnans:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return column.to_numpy()


def _from_foreign(X: Any) -> Unpacked:
    """A polars or pyarrow table by way of narwhals, or anything that offers itself as an array."""
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(X, eager_only=False, pass_through=True)
    except DuplicateError as error:
        counts = printable(" ".join(str(error).split()), 200)  # narwhals lists them on lines
        raise ValueError(
            f"Column names must differ, but some occur more than once. {counts}. "
            "Rename or drop the duplicates."
        ) from error
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("X is a lazy table that has no rows yet. Pass X.collect().")
    if isinstance(frame, nw.DataFrame):
        return _from_narwhals(frame)
    # An unknown kind of table is not taken as an array: its names would be lost without a word.
    if hasattr(X, "__dataframe__") or not hasattr(X, "__array__"):
        raise TypeError(
            f"X must be a table of numbers, not {type(X).__name__}. "
            "Pass a numpy array, a list of rows, or a pandas, polars or pyarrow table."
        )
    return _from_array(np.asarray(X))


def _from_narwhals(frame: Any) -> Unpacked:
    """A table with columns of one type each, in narwhals' words."""
    names = tuple(frame.columns)
    for name, dtype in frame.schema.items():
        fits = dtype.is_numeric() and str(dtype) not in ("Int128", "UInt128")  # unknown to numpy
        if not fits and str(dtype) not in ("Boolean", "Object"):
            raise TypeError(
                f"Column '{printable(name)}' holds {dtype}, not numbers of a usual type. "
                "Convert it yourself, for example to float64, or drop it."
            )

    def column(j: int) -> NDArray[Any]:
        return frame[:, j].to_numpy()

    n = len(frame)
    return Unpacked((n, len(names)), names, pd.RangeIndex(n), lambda: _stacked(column, names, n))


def _stacked(
    column: Callable[[int], NDArray[Any]], names: tuple[Hashable, ...], n: int
) -> NDArray[np.float64]:
    """The columns, each converted on its own, side by side in C order."""
    values = np.empty((n, len(names)))
    for j, name in enumerate(names):
        values[:, j] = as_float64(column(j), [name])
    return values


def _from_rows(rows: Sequence[Any]) -> NDArray[Any]:
    """A list of rows as an array; rows of different lengths are refused."""
    try:
        return np.array(rows)
    except ValueError as error:
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in rows]
        odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
        if odd is None:
            raise TypeError(f"X is a list that does not form a table: {error}") from error
        raise ValueError(
            f"Row {odd} of X has {lengths[odd]} cell(s), but row 0 has {lengths[0]}. "
            "Give rows of equal length."
        ) from error


def _unmasked(X: np.ma.MaskedArray[Any, Any]) -> NDArray[Any]:
    """The data of a masked array without masked cells."""
    masked = int(np.ma.count_masked(X))
    if masked == 0:
        return X.data
    where = np.flatnonzero(np.ma.getmaskarray(X).any(axis=0)).tolist() if X.ndim == 2 else []
    columns = f" in {listing(f'x{j}' for j in where)}" if where else ""
    raise ValueError(
        f"X is a masked array with {masked} masked cell(s){columns}. "
        "Drop those rows, or fill them in yourself with X.filled(...)."
    )


def _from_array(X: NDArray[Any]) -> Unpacked:
    """A two-dimensional array; its columns get the names x0, x1, and so on."""
    if X.ndim != 2:
        kind = {0: "a single value", 1: "a 1D array"}.get(X.ndim, f"a {X.ndim}D array")
        raise ValueError(
            f"Expected 2D array (rows by columns), got {kind} of shape {X.shape}. Reshape your "
            "data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row."
        )
    refuse_dtype(X.dtype, "X")
    n, d = X.shape
    names = tuple(f"x{j}" for j in range(d))
    return Unpacked((n, d), names, pd.RangeIndex(n), lambda: as_float64(X, names))


class DataWarning(UserWarning):
    """The data can be used, but not entirely as they are or not without care.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", DataWarning)  # if you know your data
    """


class DataNote(DataWarning):
    """What was found out about the data and is only good to know.

    Examples
    --------
    >>> issubclass(DataNote, DataWarning)
    True
    """


def refuse_dtype(dtype: np.dtype[Any], what: str) -> None:
    """Raise unless a numpy dtype may hold real numbers.

    Examples
    --------
    >>> refuse_dtype(np.dtype("int8"), "X")
    >>> refuse_dtype(np.dtype("U3"), "Column 'a'")
    Traceback (most recent call last):
        ...
    TypeError: Column 'a' holds text, not numbers...
    """
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {what} is {dtype}. Pass real numbers, for example "
            "X.real and X.imag side by side."
        )
    if dtype.kind in NOT_NUMBERS:
        raise TypeError(
            f"{what} holds {NOT_NUMBERS[dtype.kind]}, not numbers ({dtype}). Convert it yourself, "
            "for example with X.astype(float) if it is text made of digits; or see "
            "categories='exogenous'."
        )


def as_float64(cells: NDArray[Any], names: Sequence[Hashable]) -> NDArray[np.float64]:
    """The cells as a C-ordered float64 array, themselves if they are one already.

    `names` are those of the columns.

    Examples
    --------
    >>> as_float64(np.array([[1, 2]], dtype=np.uint8), ["a", "b"])
    array([[1., 2.]])
    """
    if cells.dtype.kind == "O":
        return _from_objects(cells, names)
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes inf, refused later
        values = np.asarray(cells, dtype=np.float64, order="C")
    lossy = _rounded(cells, values)
    if lossy is not None and lossy.any():
        # The caller sees a warning that names the column, not one from each of ten frames here.
        columns = lossy.reshape(-1, len(names)).any(axis=0)
        warnings.warn(
            f"{int(lossy.sum())} number(s) in {listing(np.array(names, dtype=object)[columns])} "
            "have more digits than float64 holds and were rounded. Subtract an offset first if "
            "the last digits matter.",
            DataWarning,
            stacklevel=2,
        )
    return values


def _rounded(cells: NDArray[Any], values: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    """Which cells float64 cannot hold exactly; None if their type always fits."""
    if cells.dtype.kind in "iu" and cells.dtype.itemsize == 8:
        if cells.size == 0 or (cells.max() <= EXACT and cells.min() >= -EXACT):
            return None
        # An integer is exact if at most 53 bits remain once its trailing zero bits are gone.
        lowest_bit = np.where(cells == 0, 1, cells & (~cells + 1))
        odd_part = cells // lowest_bit
        return (odd_part > EXACT) | (odd_part < -EXACT)
    if cells.dtype.kind == "f" and cells.dtype.itemsize > 8:
        return np.asarray(np.isfinite(values) & (values.astype(cells.dtype) != cells))
    return None


def _from_objects(cells: NDArray[Any], names: Sequence[Hashable]) -> NDArray[np.float64]:
    """Python objects that are all real numbers; None and pd.NA stay missing (NaN)."""
    flat = cells.reshape(-1)
    values = np.empty(flat.shape)
    for k, cell in enumerate(flat):
        if isinstance(cell, (Real, np.bool_)):
            values[k] = _real(cell, names[k % len(names)])
        elif cell is None or cell is pd.NA:
            values[k] = np.nan
        else:
            _refuse_object(cell, k // len(names), names[k % len(names)])
    return values.reshape(cells.shape)


def _real(cell: Any, name: Hashable) -> float:
    """One number; a Python integer may be too large for float64 altogether."""
    try:
        return float(cell)
    except OverflowError as error:
        raise ValueError(
            f"Column '{printable(name)}' holds an integer too large for float64. Divide the "
            "column by a suitable unit."
        ) from error


def _refuse_object(cell: Any, row: int, name: Hashable) -> None:
    """The type error's wording is what scikit-learn's estimator checks look for."""
    if isinstance(cell, complex):
        raise ValueError(f"Complex data not supported: column '{printable(name)}', row {row}.")
    raise TypeError(
        f"Row {row} of column '{printable(name)}' holds {printable(repr(cell), 40)} of type "
        f"{type(cell).__name__}; every argument must be a number, not a string that looks like a "
        "number nor any other object. Convert the column yourself or drop it."
    )
