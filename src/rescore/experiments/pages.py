"""Pages about experiments: what they say, as Markdown, HTML and figures, from the records alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rescore.experiments.averages import RESCORED, best_setting, cells, gains, group_ranks, tidy
from rescore.experiments.plots import draw
from rescore.experiments.published import beside, published_for
from rescore.experiments.search import searched
from rescore.experiments.spec import Experiment
from rescore.experiments.store import Record, Store
from rescore.staging import staged

__all__ = ["Contents", "contents", "write_pages"]

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


def write_pages(
    experiments: list[Experiment], store: Store, folder: Path, size: str = "full"
) -> list[Path]:
    """A page for every experiment in both formats, with its figure; the paths written."""
    with staged(folder) as scratch:
        for experiment in experiments:
            _write_page(experiment, store, scratch, size)
    names = (experiment.name for experiment in experiments)
    return [folder / (name + ending) for name in names for ending in (".md", ".html")]


def _write_page(experiment: Experiment, store: Store, folder: Path, size: str) -> None:
    found = contents(experiment, store, size)
    command = f"rescore reproduce {experiment.name} --{size}"
    picture = None
    if experiment.figure is not None:
        picture = draw(experiment, found.runs, store, folder / f"{experiment.name}.svg")
    figure = None if picture is None else picture.name
    texts = {".md": markdown(found, figure, command), ".html": html(found, figure, command)}
    for ending, text in texts.items():
        (folder / (experiment.name + ending)).write_bytes(text.encode())


def markdown(page: Contents, figure: str | None, command: str) -> str:
    r"""The page as Markdown.

    Examples
    --------
    >>> table = pd.DataFrame({"method": ["A|B"], "SHD": ["1.0"]})
    >>> print(markdown(Contents("T", ("Words.",), {"C": table}, table), None, "rescore reproduce"))
    # T
    <BLANKLINE>
    Words.
    <BLANKLINE>
    ## C
    <BLANKLINE>
    | method | SHD |
    |---|---|
    | A\|B | 1.0 |
    <BLANKLINE>
    Made by `rescore reproduce` with rescore ...
    <BLANKLINE>
    """
    parts = [f"# {page.title}", *page.paragraphs]
    if figure is not None:
        parts.append(f"![{page.title}]({figure})")
    for caption, table in page.tables.items():
        parts += [f"## {caption}", _markdown_table(table)]
    return "\n\n".join([*parts, f"Made by `{command}` with rescore {_version()}."]) + "\n"


def html(page: Contents, figure: str | None, command: str) -> str:
    """The page as HTML; everything in it is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rescore.experiments", "."), autoescape=True,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    words: dict[str, Any] = {"page": page, "figure": figure, "command": command}
    return environment.get_template("page.html.j2").render(**words, version=_version())


