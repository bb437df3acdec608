"""What is odd about a table but no reason to refuse it."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rescore.tables.spread import Spread
from rescore.tables.table import Table
from rescore.text import listing

__all__ = ["Finding", "findings"]

SINGULAR = 1e-12  # share of a column's variance below which rounding hides whether it is zero
RATIO, TOO_WIDE, TOO_NARROW = 1e3, 1e6, 1e-4  # standard deviations
OUTLYING = 50.0  # standard deviations of the other cells
RESCALE = "Fit with standardize=True, or change the units."
FEWEST_ROWS = 20  # with fewer, the others' standard deviation says too little


@dataclass(frozen=True)
class Finding:
    """One oddity: a `code` to select by, what was `seen`, the `columns` concerned, the `remedy`.

    Its `severity` is "error" if the table cannot be used, "warning" if a graph learned from it may
    be wrong for this reason, and "note" if it is only good to know.

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> [finding.code for finding in findings(as_table([[1, 5], [2, 5], [4, 5]]))]
    ['constant']
    """

    code: str
    seen: str
    columns: tuple[Hashable, ...] = ()
    remedy: str = ""
    severity: str = "warning"

    @property
    def message(self) -> str:
        """What was seen, and the remedy.

        Examples
        --------
        >>> Finding("few_rows", "There is one row.", remedy="Gather more.").message
        'There is one row. Gather more.'
        """
        return f"{self.seen} {self.remedy}".strip()


def findings(table: Table) -> list[Finding]:
    """Everything odd about the table, in the order a reader should look at it.

    The codes are constant, few_rows, duplicated, collinear, scale_ratio, scale and outlying.
    Those on scale do not matter to an estimator that standardises.

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> X = [[1, 0, 1], [0, 2, 2], [3, 1, 4], [1, 1, 2]]
    >>> print(findings(as_table(X))[0].message)
    Column 'x2' is an exact linear combination of 'x0', 'x1'. ...
    """
    width = table.spread
    found = [*_constant(table, width), *_few_rows(table), *_dependent(table, width)]
    return [*found, *_scales(table, width), *_outlying(table, width)]


def _constant(table: Table, width: Spread) -> Iterator[Finding]:
    columns = tuple(table.names[j] for j in np.flatnonzero(width.deviation == 0))
    if columns:
        seen = f"Constant column(s) {listing(columns)}: each becomes an isolated node."
        yield Finding("constant", seen, columns, "Drop them if they carry no meaning.")


def _few_rows(table: Table) -> Iterator[Finding]:
    n, d = table.values.shape
    if n < d:
        seen = (
            f"There are fewer rows (n = {n}) than columns (d = {d}), so the graph is not determined"
            " by the data alone."
        )
        remedy = "Gather more rows, drop columns, or raise the penalty."
        yield Finding("few_rows", seen, remedy=remedy)


def _dependent(table: Table, width: Spread) -> Iterator[Finding]:
    """Columns that others determine exactly: a copy of one, or a combination of several."""
    names = [table.names[j] for j in width.varying]
    R = width.correlation  # (k, k)
    copies = np.argwhere(np.triu(1.0 - np.abs(R) <= SINGULAR, k=1))
    for i, j in copies:
        seen = (
            f"Columns {listing([names[i], names[j]])} are the same up to scale and offset, so the "
            "direction between them cannot be told."
        )
        yield Finding("duplicated", seen, (names[i], names[j]), "Drop one of them.")
    if len(table.values) > len(names):  # otherwise every column is a combination of the others
        yield from _combinations(R, names, {int(j) for _, j in copies})


def _combinations(
    R: NDArray[np.float64], names: list[Hashable], copies: set[int]
) -> Iterator[Finding]:
    """Columns without variance of their own, by a Cholesky factorisation with pivoting."""
    from scipy.linalg import lapack, solve

    rest = np.array([j for j in range(len(R)) if j not in copies], dtype=int)
    if len(rest) == 0:
        return
    S = R[np.ix_(rest, rest)]
    _, pivots, rank, _ = lapack.dpstrf(S, tol=SINGULAR * len(S))
    basis, dependent = pivots[:rank] - 1, pivots[rank:] - 1  # LAPACK counts from one
    for k in dependent:
        share = solve(S[np.ix_(basis, basis)], S[basis, k], assume_a="pos")
        parts = [names[rest[j]] for j in sorted(basis[np.abs(share) > 1e-6])]
        seen = (
            f"Column '{listing([names[rest[k]]])[1:-1]}' is an exact linear combination of "
            f"{listing(parts)}."
        )
        remedy = "Drop one of them, or expect their edges to be arbitrary."
        yield Finding("collinear", seen, (names[rest[k]], *parts), remedy)


def _scales(table: Table, width: Spread) -> Iterator[Finding]:
    deviation = width.deviation[width.varying]
    if deviation.size == 0:
        return
    ratio = width.scale_ratio
    widest = table.names[int(width.deviation.argmax())]
    narrowest = table.names[int(width.varying[deviation.argmin()])]
    if ratio > RATIO:
        seen = (
            f"The standard deviations of {listing([widest])} and {listing([narrowest])} differ by "
            f"a factor of {ratio:.3g}; a penalty on weights then falls on them unequally."
        )
        yield Finding("scale_ratio", seen, (widest, narrowest), RESCALE)
    if deviation.min() > TOO_WIDE or deviation.max() < TOO_NARROW:
        seen = (
            f"The standard deviations lie between {deviation.min():.3g} and {deviation.max():.3g}, "
            "far from one, where default penalties and thresholds mean little."
        )
        yield Finding("scale", seen, remedy=RESCALE)


def _outlying(table: Table, width: Spread) -> Iterator[Finding]:
    """Cells far from all the others, the others' spread being measured without them."""
    n = len(table.values)
    if n < FEWEST_ROWS:
        return
    few = max(1, min(10, n // 100))  # so many outlying cells cannot hide each other
    # If no cell reaches this far in all-rows deviations, none can be outlying: skips the sorting.
    least = 0.8 / np.sqrt(OUTLYING**-2 + few / n)
    far = [j for j in width.varying if width.reach[j] > least * width.deviation[j]]
    columns = tuple(table.names[j] for j in far if _stands_out(table.values[:, j], few))
    if columns:
        seen = (
            f"Cell(s) of {listing(columns)} lie more than {OUTLYING:g} standard deviations from "
            "the others."
        )
        remedy = (
            "Exact weights (tau) give such rows more weight by design: check that they are real, "
            "and look at the rows with the largest weights after the fit."
        )
        yield Finding("outlying", seen, columns, remedy)


def _stands_out(column: NDArray[np.float64], few: int) -> bool:
    """Whether one of the `few` most extreme cells is far from the mean of the rest."""
    column = column / np.abs(column).max()  # squares stay within float64; only ratios matter here
    distance = np.abs(column - np.median(column))
    rest = column[np.argpartition(distance, len(column) - few)[: len(column) - few]]
    return bool(np.abs(column - rest.mean()).max() > OUTLYING * rest.std())
