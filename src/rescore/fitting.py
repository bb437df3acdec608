"""From whatever the user hands over to a problem, and from its result back to names and rows."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rescore.algorithm import Record, Result, rescore
from rescore.checking import check_flag
from rescore.constraints import edge_masks, receipts
from rescore.equations import Equations, residual_moments
from rescore.moments import Matrix, Rows
from rescore.protocols import Backbone, Codes, Problem, Weighting
from rescore.row_weights import prior_weights, rows_stood_for
from rescore.tables.distinct import Distinct, distinct_rows
from rescore.tables.findings import Finding, findings
from rescore.tables.labels import group_codes, row_labels
from rescore.tables.spread import correlation, spread
from rescore.tables.table import Table, as_table
from rescore.text import listing
from rescore.weightings.exact import likelihood_units

SCALE_FINDINGS = {"scale", "scale_ratio"}
LARGE_CORRELATION = 0.5
SMALLEST_SHARE = 1e-12  # of a variance that counts as noise rather than rounding


@dataclass(frozen=True, eq=False)
class Fitted:
    """A result with the table it was learned from, whose names and index it belongs to."""

    table: Table
    described: (
        Table  # whose scales are told: the table's own, or stand-ins if only moments are known
    )
    result: Result
    row_losses: Matrix  # (n,), Σ_j r_ij² / σ_j²: how badly each row fits, free of units
    findings: tuple[Finding, ...]
    equations: Equations  # of the graph, in the units of the table
    noise_variance: Matrix  # (d,), what they leave unexplained; zero for a constant column
    receipts: tuple[dict[str, Any], ...] = ()  # what was known about edges, and that it holds


@dataclass(frozen=True, eq=False)
class Preparation:
    """What every learner does to its data, whatever its method."""

    standardize: bool = False
    forbidden: Collection[Any] | None = None  # read more than once: no iterator
    required: Collection[Any] | None = None

    def problem(
        self, table: Table, prior: Matrix, count: float, groups: Codes | None = None
    ) -> Problem:
        """The table as a learner sees it; constant columns are isolated nodes."""
        allowed, required = edge_masks(table.names, self.forbidden, self.required)
        varying = np.zeros(len(table.names), dtype=bool)
        varying[spread(table).varying] = True
        _refuse_required_constants(table, required, varying)
        X = _standardised(table.values, prior).values if self.standardize else table.values
        allowed &= np.outer(varying, varying)
        return Problem(Rows(X), prior, allowed, required, count, groups)

    def receipts(self, table: Table, result: Result) -> tuple[dict[str, Any], ...]:
        """What was known about edges, each with whether the graph obeys it."""
        return tuple(receipts(table.names, result.W, self.forbidden, self.required))

    def equations(self, table: Table, prior: Matrix, result: Result) -> tuple[Equations, Matrix]:
        """What was learned from the table in the table's own units, and its noise variances (d,).

        Under the final row weights residuals average to zero: a variable without causes is
        predicted by its mean, and so is whatever the graph had to leave out.
        """
        equations = result.equations
        if self.standardize:
            units = _standardised(table.values, prior)
            equations = equations.rescaled(units.mean, units.deviation)
        mean, variance = residual_moments(equations, table.values, result.sample_weight)
        own = np.square(spread(table).deviation)
        return equations.shifted(mean), np.maximum(variance, SMALLEST_SHARE * own) * (own > 0)


def learn(
    X: Any,
    sample_weight: Any,
    backbone: Backbone,
    weighting: Weighting,
    preparation: Preparation,
    *,
    groups: Any = None,
    warmup: int = 1,
    max_steps: int = 100,
    on_step: Callable[[Record], Any] | None = None,
) -> Fitted:
    """Check the input, run ReScore on it, and collect everything worth telling the user."""
    check_flag("standardize", preparation.standardize)
    table = as_table(X, copy=False)
    prior = prior_weights(sample_weight, len(table.values))
    used = prior > 0  # a row of weight zero is a row that is not there
    kept = table if used.all() else as_table(_subset(table, used))
    codes = None if groups is None else group_codes(row_labels(groups, table.index)[used])
    merged = distinct_rows(kept, prior[used], codes)
    count = rows_stood_for(sample_weight, prior)
    problem = preparation.problem(merged.table, merged.weight, count, merged.groups)
    found = rescore(
        problem, backbone, weighting, warmup=warmup, max_steps=max_steps, on_step=on_step
    )
    result = _unmerged(found, merged)
    told = noticed(kept, prior[used], result, preparation)
    equations = preparation.equations(kept, prior[used], result)
    row_losses = np.full(len(used), np.nan)
    row_losses[used] = likelihood_units(result.losses, prior[used])
    obeyed = preparation.receipts(table, result)
    return Fitted(table, kept, _with_all_rows(result, used), row_losses, told, *equations, obeyed)


def noticed(
    table: Table, prior: Matrix, result: Result, preparation: Preparation
) -> tuple[Finding, ...]:
    """What is worth a warning in the data and in what was learned from them."""
    silenced = SCALE_FINDINGS if preparation.standardize else set()
    return (
        *(found for found in findings(table) if found.code not in silenced),
        *_few_heavy_rows(table, prior, result),
        *_empty(table, result),
        *_cut(table, result),
    )


def _subset(table: Table, used: Any) -> Any:
    names = pd.Index(list(table.names), tupleize_cols=False)
    return pd.DataFrame(table.values[used], index=table.index[used], columns=names)


def _unmerged(result: Result, merged: Distinct) -> Result:
    """Merged rows come back as the rows they were, sharing their weight."""
    if merged.place is None:
        return result
    w = result.sample_weight[merged.place] * merged.share
    return replace(result, sample_weight=w, losses=result.losses[merged.place])


def _with_all_rows(result: Result, used: Any) -> Result:
    """Rows of weight zero come back with weight zero and no loss."""
    if used.all():
        return result
    w = np.zeros(len(used))
    w[used] = result.sample_weight
    losses = np.full((len(used), result.losses.shape[1]), np.nan)
    losses[used] = result.losses
    return replace(result, sample_weight=w, losses=losses)


class _Standardised(NamedTuple):
    values: Matrix  # (n, d)
    mean: Matrix  # (d,)
    deviation: Matrix  # (d,), one for constant columns


def _standardised(X: Matrix, prior: Matrix) -> _Standardised:
    """Mean zero and deviation one under the prior weights; constant columns become zero."""
    # Dividing by the largest entry first keeps squares within float64, whatever the units.
    largest = np.abs(X).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    Z = X / unit
    mean = prior @ Z
    Z -= mean
    deviation = np.sqrt(prior @ Z**2)
    varies = deviation > 1e-12
    np.divide(Z, deviation, out=Z, where=varies)
    Z[:, ~varies] = 0.0
    return _Standardised(Z, mean * unit, np.where(varies, deviation * unit, 1.0))


def _refuse_required_constants(table: Table, required: Any, varying: Any) -> None:
    constant = [
        name
        for name, moves, asked in zip(
            table.names, varying, required.any(axis=0) | required.any(axis=1), strict=True
        )
        if asked and not moves
    ]
    if constant:
        raise ValueError(
            f"Required edges touch the constant column(s) {listing(constant)}, which can have "
            "neither causes nor effects in the data. Drop those edges."
        )


def _few_heavy_rows(table: Table, prior: Matrix, result: Result) -> list[Finding]:
    n, d = table.values.shape
    heavy = int((result.sample_weight > prior * (1 + 1e-9)).sum())
    if heavy == 0 or heavy >= d:
        return []
    seen = (
        f"Only {heavy} of the {n} rows were given more weight, fewer than the {d} variables, so "
        "they alone could decide the graph."
    )
    return [Finding("few_heavy_rows", seen, remedy="Raise tau, or look at these rows.")]


def _empty(table: Table, result: Result) -> list[Finding]:
    if result.W.any() or len(table.names) < 2:
        return []
    R = np.abs(correlation(table, spread(table)))
    largest = float(np.max(R - np.eye(len(R)), initial=0.0))
    if largest < LARGE_CORRELATION:
        return []
    seen = f"The graph has no edge, although the largest correlation is {largest:.2f}."
    remedy = (
        "The penalty or the threshold is too large for these units: fit with standardize=True, or "
        "lower them."
    )
    return [Finding("empty", seen, remedy=remedy)]


def _cut(table: Table, result: Result) -> list[Finding]:
    if not result.removed:
        return []
    edges = [f"{table.names[i]} -> {table.names[j]}" for i, j, _ in result.removed]
    return [
        Finding("cycle_cut", f"Cut because they closed a cycle, weakest first: {listing(edges)}.")
    ]
