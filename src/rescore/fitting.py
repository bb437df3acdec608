"""From whatever the user hands over to a problem, and from its result back to names and rows."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.algorithm import Record, Result, rescore
from rescore.categories import SMALLEST_SHARE, Returned, given_back, refuse_causes_of, taken_out
from rescore.directions import Verdict, verdict
from rescore.equations import Equations, residual_moments
from rescore.graph.dag import cpdag
from rescore.known_edges import edge_masks, receipts
from rescore.moments import (
    Cells,
    Matrix,
    Rows,
    Standardised,
    Summary,
    of_rows,
    standardised,
    within_range,
)
from rescore.protocols import Backbone, Codes, Problem, Status, Weighting
from rescore.tables.findings import Finding, findings
from rescore.tables.opening import STRICT, Opening
from rescore.tables.table import Distinct, Table, as_table, distinct_rows, group_codes, row_labels
from rescore.text import listing
from rescore.validation import check_flag, check_number
from rescore.verdicts import regression_evidence
from rescore.weight_box import likelihood_units, prior_weights, rows_stood_for
from rescore.weightings import Uniform

BY_NOISE, BY_CLASS, EVERY_EDGE = "noise", "class", "every edge"  # what tells directions
Told = Callable[[Problem, Result], Verdict]
SCALE_FINDINGS = {"scale", "scale_ratio"}
LARGE_CORRELATION = 0.5
TINY = float(np.finfo(float).tiny)
ALL_ROWS = pd.Index(["all rows"])
ROWWISE = {"few_rows", "small_sample", "outlying"}  # findings about rows that nobody has seen
ROUNDING = 1e-8  # relative asymmetry, or negative share of variance, of a rounded covariance
HEAVIEST = 10  # rows listed by weight


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
    directions: Verdict  # which of them are known, and by what
    receipts: tuple[dict[str, Any], ...] = ()  # what was known about edges, and that it holds
    errors: Matrix | None = None  # (d, d), of the coefficients, where relations are straight lines
    explained: Matrix | None = None  # (d, d), share of an effect's variance lost without the edge
    passes: Mapping[str, Any] | None = None  # over rows that are not in memory
    weigh: Any = None  # what gives all those rows their weights


@dataclass(frozen=True, eq=False)
class Preparation:
    """What every learner does to its data, whatever its method."""

    standardize: bool = False
    forbidden: Collection[Any] | None = None  # read more than once: no iterator
    required: Collection[Any] | None = None
    opening: Opening = STRICT

    def prepared(
        self,
        table: Table,
        prior: Matrix,
        count: float,
        groups: Codes | None = None,
        categories: Collection[Any] = (),
    ) -> "Prepared":
        """The table as a learner sees it; constant columns, and categories, are isolated nodes."""
        allowed, required = edge_masks(table.names, self.forbidden, self.required)
        coded = np.array([name in categories for name in table.names])
        refuse_causes_of(table, required, coded)
        required = required & ~coded[:, None]
        varying = np.zeros(len(table.names), dtype=bool)
        varying[table.spread.varying] = True
        _refuse_required_constants(table, required, varying)
        allowed &= np.outer(varying, varying)
        width = table.spread
        if self.standardize:
            units: Standardised | None = standardised(table.values, prior)
        else:
            units = within_range(table.values, width.mean, width.deviation)
        rows = Rows(table.values if units is None else units.values)
        problem = Problem(rows, prior, allowed, required, count, groups)
        return Prepared(problem, units, not self.standardize)

    def receipts(self, table: Table, result: Result) -> tuple[dict[str, Any], ...]:
        """What was known about edges, each with whether the graph obeys it."""
        return tuple(receipts(table.names, result.W, self.forbidden, self.required))


@dataclass(frozen=True, eq=False)
class Prepared:
    """A problem, and the units in which its rows are measured if they are not the table's own."""

    problem: Problem
    units: Standardised | None = None
    own: bool = True  # whether coefficients and losses are given in the table's own all the same

    def in_own_units(self, result: Result) -> Result:
        """What was learned, with coefficients and losses as large as in the table's own units.

        As far as float64 reaches: an edge stays one, and a loss a number.
        """
        if self.units is None or not self.own:
            return result
        power = np.frexp(self.units.deviation)[1] - 1
        losses = _scaled(result.losses, 2 * power)
        if result.equations.kind != "linear":  # strengths of other edges have no units
            return replace(result, losses=losses)
        by = power - power[:, None]
        removed = tuple((i, j, float(_scaled(w, by[i, j]))) for i, j, w in result.removed)
        return replace(result, W=_scaled(result.W, by), losses=losses, removed=removed)

    def equations(self, table: Table, result: Result) -> tuple[Equations, Matrix]:
        """What was learned from the table in the table's own units, and its noise variances (d,).

        Under the final row weights residuals average to zero: a variable without causes is
        predicted by its mean, and so is whatever the graph had to leave out.
        """
        equations = result.equations
        if self.units is not None:
            equations = equations.rescaled(self.units.mean, self.units.deviation)
        mean, variance = residual_moments(equations, table.values, result.sample_weight)
        own = np.square(table.spread.deviation)
        return equations.shifted(mean), np.maximum(variance, SMALLEST_SHARE * own) * (own > 0)


