"""What is accepted for a number, a flag or a word, and the sentence for everything else."""

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """``value`` as a float, if it is a finite real number within the bounds.

    Examples
    --------
    >>> check_number("tau", 1.5, above=0, at_most=1)
    Traceback (most recent call last):
        ...
    ValueError: tau must be a number above 0 and of at most 1, got 1.5.
    """
    bounds = {"above": above, "of at least": at_least, "below": below, "of at most": at_most}
    wanted = " and ".join(
        f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None
    )
    sentence = f"{name} must be a number {wanted}, got {value!r}."
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(sentence)
    number = float(value)
    inside = (
        (above is None or number > above)
        and (at_least is None or number >= at_least)
        and (below is None or number < below)
        and (at_most is None or number <= at_most)
    )
    if not (inside and np.isfinite(number)):
        raise ValueError(sentence)
    return number


def check_integer(name: str, value: Any, *, at_least: int) -> int:
    """``value`` as an int, if it is a whole number of at least ``at_least``; True is not one.

    Examples
    --------
    >>> check_integer("max_steps", True, at_least=1)
    Traceback (most recent call last):
        ...
    TypeError: max_steps must be a whole number of at least 1, got True.
    """
    sentence = f"{name} must be a whole number of at least {at_least}, got {value!r}."
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(sentence)
    if value < at_least:
        raise ValueError(sentence)
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """``value`` as a bool, if it is True or False.

    Examples
    --------
    >>> check_flag("standardize", "yes")
    Traceback (most recent call last):
        ...
    TypeError: standardize must be True or False, got 'yes'.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """``value`` in the spelling of ``choices``, found without regard to case.

    Examples
    --------
    >>> check_choice("graph", "er", ["ER", "SF"])
    'ER'
    >>> check_choice("loss", "square", ["nll", "raw"])
    Traceback (most recent call last):
        ...
    ValueError: loss must be one of nll, raw; got 'square'.
    """
    words = list(choices)
    sentence = f"{name} must be one of {', '.join(words)}; got {value!r}."
    if not isinstance(value, str):
        raise TypeError(sentence)
    for word in words:
        if word.casefold() == value.casefold():
            return word
    raise ValueError(sentence)


def check_seed(random_state: Any) -> int:
    """The seed that ``random_state`` asks for; None is 0, so that a fit can be repeated.

    Examples
    --------
    >>> check_seed(None), check_seed(3)
    (0, 3)
    """
    return check_integer("random_state", 0 if random_state is None else random_state, at_least=0)


def reads_as_number(text: str) -> bool:
    """Whether Python reads the text as a number, decimal commas included.

    Examples
    --------
    >>> reads_as_number("1,5"), reads_as_number("x1")
    (True, False)
    """
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
