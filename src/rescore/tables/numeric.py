"""Cells of any numeric type as float64, exactly or with a warning."""

import warnings
from collections.abc import Hashable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.text import listing, printable

__all__ = ["DataWarning", "as_float64", "refuse_dtype"]

EXACT = 2**53  # every integer up to here is a float64

NOT_NUMBERS = {
    "U": "text",
    "S": "bytes",
    "T": "text",
    "M": "dates",
    "m": "durations",
    "V": "records",
}


class DataWarning(UserWarning):
    """The data can be used, but not entirely as they are or not without care.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", DataWarning)  # if you know your data
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
            "for example with X.astype(float) if it is text made of digits, or drop it."
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
