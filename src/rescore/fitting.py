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
from rescore.tables.findings import Finding, findings
from rescore.tables.spread import correlation, spread
from rescore.tables.table import Table, as_table
from rescore.text import listing
from rescore.weightings.exact import likelihood_units

SCALE_FINDINGS = {"scale", "scale_ratio"}
LARGE_CORRELATION = 0.5
MOST_ROWS = 1e9  # a whole number beyond this is no count of rows


@dataclass(frozen=True, eq=False)
class Fitted:
    """A result with the table it was learned from, whose names and index it belongs to."""

    table: Table
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
    table = as_table(X)
    prior = prior_weights(sample_weight, len(table.values))
    used = prior > 0  # a row of weight zero is a row that is not there
    kept = table if used.all() else as_table(_subset(table, used))
    problem = preparation.problem(kept, prior[used], rows_stood_for(sample_weight, prior))
    result = rescore(
        problem, backbone, weighting, warmup=warmup, max_steps=max_steps, on_step=on_step
    )
    noticed = [
        found
        for found in findings(kept)
        if not (preparation.standardize and found.code in SCALE_FINDINGS)
    ]
    noticed += [
        *_few_heavy_rows(kept, prior[used], result),
        *_empty(kept, result),
        *_cut(kept, result),
    ]
    row_losses = np.full(len(used), np.nan)
    row_losses[used] = likelihood_units(result.losses, prior[used])
    return Fitted(table, _with_all_rows(result, used), row_losses, tuple(noticed))


def prior_weights(sample_weight: Any, n: int) -> Matrix:
    """``s_i / Σ s``, (n,): the caller's weights as a probability vector; 1/n without any.

    Examples
    --------
    >>> prior_weights([1, 3], 2)
    array([0.25, 0.75])
    """
    if sample_weight is None:
        return np.full(n, 1 / n)
    s = np.asarray(sample_weight)
    if s.ndim == 0 and s.dtype.kind in "iuf":
        s = np.full(n, s)
    if s.ndim != 1 or len(s) != n:
        raise ValueError(
            f"sample_weight must be 1D with one weight for each of the {n} rows, "
            f"got the shape {s.shape}."
        )
    if s.dtype.kind not in "biuf":
        raise TypeError(f"sample_weight must hold numbers, got the type {s.dtype}.")
    s = s.astype(np.float64)
    if not np.isfinite(s).all() or (s < 0).any():
        bad = int(np.flatnonzero(~np.isfinite(s) | (s < 0))[0])
        raise ValueError(
            f"sample_weight must be finite and not negative, got {s[bad]} at position {bad}."
        )
    if not s.any():
        raise ValueError("sample_weight is zero in every row; give some row a positive weight.")
    return s / s.max() / (s / s.max()).sum()  # the first division keeps the sum from overflowing


def rows_stood_for(sample_weight: Any, prior: Matrix) -> float:
    """How many rows a weighted table stands for: whole numbers count rows, others only compare.

    Where weights are not whole numbers it is ``1 / Σ s_i²``, as many equal rows as would be as
    informative; their overall size then does not matter.

    Examples
    --------
    >>> rows_stood_for([3, 1], np.array([0.75, 0.25]))
    4.0
    >>> rows_stood_for([1.5, 1.5], np.array([0.5, 0.5]))
    2.0
    """
    if sample_weight is None:
        return float(len(prior))
    s = np.asarray(sample_weight, dtype=np.float64)
    if (s == np.round(s)).all() and s.max() < MOST_ROWS:
        return float(s.sum() if s.ndim else s * len(prior))
    return float(1 / np.sum(prior**2))


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
