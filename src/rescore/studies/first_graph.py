"""What a first graph, by ordered least squares, says about the rows and the scales."""

from collections.abc import Hashable, Iterator

import numpy as np

from rescore.fitting import Preparation
from rescore.graph.dag import reachability
from rescore.learners.baselines import r2
from rescore.moments import Matrix, evenly_spaced
from rescore.protocols import Codes, Mask, Problem
from rescore.solvers.ordered_regression import ordered_graph
from rescore.tables.findings import Finding
from rescore.tables.table import Table
from rescore.text import listing
from rescore.weightings.groups import excess, find_groups

FEWEST_ROWS = 20
MOST_ROWS = 4_000  # among which groups are sought; more only cost time
MOST_GROUPS = 4
DIFFERENT = 4.0  # deviations; with noise of heavy tails chance reaches it in 3 tables of 100
DETERMINED = 1e-9  # share of a variance that is rounding: such a column says nothing about noise
UNEQUAL = 4.0  # ratio of noise variances that is no longer alike
EQUAL = 1.01  # ratio of deviations that standardising and rounding explain


def of_first_fit(
    table: Table, prior: Matrix, count: float, codes: Codes | None = None
) -> list[Finding]:
    """Whether the rows look alike, and whether scales order causes before effects.

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> x = np.random.default_rng(0).normal(size=(300, 1))
    >>> table = as_table(np.hstack([x, x + x[::-1]]))
    >>> [found.code for found in of_first_fit(table, np.full(300, 1 / 300), 300)]
    ['sortable']
    """
    table = table.part(table.spread.varying)  # constants are isolated nodes
    n, d = table.values.shape
    if n < FEWEST_ROWS or n <= d or d < 2:
        return []
    problem = Preparation().prepared(table, prior, count).problem
    W, (mean, S) = ordered_graph(problem, problem.prior)
    losses = problem.rows.squared_residuals(W, mean)
    noisy = np.flatnonzero(prior @ losses > DETERMINED * np.diag(S))
    losses, names = losses[:, noisy], [table.names[j] for j in noisy]
    found = _scales(S, W != 0)
    if len(noisy) == 0:
        return list(found)
    rows = (*_groups_found(problem, losses), *_groups_given(problem, losses, codes))
    return [*rows, *_noise(names, prior @ losses), *found]


def sortability(edges: Mask, values: Matrix) -> float:
    """The share of pairs (cause, effect) joined by a directed path whose effect has more value.

    Equal values count half.  With variances this is varsortability, with R² R²-sortability; 0.5
    is what a coin would give.  NaN without edges.

    Examples
    --------
    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    >>> sortability(chain, np.array([1.0, 2.0, 1.0]))
    0.5
    """
    causes, effects = np.nonzero(reachability(edges))
    if len(causes) == 0:
        return float("nan")
    difference = values[effects] - values[causes]
    equal = np.abs(difference) <= 1e-9 * np.maximum(np.abs(values[effects]), 1e-300)
    return float(np.where(equal, 0.5, difference > 0).mean())


def _groups_found(problem: Problem, losses: Matrix) -> Iterator[Finding]:
    """Whether losses rise and fall together, and the groups in which they do."""
    counts = problem.row_counts()
    deviations = excess(losses, counts)
    if deviations < DIFFERENT:
        return
    rows = evenly_spaced(len(losses), MOST_ROWS)
    groups = find_groups(losses[rows], counts[rows], MOST_GROUPS)
    if groups.count > 1:
        shares = ", ".join(f"{100 * share:.0f} %" for share in sorted(groups.share, reverse=True))
        seen = (
            f"Rows do not look alike: under a first linear graph the losses of the variables rise "
            f"and fall together, {deviations:.1f} deviations more than in rows that are alike, as "
            f"in {groups.count} groups of {shares} whose noise differs."
        )
        remedy = (
            "Wrap the learner in ReScore, whose weights look for such groups; curved "
            "relations leave the same trace, so try NotearsMLP as well."
        )
        yield Finding("heterogeneous", seen, remedy=remedy)


def _groups_given(problem: Problem, losses: Matrix, codes: Codes | None) -> Iterator[Finding]:
    """Whether the noise differs between the caller's groups: χ² of their mean log losses."""
    if codes is None or codes.max() < 1:
        return
    counts = problem.row_counts()
    Z = np.log1p(losses / np.maximum(problem.prior @ losses, 1e-300))
    Z -= problem.prior @ Z
    variance = np.maximum(problem.prior @ Z**2, 1e-300)
    size = np.bincount(codes, counts)
    means = np.stack([np.bincount(codes, counts * z) / size for z in Z.T], axis=1)  # (K, d)
    total = (size[:, None] * means**2 / variance).sum()
    freedom = (len(size) - 1) * losses.shape[1]
    deviations = (total - freedom) / np.sqrt(2 * freedom)
    if deviations > DIFFERENT:
        seen = (
            f"The noise differs between the {len(size)} groups, by {deviations:.1f} deviations "
            "more than chance explains."
        )
        remedy = (
            "Use a learner of groups (DICD, CDNOD), or ReScore with balanced or inverse-propensity "
            "weights."
        )
        yield Finding("groups_differ", seen, remedy=remedy)


def _noise(names: list[Hashable], variance: Matrix) -> Iterator[Finding]:
    """Whether the noise of the variables is alike, which is what makes scales tell the order."""
    least, most = int(variance.argmin()), int(variance.argmax())
    if variance[most] > UNEQUAL * variance[least]:
        columns = (names[most], names[least])
        seen = (
            f"Under a first linear graph the noise of {listing(columns[:1])} has "
            f"{variance[most] / variance[least]:.3g} times the variance of that of "
            f"{listing(columns[1:])}. Least squares tells causes from effects by noise that is "
            "alike, so the units may decide here."
        )
        remedy = (
            "Linear asks the rows which noise they support; for other linear learners choose units "
            "in which the noise is comparable, or compare with GES, which does not depend on them."
        )
        yield Finding("unequal_noise", seen, columns, remedy)


def _scales(S: Matrix, edges: Mask) -> Iterator[Finding]:
    """Whether the scales tell a least-squares learner what causes what."""
    deviation = np.sqrt(np.diag(S))
    if deviation.max() < EQUAL * deviation.min():
        seen = "All columns have the same variance, as if they had been standardised."
        remedy = (
            "A least-squares learner lives on the order of scales, which is lost here: give the "
            "original units if they can be compared, or expect directions to be uncertain."
        )
        yield Finding("equal_scales", seen, remedy=remedy, severity="note")
    elif edges.any():
        seen = (
            f"Variances rise from cause to effect in {100 * sortability(edges, np.diag(S)):.0f} % "
            f"of the pairs joined by a path of a first linear graph, R² in "
            f"{100 * sortability(edges, r2(S)):.0f} %; by chance it would be 50 %."
        )
        remedy = (
            "The scales themselves led to this graph, so a high share proves nothing; but a "
            "least-squares learner lives on it, and other units would turn its edges. If units are "
            "arbitrary, compare with standardize=True and SortNRegress."
        )
        yield Finding("sortable", seen, remedy=remedy, severity="note")
