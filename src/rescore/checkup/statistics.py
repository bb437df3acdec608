"""What the numbers of a table say before any graph is learned."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import linalg

from rescore.protocols import Codes
from rescore.tables.findings import SINGULAR, Finding, findings
from rescore.tables.spread import correlation, spread
from rescore.tables.table import Table
from rescore.text import listing

__all__ = ["of_table"]

PER_COLUMN = 10  # rows, below which the edges of a variable are hardly determined
LEFT = 1e-4  # share of a column's variance that the others should leave
FEW_VALUES, AMONG = 5, 20  # different values, among at least so many rows
MANY_REPEATED = 0.1  # share of the rows


def of_table(table: Table, count: float, codes: Codes | None = None) -> list[Finding]:
    """What is odd about the table, which stands for ``count`` rows in groups ``codes`` (n,).

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> [found.code for found in of_table(as_table([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), 3)]
    ['duplicated', 'small_sample', 'repeated_rows']
    """
    found = findings(table)
    known = {column for one in found for column in one.columns if one.code != "outlying"}
    more = [*_small_sample(table, count), *_nearly_collinear(table, known), *_repeated(table)]
    return [*found, *more, *_discrete(table), *_small_groups(table, codes)]


def _small_sample(table: Table, count: float) -> Iterator[Finding]:
    n, d = table.values.shape
    if d <= min(n, count) < PER_COLUMN * d:
        seen = f"There are {min(n, count):.0f} rows for {d} variables."
        remedy = (
            f"Gather {PER_COLUMN} rows or more for each variable, or drop columns; until then "
            "refit on resampled rows and trust only the edges that come back."
        )
        yield Finding("small_sample", seen, remedy=remedy)


def _nearly_collinear(table: Table, known: set[object]) -> Iterator[Finding]:
    """Columns that others determine all but exactly; those ``known`` to be odd are left out."""
    keep = [j for j in spread(table).varying if table.names[j] not in known]
    if len(table.values) <= len(table.names) or len(keep) < 2:
        return
    part = table.part(keep)
    try:
        left = 1 / np.diag(linalg.inv(correlation(part)))
    except linalg.LinAlgError:
        return
    columns = tuple(name for name, share in zip(part.names, left, strict=True)
                    if SINGULAR < share < LEFT)  # fmt: skip
    if columns:
        seen = f"The other columns determine {listing(columns)} all but exactly (R² > {1 - LEFT})."
        remedy = "Drop one of each set, or expect the edges between them to be arbitrary."
        yield Finding("nearly_collinear", seen, columns, remedy)


def _repeated(table: Table) -> Iterator[Finding]:
    n = len(table.values)
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
    columns = tuple(table.names[j] for j in spread(table).varying if different[j] <= FEW_VALUES)
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