def _scaled(values: Any, power: Any) -> Matrix:
    """``values · 2^power``, kept within float64: what is not zero does not become zero or inf."""
    with np.errstate(over="ignore", under="ignore"):
        size = np.clip(np.ldexp(np.abs(values), power), TINY, np.finfo(float).max)
    return np.where(np.equal(values, 0), 0.0, np.copysign(size, values))


def learn(
    X: Any,
    sample_weight: Any,
    backbone: Backbone,
    weighting: Weighting,
    preparation: Preparation,
    *,
    groups: Any = None,
    told_by: str | Told = EVERY_EDGE,
    warmup: int = 1,
    max_steps: int = 100,
    on_step: Callable[[Record], Any] | None = None,
) -> Fitted:
    """Check the input, run ReScore on it, and collect everything worth telling the user."""
    check_flag("standardize", preparation.standardize)
    table, sample_weight = preparation.opening.of(X, sample_weight, groups)
    prior = prior_weights(sample_weight, len(table.values))
    used = prior > 0  # a row of weight zero is a row that is not there
    kept = table.rows(used)
    codes = None if groups is None else group_codes(row_labels(groups, table.index)[used])
    numbers = taken_out(kept, prior[used])
    merged = distinct_rows(numbers, prior[used], codes)
    count = rows_stood_for(sample_weight, prior) * _free(kept)
    prepared = preparation.prepared(
        merged.table, merged.weight, count, merged.groups, kept.levels.keys()
    )
    found = rescore(
        prepared.problem, backbone, weighting, warmup=warmup, max_steps=max_steps, on_step=on_step
    )
    result = _unmerged(found, merged)
    row_losses = np.full(len(used), np.nan)
    row_losses[used] = likelihood_units(result.losses, prior[used])
    result = prepared.in_own_units(result)
    told = noticed(_without_levels(kept), prior[used], result, preparation, count)
    equations = prepared.equations(numbers, result)
    directions = directions_of(prepared.problem, found, told_by)
    evidence = evidence_of(prepared.problem, found)
    if kept.levels:
        back = _categories_back(kept, result, equations[0], preparation, count)
        result, directions = back.graph(result, directions)
        equations, evidence = back.noise(kept), back.evidence(evidence)
    obeyed = preparation.receipts(table, result)
    whole = _with_all_rows(result, used)
    return Fitted(table, kept, whole, row_losses, told, *equations, directions, obeyed, *evidence)


def evidence_of(problem: Problem, found: Result) -> tuple[Matrix | None, Matrix | None]:
    """Errors of the coefficients, and what each edge explains, where relations are linear."""
    if found.equations.kind != "linear":
        return None, None
    return regression_evidence(problem, found.W, found.weights)


def _free(table: Table) -> float:
    """The share of the rows that is left when the levels of the categories have taken theirs."""
    n, levels = len(table.values), sum(len(words) - 1 for words in table.levels.values())
    return max(1 - levels / n, 2 / n)


def _without_levels(table: Table) -> Table:
    """The columns of numbers alone; all of them if there are no others."""
    numbers = [j for j, name in enumerate(table.names) if name not in table.levels]
    return table.part(numbers) if numbers else table


def _categories_back(
    table: Table, result: Result, equations: Equations, preparation: Preparation, count: float
) -> Returned:
    """The edges that lead from categories, and the equations with their shifts."""
    known = edge_masks(table.names, preparation.forbidden, preparation.required)
    return given_back(table, result.sample_weight, equations, *known, count)


