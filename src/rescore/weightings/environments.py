"""A weight for every cell: latent groups of rows that share the mechanisms and differ in noise.

    x_ij = a_kj + Σ_p b_pj x_ip + e_ij,    e_ij ~ N(0, v_kj),    w_ij ∝ Σ_k P(k | i) / v_kj

The groups are found in the residuals of the learner's own graph.  A row counts in the regression of
a variable as precisely as its group measures it there; a group whose mechanism for a variable
differs says nothing about it; a group whose mechanisms mostly differ is set aside.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rescore.moments import Cells, Matrix, Weights
from rescore.protocols import Losses, Mask, Problem
from rescore.solvers.noise import Sample, looks_shaped, shape_gains, shaped_graph
from rescore.solvers.order_search import Ordered, edge_price
from rescore.validation import check_integer, check_number
from rescore.weightings.mechanisms import (
    Choice,
    fewer_groups,
    grouped_order_search,
    merged,
    moments_of,
    order_of,
    other_targets,
    own_mechanisms,
    searched_again,
    set_aside,
    shares_most,
)
from rescore.weightings.mixture import (
    Mixture,
    as_mixture,
    expectation_maximisation,
    find_mixture,
)
from rescore.weightings.regimes import description_length, sharpened, with_regimes

STARTS = 2  # of the order searches
ROUNDS = 6  # of groups and graph in turn
SAME = 0.1  # nats by which one description is no shorter than another
CLOSER = 4  # other choices, the shortest, whose groups are found again
FEW = 4  # groups at most at first, where the graph is yet to be found


@dataclass(frozen=True, eq=False)
class Found:
    """Groups of rows, which of them count where, and the weights that follow."""

    mixture: Mixture
    aside: Mask  # (K,) groups set aside as another model's
    own: Mask  # (K, d) mechanisms of their own, in groups that are not set aside
    weights: Weights
    rows: Matrix  # (K,) rows of each group
    cost: float  # of graph and groups together: minus log-likelihood and the price of parameters
    levels_differ: bool  # between groups, also between those that were not worth their parameters
    regrouped: int = 0  # times, in the learner's own residuals


@dataclass(frozen=True)
class Environments:
    """Weights of cells from latent groups of rows; rows that look alike keep theirs.

    A search of its own finds the first groups: how many there are, and which are set aside.
    After every fit they are found again in the residuals of the learner's graph.

    Examples
    --------
    >>> from rescore.learners.baselines import EmptyBackbone
    >>> rng, empty = np.random.default_rng(0), EmptyBackbone()
    >>> scale = np.where(np.arange(600)[:, None] < 400, [1.0, 0.2, 1.0], [0.3, 1.0, 2.0])
    >>> problem = Problem.unconstrained(rng.normal(size=(600, 3)) * scale)
    >>> player, losses = Environments(), Losses(problem, empty, empty.init(problem))
    >>> w, found = player.step(problem, losses, player.init(600, 3))
    >>> w.shape, player.explain(found)["groups"]
    ((600, 3), 2)
    """

    tau: float = 1e-4
    most_groups: int = 12
    mechanisms: bool = True  # whether groups may have some of their own

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0, at_most=1)
        check_integer("most_groups", self.most_groups, at_least=1)

    def init(self, n: int, d: int) -> Found | None:
        """Nothing known yet."""
        return None

    def step(
        self, problem: Problem, losses: Losses, state: Found | None
    ) -> tuple[Weights, Found | None]:
        """Regroup the residuals of the learner's graph, and weigh every cell by its group."""
        if self.tau == 1:
            return problem.prior, None
        if state is None:
            found = self.first(problem)
        elif state.mixture.count == 1 or state.regrouped == ROUNDS:
            found = state
        else:
            edges, parts = losses.edges(), (state.aside, state.own)
            members = sharpened(problem, edges, state.mixture.membership, *parts)
            found = self._described(problem, edges, members, *parts)
            graph = Ordered(0.0, edges, order_of(edges))
            found, _ = self._with_regimes(problem, found, graph)
            found = replace(found, regrouped=state.regrouped + 1)
        return found.weights, found

    def explain(self, state: Found | None) -> dict[str, Any]:
        """Groups, their levels and variances, what is set aside, mechanisms of their own."""
        return {} if state is None else _told(state)

    def first(self, problem: Problem) -> Found:
        """Before any learner's fit: the likelier end of two ways.

        From the graph of all rows, and from no graph at all.

        Groups that differ in their levels alone make edges between variables that are unrelated
        in each of them, and hide behind these edges.
        """
        everyone = np.ones((problem.rows.shape[0], 1))
        pooled = grouped_order_search(problem, moments_of(problem, everyone)).best(STARTS)
        ends = [self._follow(problem, pooled, self.most_groups)]
        if ends[0][0].levels_differ or _peaks_apart(problem):
            nothing = Ordered(0.0, problem.required, pooled.order)
            ends.append(self._follow(problem, nothing, min(self.most_groups, FEW)))
        found, graph = min(ends, key=lambda end: end[0].cost)
        if found.mixture.count == 1:
            graph = _of_any_noise(problem, graph)
            found = min(found, _one_group(problem, graph.edges), key=lambda one: one.cost)
        if not self.mechanisms:
            return found
        return self._least_changed(problem, *self._with_regimes(problem, found, graph))

    def _follow(self, problem: Problem, graph: Ordered, most: int) -> tuple[Found, Ordered]:
        """Groups and graph in turn, until the graph repeats; then mechanisms of their own."""
        found, seen = _one_group(problem, graph.edges), [graph.edges]
        counts = problem.row_counts()
        for turn in range(ROUNDS):
            E = _residuals(problem, graph.edges, found)
            mixture = find_mixture(E, counts, most)
            if mixture.count == 1 or (turn < 2 and _alike(E, problem, mixture)):
                return _one_group(problem, graph.edges, mixture), graph
            members = merged(problem, graph.edges, mixture.membership)
            if members.shape[1] == 1:
                return _one_group(problem, graph.edges, mixture), graph
            mixture = as_mixture(E, counts, members)
            groups = moments_of(problem, members)
            aside = set_aside(problem, graph.edges, groups)
            nothing = np.zeros((len(aside), len(graph.edges)), dtype=bool)
            found = self._found(problem, graph.edges, mixture, aside, nothing)
            graph = grouped_order_search(problem, groups, aside).best(STARTS, graph.order)
            if any((graph.edges == earlier).all() for earlier in seen):
                break
            seen.append(graph.edges)
            most = self.most_groups
        aside = found.aside & ~shares_most(problem, graph.edges, groups, found.aside)
        if (aside != found.aside).any():
            graph = grouped_order_search(problem, groups, aside).best(STARTS, graph.order)
        own = nothing
        if self.mechanisms:
            own, graph = own_mechanisms(problem, graph, groups, aside, nothing)
        return self._found(problem, graph.edges, found.mixture, aside, own), graph

    def _with_regimes(self, problem: Problem, found: Found, graph: Ordered) -> tuple[Found, Mask]:
        """The same groups, and those of one changed mechanism that hide in the largest."""
        for _ in range(ROUNDS):
            members, K = found.mixture.membership, found.mixture.count
            more = with_regimes(problem, graph.edges, members, found.aside, self.most_groups)
            if more.shape[1] == K:
                break
            new = np.zeros((more.shape[1] - K, len(graph.edges)), dtype=bool)
            aside, own = np.append(found.aside, new.any(axis=1)), np.vstack([found.own, new])
            own, then = own_mechanisms(problem, graph, moments_of(problem, more), aside, own)
            if not own[K:].any():
                break
            more = sharpened(problem, then.edges, more, aside, own)
            changed = self._described(problem, then.edges, more, aside, own)
            if changed.cost >= found.cost:
                break
            found, graph = changed, then
        return found, graph.edges

    def _least_changed(self, problem: Problem, found: Found, edges: Mask) -> Found:
        """Changed mechanisms moved or taken back, and groups too, while that is shorter to say.

        Seen against the arrow, one changed mechanism is two and makes groups of its own.
        """
        while found.own.any():
            now = Choice(edges, found.mixture.membership, found.aside, found.own)
            others = [*other_targets(problem, now), *fewer_groups(now)]
            others.sort(key=lambda other: description_length(problem, *other))
            tried = [(found, edges)]
            for other in (now, *others[:CLOSER]):
                better = searched_again(problem, other)
                better = better._replace(members=sharpened(problem, *better))
                tried.append((self._described(problem, *better), better.edges))
            best = min(tried, key=lambda one: one[0].cost)
            if best[0].cost > found.cost - SAME:
                break
            found, edges = best
        return found

    def _described(
        self, problem: Problem, edges: Mask, members: Matrix, aside: Mask, own: Mask
    ) -> Found:
        """These groups under this graph, but for those that no row is likeliest in."""
        there = np.bincount(members.argmax(axis=1), minlength=len(aside)) > 0
        members, aside, own = members[:, there], aside[there], own[there]
        members = members / members.sum(axis=1, keepdims=True)
        search = grouped_order_search(problem, moments_of(problem, members), aside, own)
        E = _left_by(problem, search.coefficients(edges))
        return self._found(problem, edges, as_mixture(E, problem.row_counts(), members), aside, own)

    def _found(
        self, problem: Problem, edges: Mask, mixture: Mixture, aside: Mask, own: Mask
    ) -> Found:
        rows = problem.row_counts() @ mixture.membership
        weights = cells_of(problem, edges, mixture.membership, aside, own, self.tau)
        cost = description_length(problem, edges, mixture.membership, aside, own)
        levels = _levels_differ(mixture, float(rows.sum()))
        return Found(mixture, aside, own, weights, rows, cost, levels)


