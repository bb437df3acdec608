"""How many fields each line of a text file has: the same number everywhere, or an error."""

import csv
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rescore.tables.cells import Layout, records

__all__ = ["checked_rows"]

BLOCK = 1 << 24  # bytes whose delimiters are counted at once


def checked_rows(body: bytes, layout: Layout, header: bool) -> int:
    r"""The number of rows, once each is known to have as many fields as there are names.

    Examples
    --------
    >>> checked_rows(b"1,2\n3,4", Layout(["a", "b"], [0, 1], ",", ".", 1), header=True)
    2
    """
    # pandas fills short rows and may shift long ones, so the fields are counted beforehand:
    # by the bytes where that is exact, by the slower csv module where quotes could hide some.
    counts = _quoted_counts(body, layout) if b'"' in body else _plain_counts(body, layout)
    d, rows = len(layout.names), 0
    for lines, fields in counts:
        wrong = np.flatnonzero(fields != d)
        if len(wrong):
            k = wrong[0]
            raise ValueError(_wrong_count(int(lines[k]), int(fields[k]), d, header))
        rows += len(fields)
    return rows


def _plain_counts(
    body: bytes, layout: Layout
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Line numbers and numbers of fields, block by block; 0 fields for an empty line."""
    start, line = 0, layout.header_lines + 1
    while start < len(body):
        end = body.find(b"\n", min(start + BLOCK, len(body)))
        end = len(body) if end < 0 else end + 1
        block = np.frombuffer(body, np.uint8, end - start, start)
        ends = np.flatnonzero(block == ord("\n"))
        if end == len(body):  # the trailing line end was taken off
            ends = np.append(ends, len(block))
        delimiters = np.searchsorted(np.flatnonzero(block == ord(layout.delimiter)), ends)
        fields = np.diff(delimiters, prepend=0) + 1
        fields[np.diff(ends, prepend=-1) == 1] = 0
        yield line + np.arange(len(ends)), fields
        start, line = end, line + len(ends)


def _quoted_counts(
    body: bytes, layout: Layout
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The same by the csv module; a record is numbered by its last line."""
    reader = records(body, layout.delimiter)
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