def directions_of(problem: Problem, found: Result, told_by: str | Told) -> Verdict:
    """What is known of the directions, by the noise, by the class alone, or of every edge.

    Or by a function of the learner's own.
    """
    if callable(told_by):
        return told_by(problem, found)
    if told_by == BY_NOISE:
        return verdict(problem, found.W, found.weights)
    known = cpdag(found.W) if told_by == BY_CLASS else (found.W != 0).astype(np.int8)
    return Verdict(known, {})


def noticed(
    table: Table,
    prior: Matrix,
    result: Result,
    preparation: Preparation,
    count: float | None = None,
) -> tuple[Finding, ...]:
    """What is worth a warning in the data and in what was learned from them."""
    silenced = SCALE_FINDINGS if preparation.standardize else set()
    return (
        *(found for found in findings(table, count) if found.code not in silenced),
        *_few_heavy_rows(table, prior, result),
        *_empty(table, result, preparation.standardize),
        *_cut(table, result),
    )


def _unmerged(result: Result, merged: Distinct) -> Result:
    """Merged rows come back as the rows they were, sharing their weight."""
    if merged.place is None:
        return result
    w = result.sample_weight[merged.place] * merged.share
    every = of_rows(result.weights, merged.place, np.broadcast_to(merged.share, len(merged.place)))
    return replace(result, sample_weight=w, weights=every, losses=result.losses[merged.place])


def _with_all_rows(result: Result, used: Any) -> Result:
    """Rows of weight zero come back with weight zero and no loss."""
    if used.all():
        return result
    w = np.zeros(len(used))
    w[used] = result.sample_weight
    losses = np.full((len(used), result.losses.shape[1]), np.nan)
    losses[used] = result.losses
    place = np.cumsum(used) - 1
    every = of_rows(result.weights, place, used.astype(float))
    return replace(result, sample_weight=w, weights=every, losses=losses)


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


def _empty(table: Table, result: Result, standardised: bool) -> list[Finding]:
    in_groups = isinstance(result.weights, Cells)  # whose levels can make variables correlated
    if result.W.any() or len(table.names) < 2 or in_groups:
        return []
    R = np.abs(table.spread.correlation)
    largest = float(np.max(R - np.eye(len(R)), initial=0.0))
    if largest < LARGE_CORRELATION:
        return []
    seen = f"The graph has no edge, although the largest correlation is {largest:.2f}."
    remedy = "The penalty or the threshold is too large for these units: lower them"
    remedy += "." if standardised else ", or fit with standardize=True."
    return [Finding("empty", seen, remedy=remedy)]


def _cut(table: Table, result: Result) -> list[Finding]:
    if not result.removed:
        return []
    edges = [f"{table.names[i]} -> {table.names[j]}" for i, j, _ in result.removed]
    return [
        Finding("cycle_cut", f"Cut because they closed a cycle, weakest first: {listing(edges)}.")
    ]


def learn_moments(
    covariance: Any,
    n_rows: Any,
    mean: Any,
    backbone: Backbone,
    preparation: Preparation,
    *,
    max_steps: int = 100,
    on_step: Callable[[Record], Any] | None = None,
) -> Fitted:
    """What `learn` would find on ``n_rows`` rows with this covariance; one row stands for all."""
    count = check_number("n_rows", n_rows, above=1)
    table = as_table(covariance)
    S = _checked(table, covariance)
    stand_ins = replace(table, values=Summary.of(_mean(mean, len(S)), S).matrix())
    stand_ins = replace(stand_ins, index=pd.RangeIndex(len(stand_ins.values)))
    prior = np.full(2 * len(S), 1 / (2 * len(S)))
    prepared = preparation.prepared(stand_ins, prior, count)
    problem = replace(prepared.problem, rows=Summary(prepared.problem.rows.matrix()))
    found = rescore(problem, backbone, Uniform(), max_steps=max_steps, on_step=on_step)
    losses = (prior @ found.losses)[None]
    row_losses = likelihood_units(losses, np.ones(1))
    result = prepared.in_own_units(replace(found, sample_weight=np.ones(1), losses=losses))
    told = [f for f in noticed(stand_ins, prior, found, preparation) if f.code not in ROWWISE]
    one_row = Table(prior[None] @ stand_ins.values, table.names, ALL_ROWS)
    equations = prepared.equations(stand_ins, found)
    obeyed = preparation.receipts(table, found)
    directions = verdict(problem, found.W, prior)
    data = one_row, stand_ins, result, row_losses, tuple(told)
    return Fitted(*data, *equations, directions, obeyed, *evidence_of(problem, found))


