"""CAM pruning: after any learner, drop the parents that a smooth additive model can do without."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.checking import check_number
from rescore.graph import as_square
from rescore.pruning.significance import p_values, significant
from rescore.row_weights import prior_weights, rows_stood_for
from rescore.tables.table import as_table
from rescore.text import listing, printable

__all__ = ["cam_prune", "term_p_values"]


def cam_prune(X: Any, graph: Any, cutoff: float = 0.001, sample_weight: Any = None) -> Any:
    """The graph without edges i → j whose function f_i in ``x_j = Σ_i f_i(x_i) + noise`` may be 0.

    Each variable is regressed once on all of its parents by penalised cubic splines, and those
    with a p-value above ``cutoff`` go, all at once (Bühlmann, Peters and Ernest 2014, CAM).

    Parameters
    ----------
    X
        Rows of numbers: an array, a list of rows, or a table of pandas, polars or pyarrow.
    graph
        A square matrix, a pandas table with the names of X on both sides, or a fitted learner.
        Entries that stay keep their value; a table gives a table, anything else an array.
    cutoff
        The largest p-value of an edge that stays.
    sample_weight
        One weight per row.  Whole numbers count rows; others only compare them.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> X[:, 2] += np.sin(2 * X[:, 0])
    >>> cam_prune(X, np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]]))
    array([[0, 0, 1],
           [0, 0, 0],
           [0, 0, 0]])
    """
    cutoff = check_number("cutoff", cutoff, at_least=0, at_most=1)
    table = as_table(X)
    graph = getattr(graph, "adjacency_matrix_", graph)
    W = as_square(graph)
    at = _positions(graph, table.names) if isinstance(graph, pd.DataFrame) else range(len(W))
    _refuse_unfit(W, table.names)
    w = prior_weights(sample_weight, len(table.values))
    rows = rows_stood_for(sample_weight, w)
    kept = significant(table.values[:, list(at)], W != 0, w, rows, cutoff)
    pruned: NDArray[Any] = np.where(kept, W, 0).astype(W.dtype)
    if isinstance(graph, pd.DataFrame):
        return pd.DataFrame(pruned, index=graph.index, columns=graph.columns)
    return pruned


def term_p_values(
    X: Any, target: Hashable, parents: Iterable[Hashable], sample_weight: Any = None
) -> pd.Series:
    """The p-value of each parent's function in ``target = Σ_i f_i(parent_i) + noise``.

    Columns go by their names; those of an array are x0, x1, and so on.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> X[:, 2] += np.sin(2 * X[:, 0])
    >>> term_p_values(X, "x2", ["x0", "x1"]).round(3)
    x0    0.000
    x1    0.939
    Name: x2, dtype: float64
    """
    table = as_table(X)
    wanted = list(parents)
    _refuse_unknown([target, *wanted], table.names)
    if target in wanted or len(set(wanted)) < len(wanted):
        raise ValueError(
            f"parents must differ from each other and from the target '{printable(target)}'; "
            f"got {listing(wanted)}."
        )
    position = {name: i for i, name in enumerate(table.names)}
    w = prior_weights(sample_weight, len(table.values))
    P, y = table.values[:, [position[name] for name in wanted]], table.values[:, position[target]]
    found = p_values(P, y, w, rows_stood_for(sample_weight, w)) if wanted else np.empty(0)
    return pd.Series(found, index=pd.Index(wanted, tupleize_cols=False), name=target)


def _positions(graph: pd.DataFrame, names: Sequence[Hashable]) -> list[int]:
    """Where the variables of the graph are in the data; both sides of it must agree."""
    nodes = list(graph.columns)
    if list(graph.index) != nodes or set(nodes) != set(names) or len(nodes) != len(names):
        raise ValueError(
            "The rows and the columns of the graph must have the names of the data's columns, "
            f"each once and in the same order on both sides; got rows {listing(graph.index)} and "
            f"columns {listing(nodes)} for the data's {listing(names)}."
        )
    position = {name: i for i, name in enumerate(names)}
    return [position[node] for node in nodes]


def _refuse_unfit(W: NDArray[Any], names: Sequence[Hashable]) -> None:
    if len(W) != len(names):
        raise ValueError(f"The graph has {len(W)} node(s) but the data {len(names)} column(s).")
    if np.diagonal(W).any():
        raise ValueError("The graph has a self-loop; no variable is a parent of itself.")


def _refuse_unknown(asked: Sequence[Hashable], names: Sequence[Hashable]) -> None:
    unknown = [name for name in asked if name not in names]
    if unknown:
        raise ValueError(
            f"The data have no column {listing(unknown)}; the columns are {listing(names)}."
        )
