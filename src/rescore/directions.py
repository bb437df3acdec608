"""Which edges of a linear graph have a direction, and by what.

Graphs with the same skeleton and the same v-structures fit Gaussian noise equally well.  What
tells them apart, if anything, is the hypothesis on the noise that the rows support: an edge is
directed if turning it costs more log-likelihood than an edge must gain to be there at all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.graph.dag import consistent_dag, cpdag, topological_order
from rescore.moments import Matrix, Weights, row_weights, simplest
from rescore.protocols import Mask, Problem
from rescore.solvers import noise
from rescore.solvers.noise import Negentropies, Sample, looks_shaped
from rescore.solvers.order_search import OrderSearch, edge_price, grouped_search

WHAT = {
    noise.EQUAL: "noise of one size in all variables, in the units given",
    noise.UNEQUAL: "Gaussian noise of its own size in each variable",
    noise.SHAPED: "independent noise that is not Gaussian",
    noise.GROUPED: "groups of rows that share the coefficients and differ in their noise",
}
WHY = {
    noise.EQUAL: "Causes are told from effects by the variances: in other units they may turn.",
    noise.UNEQUAL: "It fits every graph with the same skeleton and v-structures equally well.",
    noise.SHAPED: "Causes are told from effects by the shape of the noise, in any units.",
    noise.GROUPED: "Causes are told from effects by what all groups share, in any units.",
}
Total = Callable[[Mask], float] | None  # none where all graphs of a class cost the same


class Verdict(NamedTuple):
    """The graph with open directions in both, and what was decided about the noise."""

    cpdag: NDArray[np.int8]  # (d, d)
    noise: Mapping[str, Any]


def verdict(problem: Problem, W: Matrix, w: Weights) -> Verdict:
    """The hypothesis on the noise that the rows support under the graph W, and what it identifies.

    Examples
    --------
    >>> x, e = np.random.default_rng(0).normal(size=(2, 500))
    >>> for scale in (1, 9):
    ...     problem = Problem.unconstrained(np.c_[x, (x + e) * scale])
    ...     found = verdict(problem, np.array([[0.0, scale], [0.0, 0.0]]), problem.prior)
    ...     print(found.noise["hypothesis"], found.cpdag.tolist())
    equal [[0, 1], [0, 0]]
    unequal [[0, 1], [1, 0]]
    """
    edges, w = W != 0, simplest(w)
    name, costs, total = (_of_rows if w.ndim == 1 else _of_cells)(problem, edges, w)
    rows, d = problem.effective_rows(problem.prior), len(W)
    graph = open_directions(edges, problem.allowed, problem.required, total, edge_price(rows, d, 0))
    return Verdict(graph, _told(name, costs, graph))


def _of_rows(problem: Problem, edges: Mask, w: Weights) -> tuple[str, dict[str, float], Total]:
    """The best of three hypotheses on rows weighted by ``w`` (n,)."""
    sample = Sample.of(problem, row_weights(w), least_share=0.0)
    W = sample.search.coefficients(edges)
    tried = [noise.with_equal_noise(sample, W), noise.with_unequal_noise(sample, W)]
    if looks_shaped(sample, W):
        tried.append(noise.with_shaped_noise(sample, W))
    name = min(tried, key=lambda one: one.cost).name
    total = {
        noise.EQUAL: _equal_total(sample),
        noise.UNEQUAL: None,
        noise.SHAPED: Totals(Negentropies(sample).cost).of,
    }[name]
    return name, {one.name: one.cost for one in tried}, total


def _of_cells(problem: Problem, edges: Mask, w: Weights) -> tuple[str, dict[str, float], Total]:
    """Groups of rows with noise of their own."""
    search: OrderSearch = grouped_search(problem, w, least_share=0.0)
    return noise.GROUPED, {}, Totals(lambda j, parents: search.local(j, parents)[0]).of


def _equal_total(sample: Sample) -> Total:
    """Minus the log-likelihood of noise of one size, up to a constant.

    It depends on a graph by the sum of the variances that its regressions leave, and a graph that
    differs in one edge differs in few of them.
    """
    S, many = sample.moments.covariance, max(len(sample.used), 1)
    left = Totals(
        lambda j, parents: (
            max(float(sample.search.local(j, parents)[2][0]), noise.LEAST_VARIANCE * float(S[j, j]))
            if S[j, j] > 0
            else 0.0
        )
    ).of
    return lambda A: 0.5 * sample.rows * many * float(np.log(max(left(A), 1e-300)))


@dataclass(eq=False)
class Totals:
    """The sum over variables of what each costs with its parents, remembered.

    Examples
    --------
    >>> Totals(lambda j, parents: float(len(parents))).of(np.eye(3, k=1, dtype=bool))
    2.0
    """

    cost: Callable[[int, NDArray[np.intp]], float]
    known: dict[tuple[int, bytes], float] = field(default_factory=dict)

    def of(self, edges: Mask) -> float:
        """Of a graph (d, d)."""
        causes, effects = np.nonzero(edges)
        order = np.argsort(effects, kind="stable")
        parents = np.split(
            causes[order], np.cumsum(np.bincount(effects, minlength=len(edges)))[:-1]
        )
        return sum(self._local(j, own) for j, own in enumerate(parents))

    def _local(self, j: int, parents: NDArray[np.intp]) -> float:
        key = j, parents.tobytes()
        if key not in self.known:
            self.known[key] = self.cost(j, parents)
        return self.known[key]


def open_directions(
    edges: Mask, allowed: Mask, required: Mask, total: Total, price: float
) -> NDArray[np.int8]:
    """The graph (d, d) with every edge that could as well be turned in both directions.

    An edge keeps its direction where every graph of the class has it, where the reverse is not
    allowed, where turning it raises ``total``, if there is one, by more than ``price``, and where
    it follows from other such edges (Meek's rules).

    Examples
    --------
    >>> chain = np.eye(3, k=1, dtype=bool)
    >>> free, nothing = ~np.eye(3, dtype=bool), np.zeros((3, 3), dtype=bool)
    >>> open_directions(chain, free, nothing, lambda A: 0.0, price=1.0).sum()
    np.int64(4)
    >>> open_directions(chain, free, nothing, lambda A: 9.0 * A[1, 0], price=1.0)
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=int8)
    """
    P = cpdag(edges) != 0
    lines, order = P & P.T, topological_order(edges)
    for i, j in _undirected(P, edges):
        if required[i, j] or not allowed[j, i]:
            P[j, i] = False
    P = meek(P)
    # Where nothing is forbidden and nothing costs more, every edge can be turned.
    asked = _undirected(P, edges) if total or (lines & ~allowed).any() else []
    least = total(edges) if total and asked else 0.0  # loaded only if something asks for it
    for i, j in asked:
        if not P[j, i]:  # another edge has settled it
            continue
        part = _component(lines, i)
        turned = _turned(P, edges, [v for v in reversed(order) if part[v]], i, j)
        if (turned & ~allowed).any() or (total and total(turned) - least > price):
            P[j, i] = False
            P = meek(P, [(i, j)])
    return P.astype(np.int8)


def _undirected(P: Mask, edges: Mask) -> list[tuple[int, int]]:
    """Edges i → j of the graph that its class leaves open, in an order that columns do not set.

    First those that can be turned alone, because their ends have the same other parents: what they
    cost is known exactly.
    """
    rank = np.argsort(topological_order(edges))

    def place(pair: tuple[int, int]) -> tuple[bool, int, int]:
        i, j = pair
        others = edges[:, i] != edges[:, j]
        others[i] = False
        return bool(others.any()), int(rank[j]), int(rank[i])

    return sorted(((int(i), int(j)) for i, j in np.argwhere(P & P.T & edges)), key=place)


def _turned(P: Mask, edges: Mask, order: list[int], i: int, j: int) -> Mask:
    """The graph of the class that differs least from ``edges`` but has j → i.

    ``order`` are the nodes that undirected edges join to i, the last first: the first possible
    sink is taken, so that the last stays last where it can.
    """
    block = np.ix_(order, order)
    Q = P.copy()
    Q[i, j] = False
    turned = edges.copy()
    turned[block] = consistent_dag(Q[block]) != 0
    return turned


def _component(joined: Mask, start: int) -> Mask:
    """The nodes joined to ``start`` by undirected edges, (d,)."""
    reached = np.zeros(len(joined), dtype=np.bool_)
    frontier = reached.copy()
    frontier[start] = True
    while frontier.any():
        reached |= frontier
        frontier = joined[frontier].any(axis=0) & ~reached
    return reached


def meek(P: Mask, new: list[tuple[int, int]] | None = None) -> Mask:
    """The directions that follow from others: no new v-structure, no cycle (Meek, 1995).

    If all follow already that do without the ``new`` ones, only what is near these is looked at.

    Examples
    --------
    >>> arrow_then_line = np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]], dtype=bool)
    >>> meek(arrow_then_line).astype(int)
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]])
    """
    P = P.copy()
    waiting = np.argwhere(P & P.T).tolist() if new is None else _near(P, new)
    while waiting:
        directed = []
        for i, j in waiting:
            if P[j, i] and P[i, j] and _follows(P, i, j):
                P[j, i] = False
                directed.append((i, j))
        waiting = _near(P, directed)
    return P


def _near(P: Mask, directed: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Undirected edges, both ways, that a rule may join with one of these new directions.

    Every rule has one end of its edge, or both, next to each end of the arrows that it reads.
    """
    close = {v for pair in directed for v in pair}
    close |= {int(u) for v in close for u in np.flatnonzero(P[v] | P[:, v])}
    return sorted(
        {(i, int(j)) for i in close for j in np.flatnonzero(P[i] & P[:, i])}
        | {(int(j), i) for i in close for j in np.flatnonzero(P[i] & P[:, i])}
    )


