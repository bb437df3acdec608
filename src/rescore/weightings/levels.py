"""Groups of rows that differ in level, where relations need not be straight.

Groups whose levels differ make edges between variables that are unrelated in each of them, and
what a learner leaves under these edges shows no groups.  So they are looked for around straight
lines, as `environments` does, and sharpened around smooth functions.  But rows of a curved or a
joint relation look like such groups too.  Two descriptions of the table must be shorter with the
groups than without: by additive functions, and by Gaussian processes, in which causes act jointly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rescore.graph.dag import topological_order
from rescore.moments import Cells, Matrix, Weights, simplest
from rescore.protocols import Mask, Problem
from rescore.solvers.curvature_orders import curvature_order
from rescore.solvers.gaussian_inputs import prepare, shares, spread_rows
from rescore.solvers.gaussian_orders import FEW, Costs, consistent, total
from rescore.solvers.relevance import Prior
from rescore.solvers.smooth_features import Basis
from rescore.solvers.smooth_search import SmoothSearch
from rescore.weightings.environments import Environments
from rescore.weightings.mixture import Mixture, as_mixture, expectation_maximisation

MOST_GROUPS = 2, 4, 12  # a joint relation looks like ever more groups: if few are none, none are
FEW_GROUPS = 4
LEAST_SHARE = 0.005  # of the noise variance, that an edge must explain: as in `Additive`
STARTS = 6  # of its order searches
TINY = float(np.finfo(float).tiny)


def level_groups(problem: Problem, rival: Matrix) -> Mixture | None:
    """Groups with levels of their own, if the table is shorter to describe with them.

    Shorter than as one group, than in the groups (n, K) of a ``rival``, and than in groups found on
    the way whose levels are worth nothing: then it is their noise alone that differs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = np.arange(300) % 2
    >>> X = rng.normal(size=(300, 4)) + 6 * group[:, None] * [1, -1, 1, 1]
    >>> found = level_groups(Problem.unconstrained(X), np.ones((300, 1)))
    >>> found.count, bool(np.ptp(found.membership[group == 0], axis=0).max() < 0.1)
    (2, True)
    """
    alike = Described(problem, np.ones((len(rival), 1)))
    others = [alike, Described(problem, rival)] if rival.shape[1] > 1 else [alike]
    best = None
    for most in MOST_GROUPS:
        if best is None and most > FEW_GROUPS:
            break
        found = _candidate(problem, most)
        if not _pays(found.mixture, float(problem.row_counts().sum())):
            others.append(found)
            continue
        # Of levels either way: all rows tell how many groups, better than processes on a few.
        if found.shortest_of(others) and (best is None or found.by_functions < best.by_functions):
            best = found
    return None if best is None else best.mixture


def _candidate(problem: Problem, most: int) -> "Described":
    """Groups around straight lines, found again in what smooth functions leave in them."""
    mechanisms = most > FEW_GROUPS  # of their own, which take most of the time
    first = Environments(most_groups=most, mechanisms=mechanisms).first(problem).mixture
    counts = problem.row_counts()
    left = Described(problem, first.membership).smooth.left
    found = expectation_maximisation(left, counts, first.membership)
    return Described(problem, found.membership)


class Smooth(NamedTuple):
    """Additive functions: their edges, what they leave, levels included, and their cost in nats."""

    edges: Mask
    left: Matrix  # (n, d)
    cost: float


@dataclass(frozen=True, eq=False)
class Described:
    """A table in groups (n, K) with levels and noise of their own, and what that takes in nats.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) + 9 * (np.arange(200)[:, None] % 2)
    >>> problem = Problem.unconstrained(X)
    >>> one, halves = np.ones((200, 1)), np.tile(np.eye(2), (100, 1))
    >>> one, two = Described(problem, one), Described(problem, halves)
    >>> one.smooth.edges.any(), two.smooth.edges.any(), two.shortest_of([one])
    (np.True_, np.False_, True)
    """

    problem: Problem
    membership: Matrix

    def shortest_of(self, others: "list[Described]") -> bool:
        """By additive functions, and then by Gaussian processes, which take longer."""
        by_functions = all(self.by_functions < other.by_functions for other in others)
        return by_functions and all(self.by_processes < other.by_processes for other in others)

    @cached_property
    def mixture(self) -> Mixture:
        """Levels and variances of the groups."""
        return as_mixture(self.smooth.left, self.problem.row_counts(), self.membership)

    @cached_property
    def smooth(self) -> Smooth:
        """As `Additive` finds them."""
        basis = Basis.of(self.problem)
        search = SmoothSearch.of(self.problem, basis, self._cells(), LEAST_SHARE)
        found = search.best(STARTS)
        B, _ = search.functions(found.edges)
        X = self.problem.rows.matrix()
        offset = basis.mean + basis.deviation * search.level(B)
        left = X - basis.equations(B, found.edges, offset).predict(X)
        return Smooth(found.edges, left, float(found.score))

    @cached_property
    def by_functions(self) -> float:
        """With levels and variances to tell, and who is in which group."""
        counts, K = self.problem.row_counts(), self.membership.shape[1]
        price = _price(2 * K * len(self.smooth.edges) + K - 1, counts.sum())
        return self.smooth.cost + unsaid(self.membership, counts) + price

    @cached_property
    def by_processes(self) -> float:
        """On few rows; along the functions' order, or if rows are alike the best of some.

        Additive functions of joint relations may have an order that serves the processes badly.
        """
        orders = [list(topological_order(self.smooth.edges.astype(float)))]
        if self.membership.shape[1] == 1:
            given = self.problem, self.problem.prior, prepare(self.problem)
            orders += [curvature_order(*given, standard=units) for units in (True, False)]
        return min(self._along(order) for order in orders)

    def _along(self, order: Sequence[int]) -> float:
        counts, inputs = self.problem.row_counts(), prepare(self.problem)
        rows = spread_rows(len(inputs.X), FEW)
        variance = _relative(self.mixture)
        costs = Costs.of(self.problem, self._cells(1 / variance), inputs, rows, Prior(), False)
        place = np.argsort(inputs.columns)
        along = consistent([int(place[v]) for v in order], inputs.inward(self.problem.required))
        counted = np.bincount(inputs.distinct, counts)[rows].astype(float)
        P = shares(self.membership * counts[:, None], inputs)[rows]
        # The processes take a row's mean precision for its noise; a row in doubt between groups
        # is described as one or the other, which is longer.
        doubt = counted @ (P @ np.log(variance) + np.log(P @ (1 / variance))).sum(axis=1) / 2
        K, d = variance.shape
        price = _price(K * d + K - 1, counted.sum())
        return float(total(costs.along(along)) + doubt + unsaid(P, counted) + price)

    def _cells(self, precision: Matrix | None = None) -> Weights:
        """The groups as weights; those of one group are the prior's."""
        d = self.problem.rows.shape[1]
        p = np.ones((self.membership.shape[1], d)) if precision is None else precision
        return simplest(Cells(self.membership * self.problem.prior[:, None], p))


