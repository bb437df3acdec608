"""Tables from files, strictly: a file is either understood completely or refused with the place."""

import codecs
import gzip
import io
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from rescore.tables import Raw, large_text
from rescore.tables.convert import DataNote
from rescore.tables.csv import Drop, parse, positions, sniffed
from rescore.tables.survey import Text, frame_of, text_of
from rescore.tables.table import as_table
from rescore.text import listing, names_in, printable

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
WORKBOOKS = (".xlsx", ".xlsm")
MARKS = {  # the first bytes of a file that announce its encoding; longer marks first
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def read_table(
    path: str | PathLike[str],
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    header: bool = True,
    drop: Drop = (),
    labels: Sequence[str] = (),
    encoding: str = "utf-8",
    thousands: str | None = None,
    na: Sequence[str] = (),
    sheet: str | None = None,
    as_found: bool = False,
) -> pd.DataFrame:
    r"""The numbers in a .csv, .tsv (both also .gz), .parquet or .xlsx file.

    `delimiter` is that of the file's ending, or if that separates nothing another one, with a
    warning. `decimal` is the decimal mark, `thousands` that between thousands. `header=False` says
    that the first line is already data; the columns are then x0, x1, ... `drop` names columns to
    leave out, such as row numbers, or is a function from all names to these; `labels` names columns
    to keep as text, such as the group of each row. `na` are words that stand for a missing cell,
    `sheet` is that of a workbook, the first unless given. With `as_found` missing cells stay NaN
    and categories stay words, for learners that are told what to do with them. Whatever else is
    not a number, and every line with a field too many or too few, is an error that names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "table.csv")
    ...     _ = file.write_text("id;a;b\nu;1,5;2\nv;3;5\n")
    ...     read_table(file, delimiter=";", decimal=",", drop=["id"])
         a    b
    0  1.5  2.0
    1  3.0  5.0
    """
    file = Path(fspath(path))
    for word, given in (("drop", drop), ("labels", labels), ("na", na)):
        if isinstance(given, str):
            raise TypeError(f"{word} must be a list of names; write {word}=['{printable(given)}'].")
    if _ending(file) == ".parquet":
        return _read_parquet(file, drop, labels, as_found)
    source = Source(
        file, delimiter=delimiter, decimal=decimal, header=header, encoding=encoding,
        thousands=thousands, na=tuple(na), sheet=sheet,
    )  # fmt: skip
    try:
        return source.numbers(drop, labels, as_found)
    except ValueError as error:
        raise ValueError(f"'{printable(file, 200)}': {error}") from error


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """How a file is written, in the words of `read_table`."""

    delimiter: str | None = None
    decimal: str = "."
    header: bool = True
    encoding: str = "utf-8"
    thousands: str | None = None
    na: tuple[str, ...] = ()
    sheet: str | None = None

    @staticmethod
    def of(params: Mapping[str, Any]) -> "FileFormat":
        """The options of a command."""
        same = {name: params[name] for name in ("decimal", "encoding", "thousands", "sheet")}
        mark = {"tab": "\t", "\\t": "\t"}.get(params["delimiter"], params["delimiter"])
        na = tuple(names_in(params["na"] or []))
        return FileFormat(delimiter=mark, header=not params["no_header"], na=na, **same)


@dataclass(frozen=True, eq=False)
class Source(FileFormat):
    """A text file or a sheet, and how it is written."""

    file: Path

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            _check_marks(self.delimiter, self.decimal)

    @property
    def in_sheets(self) -> bool:
        """Whether it is a workbook, which knows numbers and no delimiters."""
        return _ending(self.file) in WORKBOOKS

    @cached_property
    def raw(self) -> Raw:
        """The text as UTF-8."""
        return large_text(self.file, self.encoding) or read_text_bytes(self.file, self.encoding)

    @cached_property
    def separator(self) -> str:
        """The delimiter, as given or as found."""
        usual = DELIMITERS[_ending(self.file)]
        if self.delimiter is not None:
            return self.delimiter
        found = sniffed(self.raw, usual)
        _check_marks(found, self.decimal)
        return found

    def text(self) -> Text:
        """All fields as text."""
        if self.in_sheets:
            return sheet_text(self.file, self.sheet, self.header)
        return text_of(self.raw[:], self.separator, self.header)

    def numbers(self, drop: Drop, labels: Sequence[str], as_found: bool) -> pd.DataFrame:
        """The columns that are not dropped: numbers; ``as_found``, also gaps and words."""
        if not self.in_sheets and self.separator != DELIMITERS[_ending(self.file)]:
            self._announce()
        plain = not (self.in_sheets or self.thousands or self.na)
        try:
            if plain:
                return parse(self.raw, self.separator, self.decimal, self.header, drop, labels)
        except ValueError:
            if not as_found:
                raise
        text = self.text()
        at, kept = positions(text.names, drop, labels)
        marks = self.decimal, self.thousands, self.na
        return frame_of(text, kept, at, *marks, as_found=as_found)

    def _announce(self) -> None:
        if self.delimiter is None:
            mark = printable(self.separator)
            warnings.warn(
                f"The fields of '{printable(self.file, 200)}' are separated by '{mark}': read with "
                f"delimiter='{mark}'.",
                DataNote,
                stacklevel=5,
            )


def sheet_text(file: Path, sheet: str | None, header: bool) -> Text:
    """A sheet of a workbook as fields of text, numbers written exactly; dates as dates."""
    try:
        import openpyxl  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'Reading .xlsx files needs openpyxl: pip install "rescore[excel]"; or save the sheet '
            "as CSV."
        ) from error
    content = io.BytesIO(file_bytes(file))
    try:
        sheets = pd.read_excel(
            content, sheet_name=None, header=None, dtype=object, engine="openpyxl"
        )
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"It is not a whole workbook: {printable(error, 200)}.") from error
    name = next(iter(sheets)) if sheet is None else sheet
    if name not in sheets:
        raise ValueError(f"There is no sheet {listing([name])}, only {listing(sheets)}.")
    if sheet is None and len(sheets) > 1:
        warnings.warn(
            f"Of the sheets {listing(sheets)} the first was read; name another one with sheet=...",
            DataNote,
            stacklevel=5,
        )
    rows = [[_cell(value) for value in row] for row in sheets[name].to_numpy()]
    if len(rows) < 1 + header:
        raise ValueError(f"The sheet {listing([name])} has no rows. Give a header and rows.")
    names = rows[0] if header else [f"x{j}" for j in range(len(rows[0]))]
    names = [each or f"Unnamed: {j}" for j, each in enumerate(names)]
    body = rows[1:] if header else rows
    return Text(names, body, list(range(1 + header, 1 + header + len(body))))


