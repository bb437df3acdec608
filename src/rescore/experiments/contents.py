"""What a page about an experiment says: tables of text, made from its records alone."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rescore.experiments.published import published
from rescore.experiments.spec import Experiment
from rescore.experiments.store import Store
from rescore.experiments.summary import RESCORED, best_setting, cells, gains, tidy

__all__ = ["Contents", "contents"]

SCORES = {"tpr": 2, "fdr": 2, "shd": 1, "sid": 1}  # metric -> digits
PROTOCOL = {
    "honest": "Honest: every setting is a default, or was chosen from the data alone.",
    "oracle": "Oracle: each method's setting is the one with the least mean SHD against the truth.",
}


@dataclass(frozen=True, eq=False)
class Contents:
    """The text of a page; tables by their caption, cells as text."""

    title: str
    paragraphs: tuple[str, ...]
    tables: dict[str, pd.DataFrame]
    runs: pd.DataFrame  # what figures are drawn from


def contents(experiment: Experiment, store: Store, size: str = "full") -> Contents:
    """Means beside the published numbers, paired gains, and what did not count."""
    runs = tidy(experiment.cases(size), store.read())
    shown = best_setting(runs) if experiment.protocol == "oracle" else runs
    theirs = _theirs(experiment, runs)
    tables = {
        "Mean ± standard deviation over data sets": _means(shown, theirs),
        "Plain − ReScore, SHD on the same data sets": _gains(shown, theirs),
        "Not counted": _uncounted(runs),
    }
    about = " ".join(experiment.about.split())
    paragraphs = (about, PROTOCOL[experiment.protocol], _coverage(experiment, runs, size))
    return Contents(
        experiment.title,
        tuple(p for p in paragraphs if p),
        {caption: table for caption, table in tables.items() if len(table)},
        runs,
    )


def _coverage(experiment: Experiment, runs: pd.DataFrame, size: str) -> str:
    done = int((runs["status"] == "ok").sum())
    full = len(experiment.cases())
    return (
        f"{done} results from {len(runs)} trials of the {size} size (the full size has {full}); "
        "intervals are 95 % by Student's t over data sets."
    )


def _theirs(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame | None:
    """The published numbers that belong to this experiment's data."""
    if experiment.published is None:
        return None
    table = published(experiment.published)
    fixed = {k: v for block in experiment.data for k, v in block.items() if k in table}
    for name, value in fixed.items():
        if name not in runs.attrs["data"]:
            table = table[table[name] == value]
    return table


def _means(runs: pd.DataFrame, theirs: pd.DataFrame | None) -> pd.DataFrame:
    found = cells(runs)
    keys = [*runs.attrs["data"], "method"]
    several = found.groupby(keys, dropna=False)["setting"].nunique().max() > 1 if len(found) else 0
    table = found[[*keys, "setting"] if several else keys].copy()
    for name, digits in SCORES.items():
        table[name.upper()] = [
            _spread(mean, std, digits)
            for mean, std in zip(found[name], found[f"{name}_std"], strict=True)
        ]
    if theirs is not None:
        table["published SHD"] = _matched(found, theirs, "shd")
    table["edges"] = found["edges"].round(1).astype(str)
    table["CPU s"] = [f"{seconds:.3g}" for seconds in found["cpu_seconds"]]
    table["runs"] = found["runs"].astype(str)
    return table.astype(str)


def _matched(found: pd.DataFrame, theirs: pd.DataFrame, metric: str) -> list[str]:
    """The published cell of each of ours, as text."""
    there = theirs[theirs["metric"] == metric]
    keys = [name for name in there.columns if name in found and name not in {"runs"}]
    lookup = {
        tuple(row[k] for k in keys): _spread(row["mean"], row.get("std", np.nan), 1)
        for _, row in there.iterrows()
    }
    return [lookup.get(tuple(row[k] for k in keys), "") for _, row in found.iterrows()]


def _gains(runs: pd.DataFrame, theirs: pd.DataFrame | None) -> pd.DataFrame:
    found = gains(runs)
    table = found[[*runs.attrs["data"], "method"]].copy()
    table["gain"] = [
        f"{gain:+.1f}" + (f" ± {half:.1f}" if np.isfinite(half) else "")
        for gain, half in zip(found["gain"], found["half_interval"], strict=True)
    ]
    table["relative"] = [
        _percent(g, b) for g, b in zip(found["gain"], found["before"], strict=True)
    ]
    if theirs is not None:
        table["published relative"] = _published_gains(found, theirs)
    table["pairs"] = found["pairs"]
    return table.astype(str)


def _published_gains(found: pd.DataFrame, theirs: pd.DataFrame) -> list[str]:
    there = theirs[theirs["metric"] == "shd"]
    keys = [name for name in there.columns if name in found and name != "method"]
    value = {(*[row[k] for k in keys], row["method"]): row["mean"] for _, row in there.iterrows()}
    texts = []
    for _, row in found.iterrows():
        place = tuple(row[k] for k in keys)
        after = value.get((*place, row["method"]), np.nan)
        before = value.get((*place, row["method"].split(RESCORED)[0]), np.nan)
        texts.append(_percent(before - after, before) if np.isfinite(before - after) else "")
    return texts


def _uncounted(runs: pd.DataFrame) -> pd.DataFrame:
    bad = runs[~runs["status"].isin(["ok"])]
    keys = [*runs.attrs["data"], "method", "status"]
    return bad.groupby(keys, dropna=False).size().rename("trials").reset_index().astype(str)


def _spread(mean: float, std: float, digits: int) -> str:
    if np.isnan(mean):
        return ""
    return f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if np.isfinite(std) else "")


def _percent(gain: float, before: float) -> str:
    return f"{100 * gain / before:+.0f} %" if before else "0 %"
