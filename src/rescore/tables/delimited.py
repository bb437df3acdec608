"""Delimited text as a table of numbers: its header, its shape, its cells, in that order."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rescore.tables.cells import MISSING, Layout, fault_in_cells, records
from rescore.tables.fields import checked_rows
from rescore.tables.numeric import EXACT, as_float64
from rescore.text import listing, printable

__all__ = ["parse"]

# Before 3.1 pandas had to be asked to read back exactly the number that was written.
VERSION = tuple(int(part) for part in pd.__version__.split(".")[:2])
EXACT_FLOATS: dict[str, Any] = {} if VERSION >= (3, 1) else {"float_precision": "round_trip"}


def parse(
    raw: bytes, delimiter: str, decimal: str, header: bool, drop: Sequence[str]
) -> pd.DataFrame:
    r"""The numbers in delimited UTF-8 text; parameters as in `rescore.tables.reading.read_table`.

    Examples
    --------
    >>> parse(b"a,b\n1,2\n", ",", ".", True, ["b"])
         a
    0  1.0
    >>> parse(b"a,b\n1,2\n3,4,5\n", ",", ".", True, [])
    Traceback (most recent call last):
        ...
    ValueError: Line 3 has 3 field(s), but the header has 2. ...
    """
    names, lines = _header(raw, delimiter, header)
    start = _end_of_line(raw, lines) if header else 0
    lines = lines if header else 0
    body = raw[start:].rstrip(b"\n")
    if not body.strip():
        raise ValueError("There is a header but no row below it. Add rows.")
    kept = _kept(names, drop)
    layout = Layout(names, kept, delimiter, decimal, lines)
    n = checked_rows(body, layout, header)
    return _numbers(body, layout, n)


def _header(raw: bytes, delimiter: str, header: bool) -> tuple[list[str], int]:
    """The names of the columns, and on how many lines they are written."""
    if not raw.strip():
        raise ValueError("The file is empty. Give a header and rows.")
    reader = records(raw, delimiter)
    try:
        first = next(reader)
        lines = reader.line_num
        second: list[str] = next(reader, [])
    except csv.Error as error:
        raise ValueError(f"Line {reader.line_num} is no record of fields: {error}.") from error
    if not first:
        raise ValueError("Line 1 is empty; the names of the columns belong there.")
    _refuse_other_delimiter(first, second or first, delimiter)
    if not header:
        return [f"x{j}" for j in range(len(first))], lines
    if all(_is_number(name) for name in first):
        raise ValueError(
            f"Line 1 holds numbers only ({listing(first, 3)}), so it is probably data rather than "
            "a header. Read it with header=False (--no-header), or add a line of names."
        )
    return [name or f"Unnamed: {j}" for j, name in enumerate(first)], lines


def _refuse_other_delimiter(first: list[str], second: list[str], delimiter: str) -> None:
    """One single column, yet another delimiter in both of the first records, is a wrong guess."""
    if len(first) > 1:
        return
    rest = delimiter.join(second)
    for other in ";\t|, ":
        if other in first[0].strip() and other in rest.strip() and other != delimiter:
            comma = " and decimal=','" if other == ";" and "," in rest else ""
            raise ValueError(
                f"Line 1 is a single field with '{printable(other)}' in it: the delimiter is "
                f"probably not '{printable(delimiter)}'. "
                f"Read it with delimiter='{printable(other)}'{comma}."
            )


def _is_number(text: str) -> bool:
    """Whether Python reads the text as a number, decimal commas included."""
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _kept(names: list[str], drop: Sequence[str]) -> list[int]:
    """The positions of the columns to read."""
    unknown = [name for name in drop if name not in names]
    if unknown:
        raise ValueError(f"There is no column {listing(unknown)} to drop, only {listing(names)}.")
    kept = [j for j, name in enumerate(names) if name not in set(drop)]
    for j in kept:
        if names[j] == f"Unnamed: {j}":
            what = "looks like a row index" if j == 0 else "has no name in the header"
            raise ValueError(
                f"Column {j + 1} {what}. Leave it out with drop=['{names[j]}'] "
                f"(--drop '{names[j]}'), or give it a name."
            )
    twice = sorted({names[j] for j in kept if names.count(names[j]) > 1})
    if twice:
        raise ValueError(
            f"Column names must differ, but {listing(twice)} occur(s) more than once in the "
            "header. Rename or drop them."
        )
    if not kept:
        raise ValueError("Every column was dropped. Keep at least one.")
    return kept


def _end_of_line(raw: bytes, lines: int) -> int:
    """Where line number `lines` ends and the next one starts."""
    position = 0
    for _ in range(lines):
        position = raw.find(b"\n", position) + 1 or len(raw)
    return position


def _numbers(body: bytes, layout: Layout, n: int) -> pd.DataFrame:
    """The cells as float64, or the first one that is none."""
    names = [layout.names[j] for j in layout.kept]
    try:
        frame = _read(body, layout, layout.kept, dtype=np.float64)
    except (ValueError, OverflowError) as error:
        raise fault_in_cells(body, layout, str(error)) from error
    if len(frame) != n or not np.isfinite(frame.to_numpy()).all():
        raise fault_in_cells(body, layout, f"{n} rows were expected, {len(frame)} were read")
    frame.columns = pd.Index(names)
    _warn_if_rounded(body, layout, frame)
    return frame


def _read(body: bytes, layout: Layout, columns: list[int], **options: Any) -> pd.DataFrame:
    """Some columns by pandas' C parser, without any guess of its own."""
    return pd.read_csv(
        io.BytesIO(body),
        sep=layout.delimiter,
        decimal=layout.decimal,
        header=None,
        index_col=False,
        usecols=columns,
        keep_default_na=False,
        na_values=sorted(MISSING),
        engine="c",
        **EXACT_FLOATS,
        **options,
    )


def _warn_if_rounded(body: bytes, layout: Layout, frame: pd.DataFrame) -> None:
    """Read columns with huge numbers again as integers, to warn if float64 had to round them."""
    for j, (name, largest) in zip(layout.kept, frame.abs().max().items(), strict=True):
        if largest >= EXACT:  # 2^53 + 1 has been rounded to 2^53 by now
            again = _read(body, layout, [j])[j]
            if again.dtype.kind in "iu":
                as_float64(again.to_numpy(), [name])
