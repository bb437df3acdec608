"""The pictures of a fit, as matplotlib figures that touch neither pyplot nor its settings."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rescore.graph.drawing import FAINT, INK, PAPER, POSITIVE, png, svg
from rescore.reports.run_tables import group_shares
from rescore.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_history", "draw_weights", "png", "svg"]

TRACES = {  # columns of a history worth a panel, and whether they span orders of magnitude
    "objective": ("objective", False),
    "h": ("h, the distance from a DAG", True),
    "edges": ("edges above the threshold", False),
    "effective_rows": ("effective rows, 1 / Σ w²", False),
}
COLOURS = ("#1a6fb0", "#c4501b", "#2e8b57", "#8757b0", "#b08a1a", "#c2407a", "#3aa0a0", "#6b6b6b")
MOST_POINTS = 4000  # drawn per scatter plot; every k-th row stands for the others
MOST_GROUPS = 16  # the heaviest; the page's table has all of them
LONGEST_LABEL = 28


def draw_history(history: pd.DataFrame) -> "Figure":
    """How objective, acyclicity, edges and effective rows went, one small panel each.

    Examples
    --------
    >>> history = pd.DataFrame({"objective": [3.0, 2.0], "h": [0.1, 1e-9]}, index=[1, 2])
    >>> len(draw_history(history).axes)
    2
    """
    from matplotlib.ticker import MaxNLocator

    shown = [name for name in TRACES if name in history]
    rows = max(1, (len(shown) + 1) // 2)
    figure = _figure(7.2, 1.9 * rows + 0.3)
    for place, name in enumerate(shown, start=1):
        axes = figure.add_subplot(rows, 2, place)
        title, logarithmic = TRACES[name]
        values = history[name].to_numpy(float)
        if logarithmic and (values > 0).any():
            axes.set_yscale("log")
            values = np.where(values > 0, values, np.nan)  # exactly a DAG: nothing left to show
        axes.plot(history.index, values, color=POSITIVE, marker="o", markersize=3, linewidth=1.3)
        _plain(axes, title)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if place > len(shown) - 2:
            axes.set_xlabel("outer step", fontsize=8, color=INK)
    return figure


def draw_weights(
    weights: ArrayLike, losses: ArrayLike, groups: ArrayLike | None = None
) -> "Figure":
    """Every row's weight against its loss; with groups, also their shares of rows and weight.

    Examples
    --------
    >>> len(draw_weights([0.5, 0.5], [1.0, 2.0]).axes)
    1
    >>> len(draw_weights([0.5, 0.5], [1.0, 2.0], groups=["u", "v"]).axes)
    2
    """
    w, loss = np.asarray(weights, float), np.asarray(losses, float)
    if groups is None:
        axes = _figure(7.2, 3.0).add_subplot()
        _scatter(axes, w, loss, [(np.ones(len(w), dtype=bool), POSITIVE)])
        return axes.figure  # type: ignore[return-value]
    shares = group_shares(w, groups).nlargest(MOST_GROUPS, "share_of_weight")
    labels = np.asarray([str(label) for label in np.asarray(groups, dtype=object)], dtype=object)
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(shares))]
    height = 0.8 + 0.28 * len(shares)
    figure = _figure(7.2, 3.0 + height)
    top, bottom = figure.subplots(2, 1, height_ratios=[3.0, height])
    _scatter(top, w, loss, [(labels == g, c) for g, c in zip(shares.index, colours, strict=True)])
    _draw_shares(bottom, shares, colours)
    return figure


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor=PAPER)


def _plain(axes: "Axes", title: str = "") -> None:
    """Axes with as little ink as possible."""
    # With a height of its own a title need not be moved out of the way of ticks, which takes long.
    axes.set_title(title, fontsize=9, loc="left", y=1.0, color=INK, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(labelsize=8, colors=INK, length=3)
    axes.grid(True, color="#e6e9ee", linewidth=0.6)
    axes.set_axisbelow(True)


def _scatter(axes: "Axes", w: Any, loss: Any, parts: Iterable[tuple[Any, str]]) -> None:
    """Weight times n against loss: 1 is the weight of a row in the plain learner."""
    step = 1 + len(w) // MOST_POINTS
    sampled = np.zeros(len(w), dtype=bool)
    sampled[::step] = True
    sampled[np.argsort(-np.nan_to_num(loss))[:20]] = True  # the extreme rows are the interesting
    _plain(axes, "weight of each row × n, against its loss")
    if (loss[sampled] > 0).any():
        axes.set_xscale("log")
    axes.axhline(1.0, color=FAINT, linewidth=0.9, linestyle="--")
    for members, colour in parts:
        here = members & sampled & (loss > 0)
        axes.scatter(
            loss[here], len(w) * w[here], s=9, color=colour, alpha=0.45, linewidths=0,
            rasterized=True,
        )  # fmt: skip
    axes.set_xlabel(
        "loss: the row's squared residuals, each in units of its variable's mean",
        fontsize=8,
        color=INK,
    )
    axes.set_ylim(0, 1.08 * max(1.0, len(w) * float(w.max())))


def _draw_shares(axes: "Axes", shares: pd.DataFrame, colours: list[str]) -> None:
    """A line from each group's share of the rows (hollow) to its share of the weight (filled)."""
    places = np.arange(len(shares))
    rows, weight = shares["share_of_rows"], shares["share_of_weight"]
    _plain(axes, "each group's share: hollow of the rows, filled of the weight")
    axes.hlines(places, rows, weight, colors=colours, linewidth=2, alpha=0.5)
    axes.scatter(rows, places, s=34, facecolors=PAPER, edgecolors=colours, linewidths=1.3, zorder=3)
    axes.scatter(weight, places, s=34, c=colours, zorder=4)
    labels = [printable(label, LONGEST_LABEL) for label in shares.index]
    axes.set_yticks(places, labels, parse_math=False)
    axes.set_ylim(len(shares) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
