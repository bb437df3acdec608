"""A fit of a table that is read in passes: a sample says what to look for, all rows decide.

The first pass checks the rows, gives their moments and a sample of them.  A table no larger than
the sample is fitted as any other.  Otherwise the sample is fitted as if it were the table, which
finds the groups of rows if there are any; then passes over all rows replace the groups' moments,
the noise and the coefficients by those of all rows, and the graph is searched with them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rescore.algorithm import Record, Result, rescore
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
from rescore.scanning.statistics import Count, Listed, Look, Looked, Stretched, Stretches, Weigh
from rescore.tables.findings import Spread
from rescore.tables.table import Table
from rescore.text import printable
from rescore.weight_box import likelihood_units
from rescore.weightings.fixed import Uniform
from rescore.weightings.refined import (
    MOST_TURNS,
    REFINED,
    ROUNDS,
    can_refine,
    exact_rows,
    first_sums,
    settled,
)

MOST_PASSES = 15
MOST_STRETCHES = 1024  # of which resamples are drawn


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
    _refuse(players.weighting, preparation)
    passes = Passes(source)
    table, looked = first_look(passes)
    if source.rows <= SAMPLE:
        fitted = learn(
            table.frame, None, players.repeated, players.weighting, preparation,
            told_by=told_by, warmup=players.warmup, max_steps=players.max_steps, on_step=on_step,
        )  # fmt: skip
        group = np.zeros(source.rows, dtype=np.int16)
        if isinstance(fitted.result.weights, Cells):
            group = fitted.result.weights.membership.argmax(axis=1).astype(np.int16)
        return _with_passes(fitted, passes, Listed(fitted.result.sample_weight, group))
    prepared = _prepared(passes, table, looked, preparation)
    problem, found, _ = _found(prepared.problem, players, on_step)
    result = prepared.in_own_units(found)
    prior = problem.prior
    fitted = Fitted(
        table, table, result,
        likelihood_units(found.losses, prior),
        noticed(table, prior, result, preparation),
        *_equations(prepared, problem, found),
        directions_of(problem, found, told_by),
        preparation.receipts(table, result),
        *evidence_of(problem, found),
    )  # fmt: skip
    return _with_passes(fitted, passes, _weigh(problem, found))


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
    losses = np.square(X - found.equations.predict(X))
    result = replace(result, weights=weights, sample_weight=row_weights(weights), losses=losses)
    told = replace(table, receipt={**table.receipt, **found.table.receipt})
    return replace(
        found, table=told, described=told, result=result,
        row_losses=likelihood_units(losses, prior), weigh=None,
    )  # fmt: skip


def _with_passes(fitted: Fitted, passes: Passes, weigh: Any) -> Fitted:
    """The same, and what was read how often."""
    told = _told(passes, len(fitted.table.values))
    receipt = {**fitted.table.receipt, "read": told["summary"]}
    table = replace(fitted.table, receipt=receipt)
    return replace(fitted, table=table, passes=told, weigh=weigh)


def _weigh(problem: Problem, found: Result) -> Weigh:
    """What gives all rows their weights, which sum to one."""
    rows, w = problem.rows, found.weights
    assert isinstance(rows, Digest)
    if not isinstance(w, Cells):
        return Weigh(np.array([1 / rows.passes.scan.rows]))
    amount = w.precision.sum(axis=1)
    return Weigh(amount / (rows.sums().mass @ amount), rows.rule, rows.centre, rows.unit)


def write_weights(model: Any, source: Any, path: Any) -> int:
    """Write the weights of all rows of a scan to a Parquet file, beside their keys; how many.

    A line for each row, in their order: its keys, or its number if the scan has none; its
    ``weight``, which sum to one; and the ``group`` of rows that it most likely belongs to.

    Parameters
    ----------
    model : estimator
        Fitted on this scan.
    source : Scan
        As `scan` made it.
    path : path
        Of the file, which is there when it is whole.

    Examples
    --------
    >>> import os, tempfile, numpy as np, rescore as rs
    >>> table = rs.scan(np.random.default_rng(0).normal(size=(30_000, 2)))
    >>> model = rs.ReScore().fit(table)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rs.write_weights(model, table, os.path.join(folder, "weights.parquet"))
    30000
    """
    weigh = getattr(model, "_weigh", None)
    if weigh is None:
        raise ValueError("This model was not fitted on a scan: its weights are sample_weight_.")
    import pyarrow as pa
    import pyarrow.parquet as pq

    passes, target = Passes(scan(source)), Path(path)
    keys, unfinished = passes.scan.keys, target.with_name(f".{target.name}.unfinished")
    writer, at = None, 0
    try:
        for _, blocks in passes.over(replace(weigh, keys=keys), "weights"):
            for block in blocks:
                n = len(block.weight)
                named = dict(zip(keys, block.keys, strict=True)) or {"row": np.arange(at, at + n)}
                lines = pa.table({**named, "weight": block.weight, "group": block.group})
                writer = writer or pq.ParquetWriter(unfinished, lines.schema)
                writer.write_table(lines)
                at += n
        if writer is not None:
            writer.close()
        unfinished.replace(target)
    except OSError as error:
        raise OSError(
            f"'{printable(target, 200)}' could not be written ({error}). Make room, and do the "
            "same again."
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return at


def _refuse(weighting: Weighting, preparation: Preparation) -> None:
    if not isinstance(weighting, Uniform) and not can_refine(weighting):
        raise ValueError(
            f"{type(weighting).__name__} weights need all rows in memory. Leave weighting and tau "
            "at 'auto', or fit a sample of the rows."
        )
    if preparation.opening.missing != "refuse" or preparation.opening.categories != "refuse":
        raise ValueError(
            "Missing cells and categories are not dealt with while rows are read in passes. Leave "
            "such rows or columns out before the scan, or fit a sample of the rows."
        )


def first_look(passes: Passes) -> tuple[SampledTable, Looked]:
    """The first pass: a sample of the rows, or all of a few, and how wide all rows are."""
    source = passes.scan
    n = source.rows
    chosen = np.arange(n)
    if n > SAMPLE:
        chosen = np.sort(np.random.default_rng(0).choice(n, SAMPLE, replace=False))
    looked: Looked = passes.made("first look", Look(chosen, source.names))
    values = np.ascontiguousarray(looked.sample)
    values.flags.writeable = False
    whole = _spread(looked)
    return SampledTable(values, source.names, pd.Index(chosen, name="row"), whole=whole), looked


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
    S = looked.scatter / float(looked.rows)
    deviation = np.where(varies, np.sqrt(np.diag(S)), 0.0)
    used = np.flatnonzero(deviation > 0)
    R = S[np.ix_(used, used)] / np.outer(deviation[used], deviation[used])
    np.fill_diagonal(R, 1.0)
    return Spread(looked.mean, deviation, np.where(varies, reach, 0.0), R)


def _prepared(
    passes: Passes, table: SampledTable, looked: Looked, preparation: Preparation
) -> Prepared:
    """The problem of all rows, in units in which a learner can compute."""
    m, n = len(table.values), passes.scan.rows
    prepared = preparation.prepared(table, np.full(m, 1 / m), n)
    units = prepared.units
    if preparation.standardize:  # by all rows, not by those of the sample
        deviation = np.where(table.spread.deviation > 0, table.spread.deviation, 1.0)
        Z = (table.values - looked.mean) / deviation
        units = Standardised(Z, looked.mean, deviation)
    covariance = looked.scatter / n
    if units is None:
        rows = Digest(table.values, passes, Moments(looked.mean, covariance))
    else:
        scale, centre = units.deviation, units.mean
        whole = Moments((looked.mean - centre) / scale, covariance / np.outer(scale, scale))
        rows = Digest(units.values, passes, whole, centre=centre, unit=scale)
    return Prepared(replace(prepared.problem, rows=rows), units, not preparation.standardize)


def _found(
    problem: Problem, players: Players, on_step: Callable[[Record], Any] | None
) -> tuple[Problem, Result, Any]:
    """The graph of all rows, alike or in groups, the problem that it was found in, and by what."""
    told: Any = {}
    if not isinstance(players.weighting, Uniform):
        rows = problem.rows
        assert isinstance(rows, Digest)
        sample = replace(problem, rows=Rows(rows.matrix()), count=None)
        start = rescore(
            sample, players.repeated, players.weighting,
            warmup=players.warmup, max_steps=players.max_steps, on_step=on_step,
        )  # fmt: skip
        if start.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if isinstance(start.weights, Cells):
            return _in_groups(problem, players, start, on_step)
        told = start.weighting
    found = rescore(
        problem, players.backbone, Uniform(), max_steps=players.max_steps, on_step=on_step
    )
    return problem, replace(found, weighting=told), None


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
        if any((edges == earlier).all() for earlier in seen):
            break
        seen.append(edges)
    count = exact_rows(found.weights, sums)
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
class Resampling:
    """A fit, and the moments of stretches of rows, of which resamples are drawn.

    Rows next to each other are drawn together, so that rows that depend on their neighbours are
    no more certain than they are; where rows do not, it makes no difference.
    """

    prepared: Prepared
    problem: Problem
    found: Result
    refined: Any
    players: Players
    stretches: Stretched

    @classmethod
    def of(cls, source: Scan, players: Players, preparation: Preparation) -> "Resampling":
        """One pass after those of the fit."""
        _refuse(players.weighting, preparation)
        passes = Passes(source)
        prepared = _prepared(passes, *first_look(passes), preparation)
        problem, found, refined = _found(prepared.problem, players, None)
        rows = problem.rows
        assert isinstance(rows, Digest)
        count = Count(rows.rule, None, rows.centre, rows.unit)
        size = -(-source.rows // MOST_STRETCHES)
        stretches = passes.made("stretches of rows", Stretches(count, size))
        return cls(prepared, problem, found, refined, players, stretches)

    def drawn(self, counts: Any) -> tuple[Matrix, Status]:
        """The graph (d, d) of the stretches drawn ``counts`` times each, and how it ended."""
        sums = self.stretches.drawn(counts)
        mass, mean, S = sums.moments
        share = mass / mass.sum()
        apart = mean - share @ mean
        whole = np.tensordot(share, S + apart[:, :, None] * apart[:, None, :], axes=1)
        rows: Any = self.problem.rows
        again = replace(rows, passes=Known(sums), whole=Moments(share @ mean, whole))
        problem = replace(self.problem, rows=again, count=float(mass.sum()))
        given: Any = Uniform()
        if self.refined is not None:
            given = self.refined.weigh(problem, self.found, again.rule)
        found = rescore(
            problem, self.players.backbone, given, warmup=0, max_steps=self.players.max_steps
        )
        return self.prepared.in_own_units(found).W, found.status


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
