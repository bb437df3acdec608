"""The fits of one resample: every method on the same rows, scored on the rows left out."""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rescore.backbones.custom import regressions
from rescore.equations import log_likelihoods, residual_moments
from rescore.estimators import GraphLearner, ReScore
from rescore.metrics import shd, sid
from rescore.moments import Matrix, Rows
from rescore.protocols import Mask, Status
from rescore.row_weights import prior_weights
from rescore.tables.table import DataWarning
from rescore.weightings.drawn import Drawn

PLAIN = "plain"
RANDOM = "random"

Positions = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Study:
    """What all resamples have in common."""

    X: pd.DataFrame
    learner: GraphLearner
    tau: float
    truth: Any = None
    sample_weight: Matrix | None = None  # (n,)
    groups: NDArray[Any] | None = None  # (n,)

    def methods(self, seed: int) -> dict[str, Any]:
        """The estimators to compare, the plain learner first; ``seed`` is for random weights."""
        exact, neural = (
            ReScore(self.learner, tau=self.tau, weighting=name) for name in ("exact", "neural")
        )
        random = ReScore(self.learner, weighting=Drawn(self.tau, seed))
        methods = {PLAIN: self.learner, "auto": ReScore(self.learner), "exact": exact}
        methods |= {"neural": neural, RANDOM: random}
        if self.groups is not None:
            labelled = ReScore(self.learner, weighting="inverse-propensity")
            methods["inverse-propensity"] = labelled
        return methods


def resample(study: Study, seed: np.random.SeedSequence) -> list[dict[str, Any]]:
    """A record per method, ``graph`` among its entries; the rows are drawn with replacement.

    Examples
    --------
    >>> from rescore import Linear
    >>> X = pd.DataFrame(np.random.default_rng(0).normal(size=(99, 2)))
    >>> records = resample(Study(X, Linear(), tau=0.5), np.random.SeedSequence(0))
    >>> [record["method"] for record in records]
    ['plain', 'auto', 'exact', 'neural', 'random']
    """
    rows, left_out = _draw(len(study.X), np.random.default_rng(seed))
    methods = study.methods(int(seed.generate_state(1)[0]))
    return [
        {"method": name, **_fitted(study, clone(method), rows, left_out)}
        for name, method in methods.items()
    ]


def _draw(n: int, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """As many rows as there are, drawn with replacement, and those never drawn."""
    while True:
        rows = np.sort(rng.integers(n, size=n))
        left_out = np.setdiff1d(np.arange(n), rows)
        if len(left_out):
            return rows, left_out


def _fitted(study: Study, model: Any, rows: Positions, left_out: Positions) -> dict[str, Any]:
    X, test = study.X.iloc[rows].reset_index(drop=True), study.X.iloc[left_out]
    weight, test_weight = (
        None if study.sample_weight is None else study.sample_weight[part]
        for part in (rows, left_out)
    )
    known = (
        {"groups": study.groups[rows]} if model.needs_groups and study.groups is not None else {}
    )
    start = time.process_time()
    with warnings.catch_warnings():  # each would be said a hundred times; the table counts them
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, sample_weight=weight, **known)
    seconds = time.process_time() - start
    graph = model.adjacency_matrix_.to_numpy() != 0
    record: dict[str, Any] = {"graph": graph}
    if study.truth is not None:
        record |= _errors(study.truth, model.adjacency_matrix_)
    if study.learner.linear:
        record["graph_log_likelihood"] = refitted_score(X, weight, graph, test, test_weight)
    return record | {
        "log_likelihood": model.score(test, sample_weight=test_weight),
        "edges": int(graph.sum()),
        "effective_rows": model.diagnostics_["effective_rows"],
        "converged": model.status_ is Status.CONVERGED,
        "cpu_seconds": seconds,
    }


def _errors(truth: Any, graph: pd.DataFrame) -> dict[str, float]:
    try:
        distance = float(sid(truth, graph))
    except ValueError:  # the truth is no DAG
        distance = float("nan")
    return {"shd": shd(truth, graph), "sid": distance}


def refitted_score(
    X: pd.DataFrame, weight: Any, graph: Mask, test: pd.DataFrame, test_weight: Any
) -> float:
    """The held-out log-likelihood of a graph whose straight lines are fitted with equal weights.

    Learned weights move coefficients and variances away from those of the rows as they come,
    which costs likelihood whether or not the graph is better; this tells the two apart.

    Examples
    --------
    >>> X = pd.DataFrame(np.random.default_rng(0).normal(size=(1000, 1)))
    >>> score = refitted_score(X, None, np.zeros((1, 1), dtype=bool), X, None)
    >>> round(score, 1)
    -1.4
    """
    values = X.to_numpy()
    w = prior_weights(weight, len(values))
    moments = Rows(values).moments(w)
    equations = regressions(moments, graph)
    variance = residual_moments(equations, values, w)[1]
    own = np.diag(moments.covariance)
    # What is left of a column that others determine is rounding.
    variance = np.maximum(variance, 1e-12 * own)
    v = prior_weights(test_weight, len(test))
    return float(v @ log_likelihoods(equations, variance, test.to_numpy()))
