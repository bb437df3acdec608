"""A fit of a table that is read in passes: a sample says what to look for, all rows decide.

The first pass checks the rows, gives their moments and a sample of them.  A table no larger than
the sample is fitted as any other.  Otherwise the sample is fitted as if it were the table, which
finds the groups of rows if there are any; then passes over all rows replace the groups' moments,
the noise and the coefficients by those of all rows, and the graph is searched with them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from rescore.algorithm import Record, Result, rescore
from rescore.equations import squared_residuals
from rescore.fitting import (
    Fitted,
    Preparation,
    Prepared,
    Told,
    directions_of,
    evidence_of,
    learn,
    noticed,
)
from rescore.moments import Cells, Matrix, Moments, Rows, Standardised, row_weights
from rescore.protocols import Backbone, Problem, Status, Weighting
from rescore.scanning.digest import Digest
from rescore.scanning.passes import Passes
from rescore.scanning.sources import SAMPLE, Scan, scan
from rescore.scanning.statistics import ByLabel, Listed, Look, Looked, Weigh, everyone
from rescore.tables.findings import Spread
from rescore.tables.table import Table
from rescore.weight_box import likelihood_units
from rescore.weightings import InversePropensity, Uniform
from rescore.weightings.refined import (
    MOST_TURNS,
    REFINED,
    ROUNDS,
    Given,
    can_refine,
    exact_rows,
    first_sums,
    settled,
)

MOST_PASSES = 15
MOST_LABELS = 256  # groups that a column may name


@dataclass(frozen=True, eq=False)
class SampledTable(Table):
    """Some rows of a table, and how wide all of them are."""

    whole: Spread | None = None

    @property
    def spread(self) -> Spread:
        """Of all rows."""
        assert self.whole is not None
        return self.whole


@dataclass(frozen=True, eq=False)
class Players:
    """What takes turns in a fit, and how a fit of the sample takes them."""

    backbone: Backbone
    weighting: Weighting
    repeated: Backbone  # the backbone for weights that move between whole fits
    warmup: int
    max_steps: int


def learn_scan(
    source: Scan,
    players: Players,
    preparation: Preparation,
    *,
    told_by: str | Told,
    on_step: Callable[[Record], Any] | None = None,
) -> Fitted:
    """What `rescore.fitting.learn` does, of rows that are read in passes."""
    passes = opened(source, players.weighting, preparation)
    table, looked = first_look(passes)
    if source.rows <= SAMPLE:
        fitted = learn(
            table.frame, looked.weight if source.weights else None,
            players.repeated, players.weighting, preparation,
            groups=looked.label if source.groups else None, told_by=told_by,
            warmup=players.warmup, max_steps=players.max_steps, on_step=on_step,
        )  # fmt: skip
        return _with_passes(fitted, passes, looked, _listed(fitted, looked, source.rows))
    prepared = prepared_from(passes, table, looked, preparation)
    problem, found, _ = found_in(prepared.problem, players, on_step, looked)
    result = prepared.in_own_units(found)
    prior = problem.prior
    fitted = Fitted(
        table, table, result,
        likelihood_units(found.losses, prior),
        noticed(table, prior, result, preparation, prepared.problem.count),
        *_equations(prepared, problem, found),
        directions_of(problem, found, told_by),
        preparation.receipts(table, result),
        *evidence_of(problem, found),
    )  # fmt: skip
    return _with_passes(fitted, passes, looked, _weigh(problem, found, looked))


def learn_large(
    table: Table,
    players: Players,
    preparation: Preparation,
    *,
    told_by: str | Told,
    on_step: Callable[[Record], Any] | None = None,
) -> Fitted:
    """The same of many rows in memory, so that the answer does not depend on where they are."""
    found = learn_scan(scan(table, jobs=1), players, preparation, told_by=told_by, on_step=on_step)
    n, X, result = len(table.values), table.values, found.result
    prior = np.full(n, 1 / n)
    weights = (
        Cells(found.weigh.memberships(X) / n, result.weights.precision)
        if isinstance(result.weights, Cells)
        else prior
    )
    losses = squared_residuals(found.equations, X)
    result = replace(result, weights=weights, sample_weight=row_weights(weights), losses=losses)
    told = replace(table, receipt={**table.receipt, **found.table.receipt})
    return replace(
        found, table=told, described=told, result=result,
        row_losses=likelihood_units(losses, prior), weigh=None,
    )  # fmt: skip


def _with_passes(fitted: Fitted, passes: Passes, looked: Looked, weigh: Any) -> Fitted:
    """The same, and what was read how often, and left out."""
    told = _told(passes, len(fitted.table.values))
    receipt = {**fitted.table.receipt, "read": told["summary"]}
    if looked.gaps.any():
        named = zip(fitted.table.names, looked.gaps.tolist(), strict=True)
        cells = {str(name): count for name, count in named if count}
        receipt["missing"] = {"how": "drop", "rows": int(looked.left_out), "cells": cells}
    table = replace(fitted.table, receipt=receipt)
    return replace(fitted, table=table, passes=told, weigh=weigh)


def _listed(fitted: Fitted, looked: Looked, rows: int) -> Listed:
    """The weights of few rows, zero of those that were left out."""
    weight, group = np.zeros(rows), np.full(rows, -1, dtype=np.int16)
    w = fitted.result.weights
    weight[looked.number] = fitted.result.sample_weight
    group[looked.number] = w.membership.argmax(axis=1) if isinstance(w, Cells) else 0
    return Listed(weight, group)


def _weigh(problem: Problem, found: Result, looked: Looked) -> Weigh:
    """What gives all rows their weights, which sum to one."""
    rows, w = problem.rows, found.weights
    assert isinstance(rows, Digest)
    if isinstance(w, Cells):
        amount = w.precision.sum(axis=1)
    elif rows.rule is everyone:
        return Weigh(np.array([1 / float(looked.mass)]))
    else:
        amount = 1 / rows.sums().mass
    amount = amount / (rows.sums().mass @ amount) * rows.scale
    return Weigh(amount, rows.rule, rows.centre, rows.unit)


def opened(source: Scan, weighting: Weighting, preparation: Preparation) -> Passes:
    """Passes over the rows that count; or a sentence why such a fit needs them in memory."""
    by_label = isinstance(weighting, InversePropensity)
    if not (isinstance(weighting, Uniform) or by_label or can_refine(weighting)):
        raise ValueError(
            f"{type(weighting).__name__} weights need all rows in memory. Leave weighting and tau "
            "at 'auto', or fit a sample of the rows."
        )
    missing = preparation.opening.missing
    if missing not in ("refuse", "drop") or preparation.opening.categories != "refuse":
        raise ValueError(
            "While rows are read in passes, rows with gaps can be left out (missing='drop'); "
            "nothing is filled in, and there are no categories. Leave such columns out before the "
            "scan, or fit a sample of the rows."
        )
    return Passes(replace(source, gaps=missing == "drop"))


def first_look(passes: Passes) -> tuple[SampledTable, Looked]:
    """The first pass: a sample of the rows, or all of a few, and how wide all rows are."""
    source = passes.scan
    n = source.rows
    chosen = np.arange(n)
    if n > SAMPLE:
        chosen = np.sort(np.random.default_rng(0).choice(n, SAMPLE, replace=False))
    looked: Looked = passes.made("first look", Look(chosen, source.names))
    if len(looked.sample) < 2:
        raise ValueError(
            f"{int(looked.rows)} of {n} rows have no gap and a weight above zero: too few to "
            "learn from. Leave out the columns that have most gaps."
        )
    values = np.ascontiguousarray(looked.sample)
    values.flags.writeable = False
    index = pd.Index(looked.number, name="row")
    return SampledTable(values, source.names, index, whole=_spread(looked)), looked


def rows_in_memory(source: Scan) -> pd.DataFrame | None:
    """All rows, if they are no more than a sample would be.

    Examples
    --------
    >>> rows_in_memory(scan(np.zeros((3, 1)))).shape
    (3, 1)
    """
    return first_look(Passes(source))[0].frame if source.rows <= SAMPLE else None


def _spread(looked: Looked) -> Spread:
    """Of all rows, from their moments and extremes."""
    reach = np.maximum(looked.high - looked.mean, looked.mean - looked.low)
    varies = looked.high > looked.low
    S = looked.scatter / float(looked.mass)
    deviation = np.where(varies, np.sqrt(np.diag(S)), 0.0)
    used = np.flatnonzero(deviation > 0)
    R = S[np.ix_(used, used)] / np.outer(deviation[used], deviation[used])
    np.fill_diagonal(R, 1.0)
    return Spread(looked.mean, deviation, np.where(varies, reach, 0.0), R)


def prepared_from(
    passes: Passes, table: SampledTable, looked: Looked, preparation: Preparation
) -> Prepared:
    """The problem of all rows, in units in which a learner can compute."""
    prior, mass, count = _prior(looked), float(looked.mass), rows_counted(looked)
    prepared = preparation.prepared(table, prior, count)
    units = prepared.units
    if preparation.standardize:  # by all rows, not by those of the sample
        deviation = np.where(table.spread.deviation > 0, table.spread.deviation, 1.0)
        Z = (table.values - looked.mean) / deviation
        units = Standardised(Z, looked.mean, deviation)
    covariance = looked.scatter / mass
    own = None if passes.scan.weights is None else prior
    known: dict[str, Any] = {"prior": own, "scale": count / mass}
    if units is None:
        rows = Digest(table.values, passes, Moments(looked.mean, covariance), **known)
    else:
        scale, centre = units.deviation, units.mean
        whole = Moments((looked.mean - centre) / scale, covariance / np.outer(scale, scale))
        rows = Digest(units.values, passes, whole, centre=centre, unit=scale, **known)
    return Prepared(replace(prepared.problem, rows=rows), units, not preparation.standardize)


def _prior(looked: Looked) -> Matrix:
    """Of the sampled rows; exactly alike if all are."""
    w = looked.weight
    return np.full(len(w), 1 / len(w)) if np.ptp(w) == 0 else w / w.sum()


def rows_counted(looked: Looked) -> float:
    """How many rows they stand for: whole weights count rows, others only compare."""
    mass = float(looked.mass)
    return mass if looked.whole else mass**2 / float(looked.squares)


def found_in(
    problem: Problem,
    players: Players,
    on_step: Callable[[Record], Any] | None,
    looked: Looked,
) -> tuple[Problem, Result, Any]:
    """The graph of all rows, alike or in groups, the problem that it was found in, and by what."""
    told: Any = {}
    if isinstance(players.weighting, InversePropensity):
        return _by_label(problem, players, on_step, looked)
    if not isinstance(players.weighting, Uniform):
        rows = problem.rows
        assert isinstance(rows, Digest)
        sample = replace(problem, rows=Rows(rows.matrix()), count=None)
        start = rescore(
            sample, players.repeated, players.weighting,
            warmup=players.warmup, max_steps=players.max_steps, on_step=on_step,
        )  # fmt: skip
        if start.status is Status.INTERRUPTED:
            return _as_reached(problem, players, start)
        if isinstance(start.weights, Cells):
            return _in_groups(problem, players, start, on_step)
        told = start.weighting
    found = rescore(
        problem, players.backbone, Uniform(), max_steps=players.max_steps, on_step=on_step
    )
    return problem, replace(found, weighting=told), None


def _as_reached(problem: Problem, players: Players, start: Result) -> tuple[Problem, Result, Any]:
    """What was found in the sample when it was interrupted, and nothing read any more."""
    if not isinstance(start.weights, Cells):
        return problem, start, None
    rows: Any = problem.rows
    refined = REFINED[type(players.weighting)].of(players.weighting, start)
    sums = first_sums(rows, start)
    rule = refined.rule(problem, start, sums)
    known = replace(rows, rule=rule, passes=Known(sums), scale=1.0)
    problem = replace(problem, rows=known)
    given = refined.weigh(problem, start, rule)
    w = row_weights(given.weights)
    return problem, replace(start, weights=given.weights, sample_weight=w), refined


def _by_label(
    problem: Problem,
    players: Players,
    on_step: Callable[[Record], Any] | None,
    looked: Looked,
) -> tuple[Problem, Result, Any]:
    """Every group that a column names counts the same, whatever its size."""
    if len(looked.groups) > MOST_LABELS:
        raise ValueError(
            f"The column of groups has {len(looked.groups)} different labels; while rows are read "
            f"in passes at most {MOST_LABELS} are counted. Merge groups."
        )
    rule = ByLabel(looked.groups, looked.label)
    rows: Any = problem.rows
    rows = rows.grouped(rule)
    share = rows.sums().mass / rows.sums().mass.sum()
    codes = np.searchsorted(rule.labels, rule.sampled)
    w = problem.prior / share[codes]
    given = Given(w / w.sum(), players.weighting.explain(share), players.weighting.tau)
    problem = replace(problem, rows=rows, groups=codes)
    found = rescore(
        problem, players.backbone, given,
        warmup=0, max_steps=players.max_steps, on_step=on_step,
    )  # fmt: skip
    return problem, replace(found, effective_rows=exact_rows(1 / share, rows.sums())), None


def _in_groups(
    problem: Problem,
    players: Players,
    start: Result,
    on_step: Callable[[Record], Any] | None,
) -> tuple[Problem, Result, Any]:
    """Groups and graph of all rows in turn, until the graph repeats; and what finds them."""
    rows = problem.rows
    assert isinstance(rows, Digest)
    refined = REFINED[type(players.weighting)].of(players.weighting, start)
    found, sums, seen = start, first_sums(rows, start), [start.W != 0]
    history: list[Record] = []
    for _ in range(ROUNDS):
        room = MOST_PASSES - 2 - rows.passes.count  # one for features, one to write weights
        problem = settled(refined, problem, found, sums, min(MOST_TURNS, room))
        grouped: Any = problem.rows
        given = refined.weigh(problem, found, grouped.rule)
        found = rescore(
            problem, players.backbone, given,
            warmup=0, max_steps=players.max_steps, on_step=on_step,
        )  # fmt: skip
        sums, edges = grouped.sums(), found.W != 0
        history += [{**record, "step": len(history) + 1} for record in found.history]
        if found.status is Status.INTERRUPTED or any((edges == e).all() for e in seen):
            break
        seen.append(edges)
    w: Any = found.weights
    count = exact_rows(w.precision.sum(axis=1), sums)
    return problem, replace(found, history=tuple(history), effective_rows=count), refined


def _equations(prepared: Prepared, problem: Problem, found: Result) -> tuple[Any, Matrix]:
    """In the table's own units, and the noise variances: of all rows where relations are lines."""
    rows, units = problem.rows, prepared.units
    w, equations = found.sample_weight, found.equations
    if equations.kind == "linear":
        S, B = problem.moments(found.weights).covariance, np.eye(len(found.W)) - found.W
        variance = np.maximum(np.einsum("ij,ij->j", B, S @ B), 0.0)
    else:
        R = rows.matrix() - equations.predict(rows.matrix())
        middle = w @ R
        equations, variance = equations.shifted(middle), w @ np.square(R - middle)
    if units is None:
        return equations, variance
    return equations.rescaled(units.mean, units.deviation), variance * np.square(units.deviation)


@dataclass(frozen=True, eq=False)
class Known:
    """Passes whose sums are known already."""

    sums: Any

    def made(self, name: str, statistic: Any) -> Any:
        """Those sums."""
        return self.sums


def _told(passes: Passes, sample: int) -> dict[str, Any]:
    """What was read how often."""
    rows = passes.scan.rows
    return {
        "rows": rows,
        "sampled_rows": sample,
        "count": passes.count,
        "summary": _summary(rows, sample, passes.count),
        "passes": list(passes.done),
    }


def _summary(rows: int, sample: int, count: int) -> str:
    told = f"{rows:,} rows were read in {count} pass{'es' * (count != 1)}"
    if sample == rows:
        return f"{told}; all of them fit in memory."
    return (
        f"{told}. What needs single rows (the shape of the noise, how many groups there are, "
        f"standard errors) was decided by {sample:,} of them."
    )
