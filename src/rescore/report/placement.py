"""Where everything in the picture of a graph stands, for whoever draws it."""

import unicodedata
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rescore.graph import as_square
from rescore.report.layout import Edge, Layout, Point, layered
from rescore.text import printable

__all__ = ["HEIGHT", "NARROWEST", "Placement", "placed"]

ROOM = 0.13  # inches between edges that meet at a box
HEIGHT = 0.34  # inches, of a box
LONGEST_LABEL = 18
NARROWEST = 4.2  # inches; a legend needs them


@dataclass(frozen=True)
class Placement:
    """Boxes and routes in inches, y upwards; a route ends on the boxes' lower and upper sides."""

    labels: list[str]
    widths: list[float]
    nodes: dict[int, Point]  # those with edges
    isolated: dict[int, Point]
    routes: dict[Edge, list[Point]]


def placed(W: ArrayLike, names: Sequence[Hashable]) -> Placement:
    """Where the boxes and edges of the DAG W go, with long names cut; the same every time.

    Examples
    --------
    >>> found = placed([[0, 0.5, 0], [0, 0, 0], [0, 0, 0]], ["rain", "grass", "moon"])
    >>> found.labels, list(found.nodes), list(found.isolated), list(found.routes)
    (['rain', 'grass', 'moon'], [0, 1], [2], [(0, 1)])
    """
    W = as_square(W)
    labels = [printable(name, LONGEST_LABEL) for name in names]
    meeting = np.maximum((W != 0).sum(axis=0), (W != 0).sum(axis=1))  # edges on one side of a box
    widths = [max(_label_width(x), ROOM * k) for x, k in zip(labels, meeting.tolist(), strict=True)]
    layout = layered(W, widths)
    isolated = _rows_of_isolated(layout, widths)
    return Placement(labels, widths, layout.nodes, isolated, _ports(layout, widths))


def _label_width(label: str) -> float:
    """Inches a label takes, generously: a browser may choose another font."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" or c.isupper() for c in label)
    return 0.076 * len(label) + 0.024 * wide + 0.24


def _rows_of_isolated(layout: Layout, widths: Sequence[float]) -> dict[int, Point]:
    """Nodes without edges, side by side below the others, in rows as wide as the graph."""
    xs = [x for x, _ in layout.nodes.values()] or [0.0]
    left, right = min(xs) - 0.5, max(max(xs) + 0.5, min(xs) - 0.5 + 1.5 * NARROWEST)
    x, y = left, min([y for _, y in layout.nodes.values()], default=1.0) - 1.0
    places = {}
    for j in layout.isolated:
        if x > left and x + widths[j] > right:
            x, y = left, y - 1.5 * HEIGHT
        places[j] = (x + widths[j] / 2, y)
        x += widths[j] + 0.15
    return places


def _ports(layout: Layout, widths: Sequence[float]) -> dict[Edge, list[Point]]:
    """The routes, with edges that share a node spread along its lower or upper side."""
    routes = {edge: list(route) for edge, route in layout.routes.items()}
    for end, towards, side in ((0, 1, -1.0), (-1, -2, 1.0)):
        sharing: dict[int, list[Edge]] = defaultdict(list)
        for edge in routes:
            sharing[edge[end]].append(edge)
        for node, edges in sharing.items():
            edges.sort(key=lambda edge: layout.routes[edge][towards][0])
            reach = min(0.42 * widths[node], 0.5 * ROOM * (len(edges) - 1))
            for edge, shift in zip(edges, np.linspace(-reach, reach, len(edges)), strict=True):
                x, y = layout.nodes[node]
                shift = float(shift) if len(edges) > 1 else 0.0
                routes[edge][end] = (x + shift, y + side * HEIGHT / 2)
    return routes
