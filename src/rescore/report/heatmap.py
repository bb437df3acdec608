"""The adjacency matrix as a picture: a square for every pair of variables."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rescore.graph import as_square
from rescore.report.graph_figure import FAINT, INK, NEGATIVE, PAPER, POSITIVE
from rescore.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_adjacency"]

LONGEST_LABEL = 14
NAMED = 40  # variables; with more, their names would overlap
NUMBERED = 12  # variables; with more, the numbers would be too small to read


def draw_adjacency(W: ArrayLike, names: Sequence[Hashable]) -> "Figure":
    """The coefficients of W: a row for each cause, a column for each effect.

    Examples
    --------
    >>> figure = draw_adjacency([[0, 0.5], [0, 0]], ["rain", "grass"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['0.50']
    """
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    W = as_square(W)
    side = float(np.clip(2.0 + 0.36 * len(W), 3.4, 6.4))
    figure = Figure(figsize=(side + 0.8, side), layout="constrained", facecolor=PAPER)
    axes = figure.add_subplot()
    colours = LinearSegmentedColormap.from_list("sign", [NEGATIVE, "#f6f7f9", POSITIVE])
    reach = float(np.abs(W).max(initial=0.0)) or 1.0
    shown = axes.imshow(W, cmap=colours, vmin=-reach, vmax=reach, interpolation="nearest")
    _name_axes(axes, [printable(name, LONGEST_LABEL) for name in names])
    if len(W) <= NUMBERED:
        _write_numbers(axes, W, reach, colours)
    bar = figure.colorbar(shown, ax=axes, shrink=0.7, aspect=18)
    bar.outline.set_edgecolor(FAINT)
    bar.ax.tick_params(labelsize=7.5, colors=INK, length=2)
    return figure


def _name_axes(axes: "Axes", labels: list[str]) -> None:
    axes.set_xlabel("effect", fontsize=8.5, color=INK)
    axes.set_ylabel("cause", fontsize=8.5, color=INK)
    axes.spines[:].set_color(FAINT)
    places = range(len(labels)) if len(labels) <= NAMED else []
    shown = labels if len(labels) <= NAMED else []
    size = float(np.clip(110 / max(1, len(labels)), 5, 8.5))
    axes.set_xticks(places, shown, rotation=90, fontsize=size, parse_math=False)
    axes.set_yticks(places, shown, fontsize=size, parse_math=False)
    axes.tick_params(colors=INK, length=0)
    edges = np.arange(len(labels) + 1) - 0.5
    if len(labels) <= NAMED:
        axes.hlines(edges, -0.5, len(labels) - 0.5, color="#e1e5ea", linewidth=0.5)
        axes.vlines(edges, -0.5, len(labels) - 0.5, color="#e1e5ea", linewidth=0.5)


def _write_numbers(axes: "Axes", W: np.ndarray, reach: float, colours: Any) -> None:
    for i, j in np.argwhere(W != 0).tolist():
        number = f"{W[i, j]:.2f}" if 0.01 <= abs(W[i, j]) < 100 else f"{W[i, j]:.0e}"
        colour = _readable_on(colours((W[i, j] / reach + 1) / 2))
        axes.text(j, i, number.replace("-", "−"), ha="center", va="center", fontsize=6.5,
                  color=colour)  # fmt: skip


def _readable_on(colour: Sequence[float]) -> str:
    """Black or white, whichever stands out more; one of them always does by 4.5 to 1."""
    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    luminance = float(np.dot([0.2126, 0.7152, 0.0722], light))
    return "black" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "white"