def _pays(groups: Mixture, rows: float) -> bool:
    """Whether levels explain more than they cost; if not, only noise differs between groups."""
    K, d = groups.level.shape
    known = groups.share[:, None] / groups.variance  # how well each group tells a common level
    common = (known * groups.level).sum(axis=0) / known.sum(axis=0)
    gain = 0.5 * rows * (known * np.square(groups.level - common)).sum()
    return bool(gain > _price((K - 1) * d, rows))


def _relative(groups: Mixture) -> Matrix:
    """Variances (K, d), in every variable one on the average of their logarithms."""
    logs = np.log(np.maximum(groups.variance, TINY))
    return np.asarray(np.exp(logs - groups.share @ logs))


def unsaid(P: Matrix, counts: Matrix) -> float:
    """What it takes to say which group every row is in, less what the rows leave open, in nats.

    Examples
    --------
    >>> round(unsaid(np.eye(2), np.ones(2)), 2), unsaid(np.full((2, 2), 0.5), np.ones(2))
    (1.39, 0.0)
    """
    share = counts @ P / counts.sum()
    return float(counts @ (P * np.log(np.maximum(P, TINY) / np.maximum(share, TINY))).sum(axis=1))


def _price(parameters: int, rows: float) -> float:
    return float(0.5 * parameters * np.log(max(rows, 2.0)))
