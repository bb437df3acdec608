"""One self-contained page about a run, that needs nothing from the network.

The graph can be moved and filtered where scripts run: `graph_data` is what the script draws, boxes,
curves, and what is known of every edge.  Elsewhere its picture stays.  A policy lets exactly the
page's own scripts and styles in and nothing else.
"""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from rescore.exchange import text_names
from rescore.graph.drawing import LABELLED_EDGES, draw_adjacency, draw_graph
from rescore.graph.layout import HEIGHT, Edge, Placement, Point, placed
from rescore.metrics import HEADINGS
from rescore.reports.figures import draw_history, draw_weights, svg
from rescore.reports.run import Run
from rescore.reports.run_tables import (
    changes_sentence,
    columns_used,
    doubts,
    edge_change,
    edge_changes,
    group_shares,
    methods_paragraph,
    rows_learned_from,
    settings,
    table_sentences,
)
from rescore.text import asset, json_text, page_template, policy, printable
from rescore.verdicts import FIRM, FRAGILE, MADE, OPEN, WORDS, trust

__all__ = ["graph_data", "render_page"]

MARKS = {FIRM: "firm", OPEN: "open", FRAGILE: "fragile", MADE: "made"}  # classes of the page
MOST_EDGES = 50  # of the forbidden or required ones that are listed
SCRIPTS = (
    "vendor/cytoscape.min.js",
    *("edge_details.js", "details.js", "graph_view.js", "graph.js"),
)
PIXELS = 96  # in an inch
STRAIGHT = {"leaves": [0, 0], "enters": [0, 0], "along": [0.5], "aside": [0]}  # as `_drawn`
SHOWN = (  # of the table of edges
    "low", "high", "explains", "directed", "by", "stability", "direction", "survives", "known",
    "verdict", "why",
)  # fmt: skip


def render_page(run: Run) -> str:
    """The page as HTML text; everything that comes from the data is escaped.

    Examples
    --------
    >>> import pandas as pd
    >>> from rescore import Linear
    >>> page = render_page(Run(Linear().fit(pd.DataFrame({"<b>": [0.0, 1.0]}))))
    >>> "<b>" in page, "&lt;b&gt;" in page
    (False, True)
    """
    template = page_template("rescore.reports", "template.html.j2")
    return template.render(_contents(run) | _inlined(run))


def _inlined(run: Run) -> dict[str, Any]:
    """What is in the page besides HTML, and the policy that lets in this and nothing else."""
    scripts = [asset(name, "rescore.reports") for name in SCRIPTS]
    style, drawing_style = asset("style.css"), asset("drawing.css", "rescore.reports")
    graph = graph_data(run)
    return {
        "policy": policy(scripts, [style, drawing_style]),
        "scripts": scripts,
        "style": style,
        "drawing_style": drawing_style,
        "graph": json_text(graph),
        "constrained": any(edge["known"] == "required" for edge in graph["edges"]),
        "stable": run.stability is not None,
        "carries_rows": 0 if run.rows is None else len(run.rows.places),
    }


def _contents(run: Run) -> dict[str, Any]:
    from rescore import __version__

    model, names, diagnostics = run.model, text_names(run.model), run.model.diagnostics_
    present = model.adjacency_matrix_.to_numpy() != 0
    degrees = present.sum(axis=0) + present.sum(axis=1)
    edges = _edge_lines(run)
    return {
        "version": __version__,
        "versions": {name: printable(value) for name, value in run.versions.items()},
        "command": printable(run.command, 2000),
        "source": printable(run.source, 500),
        "settings": {name: _shown(name, value) for name, value in settings(model).items()},
        "diagnostics": diagnostics,
        "names": names,
        "isolated": [name for name, degree in zip(names, degrees, strict=True) if not degree],
        "edges": edges,
        "trust": trust(run.edges),
        "counts": {word: sum(edge["verdict"] == word for edge in edges) for word in WORDS},
        "marks": MARKS,
        "noise": (diagnostics.get("noise") or {}).get("summary", ""),
        "methods": printable(methods_paragraph(run), 4000),
        "some_open": not all(edge["directed"] for edge in edges),
        "n": rows_learned_from(model),
        "figures": _figures(run),
        "heaviest": _heaviest(run),
        "groups": _groups(run),
        "labels_seen": model.needs_groups,
        "changes": _changes(run),
        "columns": columns_used(model),
        "units": run.units,
        "doubts": _not_in_the_graph(run),
        "resampled": printable(run.resampled, 500),
        "findings": [
            {name: printable(getattr(found, name), 2000) for name in ("severity", "seen", "remedy")}
            for found in run.findings
        ],
        "receipts": _receipts(run),
        "scores": _scores(run),
        "undefined": dict(run.scores.undefined) if run.scores is not None else {},
        "metrics": HEADINGS,
        "warnings": [printable(text, 2000) for text in _warnings(run)],
    }


