"""Where the boxes and curves of a DAG go on paper: causes above their effects, few crossings.

The classic four steps: layers by topological generation, a waypoint wherever an edge passes a
layer, an order within each layer that lowers the number of crossings, and places that keep the
distances while drawing everything towards its neighbours.  Then boxes as wide as their names, and
edges that leave and enter them side by side.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rescore.graph.dag import as_square, topological_order
from rescore.text import printable

__all__ = ["HEIGHT", "NARROWEST", "Layout", "Placement", "layered", "placed"]

SWEEPS = 24  # of the layers, up and down in turn
NODE_GAP, LINE_GAP, LAYER_GAP, WAYPOINT = 0.28, 0.04, 1.05, 0.12  # inches
CROWD = 80  # edges; with more, the layers move apart
STRAIGHTNESS = 4.0  # how much more a waypoint insists on its place than a node
CAPACITY = 1.5  # times the root of their number: boxes a layer holds, so that all fit a screen
PAGE = 11.0  # inches; small parts that would reach beyond begin a row of their own
ROOM = 0.13  # inches between edges that meet at a box
HEIGHT = 0.34  # inches, of a box
LONGEST_LABEL = 18
NARROWEST = 4.2  # inches; a legend needs them

Edge = tuple[int, int]
Point = tuple[float, float]
Neighbours = dict[int, list[int]]


@dataclass(frozen=True)
class Layout:
    """Places in inches, y upwards: of the connected nodes, and of the points an edge visits."""

    nodes: dict[int, Point]
    routes: dict[Edge, list[Point]]  # from the cause to the effect, both included
    isolated: list[int]


def layered(W: ArrayLike, widths: Sequence[float]) -> Layout:
    """The layout of the DAG W, whose nodes are boxes of these widths; the same every time.

    Examples
    --------
    >>> layered([[0, 1], [0, 0]], [1, 1]).nodes
    {0: (0.0, 0.0), 1: (0.0, -1.05)}
    """
    A = np.asarray(W) != 0  # (d, d)
    nodes: dict[int, Point] = {}
    routes: dict[Edge, list[Point]] = {}
    begin, end, top, bottom = 0.0, None, 0.0, 0.0  # of the row of parts that is being filled
    for part in _parts(A):
        places, ways = _connected(A[np.ix_(part, part)], [widths[j] for j in part])
        left, right = _extent(places, ways, [widths[j] for j in part])
        if end is None:
            begin, shift = left, 0.0
        elif end + right - left - begin > PAGE and right - left < PAGE:  # a row of its own
            shift, top = begin - left, bottom - LAYER_GAP
        else:
            shift = end + 2 * NODE_GAP - left
        nodes |= {part[j]: (x + shift, y + top) for j, (x, y) in places.items()}
        for (i, j), way in ways.items():
            routes[part[i], part[j]] = [(x + shift, y + top) for x, y in way]
        end = right + shift
        bottom = min(bottom, top + min(y for _, y in places.values()))
    return Layout(nodes, routes, [j for j in range(len(A)) if j not in nodes])


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


def _parts(A: NDArray[np.bool_]) -> list[list[int]]:
    """The connected parts of two nodes or more, the largest first."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    number = connected_components(csr_array(A), directed=False)[1]
    parts = [np.flatnonzero(number == k).tolist() for k in range(number.max(initial=-1) + 1)]
    return sorted((part for part in parts if len(part) > 1), key=len, reverse=True)


def _connected(
    A: NDArray[np.bool_], widths: Sequence[float]
) -> tuple[dict[int, Point], dict[Edge, list[Point]]]:
    """The nodes and the routes of one connected part."""
    level = _levels(A)
    chains = _chains(A, level)
    places = _places(chains, level, widths)
    routes = {edge: [places[v] for v in chain] for edge, chain in chains.items()}
    return {j: places[j] for j in range(len(A))}, routes


def _extent(
    places: dict[int, Point], routes: dict[Edge, list[Point]], widths: Sequence[float]
) -> tuple[float, float]:
    """The leftmost and the rightmost x that anything reaches."""
    xs = [x + side * widths[j] / 2 for j, (x, _) in places.items() for side in (-1, 1)]
    xs += [x for route in routes.values() for x, _ in route]
    return min(xs), max(xs)


