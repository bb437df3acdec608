"""Search over orders of the variables under a score that is a sum over variables.

Given an order, each variable's parents are grown and shrunk among those before it; the order is
improved by moving one variable at a time to its best place, from several starts.  The score comes
from covariances of groups of rows alone, so the number of rows does not matter, and it does not
change with the units of any variable.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.graph.dag import precedence, topological_order
from rescore.moments import Cells, Matrix, Weights
from rescore.protocols import Mask, Problem

ROWS_PER_PARENT = 5  # rows a variable must have for every parent
MOST_PARENTS = 60
FIRST_NODES, FIRST_BRANCHES = 4096, 65536  # room in the forest of parent sets; doubled when full
SMALL = 8  # variables for which that is plenty: of more, as a full forest is grown from its roots
SHAKEN, FEWEST_SHAKEN = 0.1, 2  # share of the variables that are moved anywhere, at least so many
SHAKES = 4  # of the best order at most, for every start but the first
RETURNS = 4  # of them that lead back to it, one after the other, before no more are tried
ENOUGH = 2  # starts that end at the best score before no more are tried
SAME = 1e-6  # scores closer than this, in log-likelihood, are the same


class Ordered(NamedTuple):
    """A graph (d, d), an order (d,) that it obeys, and its score, the less the better."""

    score: float
    edges: Mask
    order: NDArray[np.int64]


@dataclass(eq=False)
class OrderSearch:
    """Graphs of K groups of rows with covariances S (K, d, d).

    ``n`` (K, d) says how many rows of each group count in each variable's regression; a
    variable costs ``½ Σ_k n_kj log v_kj``, v_kj the variance left in group k, and ``penalty`` for
    each of its parents.  ``alone`` (K, d), if given, are rows of a group whose mechanism for the
    variable is its own: they have the same parents and coefficients of their own.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(2, 500))
    >>> S = np.cov(np.c_[x, x + y + rng.normal(size=500), y].T)[None]
    >>> free, nothing = ~np.eye(3, dtype=bool), np.zeros((3, 3), dtype=bool)
    >>> search = OrderSearch(S, np.full((1, 3), 500.0), free, nothing, penalty=4.0)
    >>> search.best(starts=2).edges.astype(int)
    array([[0, 1, 0],
           [0, 0, 0],
           [0, 1, 0]])
    """

    S: Matrix
    n: Matrix
    allowed: Mask
    required: Mask
    penalty: float
    most_parents: int = MOST_PARENTS
    alone: Matrix | None = None
    deviations: Matrix = field(init=False)  # (d,) of all rows together

    def __post_init__(self) -> None:
        from rescore.solvers import grow_shrink  # compiled, so imported only where a search runs

        self._compiled = grow_shrink
        self._must = np.ascontiguousarray(precedence(self.allowed, self.required))
        alone = np.zeros_like(self.n) if self.alone is None else self.alone
        rows = np.maximum(self.n, alone).max(axis=1)
        pooled = np.einsum("k,kii->i", rows / rows.sum(), self.S)
        self.deviations = np.sqrt(np.where(pooled > 0, pooled, 1.0))
        per_variable = self.n.sum(axis=0).min(initial=np.inf)
        most = min(self.most_parents, len(pooled) - 1, max(int(per_variable / ROWS_PER_PARENT), 1))
        self.scores = grow_shrink.Scores(
            np.ascontiguousarray(self.S / np.outer(self.deviations, self.deviations)),
            np.ascontiguousarray(self.n, dtype=np.float64),
            np.ascontiguousarray(alone, dtype=np.float64),
            np.array([edge_price(each, len(pooled), 0.0) for each in rows]),
            np.ascontiguousarray(self.allowed & ~self.required),
            np.ascontiguousarray(self.required),
            float(self.penalty),
            np.zeros(len(pooled)),
            most,
        )
        times = max(1, len(pooled) // SMALL)
        self._grow(times * FIRST_NODES, times * FIRST_BRANCHES)

    def best(self, starts: int, first: NDArray[np.int64] | None = None) -> Ordered:
        """The least score of several starts, or of fewer if the best has been found twice."""
        return self._best(self._starts(starts, first), self.improved)

    def best_by_number(self, starts: int, first: NDArray[np.int64] | None = None) -> Ordered:
        """As `best`, where a number of parents costs the less the more variables have it.

        Two causes that meet in an effect gain a little by chance, and of many pairs some do.  So
        what adds to the score is how much there is to tell about who has how many parents,
        ``log d!/Π_k n_k!`` if n_k variables have k: nothing where all have one, as much as chance
        would ask where every number is about.  All graphs of a class have the same: an edge that
        can be turned joins variables whose other parents are the same, and these exchange k.
        """
        try:
            return self._best(self._starts(starts, first), self._settled)
        finally:
            self._price_numbers(np.zeros(len(self.required), dtype=np.int64))

    def shaken_by_number(self, found: Ordered, starts: int) -> Ordered:
        """What `best_by_number` found, or better: its order with some variables moved anywhere.

        Many graphs are about as good, so that several starts may all end at another one.
        """
        try:
            return self._shaken(found, SHAKES * (starts - 1), self._settled)
        finally:
            self._price_numbers(np.zeros(len(self.required), dtype=np.int64))

    def _best(
        self,
        orders: "list[NDArray[np.int64]]",
        end_of: Callable[[NDArray[np.int64]], Ordered],
    ) -> Ordered:
        found = hits = None
        for order in orders:
            end = end_of(order)
            if found is None or end.score < found.score - SAME:
                found, hits = end, 1
            elif end.score < found.score + SAME:
                hits = (hits or 0) + 1
            if hits == ENOUGH:
                break
        assert found is not None
        return found

    def _shaken(
        self, found: Ordered, times: int, end_of: Callable[[NDArray[np.int64]], Ordered]
    ) -> Ordered:
        """The least score from the best order so far with some variables moved anywhere."""
        rng, returns = np.random.default_rng(0), 0
        for _ in range(times):
            end = end_of(self.obedient(_with_some_moved(found.order, rng)))
            returns = returns + 1 if abs(end.score - found.score) < SAME else 0
            found = end if end.score < found.score - SAME else found
            if returns == RETURNS:
                break
        return found

    def _described(self, order: NDArray[np.int64]) -> Ordered:
        """`improved` at the present prices, and the score that does not depend on them."""
        end = self.improved(order)
        numbers = parent_numbers(end.edges)
        present = float(self.scores.rarity @ numbers)
        return end._replace(score=end.score - present + arrangements(numbers))

    def _settled(self, order: NDArray[np.int64]) -> Ordered:
        """Improved without prices, then at those of its own numbers of parents, while that gains.

        Prices of another graph would lead every start to where that one is.
        """
        self._price_numbers(np.zeros(len(self.required), dtype=np.int64))
        end = self._described(order)
        while True:
            self._price_numbers(parent_numbers(end.edges))
            better = self._described(end.order)
            if better.score > end.score - SAME:
                return end
            end = better

    def _price_numbers(self, numbers: NDArray[np.int64]) -> None:
        """One variable more with k parents, where n_k have as many, costs ``-log(n_k + 1)``.

        But for a constant, which makes no parents cost nothing.
        """
        self.scores.rarity[:] = np.log1p(numbers[0]) - np.log1p(numbers)
        self._forest.final[:] = np.nan

    def improved(self, order: NDArray[np.int64]) -> Ordered:
        """Where moves of one variable at a time lead from this order."""
        order = np.array(order, dtype=np.int64)
        while not self._compiled.improve(self.scores, self._forest, order, self._must):
            self._grow(2 * len(self._forest.added), 2 * len(self._forest.candidate))
        edges = np.zeros(self.required.shape, dtype=np.bool_)
        parts = self._compiled.chosen(self.scores, self._forest, order, edges)
        return Ordered(float(parts.sum()), edges, order)

    def parents(self, j: int, before: Mask) -> Mask:
        """Those of variable j among the variables ``before`` (d,)."""
        edges = np.zeros(len(before), dtype=np.bool_)
        while not self._compiled.chosen_of(self.scores, self._forest, j, before, edges):
            self._grow(2 * len(self._forest.added), 2 * len(self._forest.candidate))
        return edges

    def touched_by(self, i: int) -> Mask:
        """Variables (d,) whose parents may be others if i comes before them too: few of many."""
        unseen = self._forest.first[: len(self.required)] < 0
        found: Mask = self._forest.matters[:, i] | unseen
        return found

    def local(self, j: int, parents: NDArray[np.intp]) -> tuple[float, Matrix, Matrix]:
        """½ Σ_k n_kj log v_kj of variable j, its coefficients, and v_kj (K,), in given units."""
        b, v = np.zeros(len(parents)), np.empty(len(self.S))
        P = parents.astype(np.int64)
        value = self._compiled.profiled(self.scores.S, self.scores.n, j, P, len(P), b, v)
        unit = self.deviations[j]
        value += self.scores.n[:, j].sum() * np.log(unit)
        return float(value), b * unit / self.deviations[parents], v * unit**2

    def coefficients(self, edges: Mask) -> Matrix:
        """W (d, d): every variable regressed on its parents, groups counted by their noise."""
        W = np.zeros(edges.shape)
        for j in np.flatnonzero(edges.any(axis=0)):
            parents = np.flatnonzero(edges[:, j])
            W[parents, j] = self.local(int(j), parents)[1]
        return W

    def in_own_units(self) -> float:
        """What to add to a score so that those of different rows can be compared."""
        rows = (self.scores.n + self.scores.alone).sum(axis=0)
        return float(rows @ np.log(self.deviations))

    def _starts(self, many: int, first: NDArray[np.int64] | None) -> "list[NDArray[np.int64]]":
        """The order given, then the least connected first, then shuffles of that.

        None depends on the order of the columns.
        """
        rows = self.scores.n.max(axis=1)
        R = np.tensordot(rows / rows.sum(), self.scores.S, axes=1)
        base = np.lexsort((np.einsum("kii->i", self.scores.S), np.square(R).sum(axis=0)))
        rng = np.random.default_rng(0)
        orders = [base, *(base[rng.permutation(len(base))] for _ in range(many - 1))]
        orders = [self.obedient(order) for order in orders]
        return orders if first is None else [first, *orders[: many - 1]]

    def obedient(self, order: NDArray[np.intp]) -> NDArray[np.int64]:
        """The order changed where known edges ask for it."""
        return order[topological_order(self._must[np.ix_(order, order)])].astype(np.int64)

    def _grow(self, nodes: int, branches: int) -> None:
        known = getattr(self, "_forest", None)
        d, depth = len(self.required), self.scores.most_parents
        self._forest = self._compiled.empty_forest(d, nodes, branches, depth)
        if known is not None:  # what may matter is not forgotten with the trees
            self._forest.matters[:] = known.matters


def _with_some_moved(order: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Columns have no part in the choice."""
    many = min(max(FEWEST_SHAKEN, int(SHAKEN * len(order))), len(order))
    out = order.tolist()
    for at in rng.choice(len(order), many, replace=False):
        out.insert(int(rng.integers(len(order))), out.pop(int(at)))
    return np.array(out, dtype=np.int64)


