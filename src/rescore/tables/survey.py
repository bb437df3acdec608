"""A file as people have it: every column read or told apart, all that is wrong in one pass."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.tables.csv import INFINITE, MISSING, TRUTH, header_names, records
from rescore.tables.findings import Finding
from rescore.text import listing, printable

NUMBERS, WORDS, CATEGORY, DATES, IDS, EMPTY, UNITS = (
    "numbers", "words", "category", "dates", "labels of single rows", "nothing", "units",
)  # fmt: skip
MARKS = ((".", None), (".", ","), (",", None), (",", "."), (".", " "), (",", " "), (".", "'"))
MOST_LEVELS = 20  # of a category; and each has three rows or more on average
ROWS_PER_LEVEL = 3
MOSTLY = 0.5  # share of the cells that are numbers, from which the others are faults
NEARLY_ALL = 0.9
MANY_MISSING = 0.5  # share of a column's cells from which it is better left out
FEW_INCOMPLETE = 0.05  # share of the rows up to which they can be left out
SHOWN = 5  # faulty cells
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?([T ]\d{1,2}:\d{2}(:\d{2})?.*)?"
    r"|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})([ T]\d{1,2}:\d{2}.*)?"
    r"|\d{1,2}[ -][A-Za-z]{3,9}[ -]\d{2,4}|\d{1,2}:\d{2}(:\d{2})?",
    re.ASCII,
)
WITH_UNIT = re.compile(r"[^\w\s+-]?\s?[+-]?\d[\d.,]*\s?([^\d\s.,]\S*)?", re.ASCII)


@dataclass(frozen=True, eq=False)
class Text:
    """A file as fields of text: the names, the rows, and the line on which each row ends.

    Examples
    --------
    >>> Text(["a"], [["1"], ["2"]], [2, 3]).column(0)
    ['1', '2']
    """

    names: list[str]
    rows: list[list[str]]
    lines: list[int]
    ragged: list[tuple[int, int]] = field(default_factory=list)  # lines, and how many fields

    def column(self, j: int) -> list[str]:
        """The cells of column j."""
        return [row[j] for row in self.rows]


def text_of(raw: bytes, delimiter: str, header: bool) -> Text:
    r"""The records of delimited UTF-8 text; lines with another number of fields are set aside.

    Examples
    --------
    >>> text_of(b"a,b\n1,2\n3\n", ",", True).ragged
    [(3, 1)]
    """
    names, _ = header_names(raw, delimiter, header)
    rows, lines, ragged = [], [], []
    reader = records(raw, delimiter)
    try:
        for number, record in enumerate(reader):
            if number == 0 and header:
                continue
            if len(record) == len(names):
                rows.append(record)
                lines.append(reader.line_num)
            elif record or reader.line_num < raw.count(b"\n"):
                ragged.append((reader.line_num, len(record)))
    except csv.Error as error:
        raise ValueError(f"Line {reader.line_num} is no record of fields: {error}.") from error
    if not rows:
        raise ValueError("There is a header but no row below it. Add rows.")
    return Text(names, rows, lines, ragged)


@dataclass(frozen=True, eq=False)
class Column:
    """One column: its numbers, NaN where there is none, and which cells are missing or faulty.

    Examples
    --------
    >>> column = Column.of("a", ["1.5", "", "<2"], ".", None, ())
    >>> column.values, column.faulty, column.kind
    (array([1.5, nan, nan]), array([False, False,  True]), 'numbers')
    """

    name: str
    codes: NDArray[np.intp]  # (n,), the different texts numbered
    texts: list[str]  # the different ones, stripped
    of_texts: NDArray[np.float64]  # their numbers
    absent: NDArray[np.bool_]  # which of the texts say that there is nothing

    @classmethod
    def of(
        cls, name: str, cells: Sequence[str], decimal: str, thousands: str | None, na: Sequence[str]
    ) -> "Column":
        """The column with this name and these cells, read with these marks."""
        codes, texts = pd.factorize(np.array([cell.strip() for cell in cells], dtype=object))
        gone = MISSING | set(na)
        number = _number_pattern(decimal, thousands)
        values = np.array([_value(text, number, decimal, thousands) for text in texts])
        absent = np.array([text in gone for text in texts], dtype=bool)
        values[absent] = np.nan
        return cls(name, codes, list(texts), values, absent)

    @property
    def values(self) -> NDArray[np.float64]:
        """The numbers, (n,)."""
        return self.of_texts[self.codes]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Cells that are empty or say so, (n,)."""
        return self.absent[self.codes]

    @property
    def faulty(self) -> NDArray[np.bool_]:
        """Cells that are there and no numbers, (n,)."""
        return np.isnan(self.values) & ~self.missing

    @cached_property
    def kind(self) -> str:
        """What the column holds."""
        n, there = len(self.codes), int((~self.missing).sum())
        if there == 0:
            return EMPTY
        numbers = there - int(self.faulty.sum())
        words = [text for text, gone in zip(self.texts, self.absent, strict=True) if not gone]
        if numbers >= MOSTLY * there:
            return NUMBERS
        if _all(DATE, words):
            return DATES
        if _all(WITH_UNIT, words) and any(character.isdigit() for character in "".join(words)):
            return UNITS
        if len(words) <= min(MOST_LEVELS, max(n // ROWS_PER_LEVEL, 2)):
            return CATEGORY
        return IDS if len(words) > NEARLY_ALL * there else WORDS

    def words(self) -> NDArray[Any]:
        """The cells as text, None where there is nothing, (n,)."""
        texts = np.array([None if g else t for t, g in zip(self.texts, self.absent, strict=True)],
                         dtype=object)  # fmt: skip
        return texts[self.codes]


def _all(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    return sum(pattern.fullmatch(text) is not None for text in texts) >= NEARLY_ALL * len(texts)


def _number_pattern(decimal: str, thousands: str | None) -> re.Pattern[str]:
    d = re.escape(decimal)
    grouped = "" if thousands is None else rf"\d{{1,3}}({re.escape(thousands)}\d{{3}})+({d}\d*)?|"
    return re.compile(rf"[+-]?({grouped}\d+{d}?\d*|{d}\d+)([eE][+-]?\d+)?", re.ASCII)


def _value(text: str, number: re.Pattern[str], decimal: str, thousands: str | None) -> float:
    """The number that a text is, 1 and 0 for true and false; NaN if it is none."""
    if number.fullmatch(text):
        plain = text if thousands is None else text.replace(thousands, "")
        return float(plain.replace(decimal, "."))
    if text in TRUTH:
        return float(text.lower() == "true")
    return float(text) if INFINITE.fullmatch(text) else np.nan


@dataclass(frozen=True, eq=False)
class Survey:
    """What is in a file, what is wrong with it, and the settings that would read it all the same.

    `settings` are those of `read_table` and of a learner: decimal, thousands, drop, na, missing,
    categories.

    Examples
    --------
    >>> text = Text(["id", "a"], [["u", "1"], ["v", ""], ["w", "3"]], [2, 3, 4])
    >>> found = survey(text)
    >>> [one.code for one in found.findings], found.settings
    (['labels', 'missing'], {'drop': ['id'], 'missing': 'em'})
    """

    findings: tuple[Finding, ...]
    settings: Mapping[str, Any]


def survey(
    text: Text,
    decimal: str = ".",
    thousands: str | None = None,
    na: Sequence[str] = (),
    drop: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> Survey:
    """Everything that keeps the text from being a table of numbers, in one pass."""
    kept = [j for j, name in enumerate(text.names) if name not in {*drop, *labels}]
    cells = {j: text.column(j) for j in kept}
    marks = _marks(list(cells.values()), decimal, thousands)
    columns = [Column.of(text.names[j], cells[j], *marks, na) for j in kept]
    found = [*_of_lines(text), *_of_names(text, kept), *_of_marks(marks, (decimal, thousands))]
    found += [*_of_kinds(columns), *_of_cells(columns, text)]
    left = {name for one in found for name in one.fix.get("drop", ())}
    good = [column for column in columns if column.name not in left]
    found += _of_gaps(good)
    return Survey(tuple(found), merged(found))


def merged(found: Sequence[Finding]) -> dict[str, Any]:
    """The settings that mend all findings together: lists are joined, the first word stands.

    Examples
    --------
    >>> merged([Finding("a", "", fix={"drop": ["x"]}), Finding("b", "", fix={"drop": ["y"]})])
    {'drop': ['x', 'y']}
    """
    settings: dict[str, Any] = {}
    for one in found:
        for key, value in one.fix.items():
            if isinstance(value, list | tuple):
                settings[key] = list(dict.fromkeys([*settings.get(key, []), *value]))
            else:
                settings.setdefault(key, value)
    return settings


def _marks(
    columns: Sequence[Sequence[str]], decimal: str, thousands: str | None
) -> tuple[str, str | None]:
    """The decimal mark and the mark between thousands under which most cells are numbers."""
    given = decimal, thousands
    texts = [text for column in columns for text in set(map(str.strip, column)) - MISSING]

    def read(marks: tuple[str, str | None]) -> int:
        pattern = _number_pattern(*marks)
        return sum(pattern.fullmatch(text) is not None for text in texts)

    counts = {marks: read(marks) for marks in (given, *MARKS)}
    best = max(counts, key=lambda marks: (counts[marks], marks == given))
    # Three digits after every comma are thousands, unless some other cell has fewer or more.
    return best if counts[best] > counts[given] else given


def _of_lines(text: Text) -> Iterator[Finding]:
    if text.ragged:
        shown = ", ".join(f"line {line} ({fields})" for line, fields in text.ragged[:SHOWN])
        more = f" and {len(text.ragged) - SHOWN} more" if len(text.ragged) > SHOWN else ""
        seen = (
            f"{len(text.ragged)} line(s) have another number of fields than the header "
            f"({len(text.names)}): {shown}{more}."
        )
        yield Finding("ragged", seen, remedy="Remove or add fields there.", severity="error")


def _of_names(text: Text, kept: Sequence[int]) -> Iterator[Finding]:
    names = [text.names[j] for j in kept]
    twice = tuple(dict.fromkeys(name for name in names if names.count(name) > 1))
    if twice:
        seen = f"The name(s) {listing(twice)} occur more than once in the header."
        remedy = "Rename the columns, or leave out all of that name: {fix}."
        yield _mended("names", seen, twice, remedy, drop=list(twice))
    bare = tuple(name for j, name in zip(kept, names, strict=True) if name == f"Unnamed: {j}")
    if bare:
        what = "looks like a row index" if bare[0] == "Unnamed: 0" else "has no name"
        seen = f"Column {listing(bare)} {what} in the header."
        yield _mended("unnamed", seen, bare, "Leave it out: {fix}.", drop=list(bare))


def _of_marks(marks: tuple[str, str | None], given: tuple[str, str | None]) -> Iterator[Finding]:
    decimal, thousands = marks
    if decimal != given[0]:
        seen = f"Numbers are written with the decimal mark '{decimal}'."
        yield _mended("decimal", seen, (), "Read it with {fix}.", decimal=decimal)
    if thousands != given[1] and thousands is not None:
        seen = f"Numbers are written with '{thousands}' between thousands."
        yield _mended("thousands", seen, (), "Read it with {fix}.", thousands=thousands)


def _of_kinds(columns: Sequence[Column]) -> Iterator[Finding]:
    """Columns that hold no numbers, each kind in one finding."""
    told = {
        EMPTY: ("empty", "hold(s) nothing at all", "Leave out: {fix}."),
        DATES: ("dates", "hold(s) dates or times, not numbers", "Leave out: {fix}; or replace "
                "them by numbers, such as days since the first."),
        IDS: ("labels", "hold(s) a label of its own in nearly every row", "Leave out: {fix}."),
        WORDS: ("free_text", f"hold(s) words of more than {MOST_LEVELS} kinds, too many for a "
                "category", "Leave out: {fix}; or merge the words into few."),
        UNITS: ("units", "hold(s) numbers with their unit in the cell", "Leave out: {fix}; or take "
                "the unit out of the cells."),
    }  # fmt: skip
    for kind, (code, seen, remedy) in told.items():
        names = tuple(column.name for column in columns if column.kind == kind)
        if names:
            sentence = f"{listing(names)} {seen}{_example(columns, kind)}."
            yield _mended(code, sentence, names, remedy, drop=list(names))
    yield from _of_categories([column for column in columns if column.kind == CATEGORY])


def _of_categories(columns: Sequence[Column]) -> Iterator[Finding]:
    levels = {column.name: len(column.texts) - int(column.absent.sum()) for column in columns}
    single = tuple(name for name, count in levels.items() if count == 1)
    if single:
        seen = f"{listing(single)} hold(s) one and the same word in every row."
        yield _mended("constant_words", seen, single, "Leave out: {fix}.", drop=list(single))
    several = {name: count for name, count in levels.items() if count > 1}
    if several:
        shown = ", ".join(f"{listing([name])} ({count})" for name, count in several.items())
        remedy = "Let them cause and not be caused, {fix}; or leave them out, categories='drop'."
        seen = f"Categories, with their numbers of levels: {shown}."
        yield _mended("categories", seen, tuple(several), remedy, categories="exogenous")


def _of_cells(columns: Sequence[Column], text: Text) -> Iterator[Finding]:
    """Cells that are no numbers in columns of numbers, with their lines."""
    bad = [column for column in columns if column.kind == NUMBERS and column.faulty.any()]
    if not bad:
        return
    words: dict[str, None] = {}
    shown, total = [], 0
    for column in bad:
        rows = np.flatnonzero(column.faulty)
        total += len(rows)
        words |= dict.fromkeys(column.texts[k] for k in dict.fromkeys(column.codes[rows]))
        shown += [
            f"line {text.lines[i]} of '{printable(column.name)}': "
            f"'{printable(text.rows[i][text.names.index(column.name)], 30)}'"
            for i in rows[:2]
        ]
    more = " and more" if total > len(shown[:SHOWN]) else ""
    seen = f"{total} cell(s) are no numbers: {', '.join(shown[:SHOWN])}{more}."
    remedy = "Correct them; or read them as missing: {fix}."
    names = tuple(column.name for column in bad)
    yield _mended("bad_cells", seen, names, remedy, na=list(words), missing="em")


def _of_gaps(columns: Sequence[Column]) -> Iterator[Finding]:
    """Missing and infinite cells of the columns that stay."""
    infinite = tuple(column.name for column in columns if np.isinf(column.values).any())
    if infinite:
        seen = f"{listing(infinite)} hold(s) infinite numbers."
        words = [c.texts[k] for c in columns for k in np.flatnonzero(np.isinf(c.of_texts))]
        remedy = "Correct them; or read them as missing: {fix}."
        yield _mended("infinite", seen, infinite, remedy, na=words, missing="em")
    counts = {column.name: int(column.missing.sum()) for column in columns}
    counts = {name: count for name, count in counts.items() if count}
    if counts:
        yield from missing_cells(counts, [c.missing for c in columns if c.missing.any()])


def missing_cells(
    counts: Mapping[Any, int], gaps: Sequence[NDArray[np.bool_]]
) -> Iterator[Finding]:
    """What to do about missing cells: their counts by column, and where they are, (n,) each.

    Examples
    --------
    >>> gaps = [np.array([True, False, False])]
    >>> [one.remedy for one in missing_cells({"a": 1}, gaps)]
    ["Fill them in by their expectation given the others, missing='em'; or leave the rows out, ..."]
    """
    n = len(gaps[0])
    mostly = tuple(name for name, count in counts.items() if count > MANY_MISSING * n)
    if mostly:
        seen = f"More than half of the cells of {listing(mostly)} are missing."
        yield _mended("mostly_missing", seen, mostly, "Leave out: {fix}.", drop=list(mostly))
    rest = {name: count for name, count in counts.items() if name not in mostly}
    if not rest:
        return
    kept = [gap for gap, name in zip(gaps, counts, strict=True) if name in rest]
    rows = int(np.any(kept, axis=0).sum())
    first = list(rest.items())[:SHOWN]
    shown = ", ".join(f"'{printable(name)}' ({count})" for name, count in first)
    more = f" and {len(rest) - SHOWN} more column(s)" if len(rest) > SHOWN else ""
    seen = f"{sum(rest.values())} cell(s) in {rows} of {n} rows are missing: {shown}{more}."
    few = rows <= FEW_INCOMPLETE * n
    remedy = (
        "Leave these rows out, {fix}; or fill the cells in, missing='em'." if few else
        "Fill them in by their expectation given the others, {fix}; or leave the rows out, "
        "missing='drop'."
    )  # fmt: skip
    yield _mended("missing", seen, tuple(rest), remedy, missing="drop" if few else "em")


def _example(columns: Sequence[Column], kind: str) -> str:
    texts = (t for column in columns if column.kind == kind
             for t, gone in zip(column.texts, column.absent, strict=True) if not gone)  # fmt: skip
    first = next(texts, None)
    return "" if first is None else f", such as '{printable(first, 30)}'"


def _mended(code: str, seen: str, columns: tuple[Any, ...], remedy: str, **fix: Any) -> Finding:
    """An error that settings would mend; they are named where the remedy has a place for them."""
    words = ", ".join(f"{name}={value!r}" for name, value in fix.items())
    return Finding(code, seen, columns, remedy.replace("{fix}", words), "error", fix)


def frame_of(
    text: Text,
    kept: Sequence[int],
    labels: Sequence[int],
    decimal: str,
    thousands: str | None,
    na: Sequence[str],
    as_found: bool,
) -> pd.DataFrame:
    """The columns that are kept, as numbers; with ``as_found`` gaps and words too; labels as text.

    Examples
    --------
    >>> text = Text(["a", "b"], [["1,000", "u"], ["", "v"]], [2, 3])
    >>> frame_of(text, [0, 1], [], ".", ",", [], as_found=True)["a"].tolist()
    [1000.0, nan]
    """
    found = survey(
        text, decimal, thousands, na,
        drop=[name for j, name in enumerate(text.names) if j not in {*kept, *labels}],
        labels=[text.names[j] for j in labels],
    ).findings  # fmt: skip
    kept_as_found = {"missing", "mostly_missing", "empty", "categories"} if as_found else set()
    wrong = [one for one in found if one.code not in kept_as_found]
    if as_found:  # words of other kinds are refused where their columns are not left out
        wrong = [one for one in wrong if one.code != "constant_words"]
    if wrong:
        raise ValueError(" ".join(f"{one.seen} {one.remedy}" for one in wrong))
    columns: dict[int, Any] = {j: text.column(j) for j in labels}
    for j in kept:
        column = Column.of(text.names[j], text.column(j), decimal, thousands, na)
        columns[j] = column.words() if column.kind == CATEGORY else column.values
    frame = pd.DataFrame({j: columns[j] for j in sorted(columns)})
    frame.columns = pd.Index([text.names[j] for j in sorted(columns)])
    return frame
