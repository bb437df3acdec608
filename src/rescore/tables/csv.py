"""Delimited text as a table of numbers: its header, its shape, its cells, in that order."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.tables import BLOCK, LargeText, Raw
from rescore.tables.convert import EXACT, as_float64
from rescore.text import listing, printable
from rescore.validation import reads_as_number

# Before 3.1 pandas had to be asked to read back exactly the number that was written.
VERSION = tuple(int(part) for part in pd.__version__.split(".")[:2])
EXACT_FLOATS: dict[str, Any] = {} if VERSION >= (3, 1) else {"float_precision": "round_trip"}
HEAD, FIRST_RECORDS = 1 << 16, 50  # bytes and records that are looked at for the delimiter
MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", "NaT")
)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
TRUTH = frozenset(("True", "TRUE", "true", "False", "FALSE", "false"))  # read as 1 and 0
Drop = Sequence[str] | Callable[[list[str]], Sequence[str]]  # names, or which of the names
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


def parse(
    raw: Raw,
    delimiter: str,
    decimal: str,
    header: bool,
    drop: Drop,
    labels: Sequence[str] = (),
) -> pd.DataFrame:
    r"""The numbers and labels in delimited UTF-8 text; parameters as in `read_table`.

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
    names, lines = header_names(raw, delimiter, header)
    start = _end_of_line(raw, lines) if header else 0
    lines = lines if header else 0
    end = _end_of_text(raw)
    if end <= start or (end - start < HEAD and not raw[start:end].strip()):
        raise ValueError("There is a header but no row below it. Add rows.")
    text, kept = positions(names, drop, labels)
    layout = Layout(names, kept, delimiter, decimal, lines, start, end)
    n = checked_rows(raw, layout, header)
    return _cells(raw, layout, text, n)


def sniffed(raw: Raw, usual: str) -> str:
    r"""What separates the fields of UTF-8 text: the usual mark where it does, else one that does.

    A mark does if the first records all have as many fields, and more than one.

    Examples
    --------
    >>> sniffed(b"a;b\n1,5;2\n3;2,5\n", ",")
    ';'
    """
    head = raw[:HEAD]
    head = head if len(raw) <= HEAD else head[: head.rfind(b"\n") + 1] or raw[:]
    widths = {mark: _widths(head, mark) for mark in (usual, *";\t|,")}
    splits = [mark for mark, found in widths.items() if len(found) == 1 and max(found) > 1]
    if usual in splits or not splits:
        return usual
    return max(splits, key=lambda mark: max(widths[mark]))


def _widths(head: bytes, delimiter: str) -> set[int]:
    """How many fields the first records have."""
    try:
        return {len(record) for record in islice(records(head, delimiter), FIRST_RECORDS) if record}
    except csv.Error:
        return set()


