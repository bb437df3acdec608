"""Tables from files, strictly: a file is either understood completely or refused with the place."""

import codecs
import gzip
import io
import zlib
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from rescore.tables.csv import parse
from rescore.tables.table import as_table
from rescore.text import listing, printable

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
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
    drop: Sequence[str] = (),
    labels: Sequence[str] = (),
    encoding: str = "utf-8",
) -> pd.DataFrame:
    r"""The numbers in a .csv, .tsv (both also .gz) or .parquet file.

    `delimiter` is that of the file's ending unless given. `decimal` is the decimal mark.
    `header=False` says that the first line is already data; the columns are then x0, x1, ...
    `drop` names columns to leave out, such as row numbers, and `labels` columns to keep as text,
    such as the group of each row. Whatever else is not a number, and every line with a field too
    many or too few, is an error that names the line.

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
    for word, given in (("drop", drop), ("labels", labels)):
        if isinstance(given, str):
            raise TypeError(f"{word} must be a list of names; write {word}=['{printable(given)}'].")
    ending = _ending(file)
    if ending == ".parquet":
        return _read_parquet(file, drop, labels)
    delimiter = DELIMITERS[ending] if delimiter is None else delimiter
    _check_marks(delimiter, decimal)
    raw = read_text_bytes(file, encoding)
    try:
        return parse(raw, delimiter, decimal, header, drop, labels)
    except ValueError as error:
        raise ValueError(f"'{printable(file, 200)}': {error}") from error


def _ending(file: Path) -> str:
    """The part of the name that tells the format."""
    known = [*DELIMITERS, ".parquet"]
    for ending in known:
        if file.name.lower().endswith(ending):
            return ending
    if file.is_dir():
        file_bytes(file)  # says that it is a directory
    raise ValueError(
        f"'{printable(file, 200)}' does not end in {', '.join(known)}, so its format is unknown. "
        "Rename it, or convert it to one of them."
    )


def _check_marks(delimiter: str, decimal: str) -> None:
    """One character each, and not the same."""
    for word, mark in (("delimiter", delimiter), ("decimal", decimal)):
        if len(mark) != 1 or not mark.isascii() or mark in '"\n\r':
            raise ValueError(f"{word} must be one ASCII character, not '{printable(mark)}'.")
    if delimiter == decimal:
        raise ValueError(
            f"delimiter and decimal are both '{printable(decimal)}'; they must differ."
        )


def _read_parquet(file: Path, drop: Sequence[str], labels: Sequence[str]) -> pd.DataFrame:
    """One parquet file; a stored pandas index counts as a column and must be dropped by name."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(
            'Reading parquet files needs pyarrow: pip install "rescore[parquet]"'
        ) from error
    try:
        # ParquetFile, unlike read_table, never invents columns from the names of folders.
        content = pq.ParquetFile(pa.BufferReader(file_bytes(file))).read()
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
    frame = _parquet_numbers(content, [*drop, *labels])
    for name in labels:
        frame[name] = ["" if x is None else str(x) for x in content.column(name).to_pylist()]
    return frame


def _parquet_numbers(content: Any, drop: Sequence[str]) -> pd.DataFrame:
    """The kept columns as numbers."""
    unknown = [name for name in drop if name not in content.column_names]
    if unknown:
        raise ValueError(f"There is no column {listing(unknown)} to drop.")
    kept = [j for j, name in enumerate(content.column_names) if name not in set(drop)]
    stored = [content.column_names[j] for j in kept if _is_index(content.column_names[j])]
    if stored:
        raise ValueError(
            f"Column {listing(stored)} is a stored row index, not data. Leave it out with "
            f"drop=['{stored[0]}'] (on the command line: --drop {stored[0]})."
        )
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
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            while piece := file.read(1 << 20):
                pieces.append(piece)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        line = sum(piece.count(b"\n") for piece in pieces) + 1
        what = "is truncated" if isinstance(error, EOFError) else "is damaged or no gzip file"
        raise ValueError(
            f"'{printable(path, 200)}' {what}: unpacking stopped at or after line {line}. "
            "Fetch or compress the file again."
        ) from error
    return b"".join(pieces)


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


def _wrong_encoding(raw: bytes, error: UnicodeDecodeError, encoding: str, path: Path) -> str:
    """The sentence on bytes that do not decode, with the line and a guess."""
    line = raw.count(b"\n", 0, error.start) + 1
    guess = next((name for mark, name in MARKS.items() if raw.startswith(mark)), "latin-1")
    return (
        f"Line {line} of '{printable(path, 200)}' is not {printable(encoding)}; it looks like "
        f"{guess}. Read it with encoding='{guess}', or save the file as UTF-8."
    )
