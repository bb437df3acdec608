"""A table before any fit: what a learner would refuse, and what would lead it astray."""

import re
import warnings
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import linalg

from rescore.categories import taken_out
from rescore.protocols import Codes
from rescore.studies.first_graph import of_first_fit
from rescore.studies.relations import of_relations
from rescore.tables.convert import DataWarning
from rescore.tables.findings import SINGULAR, Finding, findings
from rescore.tables.survey import Text, survey
from rescore.tables.table import Table, TableLike, as_table, group_codes, row_labels
from rescore.text import listing
from rescore.weight_box import prior_weights, rows_stood_for

SEVERITIES = ("error", "warning", "note")
REFUSED = (ValueError, TypeError)
LEFT = 1e-4  # share of a column's variance that the others should leave
FEW_VALUES, AMONG = 5, 20  # different values, among at least so many rows
MANY_REPEATED = 0.1  # share of the rows
FEWEST_NUMBERED = 5  # rows


@dataclass(frozen=True, repr=False)
class Checkup:
    """What `check` found, the gravest first.

    An "error" is what a fit would refuse, a "warning" what could make its graph wrong, a "note"
    what is good to know.

    Examples
    --------
    >>> print(Checkup((Finding("constant", "Column 'a' is constant.", ("a",), "Drop it."),)))
    1 warning.
    warning constant: Column 'a' is constant. Drop it.
    """

    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> "Checkup":
        """The findings, sorted by severity.

        Examples
        --------
        >>> found = [Finding("b", "B.", severity="note"), Finding("a", "A.", severity="error")]
        >>> [finding.code for finding in Checkup.of(found).findings]
        ['a', 'b']
        """
        return cls(tuple(sorted(findings, key=lambda found: SEVERITIES.index(found.severity))))

    @property
    def ok(self) -> bool:
        """Whether a fit would accept the table: there is no error.

        Examples
        --------
        >>> Checkup(()).ok
        True
        """
        return self.count("error") == 0

    @property
    def table(self) -> pd.DataFrame:
        """One row per finding: code, severity, columns, seen, remedy.

        Examples
        --------
        >>> check([[1, 5], [2, 5], [4, 5]]).table["code"].tolist()
        ['constant', 'small_sample']
        """
        header = ["code", "severity", "columns", "seen", "remedy"]
        return pd.DataFrame(
            [[getattr(found, name) for name in header] for found in self.findings], columns=header
        )

    def count(self, severity: str) -> int:
        """How many findings are so severe.

        Examples
        --------
        >>> Checkup(()).count("warning")
        0
        """
        return sum(found.severity == severity for found in self.findings)

    def __str__(self) -> str:
        counts = [(self.count(word), word) for word in SEVERITIES]
        told = ", ".join(
            f"{number} {word}{'s' * (number > 1)}" for number, word in counts if number
        )
        lines = [f"{found.severity} {found.code}: {found.message}" for found in self.findings]
        return "\n".join([f"{told or 'Nothing found'}.", *lines])

    __repr__ = __str__


def check(
    X: "TableLike", sample_weight: "ArrayLike | None" = None, groups: "ArrayLike | None" = None
) -> Checkup:
    """Look at a table before any fit; what a fit would refuse is found, not raised.

    Columns that cannot be read are left out of the rest.  A first graph by ordered least squares
    shows whether rows look alike, and whether the scales of the variables order causes before
    effects.  Another by smooth functions shows whether relations look linear, additive or joint,
    which says what learner to begin with.

    Parameters
    ----------
    X : table
        As for `fit`.
    sample_weight : array (n,), optional
        Prior row weights; rows of weight zero are not looked at.
    groups : array of n labels, optional
        Whether the noise of these groups differs is looked at too.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> X = pd.DataFrame({"rain": [0.1, np.nan, 0.3], "place": ["a", "b", "c"]})
    >>> found = check(X)
    >>> found.ok, [(one.code, one.severity) for one in found.findings]
    (False, [('labels', 'error'), ('missing', 'error')])
    """
    table, found = read(X)
    if table is None:
        return Checkup.of(found)
    n = len(table.values)
    try:
        prior = prior_weights(sample_weight, n)
    except (ValueError, TypeError) as error:
        found.append(refusal(error, "sample_weight"))
        sample_weight, prior = None, np.full(n, 1 / n)
    used = prior > 0
    codes = None
    try:
        codes = None if groups is None else group_codes(row_labels(groups, table.index)[used])
    except (ValueError, TypeError) as error:
        found.append(refusal(error, "groups"))
    rows = _kept(table, used)
    count = rows_stood_for(sample_weight, prior)
    if rows is not None:
        at = [j for j, name in enumerate(rows.names) if name not in rows.levels]
        plain = rows.part(at) if at else rows
        found += [*of_table(plain, count, codes), *repeated_rows(rows, _repeated_in(X, used))]
        numbers = taken_out(rows, prior[used]).part(at) if at else rows
        looked_at = _independent(numbers, found), prior[used], count
        found += [*of_first_fit(*looked_at, codes), *of_relations(*looked_at)]
    return Checkup.of(found)


