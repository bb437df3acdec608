"""Weights that decide for themselves: groups of rows balanced, plain noise set aside.

Balancing groups whose noise differs makes the pooled noise of all variables alike, which is what
lets a least-squares score tell causes from effects.  Rows that are plain noise must not take part
in that.  Neither the groups nor which of them are noise is known: both are hypotheses, each is
followed to its own end, and the likelihood of the data chooses.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rescore.moments import Matrix
from rescore.protocols import Losses, Mask, Problem
from rescore.solvers.ordered_regression import ordered_graph
from rescore.validation import check_integer, check_number
from rescore.weightings.group_weights import GroupWeights, plain_noise
from rescore.weightings.groups import Groups, find_groups, graph_evidence, one_group, rows_alike

CORE = 0.8  # share of the rows that fit best, on which the core graph is learned
# A group is plain noise if its variance is larger in at least this share of the variables.  Groups
# with another noise pattern have about half, other mechanisms nearly all: each is tried.
NOISE_SHARES = (0.7, 0.9, 1.01)
ROUNDS = 6
NOISE_SHARE = 0.9  # of the variables in which a group's variance is larger: then it is plain noise


@dataclass(frozen=True, eq=False)
class Fit:
    """A graph learned with some weights, and the losses it leaves."""

    edges: Mask  # (d, d)
    losses: Matrix  # (n, d)


@dataclass(frozen=True, eq=False)
class Finding:
    """Where a hypothesis led: the groups and their weights, and the graph learned with those."""

    weights: GroupWeights
    edges: Mask  # (d, d)

    @property
    def place(self) -> Hashable:
        """What tells it from other findings on the way."""
        return self.edges.tobytes(), self.weights.groups.count, int(self.weights.noise.sum())


@dataclass(frozen=True)
class Balanced:
    """Row weights from the rows alone, by ordered least squares; homogeneous rows keep theirs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = Problem.unconstrained(rng.normal(size=(300, 3)))
    >>> w, state = Balanced().step(rows, lambda: np.ones((300, 3)), None)
    >>> bool((w == rows.prior).all()), Balanced().explain(state)["groups"]
    (True, 1)
    """

    tau: float = 1e-4
    most_groups: int = 4

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0, at_most=1)
        check_integer("most_groups", self.most_groups, at_least=1)

    def init(self, n: int, d: int) -> Finding | None:
        """Nothing known yet."""
        return None

    def step(
        self, problem: Problem, losses: Losses, state: Finding | None
    ) -> tuple[Matrix, Finding]:
        """The weights found at the first call; later calls only repeat them."""
        found = state or self.search(problem)
        return found.weights.w, found

    def explain(self, state: Finding | None) -> dict[str, Any]:
        """Groups, their shares of the weight before and after, rows treated as noise."""
        return {} if state is None else state.weights.explained

    def search(self, problem: Problem) -> Finding:
        """Follow every hypothesis to its end, and keep the likeliest."""
        plain = ordered_fit(problem, problem.prior)
        groups = self._groups(problem, plain)
        if groups.count == 1 or self.tau == 1:
            return self._as_they_are(problem, groups, plain)
        found: list[Finding] = []
        seen: set[Hashable] = set()
        for start, its_groups in self._starts(problem, plain, groups):
            shares = {plain_noise(its_groups, share).tobytes(): share for share in NOISE_SHARES}
            for share in shares.values():
                found += self._follow(problem, start, its_groups, share, seen)
        if len(found) == 1:
            return found[0]
        return max(found, key=lambda one: graph_evidence(problem, one.edges, one.weights.groups))

    def _starts(self, problem: Problem, plain: Fit, groups: Groups) -> Iterator[tuple[Fit, Groups]]:
        """The plain graph and, if noise may have spoilt that, the graph of the core."""
        yield plain, groups
        if plain_noise(groups, min(NOISE_SHARES)).any():
            core = _core(problem, plain)
            yield core, self._groups(problem, core)

    def _follow(
        self, problem: Problem, fit: Fit, groups: Groups, share: float, seen: set[Hashable]
    ) -> list[Finding]:
        """Balance, fit again, group again, until the graph repeats or was ``seen`` before.

        Another hypothesis that came through the same graph, groups and noise has led wherever
        this one would: then there is nothing to add.  One that has not settled after all rounds
        is judged by its last graph, and by the groups that graph was learned with.
        """
        passed: set[Hashable] = set()
        for _ in range(ROUNDS):
            weights = GroupWeights(problem, groups, plain_noise(groups, share), self.tau)
            last, fit = fit, ordered_fit(problem, weights.w)
            found = Finding(weights, fit.edges)
            if found.place in seen:
                return []
            if found.place in passed or (fit.edges == last.edges).all():
                break
            passed.add(found.place)
            groups = self._groups(problem, fit)
            if groups.count == 1:  # under this graph the rows look alike: no reason to weigh them
                return [self._as_they_are(problem, groups, ordered_fit(problem, problem.prior))]
        seen |= passed | {found.place}
        return [found]

    def _as_they_are(self, problem: Problem, groups: Groups, plain: Fit) -> Finding:
        """All rows keep their weights, and the graph is the one learned with those."""
        none = np.zeros(groups.count, dtype=bool)
        return Finding(GroupWeights(problem, groups, none, self.tau), plain.edges)

    def _groups(self, problem: Problem, fit: Fit) -> Groups:
        counts = problem.row_counts()
        if rows_alike(fit.losses, counts):
            return one_group(fit.losses, counts)
        return find_groups(fit.losses, counts, self.most_groups)


def ordered_fit(problem: Problem, w: Matrix) -> Fit:
    """Ordered least squares on the rows weighted by ``w``: milliseconds, so it can be repeated.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(100, 2)))
    >>> ordered_fit(problem, problem.prior).edges.any()
    np.False_
    """
    W, (mean, _) = ordered_graph(problem, w)
    return Fit(W != 0, problem.rows.squared_residuals(W, mean))


def _core(problem: Problem, fit: Fit) -> Fit:
    """The graph of the rows that fit best: keep the best share, fit, and again until it stays."""
    w = prior = problem.prior
    for _ in range(ROUNDS):
        loss = (fit.losses / np.maximum(w @ fit.losses, 1e-300)).sum(axis=1)
        order = np.argsort(loss)
        most = loss[order[np.searchsorted(np.cumsum(prior[order]), CORE)]]
        kept = np.where(loss <= most, prior, 0.0)
        w = kept / kept.sum()
        last, fit = fit, ordered_fit(problem, w)
        if (fit.edges == last.edges).all():
            break
    return fit


@dataclass(frozen=True)
class Regrouped:
    """Groups among the residuals that a whole fit leaves, balanced for the next one.

    What a straight line leaves of a curved relation looks like rows whose noise differs, so a
    nonlinear learner's groups must be found in its own residuals; and in those of its final
    graph, because half-trained networks fit some rows better than others too.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> alike = Problem.unconstrained(X)
    >>> w, state = Regrouped().step(alike, lambda: X**2, None)
    >>> bool((w == alike.prior).all()), Regrouped().explain(state)["groups"]
    (True, 1)
    """

    tau: float = 0.01
    most_groups: int = 4

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0, at_most=1)
        check_integer("most_groups", self.most_groups, at_least=1)

    def init(self, n: int, d: int) -> GroupWeights | None:
        """Nothing known yet."""
        return None

    def step(
        self, problem: Problem, losses: Losses, state: GroupWeights | None
    ) -> tuple[Matrix, GroupWeights]:
        """The weights decided at the first call, the prior's if all rows look alike."""
        decided = state or self._decide(problem, losses())
        return decided.w, decided

    def explain(self, state: GroupWeights | None) -> dict[str, Any]:
        """Groups, their shares of the weight before and after, rows treated as noise."""
        return {} if state is None else state.explained

    def _decide(self, problem: Problem, losses: Matrix) -> GroupWeights:
        groups = find_groups(losses, problem.row_counts(), self.most_groups)
        share = NOISE_SHARE if self.tau < 1 else np.inf  # without room no group can be set aside
        return GroupWeights(problem, groups, plain_noise(groups, share), self.tau)
