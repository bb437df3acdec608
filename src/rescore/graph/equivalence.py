"""Partially directed graphs and the DAGs behind them; `graph.cpdag` goes the other way."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rescore.graph import as_square, cpdag

__all__ = ["consistent_dag", "is_cpdag"]


def consistent_dag(graph: ArrayLike) -> NDArray[np.int8]:
    """A DAG with the skeleton, directed edges and v-structures of a partially directed graph.

    Dor and Tarsi (1992): take away, again and again, a node that can be a sink, and point its
    undirected edges at it.  If at some point there is none, no such DAG exists.

    Examples
    --------
    >>> consistent_dag([[0, 1], [1, 0]])
    array([[0, 0],
           [1, 0]], dtype=int8)
    """
    P = as_square(graph) != 0
    adjacent, directed = P | P.T, P & ~P.T
    A, left = directed.astype(np.int8), np.ones(len(P), dtype=np.bool_)
    out = directed.sum(axis=1)  # (d,) directed edges to nodes that are left
    for _ in range(len(P)):
        sink = _possible_sink(P, adjacent, left & (out == 0), left)
        if sink is None:
            raise ValueError("No DAG has exactly these directed edges, skeleton and v-structures.")
        A[P[:, sink] & left, sink] = 1
        left[sink] = False
        out -= directed[:, sink]
    return A


def is_cpdag(graph: ArrayLike) -> bool:
    """Whether the graph is the CPDAG of some DAG.

    Examples
    --------
    >>> is_cpdag([[0, 1], [1, 0]]), is_cpdag([[0, 1], [0, 0]])
    (True, False)
    """
    P = as_square(graph) != 0
    try:
        return bool(np.array_equal(cpdag(consistent_dag(P)), P))
    except ValueError:
        return False


def _possible_sink(
    P: NDArray[np.bool_],
    adjacent: NDArray[np.bool_],
    candidates: NDArray[np.bool_],
    left: NDArray[np.bool_],
) -> int | None:
    """A candidate each of whose undirected neighbours is adjacent to all its other neighbours."""
    for node in np.flatnonzero(candidates).tolist():
        undirected = np.flatnonzero(P[node] & left)
        joined = adjacent[np.ix_(undirected, np.flatnonzero(adjacent[node] & left))]
        if (~joined).sum() == len(undirected):  # each is apart from itself only
            return node
    return None
