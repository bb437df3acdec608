"""What the records of an experiment say, in the few sentences that open its page."""

from collections.abc import Mapping, Sized

import numpy as np
import pandas as pd

from rescore.experiments.averages import RESCORED, cells, gains
from rescore.experiments.published import beside
from rescore.experiments.store import Record

__all__ = ["against_chance", "conclusion", "published_gains"]

GAIN, LOSS, WITHIN, SAME = "gain", "loss", "within chance", "same"
LOWER, HIGHER = "lower", "higher"  # of one data set, which has no interval
BETTER, WORSE = (GAIN, LOWER), (LOSS, HIGHER)
ALONE = " of one data set each, where chance cannot be told"
NOTHING = "No learner has results both with and without ReScore: there is nothing to compare."


def conclusion(runs: pd.DataFrame, theirs: pd.DataFrame, records: Mapping[str, Record]) -> str:
    """One to three sentences: costs where these were published, else gains, else row weights.

    Examples
    --------
    >>> runs = pd.DataFrame({"method": ["A", "A", "A + ReScore", "A + ReScore"], "setting": "",
    ...                      "seed": [0, 1, 0, 1], "status": "ok", "shd": [5.0, 7.0, 3.0, 5.0]})
    >>> runs.attrs["data"] = []
    >>> print(conclusion(runs, pd.DataFrame(columns=["method", "metric", "mean"]), {}))
    ReScore lowers the SHD beyond chance in 1 of 1 comparison.
    """
    if (theirs["metric"] == "seconds").any():
        return _costs(cells(runs), theirs) or NOTHING
    found = gains(runs)
    if len(found):
        return _compared(found, theirs)
    return _weights(runs, records) or NOTHING


def against_chance(found: pd.DataFrame) -> pd.Series:
    """A word for each row of gains: whether zero is outside the interval, and on which side.

    Examples
    --------
    >>> found = pd.DataFrame({"gain": [2.0, -2.0, 2.0], "half_interval": [1.0, 3.0, float("nan")]})
    >>> against_chance(found).tolist()
    ['gain', 'within chance', 'lower']
    """
    gain, half = found["gain"], found["half_interval"]
    alone, nowhere = half.isna(), (gain == 0) & (half.fillna(0) == 0)
    cases = [nowhere, alone & (gain > 0), alone, gain > half, gain < -half]
    return pd.Series(np.select(cases, [SAME, LOWER, HIGHER, GAIN, LOSS], WITHIN), found.index)


def published_gains(found: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """The published plain SHD and its gain, a row for each of ours, NaN where there is none."""
    before = beside(found.assign(method=_plain(found["method"])), theirs, "shd")["mean"]
    return pd.DataFrame(
        {"before": before, "gain": before - beside(found, theirs, "shd")["mean"]},
    )


def _compared(found: pd.DataFrame, theirs: pd.DataFrame) -> str:
    word, alone = against_chance(found), found["half_interval"].isna()
    parts = [_counted(word[~alone], beyond=" beyond chance"), _counted(word[alone], each=ALONE)]
    if found["method"].nunique() > 1 and not word.isin([WITHIN, SAME]).all():
        parts.append(_by_method(found["method"], word))
    there = published_gains(found, theirs)
    there = there[there["gain"].notna()]
    parts.append(_published(there, word[there.index]))
    return " ".join(part for part in parts if part)


def _counted(word: pd.Series, beyond: str = "", each: str = "") -> str:
    """How often better, worse and neither; a clause for each that there is."""
    if not len(word):
        return ""
    better, worse = int(word.isin(BETTER).sum()), int(word.isin(WORSE).sum())
    within, same = int((word == WITHIN).sum()), int((word == SAME).sum())
    clauses = [
        f"lowers the SHD{beyond} in {better or 'none'} of {_number(word, 'comparison')}{each}",
        f"raises it in {worse}" * (worse > 0),
        f"changes it within chance in {within}" * (within > 0),
        f"leaves it as it is in {same}" * (same > 0),
    ]
    *most, last = [clause for clause in clauses if clause]
    return f"ReScore {', '.join(most)}{' and ' * bool(most)}{last}."


def _by_method(method: pd.Series, word: pd.Series) -> str:
    parts = []
    for name, words in word.groupby(method, sort=False):
        better, worse = int(words.isin(BETTER).sum()), int(words.isin(WORSE).sum())
        parts.append(f"{name} {better} of {len(words)}" + f" (worse in {worse})" * (worse > 0))
    return f"Better by method: {', '.join(parts)}."


def _published(there: pd.DataFrame, word: pd.Series) -> str:
    """What the paper has in the same places, and how often that is seen here."""
    if not len(there):
        return ""
    lower = there["gain"] > 0
    percent = 100 * there["gain"][lower] / there["before"][lower]
    here = int(word[lower].isin(BETTER).sum())
    seen = f", by {_span(percent, 0)} %; {here or 'none'} of those here too" if lower.any() else ""
    return f"The paper has numbers for {len(there)} of them, lower in {lower.sum()}{seen}."


def _costs(found: pd.DataFrame, theirs: pd.DataFrame) -> str:
    ours = found.set_index("method")["cpu_seconds"]
    paper = theirs[theirs["metric"] == "seconds"].set_index("method")["mean"]
    here, there = _ratios(ours), _ratios(paper)
    if not len(here):
        return ""
    return (
        f"A fit with ReScore takes {_span(here, 1)} times the CPU seconds of the plain one, "
        f"compiling included; published: {_span(there, 1)} times."
    )


def _ratios(seconds: pd.Series) -> pd.Series:
    """With ReScore over plain, where there are both."""
    again = seconds[seconds.index.str.contains(RESCORED, regex=False)]
    return (again / seconds.reindex(_plain(again.index.to_series())).to_numpy()).dropna()


def _weights(runs: pd.DataFrame, records: Mapping[str, Record]) -> str:
    """The weights themselves, where rows are kept: those of a minority, or their range."""
    kept = runs[runs["status"].isin(["ok", "not converged"])].drop_duplicates("method")
    rows = {
        name: pd.DataFrame(records[key]["result"]["rows"])
        for name, key in kept[["method", "key"]].to_numpy()
        if "rows" in records[key]["result"]
    }
    return _weighed(list(rows.values()))


def _weighed(fits: list[pd.DataFrame]) -> str:
    if not fits:
        return ""
    rows = pd.concat(fits, keys=range(len(fits)), names=["fit"])
    told = f"in {_number(fits, 'fit')}, where 1 is the mean of all rows."
    if "group" not in rows:
        return f"Rows weigh {_span(rows['weight'], 2)} {told}"
    rare = rows["group"] != rows["group"].mode()[0]
    few, many = (rows["weight"][part].groupby("fit").mean() for part in (rare, ~rare))
    return f"A row of the minority weighs {_span(few, 1)}, another {_span(many, 1)}, {told}"


def _plain(method: pd.Series) -> pd.Series:
    return method.str.split(RESCORED, regex=False).str[0]


def _number(things: Sized, name: str) -> str:
    return f"{len(things)} {name}" + "s" * (len(things) != 1)


def _span(values: pd.Series, digits: int) -> str:
    low, high = f"{values.min():.{digits}f}", f"{values.max():.{digits}f}"
    return low if low == high else f"{low} to {high}"