def _cell(value: Any) -> str:
    """A cell as it would stand in a CSV file."""
    if value is None or value is pd.NaT or value != value:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _ending(file: Path) -> str:
    """The part of the name that tells the format."""
    known = [*DELIMITERS, ".parquet", *WORKBOOKS]
    for ending in known:
        if file.name.lower().endswith(ending):
            return ending
    if file.is_dir():
        file_bytes(file)  # says that it is a directory
    raise ValueError(
        f"'{printable(file, 200)}' does not end in {', '.join(known)}, so its format is unknown. "
        "Rename it, or convert it to one of them."
    )


def is_text(file: Path) -> bool:
    """Whether the name says that the file is delimited text.

    Examples
    --------
    >>> is_text(Path("a.csv.gz")), is_text(Path("a.parquet"))
    (True, False)
    """
    return file.name.lower().endswith(tuple(DELIMITERS))


def _check_marks(delimiter: str, decimal: str) -> None:
    """One character each, and not the same."""
    for word, mark in (("delimiter", delimiter), ("decimal", decimal)):
        if len(mark) != 1 or not mark.isascii() or mark in '"\n\r':
            raise ValueError(f"{word} must be one ASCII character, not '{printable(mark)}'.")
    if delimiter == decimal:
        raise ValueError(
            f"delimiter and decimal are both '{printable(decimal)}'; they must differ."
        )


