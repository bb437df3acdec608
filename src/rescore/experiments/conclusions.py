"""From records to means, to paired differences with their intervals, and to what these say.

Beside ours stand the paper's own numbers.
"""

from collections.abc import Iterable, Mapping, Sized

import numpy as np
import pandas as pd

from rescore.experiments import Case, Experiment, flat
from rescore.experiments.published_numbers import published
from rescore.experiments.store import Record
from rescore.metrics import HEADINGS

__all__ = [
    "against_chance",
    "beside",
    "best_setting",
    "cells",
    "conclusion",
    "gains",
    "group_ranks",
    "plain_name",
    "published_for",
    "published_gains",
    "tidy",
]

METRICS = (*HEADINGS, "cpu_seconds", "effective_rows", "held_out_loss")
RESCORED = " + ReScore"
GAIN, LOSS, WITHIN, SAME = "gain", "loss", "within chance", "same"
LOWER, HIGHER = "lower", "higher"  # of one data set, which has no interval
BETTER, WORSE = (GAIN, LOWER), (LOSS, HIGHER)
ALONE = " of one data set each, where chance cannot be told"
NOTHING = "No learner has results both with and without ReScore: there is nothing to compare."


def tidy(cases: Iterable[Case], records: Mapping[str, Record]) -> pd.DataFrame:
    """A row for each case: what varies in its data, its method and setting, status and metrics.

    ``status`` is "missing" where nothing was run yet.  The column names of the data's settings are
    in ``attrs["data"]``.
    """
    rows, settings = [], []
    for case in cases:
        record = records.get(case.trial.key, {"status": "missing"})
        data = {name: _text(value) for name, value in flat(case.trial.data).items()}
        for setting, result in _results(case, record.get("result", {})):
            settings.append(data)
            rows.append(
                {"method": case.method, "setting": setting, "seed": case.trial.seed}
                | {"status": record["status"], "key": case.trial.key}
                | {name: result.get(name, np.nan) for name in METRICS}
                | {"held_out_loss": -result.get("held_out", np.nan)}
            )
    data_settings = pd.DataFrame(settings, dtype=object).fillna("none")  # whole numbers stay whole
    table = pd.concat([data_settings, pd.DataFrame(rows)], axis=1)
    varying = [name for name in table.columns[: -len(rows[0])] if table[name].nunique() > 1]
    table = table[[*varying, *rows[0]]]
    table.attrs["data"] = varying
    return table


