"""Pages about experiments: what they say, as Markdown, HTML and figures, from the records alone."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rescore.experiments import Experiment
from rescore.experiments.conclusions import (
    RESCORED,
    against_chance,
    beside,
    best_setting,
    cells,
    conclusion,
    gains,
    group_ranks,
    plain_name,
    published_for,
    published_gains,
    tidy,
)
from rescore.experiments.running import searched
from rescore.experiments.store import Record, Store
from rescore.metrics import HEADINGS
from rescore.staging import staged
from rescore.text import asset, page_template, policy

__all__ = ["Contents", "all_runs", "chosen", "contents", "draw", "write_pages"]

SCORES = {"tpr": 2, "fdr": 2, "shd": 1, "sid": 1}  # metric -> digits
PROTOCOL = {
    "honest": "Honest: every setting is a default, or was chosen from the data alone.",
    "oracle": "Oracle: each method's setting is the one with the least mean SHD against the truth.",
    "mixed": "Mixed: what is chosen by the truth is named so; no other setting saw it.",
}
MEANS = "Mean ± standard deviation over data sets"
GAINS = "Plain − ReScore, SHD on the same data sets"
COMPARED = "What it is compared with − a method, SHD on the same data sets"
BEST = "The best of each setting"
BEHIND = "Worse than the published number with ReScore"
RANKS = "Average rank of a group's rows by weight, 1 the heaviest"
UNCOUNTED = "Not counted"
SHORT = {  # captions as the navigation has them
    MEANS: "Means", GAINS: "Gains", COMPARED: "Gains", BEST: "Best", BEHIND: "Behind",
    RANKS: "Ranks", UNCOUNTED: UNCOUNTED,
}  # fmt: skip
MARKS = {  # classes of the stylesheet
    "gain": "firm", "lower": "firm", "within chance": "open", "same": "open",
    "loss": "fragile", "higher": "fragile",
}  # fmt: skip
PANELS = ("shd", "sid", "tpr", "fdr")
MANY, FEW = "#999999", "#c44e52"  # rows like most, and the minority
ABREAST = 3  # panels of a figure of rows, side by side
COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860")


@dataclass(frozen=True, eq=False)
class Contents:
    """The text of a page; tables by their caption, cells as text."""

    title: str
    verdict: str
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
    >>> print(markdown(Contents("T", "Yes.", (), {"C": table}, table), None, "rescore reproduce"))
    # T
    <BLANKLINE>
    **Verdict.** Yes.
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
    parts = [f"# {page.title}", f"**Verdict.** {page.verdict}", *page.paragraphs]
    if figure is not None:
        parts.append(f"![{page.title}]({figure})")
    for caption, table in page.tables.items():
        parts += [f"## {caption}", _markdown_table(table)]
    text = "\n\n".join([*parts, f"Made by `{command}` with rescore {_version()}."]) + "\n"
    return text.replace("&", "&amp;").replace("<", "&lt;")  # HTML in a name stays a name


def html(page: Contents, figure: str | None, command: str) -> str:
    """The page as HTML; everything in it is escaped."""
    style = asset("style.css")
    gained = page.tables.get(GAINS, page.tables.get(COMPARED))
    told = gained is not None and "SHD" in page.verdict  # not where it is about costs
    words = pd.Series(dtype=str) if gained is None or not told else gained["verdict"]
    counts = {word: int((words == word).sum()) for word in MARKS}
    return page_template("rescore.experiments", "page.html.j2").render(
        page=page, figure=figure, command=command, version=_version(), style=style,
        policy=policy([], [style], "'self' data:"), marks=MARKS, short=SHORT,
        counts={word: count for word, count in counts.items() if count},
    )  # fmt: skip


def contents(experiment: Experiment, store: Store, size: str = "full") -> Contents:
    """Means beside the published numbers, paired gains, and what did not count."""
    records = store.read()
    runs = all_runs(experiment, records, size)
    shown = chosen(experiment, runs)
    theirs = published_for(experiment, runs.attrs["data"])
    tables = {
        MEANS: _means(shown, theirs),
        COMPARED if runs.attrs["against"] else GAINS: _gains(shown, theirs),
        BEST: _best(shown, theirs),
        BEHIND: _behind(shown, theirs),
        RANKS: _ranks(shown, records, theirs),
        UNCOUNTED: _uncounted(runs),
    }
    about = " ".join(experiment.about.split())
    by_truth = any("choose" in method for method in experiment.methods)
    protocol = PROTOCOL["mixed" if by_truth else experiment.protocol]
    paragraphs = (about, protocol, _coverage(experiment, runs, size))
    return Contents(
        experiment.title,
        conclusion(shown, theirs, records),
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


def all_runs(
    experiment: Experiment, records: Mapping[str, Record], size: str = "full"
) -> pd.DataFrame:
    """A row for every trial of an experiment, and for all that its searches tried."""
    runs = tidy([*experiment.cases(size), *searched(experiment, records, size)], records)
    runs.attrs["against"] = {m["name"]: m["against"] for m in experiment.methods if "against" in m}
    return runs


def chosen(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that the page counts: of a grid or a search those of the setting chosen."""
    if experiment.protocol == "oracle":
        return best_setting(runs)
    searched_for = [block["name"] for block in experiment.methods if "search" in block]
    by_truth = [block["name"] for block in experiment.methods if block.get("choose") == "truth"]
    of = runs["method"]
    best = [
        best_setting(runs[of.isin(searched_for)], "held_out_loss"),
        best_setting(runs[of.isin(by_truth)]),
    ]
    kept = pd.concat([runs[~of.isin([*searched_for, *by_truth])], *best], ignore_index=True)
    kept.attrs = runs.attrs | {"chosen": any(len(part) for part in best)}
    return kept


