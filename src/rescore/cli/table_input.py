"""The file of a fit: its numbers, and the columns that are weights or labels instead."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rescore.tables.csv import records
from rescore.tables.files import DELIMITERS, read_table, read_text_bytes
from rescore.tables.table import Table, as_table
from rescore.text import listing, printable

__all__ = ["FileFormat", "Input", "read_input"]


@dataclass(frozen=True)
class FileFormat:
    """How a text file is written; the same words as for `rescore.tables.files.read_table`."""

    delimiter: str | None = None
    decimal: str = "."
    header: bool = True


@dataclass(frozen=True, eq=False)
class Input:
    """What a fit starts from.  The learner sees X and, as prior weights, sample_weight."""

    X: Table
    sample_weight: Any = None  # (n,)
    groups: list[str] | None = None  # n labels

    def known_to(self, model: Any) -> dict[str, Any]:
        """What a fit of the model is told besides X; labels only where it needs them."""
        labels = {"groups": self.groups} if model.needs_groups else {}
        return {"sample_weight": self.sample_weight, **labels}


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
    >>> found.X.names, found.sample_weight.tolist(), found.groups
    (('a',), [0.5, 0.5], ['u', 'v'])
    """
    _refuse_overlap(weights, groups, drop)
    apart = groups is not None and groups.lower().endswith(tuple(DELIMITERS))  # a file of its own
    frame = read_table(
        path, delimiter=file_format.delimiter, decimal=file_format.decimal,
        header=file_format.header, drop=drop, labels=[] if groups is None or apart else [groups],
    )  # fmt: skip
    labels = None
    if groups is not None:
        labels = _labels_in(Path(groups), file_format) if apart else frame.pop(groups).tolist()
        _refuse_unlabelled(labels, groups, len(frame))
    if weights is None:
        return Input(as_table(frame, copy=False), None, labels)
    if weights not in frame:
        raise ValueError(f"There is no column {listing([weights])} for --weights, only "
                         f"{listing(frame.columns)}.")  # fmt: skip
    prior = frame.pop(weights).to_numpy()
    return Input(as_table(frame, copy=False), prior, labels)


def _labels_in(path: Path, file_format: FileFormat) -> list[str]:
    """The only column of a file as text, a label for each row."""
    ending = next(e for e in DELIMITERS if path.name.lower().endswith(e))
    try:
        rows = list(records(read_text_bytes(path), file_format.delimiter or DELIMITERS[ending]))
    except (csv.Error, TypeError) as error:
        raise ValueError(
            f"'{printable(path, 200)}' cannot be split into fields: {error}."
        ) from None
    width = max((len(row) for row in rows), default=0)
    if width != 1:
        raise ValueError(
            f"'{printable(path, 200)}' for --groups must have one column, not {width}."
        )
    return [row[0] if row else "" for row in rows[file_format.header :]]


def _refuse_unlabelled(labels: list[str], source: str, n: int) -> None:
    if len(labels) != n:
        raise ValueError(f"--groups gives {len(labels)} labels for {n} rows; give one each.")
    empty = [row for row, label in enumerate(labels) if not label]
    if empty:
        raise ValueError(
            f"'{printable(source)}' has no label in {len(empty)} row(s), first in row {empty[0]} "
            "(counted from 0). Name the group of every row."
        )


def _refuse_overlap(weights: str | None, groups: str | None, drop: Sequence[str]) -> None:
    roles = [*(name for name in (weights, groups) if name is not None), *drop]
    twice = {name for name in roles if roles.count(name) > 1}
    if twice:
        raise ValueError(
            f"{listing(sorted(twice))} is named more than once among --weights, --groups and "
            "--drop; a column can have one role."
        )