def _one_group(problem: Problem, edges: Mask, doubt: Mixture | None = None) -> Found:
    """All rows keep the weights they had; ``doubt`` is what could have been said instead."""
    n, d = problem.rows.shape
    counts, nothing = problem.row_counts(), np.zeros((1, d), dtype=bool)
    search = grouped_order_search(problem, moments_of(problem, np.ones((n, 1))))
    E = _left_by(problem, search.coefficients(edges))
    mixture = expectation_maximisation(E, counts, np.ones((n, 1)))
    rows = np.array([counts.sum()])
    price = edge_price(float(counts.sum()), d, 0.0)
    cost = float(edges.sum() * price - _evidence_alike(E, problem))
    levels = doubt is not None and _levels_differ(doubt, rows[0])
    return Found(mixture, nothing[:, 0], nothing, problem.prior, rows, cost, levels)


def _of_any_noise(problem: Problem, graph: Ordered) -> Ordered:
    """The graph as noise that is not Gaussian would have it, if the residuals look like that.

    An edge that points the wrong way has noise that changes with its cause.
    """
    sample = Sample.of(problem, problem.prior, least_share=0.0)
    W = sample.search.coefficients(graph.edges)
    if not looks_shaped(sample, W):
        return graph
    W = shaped_graph(sample, [sample.order(W)])
    return Ordered(graph.score, W != 0, sample.order(W))


