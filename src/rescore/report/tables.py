"""What a fitted model found, as small tables for a terminal, a page or a file."""

from collections import Counter
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rescore.estimators import StructureLearner
from rescore.graph.edges import edges_of
from rescore.handover.network_json import text_names

__all__ = [
    "changes_sentence",
    "columns_used",
    "edge_change",
    "edge_changes",
    "group_shares",
    "row_weights",
    "settings",
    "strongest_edges",
]


def strongest_edges(model: StructureLearner) -> list[tuple[str, str, float]]:
    """All edges as (from, to, weight), the strongest first.

    Examples
    --------
    >>> from rescore import Notears
    >>> x = np.random.default_rng(0).normal(size=(500, 1))
    >>> model = Notears().fit(np.hstack([x, 2 * x + x[::-1]]))
    >>> [(cause, effect, round(weight)) for cause, effect, weight in strongest_edges(model)]
    [('x0', 'x1', 2)]
    """
    edges = edges_of(model.adjacency_matrix_.to_numpy(), text_names(model))
    return sorted(edges, key=lambda edge: -abs(edge[2]))


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
    >>> from rescore import Notears
    >>> row_weights(Notears().fit([[0.0], [2.0]]))
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
    params = _parameters(model)
    inner = params.pop("estimator", None)
    if inner is None:
        return {"estimator": type(model).__name__, **params}
    name = f"{type(model).__name__}({type(inner).__name__})"
    return {"estimator": name, **params, **_parameters(inner)}


def columns_used(model: StructureLearner) -> str:
    """In which units the learner saw the columns.

    Examples
    --------
    >>> from rescore import Notears, ReScore
    >>> columns_used(Notears()), columns_used(ReScore(Notears(standardize=True)))
    ('columns in their own units', 'columns standardised')
    """
    learner = getattr(model, "estimator", model)
    standardised = getattr(learner, "standardize", False)
    return "columns standardised" if standardised else "columns in their own units"


def _parameters(model: StructureLearner) -> dict[str, Any]:
    """As `get_params`, in the order of the documentation rather than of the alphabet."""
    return {name: getattr(model, name) for name in signature(type(model)).parameters}
