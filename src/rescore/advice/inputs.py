"""What `advise` is given, checked: the learner, its rows, and the parts of the rows."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rescore import estimators
from rescore.advice.path import Positions, Study
from rescore.estimators import ReScore, StructureLearner
from rescore.estimators.custom import as_learner
from rescore.row_weights import prior_weights
from rescore.tables.labels import group_codes, row_labels
from rescore.tables.table import as_table

FEWEST_ROWS = 4  # in every part of the rows


class Splits(NamedTuple):
    """Parts of the rows, by position."""

    folds: list[tuple[Positions, Positions]]  # to fit, and left out
    halves: list[Positions]


def study_of(learner: Any, X: Any, sample_weight: Any, groups: Any) -> Study:
    """The learner and its rows, refused before the first fit rather than after it."""
    known = known_learner(learner)
    table = as_table(X)
    n = len(table.values)
    frame = pd.DataFrame(table.values, columns=pd.Index(list(table.names), tupleize_cols=False))
    if sample_weight is not None:
        prior_weights(sample_weight, n)
        sample_weight = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n)
    labels = None if groups is None else row_labels(groups, table.index)
    return Study(frame, known, sample_weight, labels)


def known_learner(learner: Any) -> StructureLearner:
    """The learner as one of ours, which has a threshold.

    Examples
    --------
    >>> known_learner(estimators.GES())
    Traceback (most recent call last):
        ...
    ValueError: GES has neither a threshold nor a lambda1 to advise on: ...
    """
    if isinstance(learner, ReScore):
        inner = as_learner(learner.estimator)
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
    kinds = {name: getattr(estimators, name) for name in estimators.__all__}
    return [
        name
        for name, kind in kinds.items()
        if hasattr(kind, "_get_param_names") and "threshold" in kind._get_param_names()
    ]


def splits(study: Study, folds: int, subsamples: int, seed: int) -> Splits:
    """So many folds, and so many halves of the rows, complementary ones in pairs.

    Where there are groups, each is spread evenly over the folds and the halves.
    """
    n = len(study.X)
    codes = np.zeros(n, dtype=np.intp) if study.groups is None else group_codes(study.groups)
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
