"""Weights that decide for themselves: groups of rows balanced, plain noise set aside.

Balancing groups whose noise differs makes the pooled noise of all variables alike, which is what
lets a least-squares score tell causes from effects.  Rows that are plain noise must not take part
in that.  Neither the groups nor which of them are noise is known: both are hypotheses, each is
followed to its own end, and the likelihood of the data chooses.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rescore.checking import check_integer, check_number
from rescore.moments import Matrix
from rescore.ordered import ordered_graph
from rescore.protocols import Mask, Problem
from rescore.weightings.latent import Groups, expectation_maximisation, find_groups

CORE = 0.8  # share of the rows that fit best, on which the core graph is learned
LARGER = 1.5  # ratio of variances from which a group's noise counts as larger than the core's
# A group is plain noise if its variance is larger in at least this share of the variables.  Groups
# with another noise pattern have about half, other mechanisms nearly all: each is tried.
NOISE_SHARES = (0.7, 0.9, 1.01)
ROUNDS = 6
FARTHEST = 100.0  # factor by which balancing may change the share of a group


@dataclass(frozen=True, eq=False)
class Fit:
    """A graph learned with some weights, and the losses it leaves."""

    edges: Mask  # (d, d)
    losses: Matrix  # (n, d)


@dataclass(frozen=True, eq=False)
class Finding:
    """Where a hypothesis led: weights, the groups behind them, and how well they explain."""

    w: Matrix
    groups: Groups
    noise: Mask  # (K,)
    evidence: float


@dataclass(frozen=True)
class Balanced:
    """Row weights from the rows alone, by ordered least squares; homogeneous rows keep theirs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> alike = Problem.unconstrained(rng.normal(size=(300, 3)))
    >>> w, state = Balanced().step(alike, np.ones((300, 3)), None)
    >>> bool((w == alike.prior).all()), Balanced().explain(state)["groups"]
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
        """Follow every hypothesis from the plain and from the core graph; keep the likeliest."""
        plain = ordered_fit(problem, problem.prior)
        groups = self._groups(problem, plain)
        if groups.count == 1 or self.tau == 1:
            return Finding(problem.prior, groups, np.zeros(groups.count, dtype=bool), 0.0)
        found = []
        for start in (plain, _core(problem, plain)):
            groups = self._groups(problem, start)
            hypotheses = {plain_noise(groups, share).tobytes(): share for share in NOISE_SHARES}
            found += [self._follow(problem, start, share) for share in hypotheses.values()]
        return max(found, key=lambda finding: finding.evidence)

    def _follow(self, problem: Problem, current: Fit, share: float) -> Finding:
        """Group, balance, fit again, until the graph repeats."""
        for _ in range(ROUNDS):
            groups = self._groups(problem, current)
            noise = plain_noise(groups, share)
            w = balanced_weights(groups, noise, problem.prior, self.tau)
            last, current = current, ordered_fit(problem, w)
            if (current.edges == last.edges).all():
                break
        return Finding(w, groups, noise, self._evidence(problem, current))

    def _evidence(self, problem: Problem, fit: Fit) -> float:
        """BIC of graph and groups together, each regression at its most precise."""
        groups = self._groups(problem, fit)
        for _ in range(2):
            precision = groups.membership @ (1 / groups.variance)  # (n, d)
            losses = problem.rows.regression_losses(fit.edges, precision * problem.prior[:, None])
            groups = expectation_maximisation(losses, row_counts(problem), groups.membership)
        return groups.evidence - 0.5 * float(fit.edges.sum()) * np.log(row_counts(problem).sum())

    def _groups(self, problem: Problem, fit: Fit) -> Groups:
        return find_groups(fit.losses, row_counts(problem), self.most_groups)


def ordered_fit(problem: Problem, w: Matrix) -> Fit:
    """Ordered least squares on the rows weighted by ``w``: milliseconds, so it can be repeated."""
    W, mean = ordered_graph(problem, w)
    return Fit(W != 0, problem.rows.squared_residuals(W, mean))


def balanced_weights(groups: Groups, noise: Mask, prior: Matrix, tau: float) -> Matrix:
    """``w_i = s_i Σ_k P_ik q_k/π_k``: inside C(τ) because every q_k/π_k is.

    Groups taken as ``noise`` (K,) get the floor of the box, the others masses that balance them.

    Examples
    --------
    >>> groups = Groups(np.array([0.5, 0.5]), np.ones((2, 3)), np.eye(2), 0.0, 0.0)
    >>> balanced_weights(groups, np.array([False, True]), np.array([0.5, 0.5]), 0.1).round(3)
    array([0.95, 0.05])
    """
    q = np.where(noise, tau * groups.share, 0.0)
    free = ~noise
    share = groups.share[free] / groups.share[free].sum()
    q[free] = (1 - q.sum()) * balance(groups.variance[free], share, max(tau, 1 / FARTHEST))
    w = prior * (groups.membership @ (q / groups.share))
    return w / w.sum()


