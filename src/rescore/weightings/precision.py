"""A weight for every cell from the learner's own residuals: as precise as its group's noise.

    e_ij ~ N(0, v_kj)  for rows i of group k,    w_ij ∝ Σ_k P(k | i) / v_kj

For learners whose functions are theirs alone, so that groups can only be seen in what they leave.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rescore.moments import Cells, Matrix, Weights
from rescore.protocols import Losses, Mask, Problem
from rescore.validation import check_integer, check_number
from rescore.weightings.balanced import NOISE_SHARE, plain_noise
from rescore.weightings.groups import Groups, find_groups

ROUNDS = 3  # of groups and graph in turn


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
        if state is not None and (state.groups.count == 1 or state.rounds == ROUNDS):
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
        return {} if state is None else _told(state)


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


def _told(seen: Seen) -> dict[str, Any]:
    """The decision as plain data, and as a sentence."""
    G, w = seen.groups, seen.weights
    after = np.ones(1)
    if isinstance(w, Cells):
        after = w.membership.sum(axis=0) * w.precision.sum(axis=1) / w.precision.shape[1]
    return {
        "summary": _summary(seen, after),
        "groups": G.count,
        "share_before": G.share.tolist(),
        "share_after": after.tolist(),
        "noise": seen.noise.tolist(),
        "noise_rows": float(seen.rows[seen.noise].sum()),
        "variance": G.variance.tolist(),
    }


def _summary(seen: Seen, after: Matrix) -> str:
    if seen.groups.count == 1:
        return "The rows look alike: all keep the weight they had."
    shares = ", ".join(
        f"{share:.0%} of the rows with {then:.0%} of the weight" + " (taken as noise)" * bool(bad)
        for share, then, bad in zip(seen.groups.share, after, seen.noise, strict=True)
    )
    return f"The rows fall into {seen.groups.count} groups whose noise differs: {shares}."
