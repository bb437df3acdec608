"""The file of a fit: its numbers, and the columns that are weights or labels instead."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rescore.cli.options import names_among, names_in
from rescore.tables.csv import header_names, records
from rescore.tables.files import (
    DELIMITERS,
    Source,
    file_bytes,
    guessed_encoding,
    is_text,
    read_table,
    read_text_bytes,
)
from rescore.tables.findings import Finding
from rescore.tables.opening import Opening
from rescore.tables.survey import Survey, merged, survey
from rescore.tables.table import Table
from rescore.text import listing, printable

__all__ = ["FileFormat", "Input", "asked_for", "everything_wrong", "read_input", "repeated_lines"]


@dataclass(frozen=True)
class FileFormat:
    """How a file is written; the same words as for `rescore.tables.files.read_table`."""

    delimiter: str | None = None
    decimal: str = "."
    header: bool = True
    encoding: str = "utf-8"
    thousands: str | None = None
    na: tuple[str, ...] = ()
    sheet: str | None = None

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> "FileFormat":
        """The options of a command."""
        return cls(
            {"tab": "\t", "\\t": "\t"}.get(params["delimiter"], params["delimiter"]),
            params["decimal"], not params["no_header"], params["encoding"], params["thousands"],
            tuple(names_in(params["na"] or [])), params["sheet"],
        )  # fmt: skip


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


def asked_for(params: Mapping[str, Any], needs_groups: bool = False) -> Input:
    """The table that the options of a command ask for."""
    opening = Opening(params["missing"], params["categories"], params.get("seed", 0))
    return read_input(
        params["data"], FileFormat.of(params), weights=params["weights"], groups=params["groups"],
        drop=params["drop"] or [], opening=opening, needs_groups=needs_groups,
    )  # fmt: skip


def read_input(
    path: Path,
    file_format: FileFormat,
    *,
    weights: str | None = None,
    groups: str | None = None,
    drop: Sequence[str] = (),
    opening: Opening | None = None,
    needs_groups: bool = False,
) -> Input:
    r"""The table in a file without the columns ``weights``, ``groups`` and ``drop``.

    ``drop`` are texts of names with commas between them, or single names.  ``groups`` may also be
    another file with one column of labels, as `rescore simulate` writes it; where the learner
    ``needs_groups``, each is completed by itself if cells are missing.

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
    opening = opening or Opening()
    apart = groups is not None and groups.lower().endswith(tuple(DELIMITERS))  # a file of its own
    inside = [] if groups is None or apart else [groups]

    def left_out(columns: list[str]) -> list[str]:
        names = names_among(drop, columns)
        _refuse_overlap(weights, groups, names)
        return names

    frame = read_table(
        path, drop=left_out, labels=inside, as_found=opening != Opening(seed=opening.seed),
        **vars(file_format),
    )  # fmt: skip
    labels = None
    if groups is not None:
        labels = _labels_in(Path(groups), file_format) if apart else frame.pop(groups).tolist()
        _refuse_unlabelled(labels, groups, len(frame))
    if weights is not None and weights not in frame:
        raise ValueError(f"There is no column {listing([weights])} for --weights, only "
                         f"{listing(frame.columns)}.")  # fmt: skip
    prior = None if weights is None else frame.pop(weights).to_numpy()
    table, prior = opening.of(frame, prior, labels if needs_groups else None)
    return Input(table, prior, labels)


def everything_wrong(params: Mapping[str, Any]) -> Survey | None:
    """What is wrong with the file, all of it; None if it cannot be looked into."""
    path = params["data"]
    found: list[Finding] = []
    try:
        given = FileFormat.of(params)
        if path.name.lower().endswith(".parquet"):
            drop = names_in(params["drop"] or [])
            return _of_frame(read_table(path, drop=drop, as_found=True))
        written = _read_somehow(path, given, found)
        text = Source(path, **vars(written)).text()
        drop = names_among(params["drop"] or [], text.names)
        labels = [name for name in (params["groups"], params["weights"]) if name in text.names]
        more = survey(text, written.decimal, written.thousands, written.na, drop, labels)
    except (ValueError, TypeError):
        return Survey(tuple(found), merged(found)) if found else None
    found += more.findings
    return Survey(tuple(found), merged(found))


def _of_frame(frame: Any) -> Survey:
    from rescore.studies.check import read

    found = read(frame)[1]
    return Survey(tuple(found), merged(found))


def _read_somehow(path: Path, given: FileFormat, found: list[Finding]) -> FileFormat:
    """The format with another encoding, delimiter or header where the one given cannot be right."""
    if not is_text(path):
        return given
    try:
        raw = read_text_bytes(path, given.encoding)
    except ValueError:
        guess = guessed_encoding(file_bytes(path))
        raw = read_text_bytes(path, guess)
        seen = f"The file is not {given.encoding}; it looks like {guess}."
        found.append(_written("encoding", seen, encoding=guess))
        given = replace(given, encoding=guess)
    if given.delimiter is None:
        mark = Source(path, **vars(given)).separator
        if mark not in [DELIMITERS[e] for e in DELIMITERS if path.name.lower().endswith(e)]:
            seen = f"Fields are separated by '{printable(mark)}'."
            found.append(_written("delimiter", seen, "note", delimiter=mark))
        given = replace(given, delimiter=mark)
    try:
        header_names(raw, given.delimiter or ",", given.header)
    except ValueError as error:
        if "numbers only" not in str(error):
            raise
        seen = "The first line holds numbers only, so there is probably no header."
        found.append(_written("no_header", seen, header=False))
        given = replace(given, header=False)
    return given


def _written(code: str, seen: str, severity: str = "error", **fix: Any) -> Finding:
    ((name, value),) = fix.items()
    return Finding(code, seen, (), f"Read it with {name}={value!r}.", severity, fix)


def repeated_lines(params: Mapping[str, Any]) -> int | None:
    """How many rows of the file repeat an earlier one in all columns, those left out included."""
    if not is_text(params["data"]):
        return None
    text = Source(params["data"], **vars(FileFormat.of(params))).text()
    return len(text.rows) - len({tuple(row) for row in text.rows})


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
