"""The path of graphs over λ and thresholds: what is tried, fitted, cut, scored on rows left out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from rescore.equations import Equations, log_likelihoods, residual_moments
from rescore.graph.dag import threshold as without_weak_edges
from rescore.known_edges import edge_masks
from rescore.learners import LEARNERS, load_learner
from rescore.learners.base import StructureLearner
from rescore.learners.custom import as_learner
from rescore.learners.rescore import ReScore
from rescore.moments import Matrix
from rescore.protocols import Mask
from rescore.studies import Given, Positions, Refits, converged, refit
from rescore.studies.compare import refitted_score
from rescore.studies.differences import stabilities
from rescore.tables.table import group_codes
from rescore.validation import check_number

FACTORS = (0.1, 0.3, 1.0, 3.0)  # of the learner's own λ
ROUND = (1, 2, 3, 5, 7)  # times a power of ten: the thresholds
DECADES = 2  # below the strongest edge
FEWEST_ROWS = 4  # in every part of the rows
SMALLEST_SHARE = 1e-12  # of a variance that counts as noise rather than rounding


def known_learner(learner: Any) -> StructureLearner:
    """The learner as one of ours, which has a threshold.

    Examples
    --------
    >>> from rescore import GES
    >>> known_learner(GES())
    Traceback (most recent call last):
        ...
    ValueError: GES has neither a threshold nor a lambda1 to advise on: ...
    """
    if isinstance(learner, ReScore):
        inner = learner.plain
        known: StructureLearner = ReScore(**{**learner.get_params(deep=False), "estimator": inner})
    else:
        known = inner = as_learner(learner)
    if "threshold" not in inner.get_params():
        raise ValueError(
            f"{type(inner).__name__} has neither a threshold nor a lambda1 to advise on: its own "
            f"criterion decides which edges there are. Those with a threshold are "
            f"{', '.join(_with_threshold())}."
        )
    return known


def _with_threshold() -> list[str]:
    return [name for name in LEARNERS if "threshold" in load_learner(name)._get_param_names()]


def lambda_grid(learner: Any, given: Iterable[float] | None) -> Sequence[float | None]:
    """The λ to try with a learner; None alone where there is nothing but its own.

    Examples
    --------
    >>> from rescore import Linear, Notears
    >>> lambda_grid(Notears(), None), lambda_grid(Linear(), None)
    ([0.01, 0.03, 0.1, 0.3], [None])
    """
    own = learner.get_params(deep=False).get("lambda1")
    if given is not None:
        if "lambda1" not in learner.get_params(deep=False):
            name = type(learner).__name__
            raise ValueError(f"{name} has no lambda1, only a threshold; leave lambdas out.")
        return numbers("lambdas", given)
    if own is None:
        return [None]
    others = (float(f"{own * factor:.12g}") for factor in FACTORS if factor != 1)
    return sorted({float(own), *others})


def numbers(name: str, values: Iterable[Any]) -> list[float]:
    """A grid of numbers of at least zero, sorted, each once.

    Examples
    --------
    >>> numbers("thresholds", [0.3, 0, 0.3])
    [0.0, 0.3]
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of numbers, got {values!r}.")
    found = sorted({float(check_number(name, value, at_least=0)) for value in values})
    if not found:
        raise ValueError(f"{name} is empty; give at least one number, or leave it out.")
    return found


def round_thresholds(strengths: Sequence[Matrix], own: float | None) -> list[float]:
    """Zero, the learner's own, and round numbers up to the strongest edge of these graphs.

    Examples
    --------
    >>> round_thresholds([np.array([[0, 0.4], [0, 0]])], own=0.3)
    [0.0, 0.005, 0.007, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.2, 0.3]
    """
    largest = max(float(np.abs(W).max()) for W in strengths)
    known = {0.0} if own is None else {0.0, float(own)}
    if largest == 0:
        return sorted(known)
    top = int(np.floor(np.log10(largest)))
    series = (float(f"{a}e{k}") for k in range(top - DECADES, top + 1) for a in ROUND)
    return sorted(known | {t for t in series if largest / 10**DECADES <= t <= largest})


class Splits(NamedTuple):
    """Parts of the rows, by position."""

    folds: list[tuple[Positions, Positions]]  # to fit, and left out
    halves: list[Positions]