def _repeated_in(X: Any, used: Any) -> int | None:
    """How many rows repeat an earlier one in all columns, whatever they hold; None if unknown."""
    frame = _frame(X)
    try:
        return None if frame is None else int(frame[used].duplicated().sum())
    except TypeError:  # cells that cannot be compared
        return None


def _kept(table: Table, used: Any) -> Table | None:
    """The table without rows of weight zero; None if fewer than two are left."""
    return table.rows(used) if used.sum() > 1 else None


def _independent(table: Table, found: list[Finding]) -> Table:
    """The table without columns that others determine exactly: they would spoil a first graph."""
    spare = {one.columns[-1] for one in found if one.code == "duplicated"}
    spare |= {one.columns[0] for one in found if one.code == "collinear"}
    return table.part([j for j, name in enumerate(table.names) if name not in spare])


def read(X: Any) -> tuple[Table | None, list[Finding]]:
    """The columns of X that can be read, if any, and why the others cannot.

    Examples
    --------
    >>> table, found = read(pd.DataFrame({"a": [1, 2], "b": ["u", "v"]}))
    >>> table.names, found[0].columns
    (('a',), ('b',))
    """
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", DataWarning)
        table, found = _read(X)
    told = dict.fromkeys(str(each.message) for each in noted)
    return table, [*found, *(_split("rounded", text, "warning") for text in told)]


def refusal(error: Exception, code: str = "unreadable", *columns: Hashable) -> Finding:
    """What an error says, as a finding.

    Examples
    --------
    >>> refusal(ValueError("The file is empty. Write something into it.")).remedy
    'Write something into it.'
    """
    return _split(code, str(error), "error", columns)


def _split(code: str, text: str, severity: str, columns: tuple[Hashable, ...] = ()) -> Finding:
    """The first sentence says what was seen, the others what to do."""
    seen, _, remedy = re.sub(r"(?<=\.) (?=[A-Z])", "\0", text, count=1).partition("\0")
    return Finding(code, seen, columns, remedy, severity)


def _read(X: Any) -> tuple[Table | None, list[Finding]]:
    try:
        return (X if isinstance(X, Table) else as_table(X, copy=False)), []
    except REFUSED as error:
        whole = refusal(error)
    frame = _frame(X)
    if frame is None:
        return None, [whole]
    columns = [_as_text(frame.iloc[:, j]) for j in range(frame.shape[1])]
    text = Text([str(name) for name in frame.columns], list(map(list, zip(*columns, strict=True))),
                list(range(len(frame))))  # fmt: skip
    good = [j for j in range(frame.shape[1]) if not _fault(frame.iloc[:, [j]])]
    odd = [j for j in range(frame.shape[1]) if j not in good]
    found = list(survey(text, drop=[text.names[j] for j in good]).findings)
    named = {name for one in found for name in one.columns}
    faults = [_fault(frame.iloc[:, [j]]) for j in odd if text.names[j] not in named]
    table = as_table(frame.iloc[:, good]) if good else None
    return table, [*found, *(fault for fault in faults if fault)] or [whole]


def _as_text(cells: pd.Series) -> list[str]:
    gone = cells.isna().to_numpy()
    return ["" if missing else str(cell) for cell, missing in zip(cells, gone, strict=True)]


def _frame(X: Any) -> pd.DataFrame | None:
    """X as a table whose columns can be looked at one by one; None if it is no such table."""
    if isinstance(X, np.ndarray) and X.ndim == 2 and not isinstance(X, np.ma.MaskedArray):
        X = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    usable = isinstance(X, pd.DataFrame) and X.columns.is_unique and X.columns.nlevels == 1
    return X if usable and len(X) > 1 else None


