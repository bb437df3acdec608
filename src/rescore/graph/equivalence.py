"""Equivalence classes of DAGs, as partially directed graphs: to the class, and back to a DAG."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rescore.graph.dag import as_square, skeleton, topological_order

__all__ = ["consistent_dag", "cpdag", "is_cpdag", "open_edges"]


def cpdag(W: ArrayLike) -> NDArray[np.int8]:
    """The completed partially directed graph of a DAG: what all Markov-equivalent DAGs share.

    1 at [i, j] alone is an edge that points i -> j in every DAG with the same skeleton and the
    same v-structures; 1 at both [i, j] and [j, i] is one that points either way.  The labelling is
    Chickering's (UAI 1995): along a topological order, the last parent of a node decides.

    Examples
    --------
    >>> cpdag([[0, 1, 0], [0, 0, 1], [0, 0, 0]])  # a chain: nothing is compelled
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]], dtype=int8)
    """
    A = as_square(W) != 0
    compelled = np.zeros_like(A)
    rank = np.argsort(topological_order(A))  # (d,) position of each node in the order
    for y in np.argsort(rank):
        parents = np.flatnonzero(A[:, y])
        if len(parents):
            x = parents[np.argmax(rank[parents])]
            compelled[:, y] = _compelled_parents(A, compelled[:, x], x, y)
    return (A | (A & ~compelled).T).astype(np.int8)


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


def open_edges(W: ArrayLike, directions: ArrayLike | None) -> NDArray[np.bool_]:
    """Which edges of a DAG have an open direction: another DAG of its class turns them round.

    ``directions`` is the class, such as ``cpdag_`` of a fitted estimator: 1 at [i, j] for i -> j,
    at [j, i] too where the direction is open; if it is None, W alone counts and nothing is open.
    The answer is true at [i, j] and not at [j, i] if W has i -> j.  Every picture, table and file
    asks here.

    Examples
    --------
    >>> open_edges([[0, 0.5], [0, 0]], [[0, 1], [1, 0]])
    array([[False,  True],
           [False, False]])
    """
    A = as_square(W) != 0
    if directions is None:
        return np.zeros_like(A)
    P = as_square(directions) != 0
    if A.shape != P.shape or (A & ~P).any() or (skeleton(A) != skeleton(P)).any():
        raise ValueError(
            "The graph is not a member of the class: they must join the same pairs, and every edge "
            "must point as the class says. Give a DAG and its own class."
        )
    return A & P.T


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


def _compelled_parents(
    A: NDArray[np.bool_], into_x: NDArray[np.bool_], x: int, y: int
) -> NDArray[np.bool_]:
    """Which edges into y are compelled, given those into its last parent x."""
    parents = A[:, y]
    others = parents & ~A[:, x]
    others[x] = False
    if (into_x & ~parents).any() or others.any():
        return parents
    return into_x & parents