def _edge_lines(run: Run) -> list[dict[str, Any]]:
    """The table of edges, each with the name it has in the drawing; what is not known is None."""
    place = {name: k for k, name in enumerate(text_names(run.model))}
    return [
        {str(key): None if value != value else value for key, value in line.items()}
        | {"id": f"e{place[line['cause']]}-{place[line['effect']]}"}
        for line in run.edges.to_dict("records")
    ]


def _not_in_the_graph(run: Run) -> list[dict[str, Any]]:
    """Edges that resamples find now and then, the most frequent first."""
    found = [] if run.stability is None else doubts(run, run.stability)
    return [line for line in reversed(found) if not line["in_graph"]]


def _figures(run: Run) -> dict[str, str]:
    model, names = run.model, text_names(run.model)
    W = model.adjacency_matrix_.to_numpy()
    pictures = {
        "graph": draw_graph(W, names, model.cpdag_.to_numpy()),
        "adjacency": draw_adjacency(W, names),
        "history": draw_history(model.history_),
        "weights": draw_weights(model.sample_weight_, model.row_losses_, run.groups),
    }
    return {name: _data_address(svg(figure)) for name, figure in pictures.items()}


def _data_address(picture: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(picture.encode()).decode()


def _groups(run: Run) -> list[dict[str, Any]]:
    if run.groups is None:
        return []
    shares = group_shares(run.model.sample_weight_, run.groups)
    return shares.reset_index(names="label").to_dict("records")  # type: ignore[return-value]


def _heaviest(run: Run) -> list[dict[str, Any]]:
    """The heaviest rows, each with its group where there are groups."""
    listed = run.model.diagnostics_["heaviest_rows"]
    if run.groups is None:
        return listed
    w, loss = run.model.sample_weight_.to_numpy(), np.nan_to_num(run.model.row_losses_)
    order = np.lexsort((-loss, -w))[: len(listed)]  # labels may repeat, so they cannot be looked up
    labels = np.asarray(run.groups, dtype=object)[order]
    return [row | {"group": label} for row, label in zip(listed, labels, strict=True)]


def _changes(run: Run) -> dict[str, Any] | None:
    """The edges that differ from those of the plain fit, and a sentence that counts them all."""
    if run.plain is None:
        return None
    W, plain = run.model.adjacency_matrix_.to_numpy(), np.asarray(run.plain, dtype=float)
    table = edge_changes(W, plain, text_names(run.model))
    lines = table[table["change"] != "in both fits"].to_dict("records")
    return {"sentence": changes_sentence(table), "lines": lines}


def _receipts(run: Run) -> list[dict[str, Any]]:
    """What was known about edges, and whether it holds; what does not hold comes first."""
    known = run.model.diagnostics_.get("knowledge", [])
    return sorted(known, key=lambda each: bool(each["holds"]))


def _warnings(run: Run) -> list[str]:
    """What was done to the table and warned about, then what nobody has said yet."""
    found = run.model.diagnostics_["warnings"]
    unsaid = [one["message"] for one in found if not any(one["seen"] in w for w in run.warnings)]
    done = table_sentences(run.model.diagnostics_.get("table", {}))
    return list(dict.fromkeys([*done, *run.warnings, *unsaid]))


def _scores(run: Run) -> dict[str, dict[str, Any]]:
    """One line per fit: those to compare with first, this one last."""
    if run.scores is None:
        return {}
    every = {**run.baselines, "this fit": run.scores}
    return {name: {key: scores[key] for key in HEADINGS} for name, scores in every.items()}


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if name in ("forbidden", "required"):
        edges = [" → ".join(printable(end, 200) for end in edge) for edge in value]
        more = f" and {len(edges) - MOST_EDGES} more" if len(edges) > MOST_EDGES else ""
        return ", ".join(edges[:MOST_EDGES]) + more
    return f"{value:g}" if isinstance(value, float) else printable(value, 500)


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
