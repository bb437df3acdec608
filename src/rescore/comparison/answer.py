"""From the records of all resamples to a sentence: whether a weighting beats the plain learner."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from rescore.comparison.fits import PLAIN, RANDOM
from rescore.comparison.summary import MEASURES, deciding, summary

Cells = Mapping[Hashable, Mapping[Hashable, Any]]  # by method and column


def answer(records: pd.DataFrame) -> str:
    """Whether a weighting beats the plain learner, as a sentence.

    A difference counts if its interval excludes zero at a level of 95 % for all methods and
    measures together (Bonferroni).
    """
    measures = deciding(records)
    asked = [method for method in dict.fromkeys(records["method"]) if method != PLAIN]
    comparisons = len(asked) * len(measures)
    cells = summary(records, level=1 - 0.05 / comparisons).to_dict("index")
    basis = (
        f"{records['resample'].nunique()} resamples of the rows, intervals corrected for "
        f"{comparisons} comparisons"
    )
    gains = {m: _gain(cells, m, asked) for m in measures}
    found = [gains[m] or _no_gain(cells, m, asked) for m in measures]
    if not any(gains.values()):
        found[0] = f"No gain beyond chance: {found[0]}"
    return f"{'; '.join(found)} ({basis})."


def _gain(cells: Cells, measure: str, asked: list[str]) -> str:
    """The best improvement and who shares it; empty if there is none but of random weights."""
    better = [method for method in asked if _better(cells, method, measure) > 0]
    candidates = [method for method in better if method != RANDOM]
    if not candidates:
        return ""
    best = _best(cells, measure, candidates)
    text = f"Gain: {_change(cells, measure, best)}"
    others = [method for method in candidates if method != best]
    text += f", {' and '.join(others)} too" if others else ""
    if RANDOM in better:
        text += ", but random weights do as well, so which rows are heavy may not matter"
    return text


def _no_gain(cells: Cells, measure: str, asked: list[str]) -> str:
    """The most favourable difference, and who is worse than plain."""
    candidates = [method for method in asked if method != RANDOM]
    text = _change(cells, measure, _best(cells, measure, candidates)) + " at best"
    worse = [method for method in asked if _better(cells, method, measure) < 0]
    return text + (f", and {' and '.join(worse)} weights make it worse" if worse else "")


def _best(cells: Cells, measure: str, methods: list[str]) -> str:
    sign = 1 if MEASURES[measure].more_is_better else -1
    return max(methods, key=lambda method: sign * cells[method][f"{measure}_difference"])


def _change(cells: Cells, measure: str, method: str) -> str:
    before, after = cells[PLAIN][measure], cells[method][measure]
    low, high = (cells[method][f"{measure}_{end}"] for end in ("low", "high"))
    return (
        f"{method} weights take the {MEASURES[measure].words} from {before:.3g} to {after:.3g}, "
        f"a difference between {low:+.2g} and {high:+.2g}"
    )


def _better(cells: Cells, method: str, measure: str) -> int:
    """1 if the method is better than plain beyond its interval, -1 if worse, otherwise 0."""
    low, high = (cells[method][f"{measure}_{end}"] for end in ("low", "high"))
    more = int(low > 0) - int(high < 0)
    return more if MEASURES[measure].more_is_better else -more