def arrangements(numbers: NDArray[np.int64]) -> float:
    """``log d!/Π_k n_k!``: the ways in which n_k of d variables can have k parents.

    Examples
    --------
    >>> round(float(np.exp(arrangements(np.array([1, 2])))))
    3
    """
    log_factorials = np.cumsum(np.log(np.maximum(np.arange(numbers.sum() + 1), 1)))
    return float(log_factorials[-1] - log_factorials[numbers].sum())


def parent_numbers(edges: Mask) -> NDArray[np.int64]:
    """How many variables have no parent, one, two and so on, (d,).

    Examples
    --------
    >>> parent_numbers(np.eye(3, k=1, dtype=bool))
    array([1, 2, 0])
    """
    return np.bincount(edges.sum(axis=0), minlength=len(edges)).astype(np.int64)


def edge_price(rows: float, d: int, least_share: float) -> float:
    """What an edge must gain in log-likelihood: extended BIC, and a share of the noise variance.

    With many rows chance is hardly a bar, and edges that nobody could use would pass it.

    Examples
    --------
    >>> round(edge_price(1000, 10, 0.0), 2), edge_price(100_000, 10, 0.005)
    (5.76, 250.0)
    """
    by_chance = 0.5 * np.log(max(rows, 2.0)) + np.log(max(d, 2))
    return float(max(by_chance, 0.5 * rows * least_share))


