"""The pictures of a graph: boxes and curves, or a square for every pair of variables."""

import io
import warnings
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rescore.graph.dag import as_square, open_edges
from rescore.graph.layout import HEIGHT, NARROWEST, Edge, Placement, Point, placed
from rescore.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_adjacency", "draw_graph", "natural_size", "png", "svg"]

INK, PAPER, FAINT = "#1f2530", "#ffffff", "#8a93a0"
POSITIVE, NEGATIVE = "#1a6fb0", "#c4501b"  # told apart by colour-blind readers too
BOX, BOX_EDGE = "#f3f5f8", "#697383"
FONT, MARGIN = 9.0, 0.35  # points, inches
MOST_SIDE, MOST_DOTS = 12_000, 40e6  # of a picture: dots along a side, and in all
MOST_DRAWN = 500  # edges; a picture of more is ink
LARGEST = 60.0  # inches of a side, whatever the graph
LABELLED_EDGES = 20  # with more, the numbers would hide the graph; the tables have them
LONGEST_LABEL = 14
NAMED = 40  # variables; with more, their names would overlap
NUMBERED = 12  # variables; with more, the numbers would be too small to read


def draw_graph(
    W: ArrayLike,
    names: Sequence[Hashable],
    cpdag: ArrayLike | None = None,
    axes: "Axes | None" = None,
) -> "Figure":
    """A drawing of the DAG W, from row to column, with long names cut.

    Edges whose direction its class ``cpdag`` leaves open are lines without a head.  With very many
    edges the strongest are drawn, and the legend says so.  Without ``axes`` the figure has just the
    right size, up to a largest one.

    Examples
    --------
    >>> figure = draw_graph([[0, 0.5], [0, 0]], ["rain", "grass"])
    >>> [text.get_text() for text in figure.axes[0].texts][:3]
    ['rain', 'grass', '0.50']
    """
    whole = as_square(W)
    W, left_open = _strongest(whole), open_edges(whole, cpdag)
    found = placed(W, names)
    axes = _canvas(found, axes)
    for j, place in (found.nodes | found.isolated).items():
        _draw_node(axes, place, found.widths[j], found.labels[j], j in found.isolated)
    _draw_edges(axes, W, left_open, found.routes)
    _draw_legend(axes, W, bool((left_open & (W != 0)).any()), int((whole != 0).sum()))
    return axes.figure  # type: ignore[return-value]


def natural_size(W: ArrayLike, names: Sequence[Hashable]) -> tuple[float, float]:
    """Width and height in inches at which `draw_graph` shows the DAG W in full size.

    Examples
    --------
    >>> width, height = natural_size([[0, 1], [0, 0]], ["rain", "grass"])
    >>> width > 3, 1 < height < 4
    (True, True)
    """
    left, right, bottom, top = _frame(placed(_strongest(as_square(W)), names))
    return right - left, top - bottom


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


def svg(figure: "Figure") -> str:
    """The figure as SVG, the same text every time; its labels stay text, shown in any script.

    Examples
    --------
    >>> svg(draw_graph([[0, 1], [0, 0]], "ab"))[:5]
    '<?xml'
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    # The salt of the ids and the treatment of text can only be set this way; both are put back.
    with matplotlib.rc_context({"svg.hashsalt": "rescore", "svg.fonttype": "none"}):
        printed = FigureCanvasSVG(figure).print_svg
        return _printed(printed, figure, figure.dpi, {"Date": None, "Creator": None}).decode()


def png(figure: "Figure", dpi: float = 160) -> bytes:
    r"""The figure as PNG; a large one in fewer dots per inch, so that memory always suffices.

    Examples
    --------
    >>> png(draw_graph([[0, 1], [0, 0]], "ab"))[1:4]
    b'PNG'
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    width, height = figure.get_size_inches()
    dots = min(MOST_SIDE / max(width, height), (MOST_DOTS / (width * height)) ** 0.5)
    printed = FigureCanvasAgg(figure).print_png
    return _printed(printed, figure, min(dpi, dots), {"Software": None})


def _printed(
    printed: Callable[..., None], figure: "Figure", dpi: float, metadata: dict[str, None]
) -> bytes:
    """What a canvas prints of the figure, drawn once: `savefig` draws it twice to measure it."""
    buffer, before = io.BytesIO(), figure.dpi
    with warnings.catch_warnings():
        # Names come in every script; one the font lacks is drawn as a box, which says enough.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        figure.set_dpi(dpi)
        printed(buffer, metadata=metadata)
        figure.set_dpi(before)
    return buffer.getvalue()


def _strongest(W: Any) -> Any:
    """The graph with at most so many edges that a picture can hold them."""
    sizes = np.abs(W[W != 0])
    if len(sizes) <= MOST_DRAWN:
        return W
    return np.where(np.abs(W) >= np.partition(sizes, -MOST_DRAWN)[-MOST_DRAWN], W, 0.0)


