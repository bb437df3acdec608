"""From records to the numbers of a page: means, and paired differences with their intervals."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from rescore.experiments.spec import Case, flat
from rescore.experiments.store import Record
from rescore.metrics import HEADINGS

__all__ = ["best_setting", "cells", "gains", "group_ranks", "tidy"]

METRICS = (*HEADINGS, "cpu_seconds", "effective_rows", "held_out_loss")
RESCORED = " + ReScore"


def tidy(cases: Iterable[Case], records: Mapping[str, Record]) -> pd.DataFrame:
    """A row for each case: what varies in its data, its method and setting, status and metrics.

    ``status`` is "missing" where nothing was run yet.  The column names of the data's settings are
    in ``attrs["data"]``.
    """
    rows, settings = [], []
    for case in cases:
        record = records.get(case.trial.key, {"status": "missing"})
        data, result = flat(case.trial.data), record.get("result", {})
        settings.append({name: _text(value) for name, value in data.items()})
        rows.append(
            {"method": case.method, "setting": _setting(case), "seed": case.trial.seed}
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
    settings, one of ReScore is paired with those of the same values.

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
    again = good[good["method"].str.contains(RESCORED, regex=False)]
    again = again.assign(plain=again["method"].str.split(RESCORED, regex=False).str[0])
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
