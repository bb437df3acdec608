"""Names and values from the data, made safe to show on a terminal."""

import re
from collections.abc import Iterable

__all__ = ["from_cell", "listing", "printable", "to_cell"]

# What a spreadsheet takes for a formula, unless it is a plain number; also behind apostrophes.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)", re.ASCII)


def printable(name: object, limit: int = 60) -> str:
    r"""`name` as one line of harmless text, at most `limit` characters long.

    Control characters, terminal escapes, line breaks and invisible direction marks become
    backslash escapes, so that a column name can neither move the cursor nor reorder a sentence.
    What is cut away is replaced by an ellipsis.

    Examples
    --------
    >>> printable("Raf")
    'Raf'
    >>> print(printable("a\x1b[31mb\n\u202ec"))
    a\x1b[31mb\n\u202ec
    >>> printable("x" * 10_000, limit=8)
    'xxxxxxx…'
    """
    text = str(name)
    pieces: list[str] = []
    length = 0
    for character in text[: limit + 1]:  # what lies beyond cannot be shown anyway
        shown = _escaped(character)
        length += len(shown)
        pieces.append(shown)
        if length > limit:
            return _cut(pieces, limit)
    return "".join(pieces)


def listing(names: Iterable[object], most: int = 5) -> str:
    """Quoted, printable names separated by commas; after `most` of them only the number left.

    Examples
    --------
    >>> listing(["Raf", "Mek"])
    "'Raf', 'Mek'"
    >>> listing(range(100), most=2)
    "'0', '1' and 98 more"
    """
    every = list(names)
    shown = ", ".join(f"'{printable(name)}'" for name in every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most} more"


def to_cell(text: str) -> str:
    """The text as a cell of a CSV file that no spreadsheet runs; `from_cell` gives it back.

    What could be a formula gets an apostrophe before it, as spreadsheets themselves write text.

    Examples
    --------
    >>> [to_cell(text) for text in ("Raf", "-2.5", "=cmd()", "'=1")]
    ['Raf', '-2.5', "'=cmd()", "''=1"]
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def from_cell(cell: str) -> str:
    """The text that `to_cell` made a cell of.

    Examples
    --------
    >>> [from_cell(cell) for cell in ("Raf", "'=cmd()", "'quoted'")]
    ['Raf', '=cmd()', "'quoted'"]
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _escaped(character: str) -> str:
    """One character, or its backslash escape if it is not plainly visible."""
    # str.isprintable is false for control, format (direction marks), surrogate, unassigned and
    # separator characters other than the space: exactly those that could mislead a reader.
    if character == "\\":
        return "\\\\"
    return character if character.isprintable() else ascii(character)[1:-1]


def _cut(pieces: list[str], limit: int) -> str:
    """The first whole pieces that leave room for an ellipsis, then the ellipsis."""
    kept, length = [], 0
    for piece in pieces:
        if length + len(piece) > limit - 1:
            break
        kept.append(piece)
        length += len(piece)
    return "".join(kept) + "…"
