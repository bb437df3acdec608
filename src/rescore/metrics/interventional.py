"""Distances that ask which causal effects an estimated graph would get wrong (gadjid's).

All are counts of ordered pairs (i, j), so at most d(d - 1), and pure functions of (truth,
estimate), which may be anything `paired` takes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rescore.graph.dag import topological_order
from rescore.graph.equivalence import is_cpdag
from rescore.metrics.pairing import paired

__all__ = ["ancestor_aid", "oset_aid", "parent_aid", "require_dag_or_cpdag", "sid"]


def sid(truth: Any, estimate: Any) -> int:
    """Structural intervention distance (Peters and Buehlmann 2015) between two DAGs.

    The number of ordered pairs (i, j) for which adjusting for the parents of i in the estimate
    gives a wrong effect of i on j.

    Examples
    --------
    >>> sid([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    2
    """
    T, E, names = paired(truth, estimate)
    for graph, role in ((T, "truth"), (E, "estimate")):
        _require_dag(graph, role, names)
    return _count("sid", T, E)


def ancestor_aid(truth: Any, estimate: Any) -> int:
    """Adjustment identification distance that adjusts for the estimate's ancestors.

    This and the next two (Henckel, Würtzen, Weichwald 2024) take DAGs and CPDAGs.

    Examples
    --------
    >>> ancestor_aid([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    2
    """
    return _adjustment_distance("ancestor_aid", truth, estimate)


def oset_aid(truth: Any, estimate: Any) -> int:
    """Adjustment identification distance that adjusts for the estimate's optimal set.

    Examples
    --------
    >>> oset_aid([[0, 1], [0, 0]], [[0, 1], [0, 0]])
    0
    """
    return _adjustment_distance("oset_aid", truth, estimate)


def parent_aid(truth: Any, estimate: Any) -> int:
    """Adjustment identification distance that adjusts for the estimate's parents.

    Examples
    --------
    >>> parent_aid([[0, 1], [0, 0]], [[0, 1], [1, 0]])  # undirected: no effect is identified
    2
    """
    return _adjustment_distance("parent_aid", truth, estimate)


def _require_dag(A: NDArray[np.bool_], role: str, names: list[Any] | None) -> None:
    if (A & A.T).any():
        raise ValueError(
            f"The {role} has undirected edges (both directions), but must be a DAG here; "
            "parent_aid, ancestor_aid and oset_aid also take CPDAGs."
        )
    try:
        topological_order(A, names)
    except ValueError as error:
        raise ValueError(f"The {role} must be a DAG here. {error}") from None


def require_dag_or_cpdag(A: NDArray[np.bool_], role: str, names: list[Any] | None) -> None:
    """Raise unless the graph is a DAG or the CPDAG of one.

    Examples
    --------
    >>> require_dag_or_cpdag(np.array([[False, True], [True, False]]), "truth", None)
    """
    if (A & A.T).any():
        if not is_cpdag(A):
            raise ValueError(
                f"The {role} has edges in both directions but is not the CPDAG of any DAG, so it "
                "says no effect clearly; give a DAG or a CPDAG."
            )
    else:
        _require_dag(A, role, names)


def _adjustment_distance(kind: str, truth: Any, estimate: Any) -> int:
    T, E, names = paired(truth, estimate)
    for graph, role in ((T, "truth"), (E, "estimate")):
        require_dag_or_cpdag(graph, role, names)
    return _count(kind, T, E)


def _count(kind: str, T: NDArray[np.bool_], E: NDArray[np.bool_]) -> int:
    """The number of mistakes according to gadjid, which must only ever see checked graphs.

    Its complaints are a BaseException that passes every ``except Exception``.
    """
    if len(T) < 2:
        return 0
    import gadjid

    distance = getattr(gadjid, kind)
    return int(distance(_coded(T), _coded(E), edge_direction="from row to column")[1])


def _coded(A: NDArray[np.bool_]) -> NDArray[np.int8]:
    """The coding of gadjid: 1 for a directed edge, 2 on both sides for an undirected one."""
    return np.ascontiguousarray(np.where(A & A.T, 2, A), dtype=np.int8)