def _canvas(found: Placement, axes: "Axes | None" = None) -> "Axes":
    """Axes that fill a figure of just the right size; one data unit is one inch, or less."""
    from matplotlib.figure import Figure

    left, right, bottom, top = _frame(found)
    if axes is None:
        size = np.array([right - left, top - bottom])
        figure = Figure(figsize=tuple(size * min(1.0, LARGEST / size.max())), facecolor=PAPER)
        axes = figure.add_axes((0, 0, 1, 1))
    else:
        axes.set_aspect("equal")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.set_axis_off()
    return axes


def _frame(found: Placement) -> tuple[float, float, float, float]:
    """Left, right, bottom and top of all that is drawn, with room for the legend."""
    places = found.nodes | found.isolated
    xs = [x + side * found.widths[j] / 2 for j, (x, _) in places.items() for side in (-1, 1)]
    xs += [x for route in found.routes.values() for x, _ in route]
    left, right = min(xs) - MARGIN, max(xs) + MARGIN
    missing = max(0.0, NARROWEST - (right - left)) / 2
    bottom = min(y for _, y in places.values()) - HEIGHT / 2 - 2 * MARGIN
    top = max(y for _, y in places.values()) + HEIGHT / 2 + MARGIN
    return left - missing, right + missing, bottom, top


def _scale(axes: "Axes") -> float:
    """Inches on paper for one in the layout, one at most: names shrink with their boxes."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    width, height = (side / axes.figure.dpi for side in axes.bbox.size)
    return float(min(1.0, width / (right - left), height / (top - bottom)))


def _draw_node(axes: "Axes", place: Point, width: float, label: str, isolated: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    (x, y), round_corners = place, "round,pad=0,rounding_size=0.09"
    box = FancyBboxPatch((x - width / 2, y - HEIGHT / 2), width, HEIGHT, round_corners, zorder=3)
    box.set(facecolor=PAPER if isolated else BOX, edgecolor=FAINT if isolated else BOX_EDGE)
    box.set_linewidth(0.9)
    axes.add_patch(box)
    style: dict[str, Any] = {
        "ha": "center",
        "va": "center_baseline",
        "fontsize": FONT * _scale(axes),
    }
    # A name is text, whatever dollar signs it has.
    axes.text(x, y, label, color=FAINT if isolated else INK, parse_math=False, zorder=4, **style)


def _draw_edges(axes: "Axes", W: Any, left_open: Any, routes: dict[Edge, list[Point]]) -> None:
    largest = float(np.abs(W).max(initial=0.0))
    ranked = sorted(routes, key=lambda edge: (edge[1], routes[edge][-1][0]))
    for edge in sorted(routes, key=lambda edge: abs(W[edge])):  # the strongest on top
        strength = abs(W[edge]) / largest
        curve = _draw_edge(axes, routes[edge], W[edge], strength, not left_open[edge])
        if len(routes) <= LABELLED_EDGES:  # neighbouring numbers stand at different heights
            at = 0.4 + 0.2 * (ranked.index(edge) % 2)
            _draw_weight(axes, curve.vertices[-4:], W[edge], at, _colour(W[edge]))


def _draw_edge(
    axes: "Axes", route: list[Point], weight: float, strength: float, directed: bool
) -> Any:
    """The curve of one edge, after drawing it; ``strength`` is relative to the strongest."""
    from matplotlib.patches import PathPatch, Polygon

    opacity, width = 0.5 + 0.5 * strength, 0.8 + 2.2 * strength
    x, y = route[-1]
    half, length = 0.035 + 0.02 * strength, 0.1 + 0.04 * strength
    curve = _smooth([*route[:-1], (x, y + 0.9 * length * directed)])
    line = PathPatch(curve, fill=False, edgecolor=_colour(weight), linewidth=width, zorder=2)
    head = Polygon([(x, y), (x - half, y + length), (x + half, y + length)], zorder=2.5)
    head.set(facecolor=_colour(weight), edgecolor="none")
    for patch in (line, head) if directed else (line,):
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
        x, y, number.replace("-", "−"), color=colour, fontsize=7.5 * _scale(axes),
        ha="center", va="center", bbox=paper, zorder=2.8,
    )  # fmt: skip


def _draw_legend(axes: "Axes", W: Any, some_open: bool, edges: int) -> None:
    from matplotlib.lines import Line2D

    if not W.any():
        handles = [Line2D([], [], color="none", label="no edges")]
    else:
        signs = ((POSITIVE, "positive", (W > 0).any()), (NEGATIVE, "negative", (W < 0).any()))
        handles = [Line2D([], [], color=c, lw=2, label=word) for c, word, there in signs if there]
        handles.append(Line2D([], [], color=FAINT, lw=3, label="wider is stronger"))
    if (drawn := int((W != 0).sum())) < edges:
        words = f"the {drawn} strongest of {edges} edges"
        handles.append(Line2D([], [], color="none", label=words))
    if some_open:
        handles.append(Line2D([], [], color=FAINT, lw=1, label="no arrow: direction open"))
    axes.legend(
        handles=handles, loc="lower center", ncols=2 if some_open else 3, frameon=False,
        fontsize=8, labelcolor=INK, handlelength=1.6,
    )  # fmt: skip


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