def _checked(table: Table, covariance: Any) -> Matrix:
    """The covariance as an exactly symmetric matrix; or a sentence why it cannot be one."""
    S = table.values
    if S.shape[0] != S.shape[1]:
        raise ValueError(f"A covariance must be square, got the shape {S.shape}.")
    if isinstance(covariance, pd.DataFrame) and list(covariance.index) != list(table.names):
        raise ValueError("The rows and columns of a covariance must have the same names.")
    deviations = np.sqrt(np.maximum(np.diag(S), 0.0))
    units = np.outer(deviations, deviations)
    if (np.abs(S - S.T) > ROUNDING * units).any():
        raise ValueError("A covariance must be symmetric. Use for example X.cov().")
    units = np.where(units > 0, units, 1.0)
    if (np.diag(S) < 0).any() or np.linalg.eigvalsh(S / units).min() < -ROUNDING * len(S):
        raise ValueError(
            "This matrix is no covariance: some combination of its variables would have a "
            "negative variance. Was it put together from rows with missing values?"
        )
    return (S + S.T) / 2


def _mean(mean: Any, d: int) -> Matrix:
    if mean is None:
        return np.zeros(d)
    values = np.asarray(mean, dtype=np.float64)
    if values.shape != (d,) or not np.isfinite(values).all():
        raise ValueError(f"mean must hold {d} finite numbers, one for each variable.")
    return values


def diagnose(fitted: Fitted) -> dict[str, Any]:
    """Convergence, scales, edges cut or known, the heaviest rows, all that was warned about."""
    table, result = fitted.table, fitted.result
    width = fitted.described.spread
    passes = {} if fitted.passes is None else {"passes": dict(fitted.passes)}
    return passes | {
        "status": result.status.value,
        "converged": result.status is Status.CONVERGED,
        "outer_steps": len(result.history),
        "scale_ratio": width.scale_ratio,
        "condition_number": width.condition_number,
        "effective_rows": result.effective_rows,
        "noise": dict(fitted.directions.noise),
        "weighting": _weighting(fitted),
        "removed_edges": [
            {"from": table.names[i], "to": table.names[j], "weight": float(weight)}
            for i, j, weight in result.removed
        ],
        "knowledge": list(fitted.receipts),
        "table": dict(table.receipt),
        "heaviest_rows": _heaviest(fitted),
        "warnings": [asdict(found) | {"message": found.message} for found in fitted.findings],
    }


def _weighting(fitted: Fitted) -> dict[str, Any]:
    """What the weighting decided, with the variables by name and the group of every row."""
    told, w = dict(fitted.result.weighting), fitted.result.weights
    if isinstance(w, Cells):
        told["membership"] = w.membership.argmax(axis=1).tolist()
    if told.get("interventions"):
        named = [
            one | {"variable": fitted.table.names[one["variable"]]} for one in told["interventions"]
        ]
        places = listing([f"{one['variable']} in group {one['group']}" for one in named])
        told["interventions"] = named
        told["summary"] += f" A mechanism of its own, which counts nothing there: {places}."
    return told


def _heaviest(fitted: Fitted) -> list[dict[str, Any]]:
    """The rows with the largest weights, the worst-fitting first among equals."""
    w, loss = fitted.result.sample_weight, np.nan_to_num(fitted.row_losses)
    rows = _leading(w, loss, min(HEAVIEST, len(w)))
    order = rows[np.lexsort((-loss[rows], -w[rows]))][:HEAVIEST]
    return [
        {"row": fitted.table.index[i], "weight": float(w[i]), "loss": float(loss[i])} for i in order
    ]


def _leading(w: Matrix, loss: Matrix, k: int) -> NDArray[np.intp]:
    """All rows that may be among the first k by weight, then loss; they alone are sorted."""
    least = np.partition(w, -k)[-k]
    tied = w == least
    worst = np.partition(loss[tied], -k)[-k] if tied.sum() > k else -np.inf
    return np.flatnonzero((w > least) | (tied & (loss >= worst)))
