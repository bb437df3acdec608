"""Rows weighted so that groups whose noise differs, in what a learner leaves, are balanced.

Informative groups are balanced, plain noise is given the floor.  For learners whose functions are
theirs alone, so that groups can only be seen in what they leave.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rescore.moments import Matrix
from rescore.protocols import Losses, Mask, Problem
from rescore.validation import check_integer, check_number
from rescore.weightings.groups import Groups, find_groups

NOISE_SHARE = 0.9  # of the variables in which a group's variance is larger: then it is plain noise
LARGER = 1.5  # ratio of variances from which a group's noise counts as larger than the core's
FARTHEST = 100.0  # factor by which balancing may change the share of a group
PULL = 1e-3  # towards the shares as they are
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class GroupWeights:
    """What is decided about groups of rows; the weights follow from it, and so belong to it.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(2))
    >>> one = Groups(np.ones(1), np.ones((1, 2)), np.ones((2, 1)), 0.0, 0.0)
    >>> GroupWeights(problem, one, np.array([False]), tau=0.1).explained["summary"]
    'The rows look alike: all keep the weight they had.'
    """

    problem: Problem
    groups: Groups
    noise: Mask  # (K,), which groups are plain noise
    tau: float

    @cached_property
    def w(self) -> Matrix:
        """The row weights (n,); the prior's own if there is nothing to balance."""
        prior = self.problem.prior
        if self.groups.count == 1 or self.tau == 1:
            return prior
        return balanced_weights(self.groups, self.noise, prior, self.tau)

    @cached_property
    def explained(self) -> dict[str, Any]:
        """The decision as plain data, and as a sentence."""
        rows = self.problem.row_counts() @ self.groups.membership
        return told(self.groups, self.noise, self.w @ self.groups.membership, rows)


@dataclass(frozen=True)
class Balanced:
    """Groups among the residuals that a whole fit leaves, balanced for the next one.

    What a straight line leaves of a curved relation looks like rows whose noise differs, so a
    nonlinear learner's groups must be found in its own residuals; and in those of its final
    graph, because half-trained networks fit some rows better than others too.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> alike = Problem.unconstrained(X)
    >>> w, state = Balanced().step(alike, lambda: X**2, None)
    >>> bool((w == alike.prior).all()), Balanced().explain(state)["groups"]
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
    with warnings.catch_warnings():
        # Older scipy steps past a bound by rounding, clips, and says so.
        warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
        # One start is enough: as the size of q does not count, this is convex where mean_j v_j = 1.
        found = minimize(
            unevenness,
            share,
            args=(variance, share),
            jac=True,
            method="SLSQP",
            bounds=np.column_stack([low, high]),
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like},
        )
    q = np.clip(found.x, low, high)
    return q / q.sum()


def unevenness(q: Matrix, variance: Matrix, share: Matrix) -> tuple[float, Matrix]:
    """What :func:`balance` minimises, and its gradient (K,).

    Examples
    --------
    >>> unevenness(np.array([0.5, 0.5]), np.eye(2), np.array([0.5, 0.5]))[0]
    0.0
    """
    v = np.maximum(q @ variance, TINY)
    away = np.log(np.maximum(q, TINY) / share)
    value = np.log(v.mean()) - np.log(v).mean() + PULL * (q @ away)
    slope = variance @ (1 / v.sum() - 1 / (v * len(v))) + PULL * (away + 1)
    return float(value), slope


def told(
    G: Groups, noise: Mask, after: Matrix, rows: Matrix, what: str = "noise"
) -> dict[str, Any]:
    """The decision as plain data, and as a sentence that says what differs.

    Examples
    --------
    >>> two = Groups(np.array([0.8, 0.2]), np.ones((2, 1)), np.ones((5, 2)), 0.0, 0.0)
    >>> shares = np.array([0.5, 0.5]), np.array([4.0, 1.0])
    >>> print(told(two, np.array([False, False]), *shares)["summary"])
    The rows fall into 2 groups whose noise differs:
        80% of the rows with 50% of the weight, 20% of the rows with 50% of the weight.
    """
    return {
        "summary": _summary(G, after, noise, what),
        "groups": G.count,
        "share_before": G.share.tolist(),
        "share_after": after.tolist(),
        "noise": noise.tolist(),
        "noise_rows": float(rows[noise].sum()),
    }


def _summary(G: Groups, after: Matrix, noise: Mask, what: str) -> str:
    if G.count == 1:
        return "The rows look alike: all keep the weight they had."
    shares = ", ".join(
        f"{before:.0%} of the rows with {then:.0%} of the weight" + " (taken as noise)" * bool(bad)
        for before, then, bad in zip(G.share, after, noise, strict=True)
    )
    return f"The rows fall into {G.count} groups whose {what} differs: {shares}."
