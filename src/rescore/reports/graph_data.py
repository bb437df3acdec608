"""The graph as the page's script draws it: boxes, curves, and what is known of every edge."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rescore.exchange.programs import text_names
from rescore.graph.drawing import LABELLED_EDGES
from rescore.graph.layout import HEIGHT, Edge, Placement, Point, placed
from rescore.reports.run import Run
from rescore.reports.run_tables import edge_change
from rescore.text import printable

__all__ = ["graph_data"]

PIXELS = 96  # in an inch
STRAIGHT = {"leaves": [0, 0], "enters": [0, 0], "along": [0.5], "aside": [0]}  # as `_drawn`
SHOWN = (  # of the table of edges
    "low", "high", "explains", "directed", "by", "stability", "direction", "survives", "known",
    "verdict", "why",
)  # fmt: skip


def graph_data(run: Run, like: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Nodes and edges in pixels, y downwards, and some rows, as plain data for JSON.

    With the data of an earlier graph of the same variables these stay where they are there, which
    saves most of the time; edges that it had not are straight.

    Examples
    --------
    >>> from rescore import Linear
    >>> data = graph_data(Run(Linear().fit([[0.0], [1.0]])))
    >>> [node["name"] for node in data["nodes"]], data["edges"]
    (['x0'], [])
    """
    names = text_names(run.model)
    place = {name: k for k, name in enumerate(names)}
    known = {(place[line["cause"]], place[line["effect"]]): line for line in _lines(run)}
    nodes, routes = _new_places(run, names) if like is None else _same_places(run, like)
    return {
        "height": round(HEIGHT * PIXELS, 1),
        "nodes": nodes,
        "edges": [_described(run, e) | known[e] | routes[e] for e in routes],
        "gone": [_described(run, edge) for edge in _gone(run)],
        "labelled": len(routes) <= LABELLED_EDGES,
        "compared": run.plain is not None,
        "linear": run.model.equations_.kind == "linear",
        "rows": _rows(run),
    }


def _new_places(run: Run, names: list[str]) -> tuple[list[dict[str, Any]], dict[Edge, Any]]:
    found = placed(run.model.adjacency_matrix_, names)
    nodes = [_node(found, j, name) for j, name in enumerate(names)]
    return nodes, {edge: _drawn(found, edge) for edge in found.routes}


def _same_places(run: Run, like: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[Edge, Any]]:
    there = run.model.adjacency_matrix_.to_numpy() != 0
    joined = there.any(axis=0) | there.any(axis=1)
    nodes = [node | {"isolated": not joined[j]} for j, node in enumerate(like["nodes"])]
    bends = {edge["id"]: {word: edge[word] for word in STRAIGHT} for edge in like["edges"]}
    edges = [(i, j) for i, j in np.argwhere(there).tolist()]
    return nodes, {(i, j): bends.get(f"e{i}-{j}", STRAIGHT) for i, j in edges}


def _lines(run: Run) -> list[dict[str, Any]]:
    """What the table says of each edge; what is not known is None."""
    table = run.edges[["cause", "effect", *SHOWN]].to_dict("records")
    return [{str(k): None if v != v else v for k, v in line.items()} for line in table]


def _node(found: Placement, j: int, name: str) -> dict[str, Any]:
    x, y = (found.nodes | found.isolated)[j]
    return {
        "id": f"n{j}",
        "name": printable(name, 200),
        "label": found.labels[j],
        "x": round(PIXELS * x, 1),
        "y": round(-PIXELS * y, 1),
        "width": round(PIXELS * found.widths[j], 1),
        "isolated": j in found.isolated,
    }


def _drawn(found: Placement, edge: Edge) -> dict[str, Any]:
    """How the edge is drawn: where it leaves and enters its boxes, and how it bends between."""
    route = found.routes[edge]
    (sx, sy), (tx, ty) = found.nodes[edge[0]], found.nodes[edge[1]]
    (ax, ay), (bx, by) = route[0], route[-1]
    along, aside = _bends(route)
    return {
        "leaves": [round(PIXELS * (ax - sx), 1), round(-PIXELS * (ay - sy), 1)],
        "enters": [round(PIXELS * (bx - tx), 1), round(-PIXELS * (by - ty), 1)],
        "along": along,
        "aside": aside,
    }


def _bends(route: list[Point]) -> tuple[list[float], list[float]]:
    """The points that pull the curve: how far along the straight line, and pixels aside of it.

    One below the start and one above the end let it leave and arrive vertically.
    """
    (ax, ay), (bx, by) = route[0], route[-1]
    start = (ax, ay + 0.4 * (route[1][1] - ay))
    end = (bx, by + 0.4 * (route[-2][1] - by))
    pulls = PIXELS * np.array([start, *route[1:-1], end]) * [1, -1]  # (k, 2), y downwards
    origin = PIXELS * np.array([ax, -ay])
    line = PIXELS * np.array([bx, -by]) - origin
    length = float(np.hypot(*line))
    along = (pulls - origin) @ line / length**2
    aside = (pulls - origin) @ np.array([-line[1], line[0]]) / length
    return np.round(along, 4).tolist(), np.round(aside, 1).tolist()


def _described(run: Run, edge: Edge) -> dict[str, Any]:
    """An edge of the graph, or one that only the plain fit has."""
    W = run.model.adjacency_matrix_.to_numpy()
    gone = W[edge] == 0
    return {
        "id": f"{'p' if gone else 'e'}{edge[0]}-{edge[1]}",
        "source": f"n{edge[0]}",
        "target": f"n{edge[1]}",
        "weight": float(np.asarray(run.plain)[edge] if gone else W[edge]),
        "directed": True,
        "change": None if run.plain is None else edge_change(W, np.asarray(run.plain), edge),
    }


def _gone(run: Run) -> list[Edge]:
    """The edges that only the plain fit has."""
    if run.plain is None:
        return []
    W, plain = run.model.adjacency_matrix_.to_numpy(), np.asarray(run.plain)
    return [(i, j) for i, j in np.argwhere((plain != 0) & (W == 0)).tolist()]


def _rows(run: Run) -> dict[str, Any] | None:
    """The rows that pictures of edges show, and how much each counts, 1 as in the plain learner."""
    if run.rows is None:
        return None
    n, places = len(run.model.sample_weight_), run.rows.places
    weight = n * run.model.sample_weight_.to_numpy()[places]
    cells = None
    if run.model._cell_weight is not None:  # a list for each variable
        cells = n * run.model.cell_weight_.to_numpy()[places].T
    return {
        "values": run.rows.values,
        "weight": np.round(weight, 3).tolist(),
        "cells": None if cells is None else np.round(cells, 3).tolist(),
        "of": n,
    }
