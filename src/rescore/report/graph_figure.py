"""The picture of a graph: causes above effects, colour for the sign, width for the strength."""

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rescore.graph import as_square
from rescore.report.layout import Edge, Point
from rescore.report.placement import HEIGHT, NARROWEST, Placement, placed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_graph"]

INK, PAPER, FAINT = "#1f2530", "#ffffff", "#8a93a0"
POSITIVE, NEGATIVE = "#1a6fb0", "#c4501b"  # told apart by colour-blind readers too
BOX, BOX_EDGE = "#f3f5f8", "#697383"
FONT, MARGIN = 9.0, 0.35  # points, inches
LABELLED_EDGES = 20  # with more, the numbers would hide the graph; the tables have them


def draw_graph(W: ArrayLike, names: Sequence[Hashable]) -> "Figure":
    """A drawing of the DAG W, from row to column, with long names cut.

    Examples
    --------
    >>> figure = draw_graph([[0, 0.5], [0, 0]], ["rain", "grass"])
    >>> [text.get_text() for text in figure.axes[0].texts][:3]
    ['rain', 'grass', '0.50']
    """
    W = as_square(W)
    found = placed(W, names)
    axes = _canvas(found)
    for j, place in (found.nodes | found.isolated).items():
        _draw_node(axes, place, found.widths[j], found.labels[j], j in found.isolated)
    _draw_edges(axes, W, found.routes)
    _draw_legend(axes, W)
    return axes.figure  # type: ignore[return-value]


def _canvas(found: Placement) -> "Axes":
    """Axes that fill a figure of just the right size; one data unit is one inch."""
    from matplotlib.figure import Figure

    places = found.nodes | found.isolated
    xs = [x + side * found.widths[j] / 2 for j, (x, _) in places.items() for side in (-1, 1)]
    xs += [x for route in found.routes.values() for x, _ in route]
    left, right = min(xs) - MARGIN, max(xs) + MARGIN
    missing = max(0.0, NARROWEST - (right - left)) / 2
    left, right = left - missing, right + missing
    bottom = min(y for _, y in places.values()) - HEIGHT / 2 - 2 * MARGIN
    top = max(y for _, y in places.values()) + HEIGHT / 2 + MARGIN
    figure = Figure(figsize=(right - left, top - bottom), facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.set_axis_off()
    return axes


def _draw_node(axes: "Axes", place: Point, width: float, label: str, isolated: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    (x, y), round_corners = place, "round,pad=0,rounding_size=0.09"
    box = FancyBboxPatch((x - width / 2, y - HEIGHT / 2), width, HEIGHT, round_corners, zorder=3)
    box.set(facecolor=PAPER if isolated else BOX, edgecolor=FAINT if isolated else BOX_EDGE)
    box.set_linewidth(0.9)
    axes.add_patch(box)
    style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": FONT}
    # A name is text, whatever dollar signs it has.
    axes.text(x, y, label, color=FAINT if isolated else INK, parse_math=False, zorder=4, **style)


def _draw_edges(axes: "Axes", W: Any, routes: dict[Edge, list[Point]]) -> None:
    largest = float(np.abs(W).max(initial=0.0))
    ranked = sorted(routes, key=lambda edge: (edge[1], routes[edge][-1][0]))
    for edge in sorted(routes, key=lambda edge: abs(W[edge])):  # the strongest on top
        curve = _draw_edge(axes, routes[edge], W[edge], abs(W[edge]) / largest)
        if len(routes) <= LABELLED_EDGES:  # neighbouring numbers stand at different heights
            at = 0.4 + 0.2 * (ranked.index(edge) % 2)
            _draw_weight(axes, curve.vertices[-4:], W[edge], at, _colour(W[edge]))


def _draw_edge(axes: "Axes", route: list[Point], weight: float, strength: float) -> Any:
    """The curve of one edge, after drawing it; ``strength`` is relative to the strongest."""
    from matplotlib.patches import PathPatch, Polygon

    opacity, width = 0.5 + 0.5 * strength, 0.8 + 2.2 * strength
    x, y = route[-1]
    half, length = 0.035 + 0.02 * strength, 0.1 + 0.04 * strength
    curve = _smooth([*route[:-1], (x, y + 0.9 * length)])
    line = PathPatch(curve, fill=False, edgecolor=_colour(weight), linewidth=width, zorder=2)
    head = Polygon([(x, y), (x - half, y + length), (x + half, y + length)], zorder=2.5)
    head.set(facecolor=_colour(weight), edgecolor="none")
    for patch in (line, head):
        patch.set_alpha(opacity)
        axes.add_patch(patch)
    return curve


def _colour(weight: float) -> str:
    return POSITIVE if weight > 0 else NEGATIVE


def _smooth(route: list[Point]) -> Any:
    """A curve through every point: vertical at its ends, and nowhere with a kink."""
    from matplotlib.path import Path

    pieces = [(to_x - x) / (to_y - y) for (x, y), (to_x, to_y) in pairwise(route)]
    # The harmonic mean, and vertical where the edge turns back: so it never swings out too far.
    bends = [2 * a * b / (a + b) if a * b > 0 else 0.0 for a, b in pairwise(pieces)]
    slopes = [0.0, *bends, 0.0]  # dx / dy at every point
    vertices, codes = [route[0]], [Path.MOVETO]
    for k, ((x, y), (to_x, to_y)) in enumerate(pairwise(route)):
        reach = (to_y - y) * (0.5 if 0.0 in slopes[k : k + 2] else 0.35)
        vertices += [(x + slopes[k] * reach, y + reach)]
        vertices += [(to_x - slopes[k + 1] * reach, to_y - reach), (to_x, to_y)]
        codes += [Path.CURVE4] * 3
    return Path(vertices, codes)


def _draw_weight(axes: "Axes", curve: list[Any], weight: float, at: float, colour: str) -> None:
    a, b, c, d = (np.asarray(point) for point in curve)  # the last piece, a Bézier curve
    x, y = (1 - at) ** 3 * a + 3 * at * (1 - at) ** 2 * b + 3 * at**2 * (1 - at) * c + at**3 * d
    number = f"{weight:.2f}" if 0.01 <= abs(weight) < 1000 else f"{weight:.1e}"
    paper = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
    axes.text(
        x, y, number.replace("-", "−"), color=colour, fontsize=7.5,
        ha="center", va="center", bbox=paper, zorder=2.8,
    )  # fmt: skip


def _draw_legend(axes: "Axes", W: Any) -> None:
    from matplotlib.lines import Line2D

    if not W.any():
        handles = [Line2D([], [], color="none", label="no edges")]
    else:
        signs = ((POSITIVE, "positive", (W > 0).any()), (NEGATIVE, "negative", (W < 0).any()))
        handles = [Line2D([], [], color=c, lw=2, label=word) for c, word, there in signs if there]
        handles.append(Line2D([], [], color=FAINT, lw=3, label="wider is stronger"))
    axes.legend(
        handles=handles, loc="lower center", ncols=3, frameon=False, fontsize=8, labelcolor=INK,
        handlelength=1.6,
    )  # fmt: skip
