"""The fits behind a path of graphs: one per λ and set of rows, whatever the thresholds."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rescore.advice.scores import held_out
from rescore.constraints import edge_masks
from rescore.estimators import ReScore, StructureLearner
from rescore.graph import threshold as without_weak_edges
from rescore.moments import Matrix
from rescore.protocols import Mask, Status
from rescore.tables.table import DataWarning

Positions = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Study:
    """What all fits have in common."""

    X: pd.DataFrame
    learner: StructureLearner  # ours, or ReScore around one of ours
    sample_weight: Matrix | None = None  # (n,)
    groups: NDArray[Any] | None = None  # (n,)

    @property
    def inner(self) -> Any:
        """The learner itself, whose parameters are sought."""
        wrapped = isinstance(self.learner, ReScore)
        return self.learner.estimator if wrapped else self.learner

    @property
    def required(self) -> Mask:
        """Edges that no threshold drops, (d, d)."""
        known = (getattr(self.inner, name, None) for name in ("forbidden", "required"))
        names = tuple(self.X.columns)
        return edge_masks(names, *(None if e is None else tuple(e) for e in known))[1]

    def weights(self, rows: Positions) -> Matrix | None:
        """The prior weights of these rows."""
        return None if self.sample_weight is None else self.sample_weight[rows]


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


def fit(study: Study, lambda1: float | None, rows: Positions) -> Fit:
    """The learner on these rows, with this λ and no threshold; None is its own λ."""
    wanted = {} if lambda1 is None else {"lambda1": lambda1}
    model = tuned(study.learner, threshold=0.0, **wanted)
    known = {} if study.groups is None else {"groups": study.groups[rows]}
    with warnings.catch_warnings():  # each would be said many times; the advice counts them
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(_rows(study, rows), sample_weight=study.weights(rows), **known)
    cut = [abs(edge["weight"]) for edge in model.diagnostics_["removed_edges"]]
    W = model.adjacency_matrix_.to_numpy()
    return Fit(model, W, max(cut, default=0.0), model.status_ is Status.CONVERGED)


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
    found = fit(study, lambda1, rows)
    parts = _rows(study, rows), study.weights(rows)
    tests = study.X.iloc[left_out], study.weights(left_out)
    wanted = graphs(found.W, thresholds, study.required)
    model = None if study.inner.linear else found.model
    return found.converged, held_out(model, wanted, *parts, *tests)


def half_strengths(study: Study, lambda1: float | None, rows: Positions) -> tuple[bool, Matrix]:
    """Whether the fit converged, and its strengths (d, d)."""
    found = fit(study, lambda1, rows)
    return found.converged, found.W


def _rows(study: Study, rows: Positions) -> pd.DataFrame:
    return study.X.iloc[rows].reset_index(drop=True)