def contents(experiment: Experiment, store: Store, size: str = "full") -> Contents:
    """Means beside the published numbers, paired gains, and what did not count."""
    records = store.read()
    runs = tidy([*experiment.cases(size), *searched(experiment, records, size)], records)
    shown = _chosen(experiment, runs)
    theirs = published_for(experiment, runs.attrs["data"])
    tables = {
        "Mean ± standard deviation over data sets": _means(shown, theirs),
        "Plain − ReScore, SHD on the same data sets": _gains(shown, theirs),
        "The best of each setting": _best(shown, theirs),
        "Worse than the published number with ReScore": _behind(shown, theirs),
        "Average rank of a group's rows by weight, 1 the heaviest": _ranks(shown, records, theirs),
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


def _markdown_table(table: pd.DataFrame) -> str:
    lines = [list(table.columns), *table.to_numpy().tolist()]
    rows = ["| " + " | ".join(str(c).replace("|", "\\|") for c in line) + " |" for line in lines]
    return "\n".join([rows[0], "|" + "---|" * len(table.columns), *rows[1:]])


def _version() -> str:
    from rescore import __version__

    return __version__


def _chosen(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that the page counts: of a grid or a search those of the setting chosen."""
    if experiment.protocol == "oracle":
        return best_setting(runs)
    names = [block["name"] for block in experiment.methods if "search" in block]
    wanted = runs["method"].isin(names)
    best = best_setting(runs[wanted], "held_out_loss")
    kept = pd.concat([runs[~wanted], best], ignore_index=True)
    kept.attrs = runs.attrs | {"chosen": len(best) > 0}
    return kept


def _coverage(experiment: Experiment, runs: pd.DataFrame, size: str) -> str:
    done = int((runs["status"] == "ok").sum())
    full = len(experiment.cases())
    of_full = "" if size == "full" else f" (the full size has {full})"
    return (
        f"{done} results from {len(runs)} trials of the {size} size{of_full}; "
        "intervals are 95 % by Student's t over data sets."
    )


def _means(runs: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    found = cells(runs)
    table = found[_keys(found, runs)].copy()
    for name, digits in SCORES.items():
        table[name.upper()] = _spreads(found[name], found[f"{name}_std"], digits)
        _add_published(table, found, theirs, name, digits)
    table["edges"] = found["edges"].round(1)
    _add_published(table, found, theirs, "edges", 0)
    table["CPU s"] = [f"{seconds:.3g}" for seconds in found["cpu_seconds"]]
    _add_published(table, found, theirs, "seconds", 1)
    table["runs"] = found["runs"]
    return table.astype(str)


def _keys(found: pd.DataFrame, runs: pd.DataFrame) -> list[str]:
    """What tells rows apart: the data, the method, and its setting if it has or had several."""
    several = found.groupby("method")["setting"].nunique().max() > 1 if len(found) else False
    shown = several or runs.attrs.get("chosen", False)
    return [*runs.attrs["data"], "method", *(["setting"] if shown else [])]


def _add_published(
    table: pd.DataFrame, found: pd.DataFrame, theirs: pd.DataFrame, metric: str, digits: int
) -> None:
    """A column of published cells, if there is any."""
    cell = beside(found, theirs, metric)
    if cell["mean"].notna().any():
        name = metric.upper() if metric in SCORES else metric
        table[f"published {name}"] = _spreads(cell["mean"], cell["std"], digits)


def _gains(runs: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    found = gains(runs)
    table = found[_keys(found, runs)].copy()
    table["gain"] = [
        f"{gain:+.1f}" + (f" ± {half:.1f}" if np.isfinite(half) else "")
        for gain, half in zip(found["gain"], found["half_interval"], strict=True)
    ]
    table["relative"] = _percents(found["gain"], found["before"])
    after = beside(found, theirs, "shd")["mean"]
    plain = found.assign(method=found["method"].str.split(RESCORED, regex=False).str[0])
    before = beside(plain, theirs, "shd")["mean"]
    if (before - after).notna().any():
        table["published relative"] = _percents(before - after, before)
    table["pairs"] = found["pairs"]
    return table.astype(str)


def _best(runs: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """The method with the least SHD in each setting, ours and the published one."""
    keys = runs.attrs["data"]
    found = cells(runs)
    there = theirs[theirs["metric"] == "shd"]
    shared = [name for name in keys if name in there]
    if not shared or not len(found):
        return pd.DataFrame()
    ours = found.sort_values("shd", kind="stable").drop_duplicates(keys)
    best = there.sort_values("mean", kind="stable").drop_duplicates(shared)
    both = ours.merge(best, on=shared, suffixes=("", "_published")).sort_values(keys)
    table = both[keys].copy()
    table["ours"] = both["method"]
    table["SHD"] = _spreads(both["shd"], both["shd_std"], 1)
    table["published best"] = both["method_published"]
    table["published SHD"] = _spreads(both["mean"], both.get("std", both["mean"] * np.nan), 1)
    return table.astype(str)


def _behind(runs: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Cells in which ReScore is published with a lower SHD than ours has."""
    found = cells(runs)
    found = found[found["method"].str.contains(RESCORED, regex=False)]
    there = beside(found, theirs, "shd")["mean"]
    worse = found["shd"] > there
    table = found.loc[worse, [*runs.attrs["data"], "method"]].copy()
    table["SHD"] = _spreads(found["shd"][worse], found["shd_std"][worse], 1)
    table["published SHD"] = there[worse]
    return table.astype(str)


def _ranks(runs: pd.DataFrame, records: Mapping[str, Record], theirs: pd.DataFrame) -> pd.DataFrame:
    """Which groups of rows the weights favour, over all trials of a reweighted method."""
    found = group_ranks(runs[runs["method"].str.contains(RESCORED, regex=False)], records)
    if not len(found):
        return found
    there = theirs[theirs["metric"] == "average_rank"]
    if len(there):
        rank = there.set_index("group")["mean"].round(1)
        found["published ranking"] = found["group"].map(rank)
    found["rank"] = found["rank"].round(1)
    return found.astype(str)


def _uncounted(runs: pd.DataFrame) -> pd.DataFrame:
    bad = runs[~runs["status"].isin(["ok"])]
    counts = bad.groupby(["method", "status"], sort=False).size().rename("trials")
    return counts.reset_index().astype(str)


def _spreads(means: pd.Series, stds: pd.Series, digits: int) -> list[str]:
    return [_spread(mean, std, digits) for mean, std in zip(means, stds, strict=True)]


def _spread(mean: float, std: float, digits: int) -> str:
    if np.isnan(mean):
        return ""
    return f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if np.isfinite(std) else "")


def _percents(gain: pd.Series, before: pd.Series) -> list[str]:
    return [_percent(g, b) for g, b in zip(gain, before, strict=True)]


def _percent(gain: float, before: float) -> str:
    if np.isnan(gain):
        return ""
    share = round(100 * gain / before) if before else 0
    return f"{share:+d} %" if share else "0 %"
