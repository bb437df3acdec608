"""The file of a fit: its numbers, and the columns that are weights or labels instead."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.moments import evenly_spaced
from rescore.tables.csv import header_names, records
from rescore.tables.files import (
    DELIMITERS,
    FileFormat,
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
from rescore.text import in_commas, listing, names_among, names_in, printable

if TYPE_CHECKING:
    from rescore.studies.check import Checkup

__all__ = [
    "TRANSFORMS",
    "FileFormat",
    "Input",
    "asked_for",
    "everything_wrong",
    "examined",
    "in_ranges",
    "read_input",
    "repeated_lines",
    "row_numbers",
    "with_settings",
]

CATEGORY = "category"
MOST_ROWS = 100_000_000  # of a range
TRANSFORMS = {"log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "asinh": np.arcsinh}


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

    def thinned(self, most: int | None) -> "Input":
        """Evenly spaced rows, so many at most; itself if it has no more."""
        n = len(self.X.values)
        if most is None or n <= most:
            return self
        used = np.zeros(n, dtype=np.bool_)
        used[evenly_spaced(n, most)] = True
        weight = None if self.sample_weight is None else np.asarray(self.sample_weight)[used]
        labels = None if self.groups is None else list(compress(self.groups, used))
        return Input(self.X.rows(used), weight, labels)


def asked_for(params: Mapping[str, Any], needs_groups: bool = False) -> Input:
    """The table that the options of a command ask for."""
    opening = Opening(params["missing"], params["categories"], params.get("seed", 0))
    return read_input(
        file_of(params), FileFormat.of(params), weights=params["weights"], groups=params["groups"],
        drop=params["drop"] or [], transform=params["transform"] or [],
        exclude=params["exclude"] or "", opening=opening, needs_groups=needs_groups,
    )  # fmt: skip


def file_of(params: Mapping[str, Any]) -> Path:
    """The file of a command; some versions of typer keep it as text among the parameters."""
    return Path(params["data"])


def read_input(
    path: Path,
    file_format: FileFormat,
    *,
    weights: str | None = None,
    groups: str | None = None,
    drop: Sequence[str] = (),
    transform: Sequence[str] = (),
    exclude: str = "",
    opening: Opening | None = None,
    needs_groups: bool = False,
) -> Input:
    r"""The table in a file without the columns ``weights``, ``groups`` and ``drop``.

    ``drop`` are texts of names with commas between them, or single names; ``transform`` texts such
    as ``a=log``; ``exclude`` are rows that count nothing (`row_numbers`).  ``groups`` may also be
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
    out = _excluded(exclude, len(frame))
    if out.any():
        prior = np.where(out, 0.0, 1.0 if prior is None else prior)
    frame = _changed(frame, transform)
    table, prior = opening.of(frame, prior, labels if needs_groups else None)
    return Input(table, prior, labels)


def _changed(frame: pd.DataFrame, transform: Sequence[str]) -> pd.DataFrame:
    """The table with some columns changed, one after the other."""
    for text in transform:
        name, equals, by = text.rpartition("=")
        if not equals or name not in frame:
            raise ValueError(
                f"--transform takes a column and what to do, such as 'a=log'; got {text!r}, and "
                f"the columns are {listing(frame.columns)}."
            )
        frame = frame.assign(**{name: _transformed(frame[name], by.strip())})
    return frame


def _transformed(column: pd.Series, by: str) -> Any:
    """The cells under a function, multiplied, or as words."""
    if by == CATEGORY:
        return [
            None if x is None or x != x else x if isinstance(x, str) else f"{x:g}" for x in column
        ]
    if not pd.api.types.is_numeric_dtype(column.dtype):
        raise ValueError(f"Column '{printable(column.name)}' holds words, which have no {by}.")
    try:
        factor = None if by in TRANSFORMS else float(by)
    except ValueError:
        known = ", ".join([*TRANSFORMS, CATEGORY])
        raise ValueError(f"A column can be changed by {known} or a number, not {by!r}.") from None
    if factor is not None:
        return column * factor
    with np.errstate(all="ignore"):
        values = TRANSFORMS[by](column.to_numpy(dtype=np.float64))
    lost = int((~np.isfinite(values) & np.isfinite(column.to_numpy(dtype=np.float64))).sum())
    if lost:
        raise ValueError(
            f"{lost} number(s) of column '{printable(column.name)}' have no {by}, because they are "
            "zero or below. Use asinh, or leave the column as it is."
        )
    return values


