"""Groups of rows whose noise differs, in what a learner leaves: rows or cells weighted by them.

`Balanced` weights rows: informative groups are balanced, plain noise is given the floor.
`Precision` weights cells, as precise as their group's noise:

    e_ij ~ N(0, v_kj)  for rows i of group k,    w_ij ∝ Σ_k P(k | i) / v_kj

Both are for learners whose functions are theirs alone, so that groups can only be seen in what
they leave.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rescore.moments import Cells, Matrix, Weights
from rescore.protocols import Losses, Mask, Problem
from rescore.validation import check_integer, check_number
from rescore.weightings.groups import Groups, find_groups

NOISE_SHARE = 0.9  # of the variables in which a group's variance is larger: then it is plain noise
LARGER = 1.5  # ratio of variances from which a group's noise counts as larger than the core's
FARTHEST = 100.0  # factor by which balancing may change the share of a group
PULL = 1e-3  # towards the shares as they are
TINY = 1e-300
ROUNDS = 3  # of groups and graph in turn, where cells are weighted


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
        return _told(self.groups, self.noise, self.w @ self.groups.membership, rows)


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


class Seen(NamedTuple):
    """The groups of rows, which of them are plain noise, the weights, and how often they moved."""

    groups: Groups
    noise: Mask  # (K,)
    weights: Weights
    rows: Matrix  # (K,) rows of each group
    rounds: int


@dataclass(frozen=True)
class Precision:
    """Cells weighted by the precision of their group's noise; rows that look alike keep theirs.

    After every whole fit, zero-mean groups are found in its residuals (as many as BIC supports).
    A group whose noise is larger nearly everywhere is plain noise and hardly counts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scale = np.where(np.arange(400)[:, None] < 300, [1.0, 0.1, 1.0], [0.1, 1.0, 1.0])
    >>> losses = (rng.normal(size=(400, 3)) * scale) ** 2
    >>> problem, player = Problem.unconstrained(np.sqrt(losses)), Precision()
    >>> w, seen = player.step(problem, lambda: losses, player.init(400, 3))
    >>> w.shape, bool(np.asarray(w)[0, 1] > 5 * np.asarray(w)[0, 0])
    ((400, 3), True)
    """

    tau: float = 1e-4
    most_groups: int = 4

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0, at_most=1)
        check_integer("most_groups", self.most_groups, at_least=1)

    def init(self, n: int, d: int) -> Seen | None:
        """Nothing known yet."""
        return None

    def step(
        self, problem: Problem, losses: Losses, state: Seen | None
    ) -> tuple[Weights, Seen | None]:
        """The groups in the residuals of this fit, and every cell by its group's precision."""
        if self.tau == 1:
            return problem.prior, None
        if state is not None and state.rounds == ROUNDS:
            return state.weights, state
        counts = problem.row_counts()
        groups = find_groups(losses(), counts, self.most_groups)
        noise = plain_noise(groups, NOISE_SHARE)
        w = cell_weights(problem, groups, noise, self.tau)
        seen = Seen(
            groups, noise, w, counts @ groups.membership, 1 + (state.rounds if state else 0)
        )
        return w, seen

    def explain(self, state: Seen | None) -> dict[str, Any]:
        """Groups, their shares of the weight before and after, variances, rows taken as noise."""
        if state is None:
            return {}
        told = _told(state.groups, state.noise, _after(state.weights), state.rows)
        return told | {"variance": state.groups.variance.tolist()}


def cell_weights(problem: Problem, groups: Groups, noise: Mask, tau: float) -> Weights:
    """``w_ij ∝ s_i Σ_k P_ik / v_kj``, scaled to sum to d; the prior's own for one group.

    Examples
    --------
    >>> two = Groups(np.full(2, 0.5), np.array([[1.0], [4.0]]), np.eye(2), 0.0, 0.0)
    >>> problem = Problem.unconstrained(np.array([[1.0], [2.0]]))
    >>> np.asarray(cell_weights(problem, two, np.array([False, False]), 0.01))
    array([[0.8],
           [0.2]])
    """
    if groups.count == 1:
        return problem.prior
    M = groups.membership * problem.prior[:, None]
    precision = 1 / np.maximum(groups.variance, np.finfo(float).tiny)
    typical = np.exp(np.log(precision[~noise]).mean())
    precision = np.clip(np.where(noise[:, None], tau, precision / typical), tau, 1 / tau)
    return Cells(M, precision * precision.shape[1] / (M.sum(axis=0) @ precision).sum())


def _after(w: Weights) -> Matrix:
    """The groups' shares of the weight in all variables together."""
    if not isinstance(w, Cells):
        return np.ones(1)
    return w.membership.sum(axis=0) * w.precision.sum(axis=1) / w.precision.shape[1]


def _told(G: Groups, noise: Mask, after: Matrix, rows: Matrix) -> dict[str, Any]:
    """The decision as plain data, and as a sentence."""
    return {
        "summary": _summary(G, after, noise),
        "groups": G.count,
        "share_before": G.share.tolist(),
        "share_after": after.tolist(),
        "noise": noise.tolist(),
        "noise_rows": float(rows[noise].sum()),
    }


def _summary(G: Groups, after: Matrix, noise: Mask) -> str:
    if G.count == 1:
        return "The rows look alike: all keep the weight they had."
    shares = ", ".join(
        f"{before:.0%} of the rows with {then:.0%} of the weight" + " (taken as noise)" * bool(bad)
        for before, then, bad in zip(G.share, after, noise, strict=True)
    )
    return f"The rows fall into {G.count} groups whose noise differs: {shares}."
