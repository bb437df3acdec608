"""Cells weighted as precisely as their group of rows is measured, in what a learner leaves.

e_ij ~ N(0, v_kj)  for rows i of group k,    w_ij ∝ Σ_k P(k | i) / v_kj
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rescore.moments import Cells, Matrix, Weights
from rescore.protocols import Losses, Mask, Problem
from rescore.validation import check_integer, check_number
from rescore.weightings.balanced import NOISE_SHARE, plain_noise, told
from rescore.weightings.groups import Groups, find_groups

ROUNDS = 3  # of groups and graph in turn


class Seen(NamedTuple):
    """The groups of rows, which of them are plain noise, the weights, and how often they moved."""

    groups: Groups
    noise: Mask  # (K,)
    weights: Weights
    rows: Matrix  # (K,) rows of each group
    rounds: int
    level: Matrix | None = None  # (K, d), where levels differ


@dataclass(frozen=True)
class Precision:
    """Cells weighted by the precision of their group's noise; rows that look alike keep theirs.

    After every whole fit, zero-mean groups are found in its residuals (as many as BIC supports).
    A group whose noise is larger nearly everywhere is plain noise and hardly counts.  For a learner
    that gives groups ``levels``, groups that differ in these are looked for first (`levels`): they
    make edges between unrelated variables, and hide behind them.

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
    levels: bool = False

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
        groups = find_groups(losses(), problem.row_counts(), self.most_groups)
        if self.levels and state is None:
            from rescore.weightings.levels import level_groups  # imports numba: only if asked for

            apart = level_groups(problem, groups.membership)
            if apart is not None:
                found = Groups(apart.share, apart.variance, apart.membership, 0.0, 0.0)
                seen = self._seen(problem, found, ROUNDS)._replace(level=apart.level)
                return seen.weights, seen
        seen = self._seen(problem, groups, 1 + (state.rounds if state else 0))
        return seen.weights, seen

    def _seen(self, problem: Problem, groups: Groups, rounds: int) -> Seen:
        noise = plain_noise(groups, NOISE_SHARE)
        w = cell_weights(problem, groups, noise, self.tau)
        return Seen(groups, noise, w, problem.row_counts() @ groups.membership, rounds)

    def explain(self, state: Seen | None) -> dict[str, Any]:
        """Groups, their shares of the weight before and after, variances, rows taken as noise."""
        if state is None:
            return {}
        what = "noise" if state.level is None else "level or noise"
        said = told(state.groups, state.noise, _after(state.weights), state.rows, what)
        said["variance"] = state.groups.variance.tolist()
        return said if state.level is None else said | {"level": state.level.tolist()}


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