def _results(case: Case, result: Record) -> list[tuple[str, Record]]:
    """Setting and scores of a case; where several cut-offs were scored, each or the one meant."""
    setting, cuts = _setting(case), result.get("cut_offs", [])
    meant = [c for c in cuts if case.cut_off in (None, c["cut_off"])]
    if not meant:
        return [(setting, result)]
    one = case.cut_off is not None
    return [(setting if one else f"{setting}, cut_off={c['cut_off']}", result | c) for c in meant]


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of every metric over the seeds that ended well, and their count.

    Of CPU seconds the median: the first fit of a shape is compiled, the others are not.

    Examples
    --------
    >>> runs = pd.DataFrame({"method": "A", "setting": "", "status": "ok", "shd": [1.0, 3.0]})
    >>> runs.attrs["data"] = []
    >>> found = cells(runs).iloc[0]
    >>> print(found["shd"], found["shd_std"].round(2), found["runs"])
    2.0 1.41 2
    """
    keys = [*table.attrs["data"], "method", "setting"]
    good = table[table["status"] == "ok"]
    metrics = [name for name in METRICS if name in good]
    grouped = good.groupby(keys, sort=False, dropna=False)[metrics]
    mean, spread = grouped.mean(), grouped.std().add_suffix("_std")
    if "cpu_seconds" in mean:
        mean["cpu_seconds"] = grouped.median()["cpu_seconds"]
    found = pd.concat([mean, spread, grouped.size().rename("runs")], axis=1).reset_index()
    return _in_order(found, table, keys)


def best_setting(table: pd.DataFrame, metric: str = "shd") -> pd.DataFrame:
    """Only the runs of the setting of each method that has the least mean of a metric.

    By "shd" that is a choice with the truth in sight (oracle); settings of which some trial came
    to nothing are not chosen while there is another.
    """
    keys = [*table.attrs["data"], "method"]
    found = cells(table).sort_values(["runs", metric], ascending=[False, True], kind="stable")
    found = found.drop_duplicates(keys)
    kept = table.merge(found[[*keys, "setting"]], on=[*keys, "setting"])
    kept.attrs = table.attrs
    return kept


def gains(table: pd.DataFrame, metric: str = "shd") -> pd.DataFrame:
    """``plain − ReScore`` on the same data sets: mean, half its 95 % interval, and their number.

    ``before`` is the mean of the plain learner on them.  Where the plain learner has several
    settings, one of ReScore is paired with those of the same values.  ``attrs["against"]`` may
    name, for a method, another one that it is compared with.

    Examples
    --------
    >>> runs = pd.DataFrame({"method": ["A", "A", "A + ReScore", "A + ReScore"], "setting": "",
    ...                      "seed": [0, 1, 0, 1], "status": "ok", "shd": [5.0, 7.0, 3.0, 4.0]})
    >>> runs.attrs["data"] = []
    >>> gains(runs)[["method", "gain", "pairs"]].to_dict("records")
    [{'method': 'A + ReScore', 'gain': 2.5, 'pairs': 2}]
    """
    from scipy.stats import t

    both = _pairs(table, metric)
    both["difference"] = both[f"{metric}_plain"] - both[metric]
    keys = [*table.attrs["data"], "method", "setting"]
    grouped = both.groupby(keys, sort=False, dropna=False)
    found = grouped["difference"].agg(gain="mean", std="std", pairs="count")
    found = found.assign(before=grouped[f"{metric}_plain"].mean()).reset_index()
    quantile = t.ppf(0.975, np.maximum(found["pairs"] - 1, 1))
    found["half_interval"] = quantile * found.pop("std") / np.sqrt(found["pairs"])
    return _in_order(found, table, keys)


def _pairs(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Each good run with ReScore beside the plain one on the same data."""
    good = table[table["status"] == "ok"]
    against = table.attrs.get("against", {})
    rescored = good["method"].str.contains(RESCORED, regex=False)
    again = good[rescored | good["method"].isin(list(against))]
    again = again.assign(plain=plain_name(again["method"], against))
    keys = ["plain", *table.attrs["data"], "seed"]
    plain = good.rename(columns={"method": "plain"})[[*keys, "setting", metric]]
    several = plain.groupby("plain")["setting"].nunique() > 1
    both = again.merge(plain, on=keys, suffixes=("", "_plain"))
    same = [
        not several[name] or set(theirs.split(", ")) <= set(ours.split(", "))
        for name, theirs, ours in both[["plain", "setting_plain", "setting"]].to_numpy()
    ]
    return both[np.array(same, dtype=bool)].copy()


def group_ranks(table: pd.DataFrame, records: Mapping[str, Record]) -> pd.DataFrame:
    """For each method the mean over its runs of every group's average rank by weight.

    Examples
    --------
    >>> runs = pd.DataFrame({"method": ["A"], "status": ["ok"], "key": ["k"]})
    >>> group_ranks(runs, {"k": {"result": {"group_rank": {"0": 9.0, "1": 2.0}}}}).values.tolist()
    [['A', '1', 2.0], ['A', '0', 9.0]]
    """
    rows = [
        {"method": method, "group": group, "rank": rank}
        for method, status, key in table[["method", "status", "key"]].to_numpy()
        if status == "ok"
        for group, rank in records[key]["result"].get("group_rank", {}).items()
    ]
    ranks = pd.DataFrame(rows, columns=["method", "group", "rank"])
    means = ranks.groupby(["method", "group"], sort=False)["rank"].mean().reset_index()
    return means.sort_values(["method", "rank"], kind="stable", ignore_index=True)


