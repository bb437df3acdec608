"""Two graphs to compare, in whatever form they come, as two matrices over the same nodes."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.graph.dag import as_square
from rescore.graph.io import from_networkx
from rescore.text import listing

__all__ = ["GraphPair", "paired"]


class GraphPair(NamedTuple):
    """Boolean adjacency matrices (d, d) of the truth and the estimate, and their names if any."""

    truth: NDArray[np.bool_]
    estimate: NDArray[np.bool_]
    names: list[Hashable] | None


def paired(truth: Any, estimate: Any) -> GraphPair:
    """Both graphs over the nodes of the truth, in its order.

    Each may be a matrix, a pandas table with the names on both sides, a networkx.DiGraph, or a
    fitted estimator.  Two graphs with names are matched by name.  A matrix has no names, and nor
    has a graph whose nodes are 0, 1, ..., d - 1; such a one is matched by position with another
    matrix or table, but not with a named networkx graph, whose order means nothing.

    Examples
    --------
    >>> a = pd.DataFrame([[0, 1], [0, 0]], index=["x", "y"], columns=["x", "y"])
    >>> paired(a, a.loc[["y", "x"], ["y", "x"]]).estimate
    array([[False,  True],
           [False, False]])
    """
    T, true_names, true_ordered = _unpacked(truth, "truth")
    E, names, ordered = _unpacked(estimate, "estimate")
    if true_names is not None and names is not None:
        E = E[np.ix_(*2 * [_positions(true_names, names)])]
    elif not (true_ordered and ordered):
        raise ValueError(
            "One graph is a networkx graph with names and the other has no names, so their nodes "
            "cannot be matched; give both as tables or networkx graphs with names."
        )
    if T.shape != E.shape:
        raise ValueError(f"The truth has {len(T)} node(s) and the estimate {len(E)}.")
    return GraphPair(T, E, names if true_names is None else true_names)


def _unpacked(graph: Any, role: str) -> tuple[NDArray[np.bool_], list[Hashable] | None, bool]:
    """Adjacency, names or None, and whether the order of the nodes carries meaning."""
    graph = getattr(graph, "adjacency_matrix_", graph)
    ordered, names = True, None
    if isinstance(graph, pd.DataFrame):
        graph, names = _from_table(graph, role)
    elif hasattr(graph, "is_directed"):
        numbered = set(graph) == set(range(len(graph)))
        graph, names = from_networkx(graph, range(len(graph)) if numbered else None)
        ordered = numbered
    elif not isinstance(graph, np.ndarray | list | tuple):
        raise TypeError(
            f"The {role} must be a matrix, a pandas table, a networkx.DiGraph or a fitted "
            f"estimator; got {type(graph).__name__}."
        )
    A = as_square(graph) != 0
    if A.diagonal().any():
        raise ValueError(f"The {role} has a self-loop; remove it (zero diagonal) to compare.")
    return A, None if names == list(range(len(A))) else names, ordered


def _from_table(frame: pd.DataFrame, role: str) -> tuple[NDArray[Any], list[Hashable]]:
    rows, columns = list(frame.index), list(frame.columns)
    if len(set(rows)) < len(rows) or set(rows) != set(columns) or len(rows) != len(columns):
        raise ValueError(
            f"The rows and the columns of the {role} must have the same names, each once; got rows "
            f"{listing(rows)} and columns {listing(columns)}."
        )
    return frame.loc[:, rows].to_numpy(), rows


def _positions(wanted: list[Hashable], names: list[Hashable]) -> list[int]:
    missing, extra = set(wanted) - set(names), set(names) - set(wanted)
    if missing or extra:
        raise ValueError(
            f"The graphs have different nodes. Only the truth has: "
            f"{listing(sorted(missing, key=str)) or 'none'}. Only the estimate has: "
            f"{listing(sorted(extra, key=str)) or 'none'}."
        )
    position = {name: i for i, name in enumerate(names)}
    return [position[name] for name in wanted]
