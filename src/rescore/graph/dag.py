"""Directed graphs as matrices: order, cycles, thresholds, paths, and classes of equivalent DAGs.

``W[i, j] != 0`` means i -> j, here and everywhere.  A class is a partially directed graph.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rescore.text import printable

__all__ = [
    "as_square",
    "consistent_dag",
    "cpdag",
    "cut_to_dag",
    "is_cpdag",
    "is_dag",
    "open_edges",
    "precedence",
    "reachability",
    "skeleton",
    "threshold",
    "topological_order",
]

Edge = tuple[int, int, float]


def is_dag(W: ArrayLike) -> bool:
    """Whether the graph has no directed cycle; a self-loop is a cycle.

    Examples
    --------
    >>> is_dag([[0, 1], [0, 0]]), is_dag([[0, 1], [1, 0]]), is_dag([[1]])
    (True, False, False)
    """
    A = as_square(W) != 0
    return len(_peel(A)) == len(A)


def topological_order(W: ArrayLike, names: Sequence[Any] | None = None) -> list[int]:
    """The nodes, each after all of its parents; of several possible next ones the lowest index.

    A cycle is an error that names it, by ``names`` if they are given.

    Examples
    --------
    >>> topological_order([[0, 0, 0], [0, 0, 0], [1, 1, 0]])
    [2, 0, 1]
    """
    A = as_square(W) != 0
    order = _peel(A)
    if len(order) < len(A):
        raise ValueError(
            f"The graph has a cycle, {_describe_cycle(A, order, names)}, so its nodes have no "
            "topological order; cut_to_dag removes the weakest edges of the cycles."
        )
    return order


def threshold(W: ArrayLike, at: float, keep: ArrayLike | None = None) -> NDArray[Any]:
    """W without its weak edges: where abs(w) < at it becomes 0, except where ``keep`` is true.

    Examples
    --------
    >>> threshold([[0, 0.3], [0.2, 0]], at=0.3)
    array([[0. , 0.3],
           [0. , 0. ]])
    """
    W = as_square(W)
    if not (np.isfinite(at) and at >= 0):
        raise ValueError(f"A threshold must be a finite number of at least 0, but it is {at}.")
    return np.where((np.abs(W) < at) & ~_mask(keep, W), 0, W).astype(W.dtype, copy=False)


def cut_to_dag(W: ArrayLike, keep: ArrayLike | None = None) -> tuple[NDArray[Any], list[Edge]]:
    """W without the weakest edges of its cycles; and those as (i, j, weight), weakest first.

    Edges enter an empty graph strongest first, and one that would close a cycle stays out.  So
    each edge that is cut is the weakest of a cycle whose other edges all stay: none could be put
    back, and fewer are lost than by deleting the weakest edge of any cycle until none is left.
    Edges in the boolean mask ``keep`` enter first.  Of equally strong edges the one
    with the lower (row, column) enters first.

    Examples
    --------
    >>> W, removed = cut_to_dag([[0, 0.5], [-0.2, 0]])
    >>> W
    array([[0. , 0.5],
           [0. , 0. ]])
    >>> removed
    [(1, 0, -0.2)]
    """
    W = as_square(W).copy()
    kept = _mask(keep, W) & (W != 0)
    if is_dag(W):  # as most searches end: it saves the import of what finds components
        return W, []
    if not is_dag(kept):
        raise ValueError("The edges to keep form a cycle among themselves; keep fewer of them.")
    removed = [(i, j, W[i, j].item()) for i, j in _edges_closing_cycles(W, kept)][::-1]
    for i, j, _ in removed:
        W[i, j] = 0
    return W, removed


def skeleton(W: ArrayLike) -> NDArray[np.bool_]:
    """Which pairs of nodes are adjacent, in either direction: a symmetric boolean matrix.

    Examples
    --------
    >>> skeleton([[0, 1], [0, 0]])
    array([[False,  True],
           [ True, False]])
    """
    A = as_square(W) != 0
    return A | A.T


def reachability(A: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``[i, j]`` where a directed path leads from i to j, by repeated squaring.

    Examples
    --------
    >>> reachability(np.array([[False, True, False], [False, False, True], [False] * 3]))[0]
    array([False,  True,  True])
    """
    reach = A.copy()
    while True:
        further = reach | (reach.astype(float) @ reach.astype(float) > 0)
        if (further == reach).all():
            return reach
        reach = further


