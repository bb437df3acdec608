"""Text made safe for where it is shown: a terminal, a spreadsheet, a page in a browser."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

__all__ = [
    "asset",
    "comma_fields",
    "from_cell",
    "in_commas",
    "json_text",
    "listing",
    "names_among",
    "names_in",
    "page_template",
    "policy",
    "printable",
    "to_cell",
]

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


def names_in(texts: Iterable[str]) -> list[str]:
    """The names in comma-separated texts; a name with a comma in it is put in double quotes.

    Examples
    --------
    >>> names_in(["a,b", '"c,d"'])
    ['a', 'b', 'c,d']
    """
    return [name for text in texts for name in comma_fields(text)]


def names_among(texts: Iterable[str], columns: Sequence[str]) -> list[str]:
    """The same where the columns are known: a text that is the name of one is taken whole.

    Examples
    --------
    >>> names_among(["a,b", "income, total"], ["a", "b", "income, total"])
    ['a', 'b', 'income, total']
    """
    return [name for text in texts for name in ([text] if text in columns else comma_fields(text))]


def in_commas(names: Iterable[object]) -> str:
    """The names as one text that `names_in` reads.

    Examples
    --------
    >>> in_commas(["a", "b,c"])
    'a,"b,c"'
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([str(name) for name in names])
    return line.getvalue()


def comma_fields(text: str) -> list[str]:
    """The fields of one line of CSV.

    Examples
    --------
    >>> comma_fields('a,"b,c"')
    ['a', 'b,c']
    """
    try:
        (fields,) = csv.reader([text], strict=True)
    except (csv.Error, ValueError):
        raise ValueError(f"{text!r} is not a list of names separated by commas.") from None
    return fields


@cache
def page_template(package: str, name: str) -> "Template":
    """A template of a package whose every value is escaped, and must be there.

    Examples
    --------
    >>> page_template("rescore.reports", "template.html.j2").name
    'template.html.j2'
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package, "."), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["printable"] = printable
    return environment.get_template(name)


def asset(name: str, package: str = "rescore") -> "Markup":
    """A file of a package, to go into the page as it is.

    Examples
    --------
    >>> "prefers-color-scheme: dark" in asset("style.css")
    True
    """
    from importlib.resources import files

    from markupsafe import Markup

    text = files(package).joinpath(name).read_text(encoding="utf-8")
    if "</script" in text.lower() or "</style" in text.lower() or "<!--" in text:
        raise ValueError(f"{name} would end the element that holds it; it cannot be put in a page.")
    return Markup(text)


def json_text(data: Any) -> "Markup":
    r"""JSON that no HTML parser mistakes for the end of its element, nor a script for a new line.

    Examples
    --------
    >>> print(json_text(["</script>", "\u2028", "&"]))
    ["\u003c/script\u003e", "\u2028", "\u0026"]
    """
    import json

    from markupsafe import Markup

    text = json.dumps(data, allow_nan=False)  # ASCII alone, so that U+2028 is an escape already
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def policy(scripts: Iterable[str], styles: Iterable[str], pictures: str = "data:") -> str:
    """A Content-Security-Policy: these scripts and styles, pictures of one source, nothing else.

    Examples
    --------
    >>> policy([], ["p { margin: 0 }"])
    "default-src 'none'; script-src 'none'; style-src 'sha256-...'; img-src data:; ..."
    """
    return (
        f"default-src 'none'; script-src {_sources(scripts)}; style-src {_sources(styles)}; "
        f"img-src {pictures}; base-uri 'none'; form-action 'none'"
    )


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


def _sources(texts: Iterable[str]) -> str:
    import base64
    import hashlib

    sums = [hashlib.sha256(text.encode()).digest() for text in texts]
    return " ".join(f"'sha256-{base64.b64encode(s).decode()}'" for s in sums) or "'none'"