def _peaks_apart(problem: Problem) -> bool:
    """Whether rows are skewed or flat beyond chance, as groups with other levels would make them.

    In some variable, or along a principal component: groups that overlap in every variable are
    apart where the variables differ together.
    """
    rows = float(problem.row_counts().sum())
    Z = problem.rows.standardised(problem.prior).matrix()
    variances, directions = np.linalg.eigh((Z * problem.prior[:, None]).T @ Z)
    seen = variances > 1e-9 * max(variances[-1], 1e-300)
    Z = np.column_stack([Z, Z @ (directions[:, seen] / np.sqrt(variances[seen]))])
    skew, tails = problem.prior @ Z**3, problem.prior @ Z**4 - 3
    evidence = rows * (np.square(skew) / 6 + np.square(np.minimum(tails, 0)) / 24)
    varies = np.any(Z != 0, axis=0)
    return bool((evidence[varies] > 3 * np.log(max(rows, 2.0))).any())


def _levels_differ(mixture: Mixture, rows: float) -> bool:
    """Whether some group's level is away from the others' beyond chance."""
    away = np.square(mixture.level - mixture.share @ mixture.level) / mixture.variance
    K, d = mixture.level.shape
    return bool((0.5 * rows * mixture.share[:, None] * away > edge_price(rows, K * d, 0.0)).any())