def row_numbers(text: str) -> list[int]:
    """The rows that a text names, counted from 0.

    Examples
    --------
    >>> row_numbers("3,40-42,7")
    [3, 7, 40, 41, 42]
    """
    rows: set[int] = set()
    for part in text.replace("\n", ",").split(","):
        first, dash, last = part.strip().partition("-")
        if not first and not dash:
            continue
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(first + last) > 24:
            raise ValueError(f"Rows are named like 3,17,40-52, counted from 0; got {part!r}.")
        rows.update(range(int(first), min(int(last or first), int(first) + MOST_ROWS) + 1))
    return sorted(rows)


def in_ranges(rows: Sequence[int]) -> str:
    """Rows as a text that `row_numbers` reads.

    Examples
    --------
    >>> in_ranges([3, 40, 41, 42])
    '3,40-42'
    """
    ordered = np.unique(np.asarray(rows, dtype=np.int64))
    parts = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1) if len(ordered) else []
    return ",".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)


def _excluded(text: str, n: int) -> NDArray[np.bool_]:
    """Which of n rows count nothing: those named in the text, or in the file of that name."""
    file = Path(text) if text and not text[0].isdigit() else None
    rows = np.array(row_numbers(file_bytes(file).decode() if file else text), dtype=np.int64)
    if rows.size and rows[-1] >= n:
        raise ValueError(f"Row {rows[-1]} is to be left out, but the last of {n} is {n - 1}.")
    out = np.zeros(n, dtype=bool)
    out[rows] = True
    if n - out.sum() < 2:
        raise ValueError(f"Only {n - int(out.sum())} of {n} rows would be left; exclude fewer.")
    return out


def everything_wrong(params: Mapping[str, Any]) -> Survey | None:
    """What is wrong with the file, all of it; None if it cannot be looked into."""
    path = file_of(params)
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


def examined(
    params: Mapping[str, Any],
    debug: bool = False,
    read: Callable[[Mapping[str, Any]], Input] = asked_for,
    most_rows: int | None = None,
) -> tuple["Checkup", dict[str, Any]]:
    """All findings on a file, and the settings that would mend what can be mended.

    Every cell is read; of more than ``most_rows`` rows so many are looked at further.
    """
    from rescore.studies.check import Checkup, check, refusal, repeated_rows  # not where it is read

    found: list[Finding] = []
    try:
        table = read(params)
    except (ValueError, TypeError) as error:
        if debug:
            raise
        wrong = everything_wrong(params)
        found = list(wrong.findings) if wrong and not _only_notes(wrong) else [refusal(error)]
        params = with_settings(params, {} if wrong is None else wrong.settings)
        try:
            table = read(params)
        except (ValueError, TypeError):
            return Checkup.of(found), {} if _beyond_options(found) else merged(found)
    whole, table = table, table.thinned(most_rows)
    told = check(table.X, table.sample_weight, table.groups).findings
    told = tuple(one for one in told if one.code != "repeated_rows")
    again = None
    if table is not whole:
        found.append(_thinned(whole, table))
    elif params["drop"] or params["groups"]:
        again = repeated_lines(params)
    found += [*told, *repeated_rows(table.X, again)]
    return Checkup.of(found), merged(found)


def _thinned(whole: Input, some: Input) -> Finding:
    n, m = (len(each.X.values) for each in (whole, some))
    seen = f"All cells of {n:,} rows were read; of what follows {m:,} of them, evenly spaced, tell."
    return Finding("some_rows", seen, severity="note")


def _only_notes(wrong: Survey) -> bool:
    return all(one.severity == "note" for one in wrong.findings)


def _beyond_options(found: Sequence[Finding]) -> bool:
    """Whether some error cannot be mended by any option."""
    return any(one.severity == "error" and not one.fix for one in found)


def with_settings(params: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a command with the settings that findings ask for.

    Examples
    --------
    >>> with_settings({"drop": ["a"], "no_header": False}, {"drop": ["b,c"], "header": False})
    {'drop': ['a', '"b,c"'], 'no_header': True}
    """
    given = dict(params)
    for name, value in settings.items():
        if name == "header":
            given["no_header"] = not value
        elif isinstance(value, list):
            given[name] = [*(given[name] or []), in_commas(value)]
        else:
            given[name] = value
    return given


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
    if not is_text(file_of(params)):
        return None
    text = Source(file_of(params), **vars(FileFormat.of(params))).text()
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