def _levels(A: NDArray[np.bool_]) -> list[int]:
    """The layer of every node: below its last cause, but as near to its effects as it helps.

    A layer that is full passes nodes on to the next, so that a large graph is a page, not a band.
    """
    order, most = list(topological_order(A)), max(4, round(CAPACITY * np.sqrt(len(A))))
    level, filled = [0] * len(A), Counter[int]()
    for j in order:
        level[j] = 1 + max((level[i] for i in np.flatnonzero(A[:, j])), default=-1)
        while filled[level[j]] >= most:
            level[j] += 1
        filled[level[j]] += 1
    for j in reversed(order):
        effects = np.flatnonzero(A[j])
        if len(effects) > A[:, j].sum():  # moving down shortens more edges than it lengthens
            wanted = min(level[k] for k in effects) - 1
            if filled[wanted] < most:
                filled.update({level[j]: -1, wanted: 1})
                level[j] = wanted
    return [k - min(level) for k in level]


def _chains(A: NDArray[np.bool_], level: list[int]) -> dict[Edge, list[int]]:
    """Every edge as cause, waypoints, effect; ``level`` is extended by the waypoints'."""
    chains = {}
    for i, j in np.argwhere(A).tolist():
        between = range(level[i] + 1, level[j])
        first = len(level)
        level.extend(between)
        chains[i, j] = [i, *range(first, len(level)), j]
    return chains


def _places(
    chains: dict[Edge, list[int]], level: list[int], widths: Sequence[float]
) -> dict[int, Point]:
    above: Neighbours = defaultdict(list)
    below: Neighbours = defaultdict(list)
    for chain in chains.values():
        for upper, lower in pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    layers: list[list[int]] = [[] for _ in range(max(level) + 1)]
    for v, k in enumerate(level):
        layers[k].append(v)
    layers = _untangled(layers, above, below)
    x = _across(layers, above, below, [*widths, *[WAYPOINT] * (len(level) - len(widths))])
    gap = LAYER_GAP * max(1.0, len(chains) / CROWD)
    return {v: (x[v], 0.0 - gap * k) for k, layer in enumerate(layers) for v in layer}


def _untangled(layers: list[list[int]], above: Neighbours, below: Neighbours) -> list[list[int]]:
    """The order with the fewest crossings that sorting by the neighbours' mean position finds."""
    best, fewest = layers, _crossings(layers, below)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        layers = _sorted_once(layers, above if sweep % 2 == 0 else below, sweep % 2 == 0)
        crossings = _crossings(layers, below)
        if crossings < fewest:
            best, fewest = layers, crossings
    return best


def _sorted_once(
    layers: list[list[int]], neighbours: Neighbours, downwards: bool
) -> list[list[int]]:
    layers = [list(layer) for layer in layers]
    position = {v: k for layer in layers for k, v in enumerate(layer)}
    for layer in layers if downwards else reversed(layers):
        # Sorting is stable: vertices with equal means keep their order.
        layer.sort(key=lambda v: _mean((position[u] for u in neighbours[v]), position[v]))
        position.update({v: k for k, v in enumerate(layer)})
    return layers


def _crossings(layers: list[list[int]], below: Neighbours) -> int:
    position = {v: k for layer in layers for k, v in enumerate(layer)}
    total = 0
    for layer in layers:
        ends = np.array([(position[v], position[u]) for v in layer for u in below[v]])
        if len(ends):
            upper, lower = ends.T
            total += int(((upper[:, None] < upper) & (lower[:, None] > lower)).sum())
    return total


def _across(
    layers: list[list[int]], above: Neighbours, below: Neighbours, widths: list[float]
) -> dict[int, float]:
    """Every vertex as near to the mean of its neighbours as the distances in its layer allow."""
    from scipy.optimize import isotonic_regression

    offsets = [_offsets([widths[v] for v in layer]) for layer in layers]
    pairs = list(zip(layers, offsets, strict=True))
    x = {v: float(at) for layer, o in pairs for v, at in zip(layer, o, strict=True)}
    for sweep in range(SWEEPS):
        for layer, offset in pairs if sweep % 2 == 0 else reversed(pairs):
            wanted = [_mean((x[u] for u in above[v] + below[v]), x[v]) for v in layer]
            firmness = [STRAIGHTNESS if widths[v] == WAYPOINT else 1.0 for v in layer]
            # x minus the offsets has to be non-decreasing: the nearest such x in least squares.
            moved = isotonic_regression(np.subtract(wanted, offset), weights=firmness).x + offset
            x.update(zip(layer, moved.tolist(), strict=True))
    return x


def _offsets(widths: list[float]) -> NDArray[np.float64]:
    """The places of boxes side by side, around zero; edges that pass need less room than boxes."""
    gaps = (LINE_GAP if a == b == WAYPOINT else NODE_GAP for a, b in pairwise(widths))
    steps = [0.0, *((a + b) / 2 + gap for (a, b), gap in zip(pairwise(widths), gaps, strict=True))]
    places = np.cumsum(steps)
    return places - places.mean()


def _mean(values: Iterable[float], otherwise: float) -> float:
    every = list(values)
    return sum(every) / len(every) if every else otherwise


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