def precedence(allowed: NDArray[np.bool_], required: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``[i, j]`` where i can be put before j in every order worth looking at, (d, d); acyclic.

    Required edges point forward.  And where allowed edges lead from i to j but never back, no graph
    is lost by putting i first, while putting j first would lose the edge.

    Examples
    --------
    >>> only_forward = np.triu(np.ones((3, 3), dtype=bool), k=1)
    >>> (precedence(only_forward, np.zeros((3, 3), dtype=bool)) == only_forward).all()
    np.True_
    """
    d = len(allowed)
    if allowed.sum() == d * (d - 1):
        return required
    reach = reachability(allowed)
    return required | (reach & ~reach.T)


def as_square(W: ArrayLike) -> NDArray[Any]:
    """W as an array, after checking that it is a square matrix of finite real numbers.

    Examples
    --------
    >>> as_square([[0, 1], [0, 0]])
    array([[0, 1],
           [0, 0]])
    """
    W = np.asarray(W)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(f"A graph is a square matrix, one row and column a node; got {W.shape}.")
    if W.dtype.kind not in "biuf":
        raise TypeError(f"A graph is a matrix of real numbers; got dtype {W.dtype}.")
    if not np.isfinite(W).all():
        i, j = np.argwhere(~np.isfinite(W))[0]
        raise ValueError(f"Edge weights must be finite, but the one at [{i}, {j}] is {W[i, j]}.")
    return W


def _mask(keep: ArrayLike | None, W: NDArray[Any]) -> NDArray[np.bool_]:
    mask = np.zeros(W.shape, dtype=bool) if keep is None else np.asarray(keep)
    if mask.dtype != bool or mask.shape != W.shape:
        raise ValueError(
            f"keep must be a boolean matrix of shape {W.shape}; got {mask.dtype}, {mask.shape}."
        )
    return mask


def _peel(A: NDArray[np.bool_]) -> list[int]:
    """Nodes in topological order, as far as it goes: what is on or behind a cycle is left out."""
    waiting_for = A.sum(axis=0)  # (d,) parents not yet placed
    ready = np.flatnonzero(waiting_for == 0).tolist()
    heapify(ready)
    order = []
    while ready:
        node = heappop(ready)
        order.append(node)
        waiting_for -= A[node]
        for child in np.flatnonzero(A[node] & (waiting_for == 0)).tolist():
            heappush(ready, child)
    return order


def _describe_cycle(A: NDArray[np.bool_], order: list[int], names: Sequence[Any] | None) -> str:
    """One cycle as text.  Every node that is not in ``order`` has a parent that is not either."""
    left = np.ones(len(A), dtype=bool)
    left[order] = False
    path = [int(np.argmax(left))]
    while path[-1] not in path[:-1]:
        path.append(int(np.argmax(A[:, path[-1]] & left)))
    cycle = path[path.index(path[-1]) :][::-1]
    shown = [str(i) if names is None else printable(names[i]) for i in cycle]
    if len(shown) > 8:
        shown = [*shown[:6], "...", shown[-1]]
    return " -> ".join(shown)


def _edges_closing_cycles(W: NDArray[Any], kept: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Edges that would close a cycle with stronger ones, strongest first."""
    rows, columns = np.nonzero(_within_components(W))
    strongest_first = np.lexsort((-np.abs(W[rows, columns]), ~kept[rows, columns]))
    reaches = np.eye(len(W), dtype=bool)  # reaches[i, j]: a path i -> ... -> j of edges so far
    closing = []
    for i, j in zip(rows[strongest_first].tolist(), columns[strongest_first].tolist(), strict=True):
        if reaches[j, i]:
            closing.append((i, j))
        elif not reaches[i, j]:
            reaches[reaches[:, i]] |= reaches[j]
    return closing


def _within_components(W: NDArray[Any]) -> NDArray[np.bool_]:
    """The edges that lie on a cycle: those inside a strongly connected component."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    component = connected_components(csr_array(W != 0), connection="strong")[1]
    return (W != 0) & (component[:, None] == component)


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