def grouped_search(problem: Problem, w: Weights, least_share: float) -> OrderSearch:
    """The search in which every group of rows has noise of its own in every variable.

    Of `Cells` the groups are its own; one that counts only in some variables has mechanisms of
    its own in the others.  Of any other weights (n, d) each variable has rows of its own: as many
    groups as variables.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(60, 2)))
    >>> halves = np.repeat(np.eye(2), 30, axis=0) / 60
    >>> grouped_search(problem, Cells(halves, np.ones((2, 2))), 0.0).n
    array([[30., 30.],
           [30., 30.]])
    """
    rows, d = problem.effective_rows(problem.prior), problem.rows.shape[1]
    alone = None
    if isinstance(w, Cells):
        mass, _, S = problem.rows.group_moments(w.membership)
        counts = w.precision > 0
        n = rows * mass[:, None] * counts
        alone = rows * mass[:, None] * (~counts & counts.any(axis=1, keepdims=True))
    else:
        mass = np.maximum(w.sum(axis=0), 1e-300)
        S = problem.rows.cell_moments(w).covariance / mass[:, None, None]
        n = np.diag([problem.effective_rows(column) for column in (w / mass).T])
    price = edge_price(rows, d, least_share)
    return OrderSearch(S, n, problem.allowed, problem.required, price, alone=alone)
