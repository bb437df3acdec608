"""Tables from files, strictly: a file is either understood completely or refused with the place."""

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from rescore.tables.delimited import parse
from rescore.tables.table import as_table
from rescore.tables.textfile import file_bytes, read_text_bytes
from rescore.text import listing, printable

__all__ = ["read_table"]

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}


def read_table(
    path: str | PathLike[str],
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    header: bool = True,
    drop: Sequence[str] = (),
    encoding: str = "utf-8",
) -> pd.DataFrame:
    r"""The numbers in a .csv, .tsv (both also .gz) or .parquet file.

    `delimiter` is that of the file's ending unless given. `decimal` is the decimal mark.
    `header=False` says that the first line is already data; the columns are then x0, x1, ...
    `drop` names columns to leave out, such as row numbers or labels. Whatever is not a number,
    and every line with a field too many or too few, is an error that names the line.

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
    if isinstance(drop, str):
        raise TypeError(f"drop must be a list of names; write drop=['{printable(drop)}'].")
    ending = _ending(file)
    if ending == ".parquet":
        return _read_parquet(file, drop)
    delimiter = DELIMITERS[ending] if delimiter is None else delimiter
    _check_marks(delimiter, decimal)
    raw = read_text_bytes(file, encoding)
    try:
        return parse(raw, delimiter, decimal, header, drop)
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


def _read_parquet(file: Path, drop: Sequence[str]) -> pd.DataFrame:
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
    except pa.ArrowException as error:
        raise ValueError(
            f"'{printable(file, 200)}' is not a whole parquet file: "
            f"{printable(error, 200)}. Write or fetch it again."
        ) from error
    return _parquet_numbers(content, drop)


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
