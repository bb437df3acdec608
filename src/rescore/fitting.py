"""From whatever the user hands over to a problem, and from its result back to names and rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rescore.algorithm import Record, Result, rescore
from rescore.checking import check_flag
from rescore.constraints import Edges, edge_masks
from rescore.moments import Matrix, Rows
from rescore.protocols import Backbone, Problem, Weighting
from rescore.row_weights import prior_weights, rows_stood_for
from rescore.tables.findings import Finding, findings
from rescore.tables.spread import correlation, spread
from rescore.tables.table import Table, as_table
from rescore.text import listing
from rescore.weightings.exact import likelihood_units

SCALE_FINDINGS = {"scale", "scale_ratio"}
LARGE_CORRELATION = 0.5


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


@dataclass(frozen=True, eq=False)
class Preparation:
    """What every learner does to its data, whatever its method."""

    standardize: bool = False
    forbidden: Edges | None = None
    required: Edges | None = None

    def problem(self, table: Table, prior: Matrix, count: float) -> Problem:
        """The table as a learner sees it; constant columns are isolated nodes."""
        allowed, required = edge_masks(table.names, self.forbidden, self.required)
        varying = np.zeros(len(table.names), dtype=bool)
        varying[spread(table).varying] = True
        _refuse_required_constants(table, required, varying)
        X = _standardised(table.values, prior) if self.standardize else table.values
        return Problem(Rows(X), prior, allowed & np.outer(varying, varying), required, count)


def learn(
    X: Any,
    sample_weight: Any,
    backbone: Backbone,
    weighting: Weighting,
    preparation: Preparation,
    *,
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
    problem = preparation.problem(kept, prior[used], rows_stood_for(sample_weight, prior))
    result = rescore(
        problem, backbone, weighting, warmup=warmup, max_steps=max_steps, on_step=on_step
    )
    told = noticed(kept, prior[used], result, preparation)
    row_losses = np.full(len(used), np.nan)
    row_losses[used] = likelihood_units(result.losses, prior[used])
    return Fitted(table, kept, _with_all_rows(result, used), row_losses, told)


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
    import pandas as pd

    names = pd.Index(list(table.names), tupleize_cols=False)
    return pd.DataFrame(table.values[used], index=table.index[used], columns=names)


def _with_all_rows(result: Result, used: Any) -> Result:
    """Rows of weight zero come back with weight zero and no loss."""
    if used.all():
        return result
    w = np.zeros(len(used))
    w[used] = result.sample_weight
    losses = np.full((len(used), result.losses.shape[1]), np.nan)
    losses[used] = result.losses
    return replace(result, sample_weight=w, losses=losses)


def _standardised(X: Matrix, prior: Matrix) -> Matrix:
    """Mean zero and deviation one under the prior weights; constant columns become zero."""
    # Dividing by the largest entry first keeps squares within float64, whatever the units.
    largest = np.abs(X).max(axis=0)
    Z = X / np.where(largest > 0, largest, 1.0)
    Z -= prior @ Z
    deviation = np.sqrt(prior @ Z**2)
    return np.divide(Z, deviation, out=np.zeros_like(Z), where=deviation > 1e-12)


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
    message = (
        f"Only {heavy} of the {n} rows were given more weight, fewer than the {d} variables, so "
        "they alone could decide the graph. Raise tau, or look at these rows."
    )
    return [Finding("few_heavy_rows", message)]


def _empty(table: Table, result: Result) -> list[Finding]:
    if result.W.any() or len(table.names) < 2:
        return []
    R = np.abs(correlation(table, spread(table)))
    largest = float(np.max(R - np.eye(len(R)), initial=0.0))
    if largest < LARGE_CORRELATION:
        return []
    message = (
        f"The graph has no edge, although the largest correlation is {largest:.2f}. The penalty "
        "or the threshold is too large for these units: fit with standardize=True, or lower them."
    )
    return [Finding("empty", message)]


def _cut(table: Table, result: Result) -> list[Finding]:
    if not result.removed:
        return []
    edges = [f"{table.names[i]} -> {table.names[j]}" for i, j, _ in result.removed]
    message = f"Cut because they closed a cycle, weakest first: {listing(edges)}."
    return [Finding("cycle_cut", message)]
