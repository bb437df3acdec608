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

from rescore.checking import check_integer, check_number
from rescore.moments import Matrix
from rescore.ordered import ordered_graph
from rescore.protocols import Mask, Problem
from rescore.weightings.alike import alike
from rescore.weightings.evidence import evidence, row_counts
from rescore.weightings.latent import Groups, find_groups, one_group
from rescore.weightings.masses import balanced_weights, explained, plain_noise

CORE = 0.8  # share of the rows that fit best, on which the core graph is learned
# A group is plain noise if its variance is larger in at least this share of the variables.  Groups
# with another noise pattern have about half, other mechanisms nearly all: each is tried.
NOISE_SHARES = (0.7, 0.9, 1.01)
ROUNDS = 6


@dataclass(frozen=True, eq=False)
class Fit:
    """A graph learned with some weights, and the losses it leaves."""

    edges: Mask  # (d, d)
    losses: Matrix  # (n, d)


@dataclass(frozen=True, eq=False)
class Finding:
    """Where a hypothesis led: weights, the groups behind them, and the graph learned with them."""

    w: Matrix
    groups: Groups
    noise: Mask  # (K,)
    edges: Mask  # (d, d)


@dataclass(frozen=True)
class Balanced:
    """Row weights from the rows alone, by ordered least squares; homogeneous rows keep theirs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = Problem.unconstrained(rng.normal(size=(300, 3)))
    >>> w, state = Balanced().step(rows, np.ones((300, 3)), None)
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
        self, problem: Problem, losses: Matrix, state: Finding | None
    ) -> tuple[Matrix, Finding]:
        """The weights found at the first call; later calls only repeat them."""
        found = state or self.search(problem)
        return found.w, found

    def explain(self, state: Finding | None) -> dict[str, Any]:
        """Groups, their shares of the weight before and after, rows treated as noise."""
        return {} if state is None else explained(state.w, state.groups, state.noise)

    def search(self, problem: Problem) -> Finding:
        """Follow every hypothesis to its end, and keep the likeliest."""
        plain = ordered_fit(problem, problem.prior)
        groups = self._groups(problem, plain)
        if groups.count == 1 or self.tau == 1:
            return _as_they_are(problem, groups, plain)
        found: list[Finding] = []
        seen: set[Hashable] = set()
        for start, its_groups in self._starts(problem, plain, groups):
            shares = {plain_noise(its_groups, share).tobytes(): share for share in NOISE_SHARES}
            for share in shares.values():
                found += self._follow(problem, start, its_groups, share, seen)
        if len(found) == 1:
            return found[0]
        return max(found, key=lambda one: evidence(problem, one.edges, one.groups))

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
        this one would: then there is nothing to add.
        """
        passed: set[Hashable] = set()
        for _ in range(ROUNDS):
            noise = plain_noise(groups, share)
            w = balanced_weights(groups, noise, problem.prior, self.tau)
            last, fit = fit, ordered_fit(problem, w)
            place = (fit.edges.tobytes(), groups.count, int(noise.sum()))
            if place in seen:
                return []
            if place in passed or (fit.edges == last.edges).all():
                break
            passed.add(place)
            groups = self._groups(problem, fit)
            if groups.count == 1:  # under this graph the rows look alike, so there is no more to it
                return [_as_they_are(problem, groups, fit)]
        seen |= passed | {place}
        return [Finding(w, groups, noise, fit.edges)]

    def _groups(self, problem: Problem, fit: Fit) -> Groups:
        counts = row_counts(problem)
        if alike(fit.losses, counts):
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
    W, mean = ordered_graph(problem, w)
    return Fit(W != 0, problem.rows.squared_residuals(W, mean))


def _as_they_are(problem: Problem, groups: Groups, fit: Fit) -> Finding:
    """All rows keep their weights."""
    return Finding(problem.prior, groups, np.zeros(groups.count, dtype=bool), fit.edges)


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
