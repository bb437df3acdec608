"""How far an estimated graph is from the true one: pure functions of (truth, estimate).

Both may be matrices, pandas tables, networkx graphs or fitted estimators (see `paired`); only
which entries are zero counts, not the weights.  The edge counts take partially directed graphs,
where i -> j together with j -> i is one undirected edge, and look at unordered pairs of nodes:

    cond, pred   pairs adjacent in the truth, in the estimate
    R            pairs directed in both, but in opposite directions
    FP           pairs adjacent in the estimate only
    TP           the rest of pred: an undirected edge agrees with either direction

so a two-cycle is never counted twice, and a reversed edge is one error.  SID and the adjustment
distances ask which causal effects the estimate would get wrong (gadjid counts them): ordered pairs
(i, j), so at most d(d - 1).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.graph.dag import cpdag, is_cpdag, is_dag, topological_order
from rescore.metrics.pairing import paired

__all__ = [
    "HEADINGS",
    "Scores",
    "ancestor_aid",
    "cpdag_shd",
    "evaluate",
    "fdr",
    "fpr",
    "oset_aid",
    "parent_aid",
    "shd",
    "sid",
    "tpr",
]

# What a short table shows, in this order, and what it calls them.
HEADINGS = {
    "tpr": "TPR",
    "fdr": "FDR",
    "shd": "SHD",
    "cpdag_shd": "CPDAG SHD",
    "sid": "SID",
    "edges": "edges",
}


@dataclass(frozen=True)
class Scores:
    """All metrics of one estimate, made by `metrics.evaluate`.

    A metric that has no value is None, and ``undefined`` says why.
    ``scores["shd"]`` and ``dict(scores)`` work too.

    Examples
    --------
    >>> from rescore.metrics import evaluate
    >>> scores = evaluate([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    >>> scores.shd, scores["sid"], scores.as_dict()["fdr"]
    (1, 2, 1.0)
    """

    tpr: float | None
    fdr: float
    fpr: float | None
    shd: int
    sid: int | None
    edges: int
    cpdag_shd: int | None
    ancestor_aid: int | None
    oset_aid: int | None
    parent_aid: int | None
    undefined: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def keys(self) -> Iterator[str]:
        """The names of the metrics.

        Examples
        --------
        >>> from rescore.metrics import evaluate
        >>> "shd" in evaluate([[0]], [[0]]).keys()
        True
        """
        return (name for name in self.__dataclass_fields__ if name != "undefined")

    def __getitem__(self, name: str) -> float | None:
        if name not in self.keys():
            raise KeyError(
                f"There is no metric {name!r}; the metrics are {', '.join(self.keys())}."
            )
        return getattr(self, name)

    def as_dict(self) -> dict[str, float | None]:
        """The metrics as a plain dict.

        Examples
        --------
        >>> from rescore.metrics import evaluate
        >>> evaluate([[0]], [[0]]).as_dict()["shd"]
        0
        """
        return {name: self[name] for name in self.keys()}

    def as_json(self) -> dict[str, Any]:
        """The metrics, and why some have no value, as plain data that ``Scores(**data)`` takes.

        Examples
        --------
        >>> from rescore.metrics import evaluate
        >>> scores = evaluate([[0, 1], [0, 0]], [[0, 0], [1, 0]])
        >>> Scores(**scores.as_json()) == scores
        True
        """
        return {**self.as_dict(), "undefined": dict(self.undefined)}

    def to_series(self) -> "pd.Series[float]":
        """The metrics as a pandas Series of floats, NaN where there is none.

        Examples
        --------
        >>> from rescore.metrics import evaluate
        >>> float(evaluate([[0]], [[0]]).to_series()["shd"])
        0.0
        """
        return pd.Series(self.as_dict(), dtype=float)

    def __str__(self) -> str:
        lines = []
        for name, value in self.as_dict().items():
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            if value is None:
                text = f"-  {self.undefined.get(name, '')}"
            lines.append(f"{name:<13} {text}".rstrip())
        return "\n".join(lines)


def evaluate(truth: Any, estimate: Any) -> Scores:
    """Every metric of this module, and the number of edges of the estimate.

    What cannot be computed, such as the `sid` of an estimate with a cycle, is None, with the reason
    in ``undefined``; graphs that cannot be compared at all raise.

    Examples
    --------
    >>> print(evaluate([[0, 1, 0], [0, 0, 1], [0, 0, 0]], [[0, 1, 1], [0, 0, 0], [0, 0, 0]]))
    tpr           0.5
    fdr           0.5
    fpr           1
    shd           2
    sid           1
    edges         2
    cpdag_shd     2
    ancestor_aid  1
    oset_aid      1
    parent_aid    1
    """
    T, E, names = paired(truth, estimate)
    graphs = [pd.DataFrame(A, index=names, columns=names) for A in (T, E)]
    undefined: dict[str, str] = {}
    values: dict[str, Any] = {
        metric.__name__: _value(metric, graphs, undefined)
        for metric in (tpr, fdr, fpr, shd, sid, cpdag_shd, ancestor_aid, oset_aid, parent_aid)
    }
    edges = int(np.triu(E | E.T).sum())
    return Scores(**values, edges=edges, undefined=undefined)


def tpr(truth: Any, estimate: Any) -> float:
    """True positive rate, TP / cond; NaN if the truth has no edge, since there is none to find.

    Examples
    --------
    >>> tpr([[0, 1, 1], [0, 0, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 0], [1, 0, 0]])
    0.5
    """
    n = _counts(truth, estimate)
    return (n.pred - n.reversed - n.extra) / n.cond if n.cond else float("nan")


def fdr(truth: Any, estimate: Any) -> float:
    """False discovery rate, (R + FP) / pred; 0 for an estimate without edges.

    Examples
    --------
    >>> fdr([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    1.0
    """
    n = _counts(truth, estimate)
    return (n.reversed + n.extra) / n.pred if n.pred else 0.0


def fpr(truth: Any, estimate: Any) -> float:
    """False positive rate, (R + FP) / (d(d-1)/2 - cond); NaN if all true pairs are adjacent.

    A reversed edge counts above, but not below, the line, so this can exceed 1.

    Examples
    --------
    >>> fpr([[0, 1, 0], [0, 0, 0], [0, 0, 0]], [[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    0.5
    """
    n = _counts(truth, estimate)
    return (n.reversed + n.extra) / (n.all - n.cond) if n.all > n.cond else float("nan")


def shd(truth: Any, estimate: Any, *, undirected_agrees: bool = False) -> int:
    """Structural Hamming distance: pairs of nodes whose edge is extra, missing or different.

    A reversed edge counts once, and so does an undirected one in place of a directed one; but
    with ``undirected_agrees`` that counts nothing, as in the scoring of NOTEARS: FP + R + missing.

    Examples
    --------
    >>> shd([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    1
    >>> directed, undirected = [[0, 1], [0, 0]], [[0, 1], [1, 0]]
    >>> shd(directed, undirected), shd(directed, undirected, undirected_agrees=True)
    (1, 0)
    """
    T, E, _ = paired(truth, estimate)
    different = T != E
    if undirected_agrees:
        somewhere_undirected = (T & T.T) | (E & E.T)
        different &= ~(somewhere_undirected & (T | T.T) & (E | E.T))
    return int(np.triu(different | different.T).sum())


def cpdag_shd(truth: Any, estimate: Any) -> int:
    """The `shd` of the two equivalence classes: what data without interventions can tell apart.

    It counts the pairs of nodes at which the two CPDAGs differ; each graph must be a DAG or already
    a CPDAG.

    Examples
    --------
    >>> cpdag_shd([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    0
    """
    T, E, names = paired(truth, estimate)
    for graph, role in ((T, "truth"), (E, "estimate")):
        _require_dag_or_cpdag(graph, role, names)
    return shd(*(cpdag(graph) if is_dag(graph) else graph for graph in (T, E)))


class _Counts(NamedTuple):
    """Numbers of pairs, as in the text above."""

    cond: int
    pred: int
    reversed: int
    extra: int
    all: int


def _counts(truth: Any, estimate: Any) -> _Counts:
    T, E, _ = paired(truth, estimate)
    joined_in_truth, joined = np.triu(T | T.T), np.triu(E | E.T)
    opposite = joined_in_truth & joined & ~np.triu((T & E) | (T & E).T)
    return _Counts(
        cond=int(joined_in_truth.sum()),
        pred=int(joined.sum()),
        reversed=int(opposite.sum()),
        extra=int((joined & ~joined_in_truth).sum()),
        all=len(T) * (len(T) - 1) // 2,
    )


def _value(
    metric: Callable[[Any, Any], float], graphs: list[pd.DataFrame], undefined: dict[str, str]
) -> float | None:
    """The metric, or None after noting why it has no value."""
    try:
        value = metric(*graphs)
    except ValueError as error:
        undefined[metric.__name__] = str(error)
        return None
    if value == value:  # not NaN
        return value
    undefined[metric.__name__] = "The truth leaves nothing to count: no edge, or every one."
    return None


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


def _require_dag_or_cpdag(A: NDArray[np.bool_], role: str, names: list[Any] | None) -> None:
    """Raise unless the graph is a DAG or the CPDAG of one."""
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
        _require_dag_or_cpdag(graph, role, names)
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
