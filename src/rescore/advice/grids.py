"""The λ and the thresholds that are tried."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rescore.checking import check_number
from rescore.moments import Matrix

FACTORS = (0.1, 0.3, 1.0, 3.0)  # of the learner's own λ
ROUND = (1, 2, 3, 5, 7)  # times a power of ten: the thresholds
DECADES = 2  # below the strongest edge


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