def balance(variance: Matrix, share: Matrix, tau: float) -> Matrix:
    """Group masses q (K,) that make the pooled variances ``v = q·V`` of all variables alike.

    Minimises ``log mean_j v_j − mean_j log v_j``, which is 0 only if all are equal, with a slight
    pull towards the shares as they are, over ``τπ ≤ q ≤ π/τ``.

    Examples
    --------
    >>> balance(np.array([[1.0, 0.01], [0.01, 1.0]]), np.array([0.9, 0.1]), 0.01).round(2)
    array([0.5, 0.5])
    """
    from scipy.optimize import minimize

    if len(share) == 1:
        return np.ones(1)
    low, high = tau * share, np.minimum(share / tau, 1.0)

    def unevenness(q: Matrix) -> float:
        v = np.maximum(q @ variance, 1e-300)
        pull = np.sum(q * np.log(np.maximum(q, 1e-300) / share))
        return float(np.log(v.mean()) - np.log(v).mean() + 1e-3 * pull)

    starts = (share, np.clip(np.full(len(share), 1 / len(share)), low, high))
    found = [
        minimize(
            unevenness,
            start / start.sum(),
            method="SLSQP",
            bounds=list(zip(low, high, strict=True)),
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
        )
        for start in starts
    ]
    q = np.clip(min(found, key=lambda run: run.fun).x, low, high)
    return q / q.sum()


def explained(w: Matrix, G: Groups, noise: Mask) -> dict[str, Any]:
    """The decision as plain data, and as a sentence.

    Examples
    --------
    >>> one = Groups(np.ones(1), np.ones((1, 3)), np.ones((2, 1)), 0.0, 0.0)
    >>> explained(np.array([0.5, 0.5]), one, np.array([False]))["summary"]
    'The rows look alike: all keep the weight they had.'
    """
    after = [float(w @ G.membership[:, k]) for k in range(G.count)]
    return {
        "summary": _summary(G, after, noise),
        "groups": G.count,
        "share_before": G.share.tolist(),
        "share_after": after,
        "noise": noise.tolist(),
        "noise_rows": float(G.membership[:, noise].sum()),
    }


def _summary(G: Groups, after: list[float], noise: Mask) -> str:
    if G.count == 1:
        return "The rows look alike: all keep the weight they had."
    shares = ", ".join(
        f"{before:.0%} of the rows with {then:.0%} of the weight" + " (taken as noise)" * bool(bad)
        for before, then, bad in zip(G.share, after, noise, strict=True)
    )
    return f"The rows fall into {G.count} groups whose noise differs: {shares}."


def row_counts(problem: Problem) -> Matrix:
    """How many rows each row stands for, (n,).

    Examples
    --------
    >>> row_counts(Problem.unconstrained(np.eye(3)))
    array([1., 1., 1.])
    """
    return problem.prior * problem.effective_rows(problem.prior)


def _core(problem: Problem, current: Fit) -> Fit:
    """The graph of the rows that fit best: fit, keep the best share, and again until they stay."""
    w = prior = problem.prior
    for _ in range(ROUNDS):
        loss = (current.losses / np.maximum(w @ current.losses, 1e-300)).sum(axis=1)
        kept = np.where(loss <= np.quantile(loss, CORE), prior, 0.0)
        if ((kept > 0) == (w > 0)).all():
            break
        w = kept / kept.sum()
        current = ordered_fit(problem, w)
    return current


def plain_noise(groups: Groups, share: float) -> Mask:
    """Which groups have larger noise than the largest group in that share of the variables.

    Examples
    --------
    >>> variance = np.array([[1.0, 1.0], [0.1, 9.0], [9.0, 9.0]])
    >>> groups = Groups(np.array([0.8, 0.1, 0.1]), variance, np.eye(3), 0.0, 0.0)
    >>> plain_noise(groups, share=0.9)
    array([False, False,  True])
    """
    core = int(groups.share.argmax())
    larger = (groups.variance > LARGER * groups.variance[core]).mean(axis=1)
    noise = larger >= share
    noise[core] = False
    return noise