def _read_parquet(file: Path, drop: Drop, labels: Sequence[str], as_found: bool) -> pd.DataFrame:
    """One parquet file; a stored pandas index counts as a column and must be dropped by name."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(
            'Reading parquet files needs pyarrow: pip install "rescore[parquet]"'
        ) from error
    try:
        # ParquetFile, unlike read_table, never invents columns from the names of folders.
        raw = file_bytes(file)
        parquet = pq.ParquetFile(pa.BufferReader(raw))
        cells = parquet.metadata.num_rows * parquet.metadata.num_columns
        if 8 * cells > most_bytes(len(raw)):
            raise ValueError(_too_much(file, len(raw)))
        content = parquet.read()
    except (pa.ArrowException, OSError) as error:  # what cannot be deserialised is an OSError
        raise ValueError(
            f"'{printable(file, 200)}' is not a whole parquet file: "
            f"{printable(error, 200)}. Write or fetch it again."
        ) from error
    unknown = [name for name in labels if name not in content.column_names]
    if unknown:
        raise ValueError(
            f"There is no column {listing(unknown)} of labels among "
            f"{listing(content.column_names)}."
        )
    left_out = drop(content.column_names) if callable(drop) else drop
    frame = _parquet_numbers(content, [*left_out, *labels], as_found)
    for name in labels:
        frame[name] = ["" if x is None else str(x) for x in content.column(name).to_pylist()]
    return frame


def _parquet_numbers(content: Any, drop: Sequence[str], as_found: bool) -> pd.DataFrame:
    """The kept columns as numbers, or as they are."""
    unknown = [name for name in drop if name not in content.column_names]
    if unknown:
        raise ValueError(f"There is no column {listing(unknown)} to drop.")
    kept = [j for j, name in enumerate(content.column_names) if name not in set(drop)]
    stored = [content.column_names[j] for j in kept if _is_index(content.column_names[j])]
    if stored:
        raise ValueError(
            f"Column {listing(stored)} is a stored row index, not data. Leave it out with "
            f"drop=['{stored[0]}']."
        )
    if as_found:
        return pd.DataFrame(content.select(kept).to_pandas())
    table = as_table(content.select(kept))
    return pd.DataFrame(table.values.copy(), columns=list(table.names))


def _is_index(name: str) -> bool:
    """How pandas calls the index it stores."""
    return name.startswith("__index_level_") and name.endswith("__")


def read_text_bytes(path: Path, encoding: str = "utf-8") -> bytes:
    r"""The file's text as UTF-8 bytes without a byte order mark, its lines ended by \n.

    A name that ends in .gz is unpacked. Bytes that `encoding` does not know are an error that
    says on which line they are, and which encoding they look like.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.csv")
    ...     _ = file.write_bytes(b"\xef\xbb\xbfa,b\r\n1,2\r\n")
    ...     read_text_bytes(file)
    b'a,b\n1,2\n'
    """
    raw = file_bytes(path)
    raw = _unpacked(raw, path) if path.suffix.lower() == ".gz" else _not_packed(raw, path)
    raw = _as_utf8(raw, encoding, path)
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return raw


def file_bytes(path: Path) -> bytes:
    """All bytes of a file; ValueError if there is no such file or it may not be read.

    Examples
    --------
    >>> file_bytes(Path("no_such_file.csv"))
    Traceback (most recent call last):
        ...
    ValueError: There is no file 'no_such_file.csv'...
    """
    shown = f"'{printable(path, 200)}'"
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ValueError(f"There is no file {shown}. Check the path and the folder.") from error
    except IsADirectoryError as error:
        raise ValueError(f"{shown} is a directory. Name one file inside it.") from error
    except PermissionError as error:
        raise ValueError(f"No permission to read {shown}. Ask its owner, or copy it.") from error
    except OSError as error:
        raise ValueError(f"{shown} cannot be read: {error.strerror}.") from error


def _not_packed(raw: bytes, path: Path) -> bytes:
    """Refuse a compressed file whose name does not say so."""
    if raw.startswith(b"\x1f\x8b"):
        raise ValueError(
            f"'{printable(path, 200)}' is a gzip file. Rename it to end in .gz, or unpack it."
        )
    return raw


def _unpacked(raw: bytes, path: Path) -> bytes:
    """The content of a gzip file, read piece by piece to know where it breaks off."""
    pieces: list[bytes] = []
    left = most_bytes(len(raw))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            while piece := file.read(1 << 20):
                pieces.append(piece)
                left -= len(piece)
                if left < 0:
                    raise ValueError(_too_much(path, len(raw)))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        line = sum(piece.count(b"\n") for piece in pieces) + 1
        what = "is truncated" if isinstance(error, EOFError) else "is damaged or no gzip file"
        raise ValueError(
            f"'{printable(path, 200)}' {what}: unpacking stopped at or after line {line}. "
            "Fetch or compress the file again."
        ) from error
    return b"".join(pieces)


def most_bytes(size: int) -> int:
    """What a file of that size may unpack to: 256 MiB, or a hundred times as much as it has.

    Numbers written as text shrink three- to tenfold; what shrinks more is repetition, or a trap.

    Examples
    --------
    >>> most_bytes(1_000) == 2**28, most_bytes(10_000_000)
    (True, 1000000000)
    """
    return max(1 << 28, 100 * size)


def _too_much(path: Path, size: int) -> str:
    return (
        f"'{printable(path, 200)}' has {size / 1e6:.3g} MB and would unpack to more than "
        f"{most_bytes(size) / 1e6:.3g} MB, which hardly is a table. If it is one, unpack it "
        "yourself to .csv."
    )


def _as_utf8(raw: bytes, encoding: str, path: Path) -> bytes:
    """The same text in UTF-8, once it is certain that the encoding is right."""
    try:
        name = codecs.lookup(encoding).name
    except LookupError as error:
        raise ValueError(
            f"Python knows no encoding '{printable(encoding)}'. Try utf-8, utf-16 or latin-1."
        ) from error
    if name in ("utf-8", "utf-8-sig"):
        raw = raw.removeprefix(codecs.BOM_UTF8)
        if raw.isascii() and b"\0" not in raw[:1000]:
            return raw
    try:
        text = raw.decode(name)
    except UnicodeDecodeError as error:
        raise ValueError(_wrong_encoding(raw, error, encoding, path)) from error
    if text[:1000].count("\0") * 4 > len(text[:1000]):  # every other byte, for western letters
        raise ValueError(
            f"'{printable(path, 200)}' is full of NUL characters; it looks like UTF-16. "
            "Read it with encoding='utf-16-le', or save it as UTF-8."
        )
    return text.encode("utf-8")


def guessed_encoding(raw: bytes) -> str:
    r"""What the bytes of a text that is not UTF-8 probably are.

    Examples
    --------
    >>> guessed_encoding(b"Gr\xf6\xdfe"), guessed_encoding(b"5 \x80")
    ('latin-1', 'cp1252')
    """
    marked = next((name for mark, name in MARKS.items() if raw.startswith(mark)), None)
    # Latin-1 has invisible controls there, Windows letters and signs.
    windows = any(0x80 <= byte < 0xA0 for byte in raw)
    return marked or ("cp1252" if windows else "latin-1")


def _wrong_encoding(raw: bytes, error: UnicodeDecodeError, encoding: str, path: Path) -> str:
    """The sentence on bytes that do not decode, with the line and a guess."""
    line = raw.count(b"\n", 0, error.start) + 1
    guess = guessed_encoding(raw)
    return (
        f"Line {line} of '{printable(path, 200)}' is not {printable(encoding)}; it looks like "
        f"{guess}. Read it with encoding='{guess}', or save the file as UTF-8."
    )
