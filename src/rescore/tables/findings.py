"""How wide the columns of a table are, how they lie to each other, and what is odd about them."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rescore.text import listing

if TYPE_CHECKING:
    from rescore.tables.table import Table

__all__ = ["Finding", "Spread", "findings", "spread"]

Matrix = NDArray[np.float64]

SINGULAR = 1e-12  # share of a column's variance below which rounding hides whether it is zero
RATIO, TOO_WIDE, TOO_NARROW = 1e3, 1e6, 1e-4  # standard deviations
OUTLYING = 50.0  # standard deviations of the other cells
RESCALE = "Fit with standardize=True, or change the units."
PER_COLUMN = 10  # rows, below which the edges of a variable are hardly determined
MEANWHILE = "until then refit on resampled rows and trust only the edges that come back"
FEWEST_TO_STAND_OUT = 20  # rows; with fewer, the others' standard deviation says too little
CELLS = 2**15  # per block of rows: what is computed from a block stays in the cache
FEWEST_ROWS = 256  # per block, for wide tables: products of fewer rows are slow
LINE = 1024  # cells side by side in which the least and the largest are looked for


@dataclass(frozen=True, eq=False)
class Spread:
    """Mean, standard deviation and largest deviation of each column, (d,) each.

    Examples
    --------
    >>> spread(np.array([[1.0, 7, 2], [2.0, 7, 0], [3.0, 7, -2]])).correlation.round(6)
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    mean: Matrix
    deviation: Matrix  # standard deviation, exactly 0 for a constant column
    reach: Matrix  # max |x - mean|, exactly 0 for a constant column
    correlation: Matrix  # Pearson's, of the k columns that vary, (k, k)

    @property
    def varying(self) -> NDArray[np.int64]:
        """The positions of the columns that are not constant."""
        return np.flatnonzero(self.deviation > 0)

    @property
    def scale_ratio(self) -> float:
        """The largest standard deviation over the smallest of those that vary; 1 if none does.

        Examples
        --------
        >>> spread(np.array([[0.0, 0.0], [1.0, 1000.0]])).scale_ratio
        1000.0
        """
        deviation = self.deviation[self.varying]
        if deviation.size == 0:
            return 1.0
        with np.errstate(over="ignore"):  # 1e150 over a denormal is beyond float64: inf says it
            return float(deviation.max() / deviation.min())

    @property
    def condition_number(self) -> float:
        """Largest over smallest eigenvalue of the correlation matrix; inf if it is singular.

        Examples
        --------
        >>> spread(np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])).condition_number
        inf
        """
        if self.correlation.size == 0:
            return 1.0
        eigenvalues = np.linalg.eigvalsh(self.correlation)
        if eigenvalues[0] <= eigenvalues[-1] * len(eigenvalues) * np.finfo(float).eps:
            return float("inf")
        return float(eigenvalues[-1] / eigenvalues[0])


def spread(X: Matrix) -> Spread:
    """Means, deviations and correlations of the columns of X (n, d), over blocks of rows.

    Deviations are divided by the largest before they are squared, so that neither 1e150 nor
    1e-310 leaves the range of float64.

    Examples
    --------
    >>> spread(np.array([[1e-300, 5.0], [3e-300, 5.0]])).deviation
    array([1.e-300, 0.e+000])
    """
    n, d = X.shape
    low, high = _extreme(np.minimum, X), _extreme(np.maximum, X)
    # Relative to the lowest value a column cannot overflow, nor a constant one differ by rounding.
    total = sum((np.ones(len(block)) @ (block - low) for block in _blocks(X)), np.zeros(d))
    mean = low + total / n
    reach = np.maximum(high - mean, mean - low)
    unit = np.where(reach > 0, reach, 1.0)
    C = np.zeros((d, d))
    for block in _blocks(X):
        Z = (block - mean) / unit
        C += Z.T @ Z
    C /= n
    in_units = np.sqrt(C.diagonal())
    deviation = unit * in_units
    varies = deviation > 0
    R = C[np.ix_(varies, varies)] / np.outer(in_units[varies], in_units[varies])
    np.fill_diagonal(R, 1.0)
    return Spread(mean, deviation, reach, R)


