"""Which mechanisms groups of rows share: some of their own, another model's, one group in parts.

All of it is likelihood ratios from the groups' moments, at the price of the parameters (BIC).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.graph.dag import reachability, topological_order
from rescore.moments import GroupMoments, Matrix, evenly_spaced
from rescore.protocols import Mask, Problem
from rescore.solvers.order_search import Ordered, OrderSearch, edge_price

SUSPICIOUS = (
    0.3  # share of a group's testable mechanisms, if that many differ: leave it out, and look
)
ROWS_TO_TELL = 20  # for each variable, before a group is said to share what others do
MOST_ASIDE = 0.5  # of all rows: a graph is that of most rows
FEWEST = 3  # mechanisms that must differ: one or two are interventions
MOST_ROWS = 3000  # looked at to decide which groups are parts of one
STARTS = 2  # of the searches that compare graphs with and without a group


def moments_of(problem: Problem, membership: Matrix) -> GroupMoments:
    """The moments of groups of rows with these memberships (n, K), their mass in rows.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(60, 2)))
    >>> moments_of(problem, np.repeat(np.eye(2), 30, axis=0)).mass
    array([30., 30.])
    """
    return problem.rows.group_moments(membership * problem.row_counts()[:, None])


def grouped_order_search(
    problem: Problem, groups: GroupMoments, aside: Mask | None = None, own: Mask | None = None
) -> OrderSearch:
    """Over graphs of the groups that are not set ``aside`` (K,), each with noise of its own.

    Where a mechanism is a group's ``own`` (K, d), so are the coefficients.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(60, 2)))
    >>> halves = moments_of(problem, np.repeat(np.eye(2), 30, axis=0))
    >>> grouped_order_search(problem, halves).n
    array([[30., 30.],
           [30., 30.]])
    """
    rows, d = float(problem.row_counts().sum()), len(problem.allowed)
    mass = groups.mass if aside is None else np.where(aside, 0.0, groups.mass)
    rows_of = np.repeat(mass[:, None], d, axis=1)
    alone = np.zeros_like(rows_of) if own is None else np.where(own, rows_of, 0.0)
    known, price = (problem.allowed, problem.required), edge_price(rows, d, 0.0)
    return OrderSearch(groups.covariance, rows_of - alone, *known, price, alone=alone)


class Part(NamedTuple):
    """A group of rows: how many, their mean (d,) and covariance (d, d), which groups they were."""

    rows: float
    mean: Matrix
    S: Matrix
    groups: tuple[int, ...]

    def with_(self, other: "Part") -> "Part":
        """Both as one."""
        n = self.rows + other.rows
        share, apart = self.rows / n, self.mean - other.mean
        S = share * self.S + (1 - share) * other.S + share * (1 - share) * np.outer(apart, apart)
        mean = share * self.mean + (1 - share) * other.mean
        return Part(n, mean, S, self.groups + other.groups)


def merged(problem: Problem, edges: Mask, membership: Matrix) -> Matrix:
    """Memberships (n, K' <= K) with groups joined that coefficients of their own explain together.

    Where a mechanism differs, the residuals of the shared one depend on each other, and groups
    with independent noise describe such rows in several parts.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(100, 2)))
    >>> merged(problem, np.zeros((2, 2), dtype=bool), np.repeat(np.eye(2), 50, axis=0)).shape
    (100, 1)
    """
    groups = moments_of(problem, membership)
    parts = [Part(*each, (k,)) for k, each in enumerate(zip(*groups, strict=True))]
    densities = Densities.of(problem, edges, groups)
    while len(parts) > 1:
        pairs = [(a, b) for b in range(len(parts)) for a in range(b)]
        tried = [_joined(parts, *pair) for pair in pairs]
        costs = [densities.cost(each) for each in tried]
        best = int(np.argmin(costs))
        if costs[best] >= densities.cost(parts):
            break
        parts = tried[best]
    return np.stack([membership[:, part.groups].sum(axis=1) for part in parts], axis=1)


def _joined(parts: list[Part], a: int, b: int) -> list[Part]:
    others = [part for at, part in enumerate(parts) if at not in (a, b)]
    return [*others, parts[a].with_(parts[b])]


@dataclass(eq=False)
class Densities:
    """How likely rows are in groups, with coefficients of their own where they pay; remembered."""

    X: Matrix  # (m, d) some rows
    counts: Matrix  # (m,) how many rows of all each stands for
    regressions: list[tuple[int, Any, Matrix]]  # variable, parents, shared coefficients
    _known: dict[tuple[int, ...], tuple[Matrix, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, edges: Mask, groups: GroupMoments) -> "Densities":
        """Of rows evenly spaced, under a graph whose coefficients the groups share."""
        search = grouped_order_search(problem, groups)
        every = [(j, np.flatnonzero(edges[:, j])) for j in range(len(edges))]
        X, counts = problem.rows.matrix(), problem.row_counts()
        at = evenly_spaced(len(X), MOST_ROWS)
        c = counts[at] * counts.sum() / counts[at].sum()
        varies = np.diag(problem.moments(problem.prior).covariance) > 0
        return cls(
            X[at],
            c,
            [(j, parents, search.local(j, parents)[1]) for j, parents in every if varies[j]],
        )

    def cost(self, parts: list[Part]) -> float:
        """Minus the log-likelihood of all rows, and the price of all parameters."""
        rows = self.counts.sum()
        each = [self._part(part) for part in parts]
        logs = np.stack([log for log, _ in each]) + np.log([[part.rows / rows] for part in parts])
        top = logs.max(axis=0)
        likelihood = self.counts @ (top + np.log(np.exp(logs - top).sum(axis=0)))
        group = (self.X.shape[1] + 0.5) * np.log(max(rows, 2.0))  # levels, variances and a share
        return float(len(parts) * group + sum(price for _, price in each) - likelihood)

    def _part(self, part: Part) -> tuple[Matrix, float]:
        """The log-density of every row in a group (m,), and what its own coefficients cost."""
        if part.groups not in self._known:
            log, price = np.zeros(len(self.X)), 0.0
            for j, parents, b in self.regressions:
                (v, b), extra = self._mechanism(part, j, parents, b)
                r = self.X[:, j] - part.mean[j] - (self.X[:, parents] - part.mean[parents]) @ b
                log -= 0.5 * (np.square(r) / v + np.log(2 * np.pi * v))
                price += extra
            self._known[part.groups] = log, price
        return self._known[part.groups]

    def _mechanism(
        self, part: Part, j: int, parents: Any, b: Matrix
    ) -> tuple[tuple[float, Matrix], float]:
        """Variance and coefficients of a variable in a group, and what they cost if its own."""
        shared, own, theirs = left_over(part.S, j, parents, b)
        price = len(parents) * edge_price(part.rows, self.X.shape[1], 0.0)
        pays = 0.5 * part.rows * np.log(shared / own) > price
        return ((own, theirs), price) if pays else ((shared, b), 0.0)


def differs(
    problem: Problem, edges: Mask, groups: GroupMoments, aside: Mask, own: Mask | None = None
) -> Mask:
    """Where coefficients of its own explain a group beyond what they cost, (K, d).

    A likelihood ratio from the groups' moments, each coefficient at the price of an edge in the
    group's rows.  What is set ``aside`` (K,) or a group's ``own`` (K, d) does not take part in the
    shared coefficients.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, e, second = rng.normal(size=400), rng.normal(size=400), np.arange(400) >= 300
    >>> problem = Problem.unconstrained(np.c_[x, np.where(second, -x, x) + e])
    >>> groups = moments_of(problem, np.c_[~second, second].astype(float))
    >>> differs(problem, np.eye(2, k=1, dtype=bool), groups, np.zeros(2, dtype=bool))[1]
    array([False,  True])
    """
    K, d = len(groups.mass), len(edges)
    together = grouped_order_search(problem, groups, aside, own)
    found = np.zeros((K, d), dtype=bool)
    for j in np.flatnonzero(edges.any(axis=0)):
        parents = np.flatnonzero(edges[:, j])
        b = together.local(int(j), parents)[1]
        for k in range(K):
            shared, theirs, _ = left_over(groups.covariance[k], int(j), parents, b)
            cost = len(parents) * edge_price(groups.mass[k], d, 0.0)
            found[k, j] = 0.5 * groups.mass[k] * np.log(shared / theirs) > cost
    return found


def shares_most(problem: Problem, edges: Mask, groups: GroupMoments, aside: Mask) -> Mask:
    """Which groups share the coefficients of most variables that have causes, (K,).

    Only groups with rows enough to tell; of a few rows nothing differs beyond chance.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(100, 2)))
    >>> halves = moments_of(problem, np.repeat(np.eye(2), 50, axis=0))
    >>> shares_most(problem, np.eye(2, k=1, dtype=bool), halves, np.zeros(2, dtype=bool))
    array([ True,  True])
    """
    found = differs(problem, edges, groups, aside).sum(axis=1)
    enough = groups.mass >= ROWS_TO_TELL * len(edges)
    return np.asarray(enough & (found <= 0.5 * edges.any(axis=0).sum()))


def left_over(S: Matrix, j: int, parents: Any, b: Matrix) -> tuple[float, float, Matrix]:
    """The variance of j that shared coefficients leave, that its own leave, and its own.

    Examples
    --------
    >>> S = np.array([[1.0, 2.0], [2.0, 5.0]])
    >>> shared, own, coefficients = left_over(S, 1, np.array([0]), np.array([1.0]))
    >>> round(shared, 3), round(own, 3), coefficients.round(3)
    (2.0, 1.0, array([2.]))
    """
    A, c = S[np.ix_(parents, parents)], S[parents, j]
    ridge = 1e-9 * np.trace(A) / max(len(A), 1) + 1e-300
    theirs = np.linalg.solve(A + ridge * np.eye(len(A)), c)
    own = max(float(S[j, j] - c @ theirs), 1e-9 * float(S[j, j]), 1e-300)
    return max(float(S[j, j] - 2 * b @ c + b @ A @ b), own), own, theirs


def set_aside(problem: Problem, edges: Mask, groups: GroupMoments) -> Mask:
    """Groups that a graph of their own explains better than the one of all others, (K,).

    The largest group stays.  Only groups many of whose mechanisms differ are tried, one by one:
    the graph is searched with and without the group, which is then charged the best graph of its
    own.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(100, 2)))
    >>> halves = moments_of(problem, np.repeat(np.eye(2), 50, axis=0))
    >>> set_aside(problem, np.zeros((2, 2), dtype=bool), halves)
    array([False, False])
    """
    K, core = len(groups.mass), int(groups.mass.argmax())
    aside = np.zeros(K, dtype=bool)
    differing = differs(problem, edges, groups, aside)
    many = differing.sum(axis=1)
    suspects = many >= max(FEWEST, SUSPICIOUS * edges.any(axis=0).sum())
    suspects[core] = False
    if not suspects.any():
        return aside
    costs = _Costs(problem, groups)
    best = costs.of(aside)
    while (suspects & ~aside).any():
        tried = {}
        for k in np.flatnonzero(suspects & ~aside).tolist():
            without = aside.copy()
            without[k] = True
            if groups.mass[without].sum() < MOST_ASIDE * groups.mass.sum():
                tried[k] = costs.of(without)
        k = min(tried, key=lambda one: tried[one], default=core)
        if k == core or tried[k] >= best:
            break
        aside[k], best = True, tried[k]
    return aside


def own_mechanisms(
    problem: Problem, graph: Ordered, groups: GroupMoments, aside: Mask, own: Mask
) -> tuple[Mask, Ordered]:
    """Which groups have a mechanism of their own for which variables (K, d), and the graph then.

    An edge that points the wrong way has other coefficients in every group too.  So where a
    mechanism seems to differ, that variable's and its neighbours' are each left out of the shared
    graph in turn, the graph is searched again, and the cheapest choice is kept, while it pays.
    Those known to be ``own`` (K, d) stay so.
    """
    d, core = len(graph.edges), int(groups.mass.argmax())
    cost, graph = _with_own(problem, graph, groups, aside, own)
    while True:
        flagged = differs(problem, graph.edges, groups, aside, own)
        flagged &= ~own & ~aside[:, None]
        # The shared coefficients may be those of one precise group, from which all others differ.
        flagged[~aside] |= flagged.sum(axis=0) > 1
        flagged[core] = False
        joined = graph.edges | graph.edges.T | np.eye(d, dtype=bool)
        tried = []
        for k, j in np.argwhere((flagged @ joined) & ~own).tolist():
            more = own.copy()
            more[k, j] = True
            tried.append((*_with_own(problem, graph, groups, aside, more), more))
        best = min(tried, key=lambda one: one[0], default=None)
        if best is None or best[0] >= cost:
            return own, graph
        cost, graph, own = best


class Choice(NamedTuple):
    """A graph and groups of rows, and which mechanisms these share."""

    edges: Mask  # (d, d)
    members: Matrix  # (n, K)
    aside: Mask  # (K,)
    own: Mask  # (K, d)


def other_targets(problem: Problem, now: Choice) -> Iterator[Choice]:
    """One changed mechanism less, or a neighbour's in its place.

    The edge between them stays, or is turned where that closes no cycle.
    """
    groups, edges = moments_of(problem, now.members), now.edges
    for k, j in np.argwhere(now.own).tolist():
        own = now.own.copy()
        own[k, j] = False
        yield now._replace(own=own)
        for i in np.flatnonzero((edges[:, j] | edges[j]) & ~now.own[k]).tolist():
            moved = own.copy()
            moved[k, i] = True
            yield now._replace(own=moved)
            search = grouped_order_search(problem, groups, now.aside, moved)
            turned = _turned(search, edges, i, j) if edges[i, j] else _turned(search, edges, j, i)
            if turned is not None:
                yield now._replace(edges=turned, own=moved)


def fewer_groups(now: Choice) -> Iterator[Choice]:
    """One group less, its rows given to the largest.

    Examples
    --------
    >>> no = np.zeros((2, 1), dtype=bool)
    >>> [one] = fewer_groups(Choice(no[:1], np.array([[0.8, 0.2], [0.6, 0.4]]), no[:, 0], no))
    >>> one.members.ravel(), one.own.shape
    (array([1., 1.]), (1, 1))
    """
    core = int(np.where(now.aside, 0.0, now.members.sum(axis=0)).argmax())
    for k in np.flatnonzero(~now.aside).tolist():
        if k != core:
            members = now.members.copy()
            members[:, core] += members[:, k]
            aside, own = np.delete(now.aside, k), np.delete(now.own, k, axis=0)
            yield Choice(now.edges, np.delete(members, k, axis=1), aside, own)


def searched_again(problem: Problem, now: Choice) -> Choice:
    """The same groups and mechanisms with the graph that moves of one variable lead to."""
    groups = moments_of(problem, now.members)
    search = grouped_order_search(problem, groups, now.aside, now.own)
    return now._replace(edges=search.improved(order_of(now.edges)).edges)


def order_of(edges: Mask) -> NDArray[np.int64]:
    """One in which all causes come before their effects."""
    return np.array(topological_order(edges), dtype=np.int64)


def _turned(search: OrderSearch, edges: Mask, cause: int, effect: int) -> Mask | None:
    """The edge turned, and both variables' parents chosen again among all that may precede them.

    None if it must be there, or if another way leads from the cause to the effect.
    """
    others = edges.copy()
    others[cause, effect] = False
    if search.required[cause, effect] or reachability(others)[cause, effect]:
        return None
    before = ~reachability(edges)[cause]
    before[[cause, effect]] = False
    turned = edges.copy()
    turned[:, effect] = search.parents(effect, before)
    before[effect] = True
    turned[:, cause] = search.parents(cause, before)
    return turned


def _with_own(
    problem: Problem, graph: Ordered, groups: GroupMoments, aside: Mask, own: Mask
) -> tuple[float, Ordered]:
    """The best graph from here with these mechanisms, and what it costs."""
    search = grouped_order_search(problem, groups, aside, own)
    found = search.improved(graph.order)
    return found.score + search.in_own_units(), found


class _Costs:
    """What a choice of groups to set aside costs: the graph of the rest, and one for each."""

    def __init__(self, problem: Problem, groups: GroupMoments) -> None:
        self.problem, self.groups = problem, groups
        self._alone: dict[int, float] = {}

    def of(self, aside: Mask) -> float:
        """The score of the groups that share a graph, and of every other with its own."""
        return self._shared(aside) + sum(self._own(int(k)) for k in np.flatnonzero(aside))

    def _own(self, k: int) -> float:
        if k not in self._alone:
            others = np.ones(len(self.groups.mass), dtype=bool)
            others[k] = False
            self._alone[k] = self._shared(others)
        return self._alone[k]

    def _shared(self, aside: Mask) -> float:
        inside = GroupMoments(*(part[~aside] for part in self.groups))
        search = grouped_order_search(self.problem, inside)
        return search.best(STARTS).score + search.in_own_units()
