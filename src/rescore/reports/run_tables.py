"""What a run found, as small tables and sentences for a terminal, a page or a file."""

from collections import Counter
from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rescore.exchange import text_names
from rescore.learners.base import StructureLearner
from rescore.reports.run import Run
from rescore.text import listing, printable
from rescore.verdicts import trust

__all__ = [
    "changes_sentence",
    "columns_used",
    "doubts",
    "edge_change",
    "edge_changes",
    "group_shares",
    "methods_paragraph",
    "row_weights",
    "rows_learned_from",
    "settings",
    "table_sentences",
]

NOTEWORTHY = 0.1  # share of resamples from which an edge is listed that the graph has not


def edge_change(W: Any, plain: Any, edge: tuple[int, int]) -> str:
    """What became of an edge: in both graphs, only in W, only in the plain one, or turned round.

    Examples
    --------
    >>> edge_change(np.array([[0, 1], [0, 0]]), np.array([[0, 0], [1, 0]]), (0, 1))
    'turned round'
    """
    i, j = edge
    if W[i, j] != 0 and plain[i, j] != 0:
        return "in both fits"
    if W[i, j] != 0:
        return "turned round" if plain[j, i] != 0 else "only with row weights"
    return "turned round" if W[j, i] != 0 else "only without row weights"


def edge_changes(W: Any, plain: Any, names: list[str]) -> pd.DataFrame:
    """Every edge of either graph with its coefficient in both and what became of it.

    Examples
    --------
    >>> changes = edge_changes(np.array([[0, 2.0], [0, 0]]), np.zeros((2, 2)), ["a", "b"])
    >>> changes.values.tolist()
    [['a', 'b', 0.0, 2.0, 'only with row weights']]
    """
    # An edge that turned round is listed once, as it is in W.
    either = np.argwhere((W != 0) | ((plain != 0) & (W.T == 0))).tolist()
    lines = [
        (names[i], names[j], plain[i, j] or plain[j, i], W[i, j], edge_change(W, plain, (i, j)))
        for i, j in either
    ]
    columns = ["cause", "effect", "without", "with", "change"]
    return pd.DataFrame(lines, columns=columns)


def changes_sentence(changes: pd.DataFrame) -> str:
    """How many edges row weights left, brought, took away and turned round.

    Examples
    --------
    >>> changes_sentence(edge_changes(np.array([[0, 2.0], [0, 0]]), np.zeros((2, 2)), ["a", "b"]))
    'Edges in the graph with and without row weights: 0; only with them: 1; only without them: 0;
    turned round: 0.'
    """
    count = Counter(changes["change"])
    return (
        f"Edges in the graph with and without row weights: {count['in both fits']}; only with "
        f"them: {count['only with row weights']}; only without them: "
        f"{count['only without row weights']}; turned round: {count['turned round']}."
    )


def row_weights(model: StructureLearner) -> pd.DataFrame:
    """Weight and loss of every row, in their order; a row that was given no weight has no loss.

    Examples
    --------
    >>> from rescore import Linear
    >>> row_weights(Linear().fit([[0.0], [2.0]]))
       weight  loss
    0     0.5   1.0
    1     0.5   1.0
    """
    return pd.DataFrame({"weight": model.sample_weight_, "loss": model.row_losses_})


def group_shares(weights: ArrayLike, groups: ArrayLike) -> pd.DataFrame:
    """Per group, in order of appearance: number of rows, share of the rows, share of the weight.

    Examples
    --------
    >>> group_shares([0.1, 0.2, 0.7], ["a", "a", "b"])
           rows  share_of_rows  share_of_weight
    group
    a         2       0.666667              0.3
    b         1       0.333333              0.7
    """
    w = np.asarray(weights, dtype=float)
    labels = [str(label) for label in np.asarray(groups, dtype=object)]
    if len(labels) != len(w):
        raise ValueError(f"There are {len(w)} rows but {len(labels)} group labels; give one each.")
    table = pd.DataFrame({"group": labels, "w": w}).groupby("group", sort=False)["w"]
    rows, weight = table.size(), table.sum()
    return pd.DataFrame(
        {"rows": rows, "share_of_rows": rows / len(w), "share_of_weight": weight / w.sum()}
    )


def settings(model: StructureLearner) -> dict[str, Any]:
    """The learner and its parameters, flat; those of a wrapped learner under their own names.

    Examples
    --------
    >>> from rescore import Notears, ReScore
    >>> list(settings(ReScore(Notears())))[:4]
    ['estimator', 'tau', 'weighting', 'loss']
    """
    params, inner = _parameters(model), model.plain
    if inner is model:
        return {"estimator": type(model).__name__, **params}
    name = f"{type(model).__name__}({type(inner).__name__})"
    return {**params, "estimator": name, **_parameters(inner)}


def columns_used(model: StructureLearner) -> str:
    """In which units the learner saw the columns.

    Examples
    --------
    >>> from rescore import Notears, ReScore
    >>> columns_used(Notears()), columns_used(ReScore(Notears(standardize=True)))
    ('columns in their own units', 'columns standardised')
    """
    standardised = getattr(model.plain, "standardize", False)
    return "columns standardised" if standardised else "columns in their own units"


