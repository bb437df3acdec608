"""A table before any fit: what a learner would refuse, and what would lead it astray."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rescore.checkup.first_fit import of_first_fit
from rescore.checkup.reading import read, refusal
from rescore.checkup.statistics import of_table
from rescore.row_weights import prior_weights, rows_stood_for
from rescore.tables.findings import Finding
from rescore.tables.labels import group_codes, row_labels
from rescore.tables.table import Table, as_table

__all__ = ["Checkup", "check", "refusal"]

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
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


def check(X: Any, sample_weight: Any = None, groups: Any = None) -> Checkup:
    """Look at a table before any fit; what a fit would refuse is found, not raised.

    Columns that cannot be read are left out of the rest.  A first graph by ordered least squares
    shows whether rows look alike, and whether the scales of the variables order causes before
    effects.

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
    (False, [('missing', 'error'), ('not_numbers', 'error')])
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
        found += of_table(rows, count, codes)
        found += of_first_fit(_independent(rows, found), prior[used], count, codes)
    return Checkup.of(found)


def _kept(table: Table, used: Any) -> Table | None:
    """The table without rows of weight zero; None if fewer than two are left."""
    if used.all():
        return table
    if used.sum() < 2:
        return None
    names = pd.Index(list(table.names), tupleize_cols=False)
    return as_table(pd.DataFrame(table.values[used], table.index[used], names))


def _independent(table: Table, found: list[Finding]) -> Table:
    """The table without columns that others determine exactly: they would spoil a first graph."""
    spare = {one.columns[-1] for one in found if one.code == "duplicated"}
    spare |= {one.columns[0] for one in found if one.code == "collinear"}
    return table.part([j for j, name in enumerate(table.names) if name not in spare])
