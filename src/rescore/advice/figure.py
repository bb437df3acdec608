"""The picture of a path, as a matplotlib figure that touches neither pyplot nor its settings."""

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_path"]

PANELS = {
    "log_likelihood": "held-out log-likelihood, a row",
    "stability": "stability of the edges over halves of the rows",
    "edges": "edges",
}
COLOURS = ("#1a6fb0", "#c4501b", "#2e8b57", "#8757b0", "#b08a1a", "#c2407a", "#3aa0a0", "#6b6b6b")
INK, FAINT, PAPER = "#20242b", "#9aa2ad", "#ffffff"


def draw_path(table: pd.DataFrame) -> "Figure":
    """Likelihood, stability and edges over the threshold, a line for each λ; the choice ringed.

    Examples
    --------
    >>> points = {"threshold": [0.0, 0.3], "edges": [3, 1], "stability": [0.5, 1.0]}
    >>> more = {"log_likelihood": [-1.0, -1.2], "recommended": [False, True]}
    >>> len(draw_path(pd.DataFrame(points | more)).axes)
    3
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7.2, 7.4), layout="constrained", facecolor=PAPER)
    panels = figure.subplots(len(PANELS), 1, sharex=True)
    for axes, (name, title) in zip(panels, PANELS.items(), strict=True):
        _draw_lines(axes, table, name)
        _plain(axes, title)
    panels[1].set_ylim(-0.03, 1.05)
    panels[2].yaxis.set_major_locator(MaxNLocator(integer=True))
    positive = table["threshold"][table["threshold"] > 0]
    if len(positive):  # zero has a place of its own on an otherwise logarithmic scale
        least, largest = float(positive.min()), float(positive.max())
        panels[-1].set_xscale("symlog", linthresh=least, linscale=0.4)
        panels[-1].set_xlim(-0.2 * least, 1.2 * largest)
        panels[-1].xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panels[-1].set_xlabel("threshold", fontsize=8, color=INK)
    panels[0].legend(loc="lower left", fontsize=8, frameon=False, labelcolor=INK)
    return figure


def _draw_lines(axes: "Axes", table: pd.DataFrame, name: str) -> None:
    lines: list[tuple[Any, pd.DataFrame]] = (
        list(table.groupby("lambda1")) if "lambda1" in table else [(None, table)]
    )
    for place, (lambda1, line) in enumerate(lines):
        label = "all thresholds" if lambda1 is None else f"λ = {lambda1:g}"
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(
            line["threshold"], line[name], color=colour, marker="o", markersize=3.5, linewidth=1.3,
            label=label,
        )  # fmt: skip
    chosen = table[table["recommended"]]
    axes.scatter(
        chosen["threshold"], chosen[name], s=110, facecolors="none", edgecolors=INK, linewidths=1.6,
        zorder=5, label="recommended",
    )  # fmt: skip


def _plain(axes: "Axes", title: str) -> None:
    """Axes with as little ink as possible."""
    axes.set_title(title, fontsize=9, loc="left", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(labelsize=8, colors=INK, length=3)
    axes.grid(True, color="#e6e9ee", linewidth=0.6)
    axes.set_axisbelow(True)
