"""What `advise` tries: on which learner, which λ and thresholds, and which parts of the rows."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rescore.learners import LEARNERS, load_learner
from rescore.learners.base import StructureLearner
from rescore.learners.custom import as_learner
from rescore.learners.rescore import ReScore
from rescore.moments import Matrix
from rescore.studies.refit import Given, Positions
from rescore.tables.table import group_codes
from rescore.validation import check_number

FACTORS = (0.1, 0.3, 1.0, 3.0)  # of the learner's own λ
ROUND = (1, 2, 3, 5, 7)  # times a power of ten: the thresholds
DECADES = 2  # below the strongest edge
FEWEST_ROWS = 4  # in every part of the rows


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