def _in_order(found: pd.DataFrame, table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The rows in the order in which the experiment declares them."""
    return table[keys].drop_duplicates(ignore_index=True).merge(found, on=keys)


def _setting(case: Case) -> str:
    """What distinguishes runs of one method: its parameters, as text."""
    words = flat(case.trial.method)
    return ", ".join(f"{k.split('.')[-1]}={_text(v)}" for k, v in words.items() if "." in k)


def _text(value: object) -> object:
    return str(value) if isinstance(value, list | dict | tuple) else value


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
        switched = bool(runs.attrs.get("against"))
        return _switched(found, theirs) if switched else _compared(found, theirs)
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
    before = beside(found.assign(method=plain_name(found["method"])), theirs, "shd")["mean"]
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


def _switched(found: pd.DataFrame, theirs: pd.DataFrame) -> str:
    """Which methods are below what each is compared with, and how far the paper's ReScore is."""
    word = against_chance(found)
    percent = (100 * found["gain"] / found["before"]).where(found["before"] > 0, 0.0)
    told = []
    for kind, start in (
        (GAIN, "SHD lower beyond chance than what it is compared with"),
        (LOSS, "Higher"),
    ):
        here = [
            f"{name} in {(word[part.index] == kind).sum()} of {len(part)} "
            f"(by {_span(percent[part.index][word[part.index] == kind].abs(), 0)} %)"
            for name, part in found.groupby("method", sort=False)
            if (word[part.index] == kind).any()
        ]
        told.append(f"{start}: {', '.join(here) or 'none'}.")
    there = published_gains(found, theirs).dropna()
    paper = 100 * there["gain"] / there["before"]
    return " ".join(told) + f" The paper has {_span(paper, 0)} % for ReScore." * bool(len(paper))


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
    return (again / seconds.reindex(plain_name(again.index.to_series())).to_numpy()).dropna()


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


def plain_name(method: pd.Series, against: Mapping[str, str] | None = None) -> pd.Series:
    """What methods are compared with: what ``against`` names, or themselves without ReScore.

    Examples
    --------
    >>> plain_name(pd.Series(["A + ReScore", "B"]), {"B": "C"}).tolist()
    ['A', 'C']
    """
    names = [(against or {}).get(name, name.split(RESCORED)[0]) for name in method]
    return pd.Series(names, method.index, dtype=object)


def _number(things: Sized, name: str) -> str:
    return f"{len(things)} {name}" + "s" * (len(things) != 1)


def _span(values: pd.Series, digits: int) -> str:
    low, high = f"{values.min():.{digits}f}", f"{values.max():.{digits}f}"
    return low if low == high else f"{low} to {high}"


def published_for(experiment: Experiment, varying: list[str]) -> pd.DataFrame:
    """The numbers that belong to this experiment's data; ``varying`` are its settings that do."""
    if experiment.published is None:
        return pd.DataFrame(columns=["method", "metric", "mean"])
    table = published(experiment.published)
    fixed = {k: v for block in experiment.data for k, v in block.items() if k in table}
    for name, value in fixed.items():
        if name not in varying:
            table = table[table[name] == value]
    return table


def beside(ours: pd.DataFrame, theirs: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Mean and std of the published cells, a row for each of ours, NaN where there is none.

    Examples
    --------
    >>> theirs = pd.DataFrame({"method": ["A"], "metric": ["shd"], "mean": [3.0], "std": [1.0]})
    >>> beside(pd.DataFrame({"method": ["A", "B"]}), theirs, "shd")["mean"].tolist()
    [3.0, nan]
    """
    there = theirs[theirs["metric"] == metric]
    keys = [name for name in there.columns if name in ours and name not in {"mean", "std"}]
    cells = {
        tuple(row[k] for k in keys): (row["mean"], row.get("std", np.nan))
        for _, row in there.iterrows()
    }
    nothing = (np.nan, np.nan)
    found = [cells.get(tuple(row[k] for k in keys), nothing) for _, row in ours.iterrows()]
    return pd.DataFrame(found, index=ours.index, columns=["mean", "std"])