def splits(given: Given, folds: int, subsamples: int, seed: int) -> Splits:
    """So many folds, and so many halves of the rows, complementary ones in pairs.

    Where there are groups, each is spread evenly over the folds and the halves.
    """
    n = len(given.X)
    codes = np.zeros(n, dtype=np.intp) if given.groups is None else group_codes(given.groups)
    smallest = int(np.bincount(codes).min())
    if smallest < FEWEST_ROWS or n < max(folds, 2) * FEWEST_ROWS:
        raise ValueError(
            f"{n} rows, {smallest} in the smallest group, cannot be divided into {folds} folds and "
            f"into halves of at least {FEWEST_ROWS} rows. Give more rows, or fewer folds."
        )
    rng = np.random.default_rng(seed)
    order = _shuffled(codes, rng)
    parts = [np.sort(order[k::folds]) for k in range(folds)]
    pairs = (_shuffled(codes, rng) for _ in range((subsamples + 1) // 2))
    halves = [np.sort(order[k::2]) for order in pairs for k in (0, 1)]
    return Splits([(np.setdiff1d(order, part), part) for part in parts], halves[:subsamples])


def _shuffled(codes: Positions, rng: np.random.Generator) -> Positions:
    """All rows in random order, group by group."""
    order = rng.permutation(len(codes))
    return order[np.argsort(codes[order], kind="stable")]


@dataclass(frozen=True, eq=False)
class Study:
    """What all fits have in common."""

    given: Given
    learner: StructureLearner  # ours, or ReScore around one of ours

    @property
    def inner(self) -> Any:
        """The learner itself, whose parameters are sought."""
        return self.learner.plain

    @property
    def required(self) -> Mask:
        """Edges that no threshold drops, (d, d)."""
        return edge_masks(tuple(self.given.X.columns), **self.inner.known_edges())[1]


class Fit(NamedTuple):
    """A fit without a threshold: all that is needed to know it with any."""

    model: Any
    W: Matrix  # (d, d), a DAG
    cut: float  # strength of the strongest edge that closed a cycle; zero if none did
    converged: bool


def tuned(learner: StructureLearner, **values: Any) -> Any:
    """The learner, unfitted, with these parameters; those of the one inside, if it is wrapped.

    Examples
    --------
    >>> from rescore import Notears
    >>> tuned(ReScore(Notears()), threshold=0.1).estimator.threshold
    0.1
    """
    prefix = "estimator__" if isinstance(learner, ReScore) else ""
    given = {prefix + name: value for name, value in values.items()}
    return clone(learner).set_params(**given)


def fit(study: Study, lambda1: float | None, part: Given) -> Fit:
    """The learner on these rows, with this λ and no threshold; None is its own λ."""
    wanted = {} if lambda1 is None else {"lambda1": lambda1}
    model = refit(tuned(study.learner, threshold=0.0, **wanted), part)
    cut = [abs(edge["weight"]) for edge in model.diagnostics_["removed_edges"]]
    W = model.adjacency_matrix_.to_numpy()
    return Fit(model, W, max(cut, default=0.0), converged(model))


def graphs(W: Matrix, thresholds: Sequence[float], required: Mask) -> list[Mask]:
    """The graph (d, d) at each threshold, as a fit with it would return.

    Cycles are cut at their weakest edges, so that an edge which closes a cycle with stronger ones
    does so at every threshold that leaves it in: weaker edges change nothing.

    Examples
    --------
    >>> W = np.array([[0, 0.2, 0.9], [0, 0, 0.5], [0, 0, 0]])
    >>> [int(graph.sum()) for graph in graphs(W, [0, 0.5, 0.7], np.zeros((3, 3), dtype=bool))]
    [3, 2, 1]
    """
    return [without_weak_edges(W, at, keep=required) != 0 for at in thresholds]


def fold_scores(
    study: Study,
    lambda1: float | None,
    thresholds: Sequence[float],
    rows: Positions,
    left_out: Positions,
) -> tuple[bool, list[float]]:
    """Whether the fit converged, and the held-out log-likelihood at each threshold."""
    part, test = study.given.part(rows), study.given.part(left_out)
    found = fit(study, lambda1, part)
    model = None if study.inner.linear else found.model
    return found.converged, held_out(model, graphs(found.W, thresholds, study.required), part, test)


def half_strengths(study: Study, lambda1: float | None, rows: Positions) -> tuple[bool, Matrix]:
    """Whether the fit converged, and its strengths (d, d)."""
    found = fit(study, lambda1, study.given.part(rows))
    return found.converged, found.W


def measured(
    study: Study,
    lambdas: Sequence[float | None],
    thresholds: Sequence[float] | None,
    parts: Splits,
    n_jobs: int | None,
    on_fit: Callable[[int], Any] | None,
) -> pd.DataFrame:
    """The table, and in its attrs how many fits there were and how many did not converge."""
    refits = Refits(n_jobs, on_fit)
    whole: list[Fit] = list(refits.made(fit, ((study, each, study.given) for each in lambdas)))
    grid = thresholds or round_thresholds([found.W for found in whole], study.inner.threshold)
    by_fold = ((study, lambda1, grid, *fold) for lambda1, fold in product(lambdas, parts.folds))
    scores = list(refits.made(fold_scores, by_fold))
    by_half = ((study, *each) for each in product(lambdas, parts.halves))
    halves = list(refits.made(half_strengths, by_half))
    paths = [_graphs(study, *each, grid) for each in zip(lambdas, whole, strict=True)]
    table = pd.concat(paths, ignore_index=True)
    table = with_likelihood(table, _by_point([each for _, each in scores], len(lambdas)))
    table["stability"] = _stability(study, [W for _, W in halves], grid, len(lambdas))
    ended = [found.converged for found in whole] + [fine for fine, _ in [*scores, *halves]]
    table.attrs |= {"fits": len(ended), "not_converged": ended.count(False)}
    return table


def _graphs(
    study: Study, lambda1: float | None, found: Fit, thresholds: Sequence[float]
) -> pd.DataFrame:
    """What the fit to all rows says at each threshold."""
    edges = [int(graph.sum()) for graph in graphs(found.W, thresholds, study.required)]
    acyclic = [found.cut == 0 or found.cut < at for at in thresholds]
    known = {} if lambda1 is None else {"lambda1": lambda1}
    return pd.DataFrame({**known, "threshold": thresholds, "edges": edges, "acyclic": acyclic})


def _by_point(scores: list[list[float]], count: int) -> Matrix:
    """(λ and fold, threshold) as (λ and threshold, fold)."""
    cube = np.array(scores).reshape(count, -1, len(scores[0]))
    return cube.transpose(0, 2, 1).reshape(count * cube.shape[2], -1)


def with_likelihood(table: pd.DataFrame, scores: Matrix) -> pd.DataFrame:
    """The table with the mean of the scores (points, folds) and how far it is behind the best.

    ``behind_se`` is the standard error of that difference over the folds, which are the same for
    all points: what makes a fold hard for every graph does not blur which of them is better.

    Examples
    --------
    >>> table = pd.DataFrame({"threshold": [0.1, 0.3]})
    >>> with_likelihood(table, np.array([[1.0, 2.0], [0.5, 1.7]]))["behind"].round(3).tolist()
    [0.0, 0.4]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean = scores.mean(axis=1)
        behind = scores[mean.argmax()] - scores  # (points, folds)
        error = behind.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
    if not (np.isfinite(mean).all() and np.isfinite(error).all()):
        raise ValueError(
            "Some rows are so far from the others that graphs fitted without them give them no "
            "likelihood. Look at the outlying cells that rescore check reports."
        )
    return table.assign(log_likelihood=mean, behind=behind.mean(axis=1), behind_se=error)


def _stability(
    study: Study, strengths: list[Matrix], thresholds: Sequence[float], count: int
) -> list[float]:
    """The mean agreement of the graphs of the halves, for each λ and threshold."""
    each = len(strengths) // count
    parts = (strengths[k * each : (k + 1) * each] for k in range(count))
    return [
        float(np.mean(stabilities([graphs(W, [at], study.required)[0] for W in part])))
        for part in parts
        for at in thresholds
    ]


def held_out(model: Any, graphs: Sequence[Mask], part: Given, test: Given) -> list[float]:
    """The mean log-likelihood of the rows of ``test`` under each graph (d, d), fitted to a part.

    Without a model, straight lines are fitted to each graph; with one, it is the model's own
    functions that are used, blind to the edges a graph lacks.

    Examples
    --------
    >>> given = Given.of(np.random.default_rng(0).normal(size=(1000, 1)))
    >>> [score] = held_out(None, [np.zeros((1, 1), dtype=bool)], given, given)
    >>> round(score, 1)
    -1.4
    """
    known: dict[bytes, float] = {}  # neighbouring thresholds often leave the same graph
    for graph in graphs:
        if graph.tobytes() not in known:
            known[graph.tobytes()] = (
                refitted_score(graph, part, test)
                if model is None
                else pruned_score(model, graph, part, test)
            )
    return [known[graph.tobytes()] for graph in graphs]


def pruned_score(model: Any, graph: Mask, part: Given, test: Given) -> float:
    """What ``model.score`` would say had the threshold left this graph (d, d), a part of its own.

    Examples
    --------
    >>> from rescore import Linear, simulate
    >>> given = Given.of(simulate(nodes=3, degree=1, random_state=100).X)
    >>> model = Linear().fit(given.X)
    >>> own = pruned_score(model, model.adjacency_matrix_.to_numpy() != 0, given, given)
    >>> bool(np.isclose(own, model.score(given.X)))
    True
    """
    blind = _Blind(model.equations_, graph, part.prior @ part.values)
    w = model.sample_weight_.to_numpy()
    mean, variance = residual_moments(blind, part.values, w)  # type: ignore[arg-type]
    own = part.values.var(axis=0)
    variance = np.maximum(variance, SMALLEST_SHARE * own) * (own > 0)
    shifted = _Blind(blind.equations, graph, blind.fill, mean)
    rows = log_likelihoods(shifted, variance, test.values)  # type: ignore[arg-type]
    used = test.prior > 0
    return float(test.prior[used] @ rows[used])


@dataclass(frozen=True, eq=False)
class _Blind:
    """Equations that see the edges of a graph alone: other inputs are held at their means."""

    equations: Equations
    graph: Mask  # (d, d)
    fill: Matrix  # (d,)
    offset: Matrix | float = 0.0  # (d,)

    def predict(self, X: Matrix) -> Matrix:
        """Every variable of every row from its parents in the graph, (n, d)."""
        seen = (np.where(self.graph[:, j], X, self.fill) for j in range(len(self.fill)))
        columns = [self.equations.variable(Z, j) for j, Z in enumerate(seen)]
        return np.column_stack(columns) + self.offset
