"""Does reweighting help on these rows?  Plain and reweighted fits, paired over resamples."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rescore.equations import log_likelihoods, residual_moments
from rescore.learners.base import GraphLearner
from rescore.learners.custom import as_learner, regressions
from rescore.learners.rescore import ReScore
from rescore.metrics import shd, sid
from rescore.metrics.pairing import paired
from rescore.moments import Rows
from rescore.protocols import Mask
from rescore.studies import Given, Positions, Refits, converged, opening_of, refit
from rescore.studies.differences import (
    CHANGES,
    PLAIN,
    RANDOM,
    answer,
    changes,
    deciding,
    readable,
    stabilities,
    summary,
)
from rescore.tables.table import TableLike
from rescore.validation import check_integer, check_number
from rescore.weightings import Drawn

FEWEST_ROWS = 10


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    table : DataFrame
        One row per method.  For every measure its mean, the mean paired difference to the plain
        learner and that difference's 95 % interval (``_difference``, ``_low``, ``_high``); mean
        edges, pairs joined otherwise than in the plain graph of the same rows (``changed``, and
        ``turned`` round) and effective rows, the share of fits that converged, median CPU seconds.
    records : DataFrame
        One row per method and resample.
    answer : str
        Whether reweighting helps, as a sentence; its intervals are corrected for the number of
        comparisons, those of the table are not.

    Examples
    --------
    >>> from rescore import Linear, compare, simulate
    >>> X = simulate(nodes=3, degree=1, samples=200, random_state=100).X
    >>> result = compare(X, Linear(), resamples=3)
    >>> list(result.table.index)
    ['plain', 'auto', 'exact', 'neural', 'random']
    """

    table: pd.DataFrame
    records: pd.DataFrame
    answer: str

    def __repr__(self) -> str:
        shown = readable(self.table, deciding(self.records))
        return f"{shown.to_string()}\n\n{self.answer}"


@dataclass(frozen=True, eq=False)
class Study:
    """What all resamples have in common."""

    given: Given
    learner: GraphLearner
    tau: float
    truth: Any = None

    def methods(self, seed: int) -> dict[str, Any]:
        """The estimators to compare, the plain learner first; ``seed`` is for random weights."""
        exact, neural = (
            ReScore(self.learner, tau=self.tau, weighting=name) for name in ("exact", "neural")
        )
        random = ReScore(self.learner, weighting=Drawn(self.tau, seed))
        methods = {PLAIN: self.learner, "auto": ReScore(self.learner), "exact": exact}
        methods |= {"neural": neural, RANDOM: random}
        if self.given.groups is not None:
            labelled = ReScore(self.learner, weighting="inverse-propensity")
            methods["inverse-propensity"] = labelled
        return methods


def compare(
    X: "TableLike",
    learner: Any,
    *,
    tau: float = 0.5,
    truth: Any = None,
    sample_weight: "ArrayLike | None" = None,
    groups: "ArrayLike | None" = None,
    resamples: int = 20,
    random_state: int = 0,
    n_jobs: int | None = 1,
    on_resample: Callable[[int], Any] | None = None,
) -> Comparison:
    """Fit a learner plainly and with every weighting, on the same resamples of the same rows.

    Each resample draws n of the n rows with replacement; the rows never drawn are held out.
    The methods are the plain learner, automatic, exact and neural weights, and random weights
    inside the same box as a control.

    Without a truth the measures are the mean log-likelihood of the held-out rows, with the
    equations of the model and, for linear learners, with its graph alone, refitted with equal
    weights; and the stability of the edges: the share of the pairs adjacent in the graphs of
    either of two resamples that have the same edge in both, on average over the other resamples.
    They say how well and how steadily rows are described, not which way arrows point.  With a
    truth there are also SHD and SID; it is used for these alone.

    Parameters
    ----------
    X : table
        The rows, as for `fit`.
    learner : GraphLearner, or whatever `ReScore` takes
        The learner to reweight.
    tau : float in (0, 1]
        The box of exact, neural and random weights.
    truth : graph, optional
        A matrix, table or networkx.DiGraph; only scores the graphs.
    sample_weight : array (n,), optional
        Prior row weights, in fits and on held-out rows.
    groups : array (n,), optional
        Labels for learners that need them; also adds inverse-propensity weights.
    resamples : int
        How many, at least two.
    random_state : int
        Seed of the resamples and of random weights.
    n_jobs : int, optional
        Processes, as joblib counts them.
    on_resample : callable, optional
        Called with the number of resamples done, after each.

    Examples
    --------
    >>> from rescore import Linear, simulate
    >>> data = simulate(nodes=3, degree=1, samples=200, random_state=100)
    >>> compare(data.X, Linear(), truth=data.truth, resamples=5).answer
    'No gain beyond chance: auto weights take the SHD from 0 to 0, a difference between +0 and +0
    at best (5 resamples of the rows, intervals corrected for 4 comparisons).'
    """
    study = _study(X, learner, tau, truth, sample_weight, groups)
    count = check_integer("resamples", resamples, at_least=2)
    seed = check_integer("random_state", random_state, at_least=0)
    children = np.random.SeedSequence(seed).spawn(count)
    fits = Refits(n_jobs, on_resample).made(resample, ((study, child) for child in children))
    found = [{"resample": number, **record} for number, each in enumerate(fits) for record in each]
    records = _with_stability(pd.DataFrame(found))
    return Comparison(summary(records), records, answer(records))


