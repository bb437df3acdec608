"""The fit of one resample, as `fit` makes it: what it found, and how the rows were weighed."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rescore.estimators import Custom, StructureLearner
from rescore.moments import Matrix
from rescore.protocols import Status
from rescore.row_weights import prior_weights
from rescore.stability.drawing import Counts, draw
from rescore.tables.table import DataWarning, Table

__all__ = ["Outcome", "Study", "drawn", "refit", "resample"]

ROUNDING = 1e-9  # relative difference of weights that is none


@dataclass(frozen=True, eq=False)
class Study:
    """What all resamples have in common."""

    table: Table
    model: StructureLearner
    scheme: str
    rows: Counts  # (n,), how many each row stands for
    sample_weight: Matrix | None = None  # (n,), of weights that are no whole numbers
    groups: NDArray[Any] | None = None  # (n,), labels
    codes: NDArray[np.intp] | None = None  # (n,), the same as numbers

    @property
    def by_weight(self) -> bool:
        """Whether a row drawn k times may be one row of weight k, which is faster.

        Not where the rows have other weights or are counted by group, nor for learners that know
        no weights or would draw rows by them once more.
        """
        learner = getattr(self.model, "estimator", self.model)
        ours = isinstance(learner, StructureLearner) and not isinstance(learner, Custom)
        weighs = ours and getattr(learner, "weighs_rows", False)
        return weighs and self.sample_weight is None and self.groups is None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one resample gave."""

    W: Matrix  # (d, d)
    counts: Counts  # (n,), how often each row was drawn
    status: Status
    weight: Matrix | None = None  # (n,), relative to equal weights; NaN, not drawn; None, all one


def drawn(study: Study, seed: np.random.SeedSequence) -> Counts:
    """How often each row is in the resample of this seed, (n,)."""
    return draw(study.rows, study.scheme, study.codes, np.random.default_rng(seed))


def resample(study: Study, seed: np.random.SeedSequence) -> Outcome:
    """Draw, and fit."""
    return refit(study, drawn(study, seed))


def refit(study: Study, counts: Counts) -> Outcome:
    """The model fitted to the rows drawn ``counts`` (n,) times, by its own `fit`."""
    every = np.arange(len(counts))
    rows = every if study.by_weight else np.repeat(every, counts)
    given = counts if study.by_weight else study.sample_weight
    weight = None if given is None else given[rows]
    known = {} if study.groups is None else {"groups": study.groups[rows]}
    names = pd.Index(list(study.table.names), tupleize_cols=False)
    model = clone(study.model)
    with warnings.catch_warnings():  # each would be said a hundred times; fits are counted instead
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model.fit(
                pd.DataFrame(study.table.values[rows], columns=names), sample_weight=weight, **known
            )
        except ValueError as error:
            raise ValueError(f"In a resample of the rows: {error}") from error
    relative = _relative(model.sample_weight_.to_numpy(), weight, rows, len(counts))
    return Outcome(model.adjacency_matrix_.to_numpy(), counts, model.status_, relative)


def _relative(w: Matrix, weight: Any, rows: NDArray[np.intp], n: int) -> Matrix | None:
    """The learned weight of each row of the table over the weight it came with, (n,)."""
    prior = prior_weights(weight, len(rows))
    if np.allclose(w, prior, rtol=ROUNDING, atol=0):
        return None
    learned, given = (np.bincount(rows, each, minlength=n) for each in (w, prior))
    return np.divide(learned, given, out=np.full(n, np.nan), where=given > 0)
