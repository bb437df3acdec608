"""One self-contained page about a run, that needs nothing from the network.

The graph can be moved and filtered where scripts run; elsewhere its picture stays.  A policy lets
exactly the page's own scripts and styles in and nothing else.
"""

import base64
from typing import Any

import numpy as np

from rescore.exchange.programs import text_names
from rescore.graph.drawing import draw_adjacency, draw_graph
from rescore.metrics import HEADINGS
from rescore.reports.figures import draw_history, draw_weights, svg
from rescore.reports.graph_data import graph_data
from rescore.reports.run import Run
from rescore.reports.run_tables import (
    changes_sentence,
    columns_used,
    doubts,
    edge_changes,
    group_shares,
    methods_paragraph,
    rows_learned_from,
    settings,
    table_sentences,
)
from rescore.text import asset, json_text, page_template, policy, printable
from rescore.verdicts import FIRM, FRAGILE, MADE, OPEN, WORDS, trust

__all__ = ["render_page"]

MARKS = {FIRM: "firm", OPEN: "open", FRAGILE: "fragile", MADE: "made"}  # classes of the page
MOST_EDGES = 50  # of the forbidden or required ones that are listed
SCRIPTS = (
    "vendor/cytoscape.min.js",
    *("edge_details.js", "details.js", "graph_view.js", "graph.js"),
)


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