def methods_paragraph(run: Run) -> str:
    """How the graph came about and how far it is trusted, for the methods section of a paper.

    Examples
    --------
    >>> from rescore import Linear
    >>> print(methods_paragraph(Run(Linear().fit([[0.0], [1.0]]), source="two.csv")))
    A directed acyclic graph over 1 variable was learned from 2 rows (two.csv) with Linear of
    rescore ..., columns in their own units. ...
    """
    model, noted = run.model, run.model.diagnostics_
    n, d = rows_learned_from(model), model.losses_.shape[1]
    source = f" ({run.source})" if run.source else ""
    told = [
        f"A directed acyclic graph over {d} variable{'s' * (d != 1)} was learned from {n:,} rows"
        f"{source} with {settings(model)['estimator']} of rescore {run.versions['rescore']}, "
        f"{columns_used(model)}.",
        (noted.get("noise") or {}).get("summary", ""),
        noted["weighting"].get("summary", ""),
        f"{len(noted['knowledge'])} edges were required or forbidden."
        if noted["knowledge"]
        else "",
        "Coefficients have 90 % intervals. An edge is called firm if its direction is identified, "
        "at least 90 % of resamples of the rows have it (without resamples: its coefficient is "
        "clear of its error), and it survives the changes of units that were tried.",
        trust(run.edges),
    ]
    return " ".join(text for text in told if text)


def doubts(run: Run, shares: Any) -> list[dict[str, Any]]:
    """The edges of the graph, and others found now and then, the least sure first.

    ``shares`` (d, d) are those of the resamples with each edge.  Each line has the ``cause``, the
    ``effect``, the ``probability`` of the edge, the probability that the two are ``adjacent``, that
    of this ``direction`` if they are, and whether the edge is ``in_graph``.

    Examples
    --------
    >>> from rescore import Linear
    >>> run = Run(Linear(required=[("x0", "x1")]).fit([[0.0, 0.0], [1.0, 2.0], [2.0, 3.0]]))
    >>> (line,) = doubts(run, np.array([[0.0, 0.75], [0.05, 0.0]]))
    >>> line["cause"], line["effect"], line["probability"], line["direction"], line["in_graph"]
    ('x0', 'x1', 0.75, 0.9375, True)
    """
    P, W, names = np.asarray(shares), run.model.adjacency_matrix_.to_numpy(), text_names(run.model)
    either = np.minimum(P + P.T, 1.0)
    direction = np.divide(P, P + P.T, out=np.zeros_like(P), where=P + P.T > 0)
    edges = np.argwhere((W != 0) | ((P >= NOTEWORTHY) & ~np.eye(len(P), dtype=bool)))
    lines = [
        {
            "cause": names[i],
            "effect": names[j],
            "probability": float(P[i, j]),
            "adjacent": float(either[i, j]),
            "direction": float(direction[i, j]),
            "in_graph": bool(W[i, j] != 0),
        }
        for i, j in edges.tolist()
    ]
    return sorted(lines, key=lambda line: line["probability"])


def _parameters(model: StructureLearner) -> dict[str, Any]:
    """As `get_params`, in the order of the documentation rather than of the alphabet."""
    return {name: getattr(model, name) for name in signature(type(model)).parameters}


def rows_learned_from(model: StructureLearner) -> int:
    """How many there were, also where only some of them were ever in memory.

    Examples
    --------
    >>> from rescore import Linear
    >>> rows_learned_from(Linear().fit([[0.0], [2.0]]))
    2
    """
    passes = model.diagnostics_.get("passes") or {}
    return int(passes.get("rows", len(model.losses_)))


def table_sentences(receipt: Mapping[str, Any]) -> list[str]:
    """What was filled in, left out or coded before the fit.

    Examples
    --------
    >>> table_sentences({"missing": {"how": "em", "rows": 0, "cells": {"a": 2}}, "dropped": ["b"]})
    ["Filled in by EM: 2 cells, 'a' (2).", "Left out: 'b'."]
    """
    told, gaps = [], receipt.get("missing")
    if gaps:
        cells = ", ".join(f"'{printable(k, 30)}' ({c})" for k, c in list(gaps["cells"].items())[:6])
        more = f" and {len(gaps['cells']) - 6} more" if len(gaps["cells"]) > 6 else ""
        total = sum(gaps["cells"].values())
        if gaps["how"] == "drop":
            told.append(f"Rows left out for gaps: {gaps['rows']}, with gaps in {cells}{more}.")
        else:
            told.append(f"Filled in by EM: {total} cells, {cells}{more}.")
            if gaps["rows"]:
                told.append(f"Rows left out because they held nothing: {gaps['rows']}.")
    if receipt.get("categories"):
        told.append(f"May cause and are not caused: {listing(receipt['categories'])}.")
    if receipt.get("dropped"):
        told.append(f"Left out: {listing(receipt['dropped'])}.")
    if receipt.get("read"):
        told.append(receipt["read"])
    return told
