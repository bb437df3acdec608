"""Random directed acyclic graphs; in every matrix A here, A[i, j] = 1 means i -> j."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.graph.dag import topological_order
from rescore.validation import check_integer

Adjacency = NDArray[np.int8]  # (d, d) of 0 and 1


def erdos_renyi(nodes: int, degree: int, rng: np.random.Generator) -> Adjacency:
    """A DAG with exactly nodes * degree edges, spread evenly over the pairs of a random order.

    Examples
    --------
    >>> int(erdos_renyi(10, 2, np.random.default_rng(0)).sum())
    20
    """
    d, k = check_integer("nodes", nodes, at_least=1), check_integer("degree", degree, at_least=0)
    pairs = d * (d - 1) // 2
    if d * k > pairs:
        raise ValueError(
            f"An ER graph with {d} nodes and degree {k} needs {d * k} edges, but a DAG on {d} "
            f"nodes has at most {pairs}. Lower degree to {(d - 1) // 2} or raise nodes to "
            f"{2 * k + 1}."
        )
    cause, effect = np.triu_indices(d, 1)
    edges = rng.choice(pairs, d * k, replace=False)
    A = np.zeros((d, d), np.int8)
    A[cause[edges], effect[edges]] = 1
    return relabel(A, rng)


def scale_free(nodes: int, degree: int, rng: np.random.Generator) -> Adjacency:
    """A Barabási–Albert DAG: nodes join one by one, each sending `degree` edges to older ones.

    An older node is chosen with probability proportional to 1 + its in-degree, so hubs are common
    effects, as in the data of NOTEARS; labels are then permuted at random. The first `degree`
    newcomers find fewer than `degree` older nodes and link to all of them, which makes
    nodes * degree - degree * (degree + 1) / 2 edges.

    Examples
    --------
    >>> int(scale_free(10, 2, np.random.default_rng(0)).sum())
    17
    """
    d, k = check_integer("nodes", nodes, at_least=1), check_integer("degree", degree, at_least=0)
    if k >= d:
        raise ValueError(
            f"An SF graph with {d} nodes allows a degree of at most {d - 1}; got {k}. "
            f"Lower degree or raise nodes to {k + 1} or more."
        )
    A = np.zeros((d, d), np.int8)
    for new in range(1, d):
        appeal = 1.0 + A[:new, :new].sum(axis=0)
        older = rng.choice(new, min(new, k), replace=False, p=appeal / appeal.sum())
        A[new, older] = 1
    return relabel(A, rng)


GRAPHS: dict[str, Callable[[int, int, np.random.Generator], Adjacency]] = {
    "ER": erdos_renyi,
    "SF": scale_free,
}


def relabel(graph: Adjacency, rng: np.random.Generator) -> Adjacency:
    """The same graph with its nodes renamed by a random permutation.

    Examples
    --------
    >>> chain = np.eye(4, k=1, dtype=np.int8)
    >>> sorted(relabel(chain, np.random.default_rng(0)).sum(axis=0).tolist())
    [0, 1, 1, 1]
    """
    order = rng.permutation(len(graph))
    return graph[np.ix_(order, order)]


def named_adjacency(graph: pd.DataFrame | np.ndarray) -> pd.DataFrame:
    """A user's own graph as a checked DataFrame of 0 and 1; an array gets the names x0, x1, ...

    Examples
    --------
    >>> named_adjacency(np.array([[0, 1], [0, 0]]))
        x0  x1
    x0   0   1
    x1   0   0
    """
    A = np.asarray(graph)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not A.size:
        raise ValueError(f"graph must be a square matrix; its shape is {A.shape}.")
    if A.dtype.kind not in "biuf" or not np.isin(A, (0, 1)).all():
        raise ValueError(
            "graph must hold only 0 and 1, with 1 at [i, j] for i -> j. Give (W != 0).astype(int) "
            "if W holds weights."
        )
    names = _names(graph) if isinstance(graph, pd.DataFrame) else default_names(len(A))
    topological_order(A, list(names))  # raises for a cycle; an edge from a node to itself is one
    return pd.DataFrame(A.astype(np.int8), index=names, columns=names)


def default_names(nodes: int) -> pd.Index:
    """The labels x0, x1, ... of simulated variables.

    Examples
    --------
    >>> list(default_names(2))
    ['x0', 'x1']
    """
    return pd.Index([f"x{j}" for j in range(nodes)])


def _names(graph: pd.DataFrame) -> pd.Index:
    """The columns of the frame, which must label its rows in the same order."""
    if not graph.index.equals(graph.columns):
        raise ValueError(
            "The rows and columns of graph must carry the same names in the same order. "
            "Use graph.loc[graph.columns]."
        )
    if not graph.columns.is_unique:
        raise ValueError("A name occurs twice in the columns of graph. Rename one of them.")
    return graph.columns
