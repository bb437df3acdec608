"""The figures of the experiments: metrics over a setting, or weights against losses."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rescore.experiments.averages import cells
from rescore.experiments.spec import Experiment
from rescore.experiments.store import Store
from rescore.metrics import HEADINGS

__all__ = ["draw"]

PANELS = ("shd", "sid", "tpr", "fdr")
MANY, FEW = "#999999", "#c44e52"  # rows like most, and the minority
ABREAST = 3  # panels of a figure of rows, side by side
COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860")


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
