"""The slow, careful look at the cells of a text file, taken once something is known to be wrong."""

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from rescore.text import printable

__all__ = ["MISSING", "Layout", "fault_in_cells", "records"]

MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", "NaT")
)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
TRUTH = frozenset(("True", "TRUE", "true", "False", "FALSE", "false"))  # read as 1 and 0
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """Where what is in a text file: its columns, its marks, the lines before its first row."""

    names: list[str]
    kept: list[int]  # positions of the columns that are read
    delimiter: str
    decimal: str
    header_lines: int


def records(raw: bytes, delimiter: str) -> Any:
    r"""A csv reader over UTF-8 bytes; its `line_num` is the physical line it has come to.

    Examples
    --------
    >>> list(records(b'a,"b\nc"\n', ","))
    [['a', 'b\nc']]
    """
    lines = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8", newline="\n")
    return csv.reader(lines, delimiter=delimiter, strict=True)


def fault_in_cells(body: bytes, layout: Layout, otherwise: str) -> ValueError:
    r"""The error for the first cell that is no number, or for all missing and infinite ones.

    `otherwise` is what to say if every cell looks well.

    Examples
    --------
    >>> layout = Layout(["a", "b"], [0, 1], ",", ".", 1)
    >>> print(fault_in_cells(b"1,2\n3,x", layout, ""))
    Line 3, column 'b': 'x' is not a number. Correct the cell, or leave the column out...
    """
    missing: Counter[int] = Counter()
    infinite: Counter[int] = Counter()
    words: dict[int, bool] = {}  # whether a column holds true and false rather than numbers
    first = 0
    reader = records(body, layout.delimiter)
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
    remedy = "Correct the cell, or leave the column out (drop=[...], --drop)."
    for other in ",.":
        if other != layout.decimal and _is_number(cell.strip(), other):
            remedy = f"It looks like a number with another decimal mark: decimal='{other}'."
    if line == 1:
        remedy += " If line 1 is a header, do not say header=False (--no-header)."
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
        f"{', '.join(parts[:5])}{more}. Remove those rows or columns, or fill them in yourself; "
        "nothing is imputed silently."
    )
