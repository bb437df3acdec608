"""The file of a fit: its numbers, and the columns that are weights or labels instead."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rescore.tables.cells import records
from rescore.tables.reading import DELIMITERS, read_table
from rescore.tables.textfile import read_text_bytes
from rescore.text import listing, printable

__all__ = ["FileFormat", "Input", "read_input", "read_labels"]


@dataclass(frozen=True)
class FileFormat:
    """How a text file is written; the same words as for `rescore.tables.reading.read_table`."""

    delimiter: str | None = None
    decimal: str = "."
    header: bool = True


@dataclass(frozen=True, eq=False)
class Input:
    """What a fit starts from.  The learner sees X and, as prior weights, sample_weight."""

    X: pd.DataFrame
    sample_weight: Any = None  # (n,)
    groups: list[str] | None = None  # n labels


def read_input(
    path: Path,
    file_format: FileFormat,
    *,
    weights: str | None = None,
    groups: str | None = None,
    drop: Sequence[str] = (),
) -> Input:
    r"""The table in a file without the columns ``weights``, ``groups`` and ``drop``.

    ``groups`` may also be another file with one column of labels, as `rescore simulate` writes it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "t.csv")
    ...     _ = file.write_text("a,s,g\n1,0.5,u\n2,0.5,v\n")
    ...     found = read_input(file, FileFormat(), weights="s", groups="g")
    >>> list(found.X), found.sample_weight.tolist(), found.groups
    (['a'], [0.5, 0.5], ['u', 'v'])
    """
    _refuse_overlap(weights, groups, drop)
    if groups is None:
        labels = None
    elif groups.lower().endswith(tuple(DELIMITERS)):  # a file of its own
        labels = read_labels(Path(groups), None, file_format)
    else:
        labels = read_labels(path, groups, file_format)
        drop = [*drop, groups]
    X = read_table(
        path, delimiter=file_format.delimiter, decimal=file_format.decimal,
        header=file_format.header, drop=drop,
    )  # fmt: skip
    if labels is not None and len(labels) != len(X):
        raise ValueError(f"--groups gives {len(labels)} labels for {len(X)} rows; give one each.")
    if weights is None:
        return Input(X, None, labels)
    if weights not in X:
        raise ValueError(f"There is no column {listing([weights])} for --weights, only "
                         f"{listing(X.columns)}.")  # fmt: skip
    return Input(X.drop(columns=weights), X[weights].to_numpy(), labels)


def read_labels(path: Path, column: str | None, file_format: FileFormat) -> list[str]:
    """One column of a file as text, a label for each row; without a name, its only column."""
    if column is not None and path.name.lower().endswith(".parquet"):
        return _parquet_labels(path, column)
    ending = next((e for e in DELIMITERS if path.name.lower().endswith(e)), None)
    if ending is None:
        return []  # read_table says what is wrong with the name
    try:
        rows = list(records(read_text_bytes(path), file_format.delimiter or DELIMITERS[ending]))
    except (csv.Error, TypeError) as error:
        raise ValueError(
            f"'{printable(path, 200)}' cannot be split into fields: {error}."
        ) from None
    header = rows[0] if rows else []
    if file_format.header:
        names, rows = [name or f"Unnamed: {j}" for j, name in enumerate(header)], rows[1:]
    else:
        names = [f"x{j}" for j in range(len(header))]
    if column is None:
        if len(names) != 1:
            raise ValueError(
                f"'{printable(path, 200)}' for --groups must have one column, not {len(names)}."
            )
        column = names[0]
    position = _position(names, column)
    # Rows with a field too few or too many are reported by read_table, with their line.
    return _complete([row[position] for row in rows if len(row) > position], column)


def _parquet_labels(path: Path, column: str) -> list[str]:
    try:
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(
            'Reading parquet files needs pyarrow: pip install "rescore[parquet]"'
        ) from error
    file = pq.ParquetFile(path)
    _position(file.schema_arrow.names, column)
    labels = file.read(columns=[column]).column(0).to_pylist()
    return _complete(["" if label is None else str(label) for label in labels], column)


def _position(names: Sequence[str], column: str) -> int:
    if names.count(column) != 1:
        how = "more than one column" if column in names else "no column"
        raise ValueError(f"There is {how} {listing([column])} for --groups among {listing(names)}.")
    return names.index(column)


def _complete(labels: list[str], column: str) -> list[str]:
    empty = np.flatnonzero([not label for label in labels])
    if len(empty):
        raise ValueError(
            f"Column '{printable(column)}' has no label in {len(empty)} row(s), first in row "
            f"{empty[0]} (counted from 0). Name the group of every row."
        )
    return labels


def _refuse_overlap(weights: str | None, groups: str | None, drop: Sequence[str]) -> None:
    roles = [*(name for name in (weights, groups) if name is not None), *drop]
    twice = {name for name in roles if roles.count(name) > 1}
    if twice:
        raise ValueError(
            f"{listing(sorted(twice))} is named more than once among --weights, --groups and "
            "--drop; a column can have one role."
        )