def _follows(P: Mask, i: int, j: int) -> bool:
    """Whether the undirected edge i - j must point to j."""
    # Of i and j alone: with many nodes the whole matrices would take longer than all else.
    from_i, to_i, from_j, to_j = P[i], P[:, i], P[j], P[:, j]
    apart, into_j, line = ~(from_j | to_j), to_j & ~from_j, from_i & to_i
    if (to_i & ~from_i & apart).any():  # else a new v-structure at i
        return True
    if (from_i & ~to_i & into_j).any():  # else a cycle
        return True
    into = np.flatnonzero(line & into_j)
    if any(not (P[a, b] or P[b, a]) for a in into for b in into if a < b):
        return True
    # d → c → j with i joined to d and adjacent to c, d apart from j
    through = np.flatnonzero((from_i | to_i) & into_j)
    return any((line & P[:, c] & ~P[c] & apart).any() for c in through)


def _told(name: str, costs: dict[str, float], graph: NDArray[np.int8]) -> dict[str, Any]:
    """The decision as plain data, and as sentences."""
    both = int((graph & graph.T).sum()) // 2
    edges = int(((graph | graph.T) != 0).sum()) // 2
    others = sorted(cost - costs[name] for other, cost in costs.items() if other != name)
    return {
        "hypothesis": name,
        "summary": f"The rows support {WHAT[name]}{_margin(others)}. {WHY[name]} "
        + _open(both, edges),
        "costs": costs,
        "edges": edges,
        "open_directions": both,
    }


def _margin(others: list[float]) -> str:
    return f", by {others[0]:.0f} in BIC over the next" if others else ""


def _open(both: int, edges: int) -> str:
    if both == 0:
        return "Every edge has a direction." if edges else "There is no edge."
    return f"Of {edges} edges {both} could as well be turned."