def _extreme(which: np.ufunc, X: Matrix) -> Matrix:
    """The least or the largest of each column: many rows at a time, one alone is a short loop."""
    n, d = X.shape
    k = min(max(LINE // d, 1), n)
    whole = n // k * k
    lines = which.reduce(X[:whole].reshape(-1, k * d)).reshape(k, d)
    return np.asarray(which.reduce(np.vstack([lines, X[whole:]])))


def _blocks(X: Matrix) -> Iterator[Matrix]:
    """Views of successive rows."""
    size = max(CELLS // X.shape[1], FEWEST_ROWS)
    return (X[start : start + size] for start in range(0, len(X), size))


@dataclass(frozen=True)
class Finding:
    """One oddity: a `code` to select by, what was `seen`, the `columns` concerned, the `remedy`.

    Its `severity` is "error" if the table cannot be used, "warning" if a graph learned from it may
    be wrong for this reason, and "note" if it is only good to know.  `fix` are the settings of the
    reading and of the learner, by name, that would mend it.

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> [finding.code for finding in findings(as_table([[1, 5], [2, 5], [4, 5]]))]
    ['constant', 'small_sample']
    """

    code: str
    seen: str
    columns: tuple[Hashable, ...] = ()
    remedy: str = ""
    severity: str = "warning"
    fix: Mapping[str, Any] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """What was seen, and the remedy.

        Examples
        --------
        >>> Finding("few_rows", "There is one row.", remedy="Gather more.").message
        'There is one row. Gather more.'
        """
        return f"{self.seen} {self.remedy}".strip()


def findings(table: "Table", count: float | None = None) -> list[Finding]:
    """Everything odd about the table, in the order a reader should look at it.

    The codes are constant, few_rows, small_sample, duplicated, collinear, scale_ratio, scale and
    outlying.  Those on scale do not matter to an estimator that standardises.  ``count`` is how
    many rows the table stands for, where that is not how many it has.

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> X = [[1, 0, 1], [0, 2, 2], [3, 1, 4], [1, 1, 2]]
    >>> print(findings(as_table(X))[1].message)
    Column 'x2' is an exact linear combination of 'x0', 'x1'. ...
    """
    width = table.spread
    found = [*_constant(table, width), *_few_rows(table, count), *_dependent(table, width)]
    return [*found, *_scales(table, width), *_outlying(table, width)]


def _constant(table: "Table", width: Spread) -> Iterator[Finding]:
    columns = tuple(table.names[j] for j in np.flatnonzero(width.deviation == 0))
    if columns:
        seen = f"Constant column(s) {listing(columns)}: each becomes an isolated node."
        remedy = f"Leave them out: drop={[str(name) for name in columns]!r}."
        yield Finding("constant", seen, columns, remedy, fix={"drop": list(columns)})


def _few_rows(table: "Table", count: float | None) -> Iterator[Finding]:
    n, d = table.values.shape
    told = n if count is None else min(n, round(count))
    if n < d:
        seen = (
            f"There are fewer rows (n = {n}) than columns (d = {d}), so the graph is not determined"
            " by the data alone."
        )
        yield Finding("few_rows", seen, remedy=f"Gather more rows, or drop columns; {MEANWHILE}.")
    elif told < PER_COLUMN * d:
        seen = f"There are {told} rows for {d} variables."
        remedy = f"Gather {PER_COLUMN} rows or more for each, or drop columns; {MEANWHILE}."
        yield Finding("small_sample", seen, remedy=remedy)


def _dependent(table: "Table", width: Spread) -> Iterator[Finding]:
    """Columns that others determine exactly: a copy of one, or a combination of several."""
    names = [table.names[j] for j in width.varying]
    R = width.correlation  # (k, k)
    copies = np.argwhere(np.triu(1.0 - np.abs(R) <= SINGULAR, k=1))
    for i, j in copies:
        seen = (
            f"Columns {listing([names[i], names[j]])} are the same up to scale and offset, so the "
            "direction between them cannot be told."
        )
        remedy = f"Leave one of them out: drop=[{str(names[j])!r}]."
        fix = {"drop": [names[j]]}
        yield Finding("duplicated", seen, (names[i], names[j]), remedy, fix=fix)
    if len(table.values) > len(names):  # otherwise every column is a combination of the others
        yield from _combinations(R, names, {int(j) for _, j in copies})


def _combinations(R: Matrix, names: list[Hashable], copies: set[int]) -> Iterator[Finding]:
    """Columns without variance of their own, by a Cholesky factorisation with pivoting."""
    rest = np.array([j for j in range(len(R)) if j not in copies], dtype=int)
    S, least = R[np.ix_(rest, rest)], SINGULAR * len(rest)
    if _variances_exceed(2 * least, S):
        return
    from scipy.linalg import lapack, solve  # not before: most tables do without this import

    _, pivots, rank, _ = lapack.dpstrf(S, tol=least)
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


def _variances_exceed(least: float, S: Matrix) -> bool:
    """Whether every combination of columns with a unit vector has more variance than that."""
    try:
        np.linalg.cholesky(S - least * np.eye(len(S)))
    except np.linalg.LinAlgError:
        return False
    return True


def _scales(table: "Table", width: Spread) -> Iterator[Finding]:
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


def _outlying(table: "Table", width: Spread) -> Iterator[Finding]:
    """Cells far from all the others, the others' spread being measured without them."""
    n = len(table.values)
    if n < FEWEST_TO_STAND_OUT:
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


def _stands_out(column: Matrix, few: int) -> bool:
    """Whether one of the `few` most extreme cells is far from the mean of the rest."""
    column = column / np.abs(column).max()  # squares stay within float64; only ratios matter here
    distance = np.abs(column - np.median(column))
    rest = column[np.argpartition(distance, len(column) - few)[: len(column) - few]]
    return bool(np.abs(column - rest.mean()).max() > OUTLYING * rest.std())