def _study(X: Any, learner: Any, tau: float, truth: Any, sample_weight: Any, groups: Any) -> Study:
    given = Given.of(X, sample_weight, groups, opening_of(learner))
    n, names = len(given.X), given.X.columns
    if n < FEWEST_ROWS:
        raise ValueError(f"compare needs at least {FEWEST_ROWS} rows to leave some out, got {n}.")
    if truth is not None:  # refused before the first fit rather than after it
        paired(truth, pd.DataFrame(0, index=names, columns=names))
    box = check_number("tau", tau, above=0, at_most=1)
    known = as_learner(learner)
    if not known.weighs_rows:
        raise ValueError(f"{type(known).__name__} knows no row weights: nothing can be compared.")
    return Study(given, known, box, truth)


def _with_stability(records: pd.DataFrame) -> pd.DataFrame:
    """The records with the stability of every graph in the place of the graph itself."""
    for _, part in records.groupby("method"):
        records.loc[part.index, "stability"] = stabilities(list(part["graph"]))
    last = ["edges", *CHANGES, "effective_rows", "converged", "cpu_seconds"]
    first = [name for name in records if name not in {*last, "graph"}]
    return records[[*first, *last]]


def resample(study: Study, seed: np.random.SeedSequence) -> list[dict[str, Any]]:
    """A record per method, ``graph`` among its entries; the rows are drawn with replacement.

    Examples
    --------
    >>> from rescore import Linear
    >>> given = Given.of(np.random.default_rng(0).normal(size=(99, 2)))
    >>> records = resample(Study(given, Linear(), tau=0.5), np.random.SeedSequence(0))
    >>> [record["method"] for record in records]
    ['plain', 'auto', 'exact', 'neural', 'random']
    """
    rows, left_out = _draw(len(study.given.X), np.random.default_rng(seed))
    drawn, test = study.given.part(rows), study.given.part(left_out)
    methods = study.methods(int(seed.generate_state(1)[0]))
    records = [
        {"method": name, **_measured(study, method, drawn, test)}
        for name, method in methods.items()
    ]
    return [record | changes(record["graph"], records[0]["graph"]) for record in records]


def _draw(n: int, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """As many rows as there are, drawn with replacement, and those never drawn."""
    while True:
        rows = np.sort(rng.integers(n, size=n))
        left_out = np.setdiff1d(np.arange(n), rows)
        if len(left_out):
            return rows, left_out


def _measured(study: Study, method: Any, drawn: Given, test: Given) -> dict[str, Any]:
    start = time.process_time()
    model = refit(method, drawn)
    seconds = time.process_time() - start
    graph = model.adjacency_matrix_.to_numpy() != 0
    record: dict[str, Any] = {"graph": graph}
    if study.truth is not None:
        record |= _errors(study.truth, model.adjacency_matrix_)
    if study.learner.linear:
        record["graph_log_likelihood"] = refitted_score(graph, drawn, test)
    return record | {
        "log_likelihood": model.score(test.X, sample_weight=test.sample_weight),
        "edges": int(graph.sum()),
        "effective_rows": model.diagnostics_["effective_rows"],
        "converged": converged(model),
        "cpu_seconds": seconds,
    }


def _errors(truth: Any, graph: pd.DataFrame) -> dict[str, float]:
    try:
        distance = float(sid(truth, graph))
    except ValueError:  # the truth is no DAG
        distance = float("nan")
    return {"shd": shd(truth, graph), "sid": distance}


def refitted_score(graph: Mask, drawn: Given, test: Given) -> float:
    """The held-out log-likelihood of a graph whose straight lines are fitted with equal weights.

    Learned weights move coefficients and variances away from those of the rows as they come,
    which costs likelihood whether or not the graph is better; this tells the two apart.

    Examples
    --------
    >>> given = Given.of(np.random.default_rng(0).normal(size=(1000, 1)))
    >>> round(refitted_score(np.zeros((1, 1), dtype=bool), given, given), 1)
    -1.4
    """
    moments = Rows(drawn.values).moments(drawn.prior)
    equations = regressions(moments, graph)
    variance = residual_moments(equations, drawn.values, drawn.prior)[1]
    # What is left of a column that others determine is rounding.
    variance = np.maximum(variance, 1e-12 * np.diag(moments.covariance))
    return float(test.prior @ log_likelihoods(equations, variance, test.values))