def _fault(column: pd.DataFrame) -> Finding | None:
    try:
        as_table(column, copy=False)
    except REFUSED as error:
        numbers = {dtype.kind for dtype in column.dtypes} <= set("biuf")
        return refusal(error, "unreadable" if numbers else "not_numbers", *column.columns)
    return None


def of_table(table: Table, count: float, codes: Codes | None = None) -> list[Finding]:
    """What is odd about the table, which stands for ``count`` rows in groups ``codes`` (n,).

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> [found.code for found in of_table(as_table([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), 3)]
    ['small_sample', 'duplicated']
    """
    found = findings(table, count)
    known = {column for one in found for column in one.columns if one.code != "outlying"}
    more = [*_nearly_collinear(table, known), *_row_numbers(table)]
    return [*found, *more, *_discrete(table), *_small_groups(table, codes)]


def _nearly_collinear(table: Table, known: set[object]) -> Iterator[Finding]:
    """Columns that others determine all but exactly; those ``known`` to be odd are left out."""
    keep = [j for j in table.spread.varying if table.names[j] not in known]
    if len(table.values) <= len(table.names) or len(keep) < 2:
        return
    part = table.part(keep)
    try:
        left = 1 / np.diag(linalg.inv(part.spread.correlation))
    except linalg.LinAlgError:
        return
    columns = tuple(name for name, share in zip(part.names, left, strict=True)
                    if SINGULAR < share < LEFT)  # fmt: skip
    if columns:
        seen = f"The other columns determine {listing(columns)} all but exactly (R² > {1 - LEFT})."
        remedy = "Drop one of each set, or expect the edges between them to be arbitrary."
        yield Finding("nearly_collinear", seen, columns, remedy)


def _row_numbers(table: Table) -> Iterator[Finding]:
    """Columns of whole numbers that count the rows up or down by one."""
    steps = np.diff(table.values, axis=0)
    counts = (len(steps) > FEWEST_NUMBERED) & ((steps == 1).all(axis=0) | (steps == -1).all(axis=0))
    columns = tuple(table.names[j] for j in np.flatnonzero(counts))
    if columns:
        seen = f"{listing(columns)} number(s) the rows one after the other."
        remedy = f"Leave out, unless it is time: drop={[str(name) for name in columns]!r}."
        yield Finding("row_numbers", seen, columns, remedy, fix={"drop": list(columns)})


def repeated_rows(table: Table, repeated: int | None = None) -> Iterator[Finding]:
    """Whether rows repeat earlier ones; so many if it is known of more columns than the table has.

    Examples
    --------
    >>> [one.seen for one in repeated_rows(as_table([[1, 2], [1, 2], [3, 4]]))]
    ['1 of 3 rows repeat an earlier one exactly.']
    """
    n = len(table.values)
    if repeated is None:
        repeated = int(pd.DataFrame(table.values).duplicated().sum())
    if repeated:
        seen = f"{repeated} of {n} rows repeat an earlier one exactly."
        remedy = (
            "If one observation was entered several times, drop its copies: they make chance look "
            "certain. Give counts as sample_weight."
        )
        severity = "warning" if repeated > MANY_REPEATED * n else "note"
        yield Finding("repeated_rows", seen, remedy=remedy, severity=severity)


def _discrete(table: Table) -> Iterator[Finding]:
    if len(table.values) < AMONG:
        return
    different = pd.DataFrame(table.values).nunique().to_numpy()
    columns = tuple(table.names[j] for j in table.spread.varying if different[j] <= FEW_VALUES)
    if columns:
        seen = f"{listing(columns)} take(s) no more than {FEW_VALUES} different values."
        remedy = (
            "All columns are learned as numbers: make sure that these are no codes of categories."
        )
        yield Finding("discrete", seen, columns, remedy, "note")


def _small_groups(table: Table, codes: Codes | None) -> Iterator[Finding]:
    d = len(table.names)
    small = 0 if codes is None else int((np.bincount(codes) <= d).sum())
    if small:
        seen = f"{small} group(s) have no more rows than there are variables ({d})."
        remedy = "Merge them with others before fitting a learner that compares groups."
        yield Finding("small_groups", seen, remedy=remedy)