def header_names(raw: Raw, delimiter: str, header: bool) -> tuple[list[str], int]:
    r"""The names of the columns, and on how many lines they are written.

    Examples
    --------
    >>> header_names(b"a,,b\n1,2,3\n", ",", True)
    (['a', 'Unnamed: 1', 'b'], 1)
    """
    if not raw[:HEAD].strip() and not raw[:].strip():
        raise ValueError("The file is empty. Give a header and rows.")
    reader = records(raw[:BLOCK] if isinstance(raw, LargeText) else raw, delimiter)
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
    if all(reads_as_number(name) for name in first):
        raise ValueError(
            f"Line 1 holds numbers only ({listing(first, 3)}), so it is probably data rather than "
            "a header. Read it with header=False, or add a line of names."
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


def positions(names: list[str], drop: Drop, labels: Sequence[str]) -> tuple[list[int], list[int]]:
    """Where the labels are among the columns, and the columns that are neither they nor dropped.

    Examples
    --------
    >>> positions(["a", "b", "c"], ["b"], ["c"])
    ([2], [0])
    """
    left_out = drop(names) if callable(drop) else drop
    text = [_label_position(names, name) for name in labels]
    return text, _kept(names, [*left_out, *labels])


def _label_position(names: list[str], name: str) -> int:
    if names.count(name) != 1:
        how = "more than one column" if name in names else "no column"
        raise ValueError(f"There is {how} {listing([name])} of labels among {listing(names)}.")
    return names.index(name)


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
                f"Column {j + 1} {what}. Leave it out with drop=['{names[j]}'], or give it a name."
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


def _end_of_line(raw: Raw, lines: int) -> int:
    """Where line number `lines` ends and the next one starts."""
    position = 0
    for _ in range(lines):
        position = raw.find(b"\n", position) + 1 or len(raw)
    return position


def _end_of_text(raw: Raw) -> int:
    """Where the line ends after the last row begin."""
    end = len(raw)
    while end and raw[end - 1] == ord("\n"):
        end -= 1
    return end


@dataclass(frozen=True)
class Layout:
    """Where what is in a text file: its columns, its marks, the lines before its first row.

    Rows are the bytes from `start` to `end`; they are not copied, for they may be most of memory.
    """

    names: list[str]
    kept: list[int]  # positions of the columns that are read
    delimiter: str
    decimal: str
    header_lines: int
    start: int = 0
    end: int | None = None

    def rows(self, raw: Raw) -> bytes:
        """The lines below the header."""
        return raw[self.start : self.end]


def _cells(raw: Raw, layout: Layout, text: list[int], n: int) -> pd.DataFrame:
    """The cells as float64, those of ``text`` as they are written, or the first that is neither."""
    kinds = dict.fromkeys(layout.kept, np.float64) | dict.fromkeys(text, str)
    values, words = np.empty((n, len(layout.kept))), dict[int, list[Any]]((j, []) for j in text)
    rows = 0
    try:
        for block in _blocks(raw, layout):
            frame = _read(block, layout, list(kinds), dtype=kinds)
            values[rows : rows + len(frame)] = frame[layout.kept]
            rows += len(frame)
            for j in text:
                words[j] += frame[j].tolist()
    except (ValueError, OverflowError) as error:
        raise fault_in_cells(raw, layout, str(error)) from error
    if rows != n or not all(np.isfinite(column).all() for column in values.T):
        raise fault_in_cells(raw, layout, f"{n} rows were expected, {rows} were read")
    _warn_if_rounded(raw, layout, values)
    names = pd.Index([layout.names[j] for j in layout.kept])
    found = pd.DataFrame(values, columns=names, copy=False)
    for j in sorted(text):  # each where it stands in the file
        found.insert(sum(k < j for k in kinds), layout.names[j], words[j], allow_duplicates=True)
    return found


def _blocks(raw: Raw, layout: Layout) -> Iterator[bytes]:
    """Whole lines, so many at a time that what is made of them takes little memory.

    All at once where a line may go on in the next, or where a column may be words of truth, which
    must not be numbers further down.
    """
    start, last = layout.start, len(raw) if layout.end is None else layout.end
    if any(raw.find(word.encode(), start, last) >= 0 for word in ('"', *TRUTH)):
        yield layout.rows(raw)
        return
    while start < last:
        end = raw.find(b"\n", start + BLOCK, last) + 1 or last
        yield raw[start:end]
        start = end


def _read(body: bytes, layout: Layout, columns: list[int], **options: Any) -> pd.DataFrame:
    """Some columns by pandas' C parser, without any guess of its own."""
    missing: Any = dict.fromkeys(layout.kept, sorted(MISSING))  # a label may be called NA
    return pd.read_csv(
        io.BytesIO(body),
        sep=layout.delimiter,
        decimal=layout.decimal,
        header=None,
        index_col=False,
        usecols=columns,
        keep_default_na=False,
        na_values=missing,
        engine="c",
        **EXACT_FLOATS,
        **options,
    )


def _warn_if_rounded(raw: Raw, layout: Layout, values: NDArray[np.float64]) -> None:
    """Read columns with huge numbers again as integers, to warn if float64 had to round them."""
    for j, column in zip(layout.kept, values.T, strict=True):
        if np.abs(column).max() >= EXACT:  # 2^53 + 1 has been rounded to 2^53 by now
            again = _read(layout.rows(raw), layout, [j])[j]
            if again.dtype.kind in "iu":
                as_float64(again.to_numpy(), [layout.names[j]])


def checked_rows(raw: Raw, layout: Layout, header: bool) -> int:
    r"""The number of rows, once each is known to have as many fields as there are names.

    Examples
    --------
    >>> checked_rows(b"1,2\n3,4", Layout(["a", "b"], [0, 1], ",", ".", 1), header=True)
    2
    """
    # pandas fills short rows and may shift long ones, so the fields are counted beforehand:
    # by the bytes where that is exact, by the slower csv module where quotes could hide some.
    quoted = raw.find(b'"', layout.start, layout.end) >= 0
    counts = _quoted_counts(raw, layout) if quoted else _plain_counts(raw, layout)
    d, rows = len(layout.names), 0
    for lines, fields in counts:
        wrong = np.flatnonzero(fields != d)
        if len(wrong):
            k = wrong[0]
            raise ValueError(_wrong_count(int(lines[k]), int(fields[k]), d, header))
        rows += len(fields)
    return rows


def _plain_counts(
    raw: Raw, layout: Layout
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Line numbers and numbers of fields, block by block; 0 fields for an empty line."""
    start, line = layout.start, layout.header_lines + 1
    last = len(raw) if layout.end is None else layout.end
    while start < last:
        end = raw.find(b"\n", start + BLOCK, last) + 1 or last
        block = np.frombuffer(raw[start:end], np.uint8)
        ends = np.flatnonzero(block == ord("\n"))
        if end == last:  # the trailing line end was taken off
            ends = np.append(ends, len(block))
        delimiters = np.searchsorted(np.flatnonzero(block == ord(layout.delimiter)), ends)
        fields = np.diff(delimiters, prepend=0) + 1
        fields[np.diff(ends, prepend=-1) == 1] = 0
        yield line + np.arange(len(ends)), fields
        start, line = end, line + len(ends)


def _quoted_counts(
    raw: Raw, layout: Layout
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The same by the csv module; a record is numbered by its last line."""
    reader = records(layout.rows(raw), layout.delimiter)
    try:
        for record in reader:
            line = layout.header_lines + reader.line_num
            yield np.array([line]), np.array([len(record)])
    except csv.Error as error:
        line = layout.header_lines + reader.line_num
        raise ValueError(f"Line {line} is no record of fields: {error}.") from error


def _wrong_count(line: int, fields: int, d: int, header: bool) -> str:
    """The sentence on a line with a field too many or too few, with a guess at the reason."""
    if fields == 0:
        return f"Line {line} is empty. Remove it."
    than = "the header" if header else "the first line"
    guess = "Remove or add a field there."
    if fields == 2 * d:
        guess = (
            "If its numbers have decimal commas, read it with another delimiter and decimal=','."
        )
    elif fields == d + 1:
        guess = "A field is too many, or row names stand before the columns without a name."
    return f"Line {line} has {fields} field(s), but {than} has {d}. {guess}"


def records(raw: bytes, delimiter: str) -> Any:
    r"""A csv reader over UTF-8 bytes; its `line_num` is the physical line it has come to.

    Examples
    --------
    >>> list(records(b'a,"b\nc"\n', ","))
    [['a', 'b\nc']]
    """
    lines = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8", newline="\n")
    return csv.reader(lines, delimiter=delimiter, strict=True)


def fault_in_cells(raw: Raw, layout: Layout, otherwise: str) -> ValueError:
    r"""The error for the first cell that is no number, or for all missing and infinite ones.

    `otherwise` is what to say if every cell looks well.

    Examples
    --------
    >>> layout = Layout(["a", "b"], [0, 1], ",", ".", 1)
    >>> print(fault_in_cells(b"1,2\n3,x", layout, ""))
    Line 3, column 'b': 'x' is not a number. Correct the cell, or leave the column out: ...
    """
    missing: Counter[int] = Counter()
    infinite: Counter[int] = Counter()
    words: dict[int, bool] = {}  # whether a column holds true and false rather than numbers
    first = 0
    reader = records(layout.rows(raw), layout.delimiter)
    for record in reader:
        line = layout.header_lines + reader.line_num
        for j in layout.kept:
            text = record[j].strip()
            if text in MISSING:
                missing[j] += 1
            elif INFINITE.fullmatch(text) or _overflows(text, layout.decimal):
                infinite[j] += 1
            elif text not in TRUTH and not _is_number(text, layout.decimal):
                return _not_a_number(line, j, record[j], layout)
            elif words.setdefault(j, text in TRUTH) != (text in TRUTH):
                return _of_another_kind(line, j, record[j], layout)
            else:
                continue
            first = first or line
    if not first:
        return ValueError(f"The numbers could not be read: {printable(otherwise, 200)}.")
    return _missing_or_infinite(missing, infinite, first, layout)


def _is_number(text: str, decimal: str) -> bool:
    """Whether the text is a number with this decimal mark and nothing else."""
    if decimal != ".":
        if "." in text:
            return False
        text = text.replace(decimal, ".")
    return NUMBER.fullmatch(text) is not None


def _overflows(text: str, decimal: str) -> bool:
    """Whether a number is written that float64 cannot hold."""
    return _is_number(text, decimal) and abs(float(text.replace(decimal, "."))) == float("inf")


def _not_a_number(line: int, j: int, cell: str, layout: Layout) -> ValueError:
    """The error for one cell, with a guess if only its decimal mark is another one."""
    remedy = f"Correct the cell, or leave the column out: drop=['{printable(layout.names[j])}']."
    for other in ",.":
        if other != layout.decimal and _is_number(cell.strip(), other):
            remedy = f"It looks like a number with another decimal mark: decimal='{other}'."
    if line == 1:
        remedy += " If line 1 is a header, do not say header=False."
    return ValueError(
        f"Line {line}, column '{printable(layout.names[j])}': '{printable(cell, 40)}' is not a "
        f"number. {remedy}"
    )


def _of_another_kind(line: int, j: int, cell: str, layout: Layout) -> ValueError:
    """The error for a column that mixes numbers with the words true and false."""
    return ValueError(
        f"Line {line}, column '{printable(layout.names[j])}': '{printable(cell, 40)}' follows "
        "cells of another kind; a column holds numbers or true and false, not both. Write 1 and 0."
    )


def _missing_or_infinite(
    missing: Counter[int], infinite: Counter[int], first: int, layout: Layout
) -> ValueError:
    """The error for cells without a finite number, by column."""
    parts = []
    for j in sorted({*missing, *infinite}):
        counts = ((missing[j], "empty or NaN"), (infinite[j], "infinite"))
        words = ", ".join(f"{count} {word}" for count, word in counts if count)
        parts.append(f"column '{printable(layout.names[j])}' ({words})")
    more = f" and {len(parts) - 5} more column(s)" if len(parts) > 5 else ""
    total = missing.total() + infinite.total()
    return ValueError(
        f"{total} cell(s) hold no finite number, the first on line {first}: "
        f"{', '.join(parts[:5])}{more}. Leave those rows out with missing='drop', or fill them in "
        "with missing='em'; nothing is imputed silently."
    )