def _coverage(experiment: Experiment, runs: pd.DataFrame, size: str) -> str:
    of_trials = runs.drop_duplicates("key")  # one may be scored at many cut-offs, or serve twice
    done = int((of_trials["status"] == "ok").sum())
    full = len({case.trial.key for case in experiment.cases()})
    of_full = "" if size == "full" else f" (the full size has {full})"
    return (
        f"{done} results from {len(of_trials)} trials of the {size} size{of_full}; "
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
    against = runs.attrs.get("against", {})
    if against:
        table["against"] = plain_name(found["method"], against)
    table["gain"] = [
        f"{gain:+.1f}" + (f" ± {half:.1f}" if np.isfinite(half) else "")
        for gain, half in zip(found["gain"], found["half_interval"], strict=True)
    ]
    table["verdict"] = against_chance(found)
    table["relative"] = _percents(found["gain"], found["before"])
    there = published_gains(found, theirs)
    if there["gain"].notna().any():
        table["published relative"] = _percents(there["gain"], there["before"])
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
    # Of a sweep that has just begun a column may hold nothing yet, which is no number.
    ours, best = (each.astype(dict.fromkeys(shared, object)) for each in (ours, best))
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


def draw(experiment: Experiment, runs: pd.DataFrame, store: Store, path: Path) -> Path | None:
    """The experiment's figure as a file; none while there is nothing to draw."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if not (runs["status"] == "ok").any():
        return None
    if experiment.figure == "rows":
        figure = _rows(runs, store, Figure)
    else:
        figure = _curves(runs, str(experiment.figure), Figure)
    with rc_context({"svg.hashsalt": experiment.name}):  # the same records, the same file
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight", dpi=150)
    return path


def _curves(runs: pd.DataFrame, over: str, new_figure: Any) -> Any:
    """A row of panels for every kind of data, a line for every method."""
    table = cells(runs)
    table["x"] = table[over] if over in table else table["setting"].map(lambda t: _value(t, over))
    kinds = [name for name in runs.attrs["data"] if name != over]
    parts: list[Any] = list(table.groupby(kinds, sort=False)) if kinds else [((), table)]
    figure = new_figure(figsize=(3 * len(PANELS), 2.6 * len(parts)), layout="constrained")
    grid = figure.subplots(len(parts), len(PANELS), squeeze=False)
    for axes, (values, part) in zip(grid, parts, strict=True):
        kind = ", ".join(f"{k} {v}" for k, v in zip(kinds, values, strict=True))
        for axis, metric in zip(axes, PANELS, strict=True):
            _lines(axis, part, metric)
            axis.set(title=f"{HEADINGS[metric]}  {kind}", xlabel=over)
    grid[0][0].legend(fontsize=7)
    return figure


def _lines(axis: Any, part: pd.DataFrame, metric: str) -> None:
    for colour, (method, line) in zip(COLOURS, part.groupby("method", sort=False), strict=False):
        if line["x"].isna().all():  # the setting means nothing to this method
            axis.axhline(line[metric].mean(), color=colour, ls="--", label=method)
            continue
        line = line.sort_values("x")
        error = line[f"{metric}_std"] / np.sqrt(line["runs"])
        axis.errorbar(line["x"], line[metric], error, color=colour, marker="o", ms=3, label=method)


def _value(setting: str, name: str) -> float:
    found = re.search(rf"\b{re.escape(name)}=\[?([-+.\de]+)", setting)
    return float(found[1]) if found else np.nan


def _rows(runs: pd.DataFrame, store: Store, new_figure: Any) -> Any:
    """Weight against loss for every row, the minority in red."""
    records = store.read()
    # A fit that was stopped after its first reweighting has not converged, and is meant here.
    good = runs[runs["status"].isin(["ok", "not converged"])].drop_duplicates("method")
    down = -(-len(good) // ABREAST)
    figure = new_figure(figsize=(4 * ABREAST, 3.2 * down), layout="constrained")
    grid = figure.subplots(down, ABREAST, squeeze=False).ravel()
    for axis, (method, key) in zip(grid, good[["method", "key"]].to_numpy(), strict=False):
        _scatter(axis, pd.DataFrame(records[key]["result"]["rows"]))
        axis.set(title=method, xlabel="loss of the row", ylabel="n · weight")
    for axis in grid[len(good) :]:
        axis.set_axis_off()
    return figure


def _scatter(axis: Any, rows: pd.DataFrame) -> None:
    group = rows.get("group", pd.Series("", rows.index))
    rare = group != group.mode()[0]
    for part, colour, label in ((rows[~rare], MANY, None), (rows[rare], FEW, "minority")):
        axis.scatter(part["loss"], part["weight"], s=6, c=colour, label=label, rasterized=True)
    if rare.any():
        axis.legend(fontsize=7)