def _residuals(problem: Problem, edges: Mask, found: Found) -> Matrix:
    """What a graph leaves, each variable regressed as precisely as the groups allow."""
    groups = moments_of(problem, found.mixture.membership)
    search = grouped_order_search(problem, groups, found.aside, found.own)
    return _left_by(problem, search.coefficients(edges))


def _left_by(problem: Problem, W: Matrix) -> Matrix:
    """What coefficients W leave, in deviations of each variable, (n, d)."""
    mean, S = problem.moments(problem.prior)
    X = problem.rows.matrix() - mean
    deviations = np.sqrt(np.diag(S))
    return (X - X @ W) / np.where(deviations > 0, deviations, 1.0)


def _alike(E: Matrix, problem: Problem, mixture: Mixture) -> bool:
    """Whether rows that are alike, with noise that need not be Gaussian, explain E as well."""
    return _evidence_alike(E, problem) >= mixture.evidence(float(problem.row_counts().sum()))


def _evidence_alike(E: Matrix, problem: Problem) -> float:
    """Of one group of rows whose noise is independent and of any shape."""
    counts = problem.row_counts()
    rows = float(counts.sum())
    w = counts / rows
    E = E - w @ E
    variance = w @ np.square(E)
    varies = variance > 0
    gain, parameters = shape_gains(E[:, varies] / np.sqrt(variance[varies]), w, rows)
    one = expectation_maximisation(E[:, varies], counts, np.ones((len(E), 1)))
    return float(one.evidence(rows) + gain.sum() - 0.5 * parameters.sum() * np.log(max(rows, 2.0)))


def cells_of(
    problem: Problem, edges: Mask, membership: Matrix, aside: Mask, own: Mask, tau: float
) -> Weights:
    """Every cell by the precision of its group's noise in that variable, scaled to sum to d."""
    silent = own | aside[:, None]
    search = grouped_order_search(problem, moments_of(problem, membership), aside, own)
    d = len(edges)
    V = np.array([search.local(j, np.flatnonzero(edges[:, j]))[2] for j in range(d)]).T  # (K, d)
    M = membership * problem.prior[:, None]
    if (~silent).any(axis=1).sum() == 1:  # one group counts: its rows, each variable alike
        k = int(np.flatnonzero((~silent).any(axis=1))[0])
        precision = np.zeros((len(M.T), d))
        precision[k] = 1 / M[:, k].sum()
        return Cells(M, precision)
    precision = np.where(silent, 0.0, 1 / V)
    typical = np.exp(np.log(precision[~silent]).mean())
    precision = np.where(silent, 0.0, np.clip(precision / typical, tau, 1 / tau))
    return Cells(M, precision * d / (M.sum(axis=0) @ precision).sum())


def _told(found: Found) -> dict[str, Any]:
    """The decision as plain data, variables by their positions, and as a sentence.

    Levels and variances of the noise are in deviations of each variable.
    """
    G, w = found.mixture, found.weights
    after = np.ones(1)
    if isinstance(w, Cells):
        after = w.membership.sum(axis=0) * w.precision.sum(axis=1) / w.precision.shape[1]
    return {
        "summary": _summary(found, after),
        "groups": G.count,
        "share_before": G.share.tolist(),
        "share_after": after.tolist(),
        "noise": found.aside.tolist(),
        "noise_rows": float(found.rows[found.aside].sum()),
        "level": G.level.tolist(),
        "variance": G.variance.tolist(),
        "interventions": [{"group": k, "variable": j} for k, j in np.argwhere(found.own).tolist()],
    }


def _summary(found: Found, after: Matrix) -> str:
    G = found.mixture
    if G.count == 1:
        return "The rows look alike: all keep the weight they had."
    shares = ", ".join(
        f"{share:.0%} of the rows "
        + ("set aside as another model's" if bad else f"with {then:.0%} of the weight")
        for share, then, bad in zip(G.share, after, found.aside, strict=True)
    )
    return f"The rows fall into {G.count} groups whose noise or level differs: {shares}."
