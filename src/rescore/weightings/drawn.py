"""Weights of random rows: what reweighting does when it does not matter which rows are heavy."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rescore.checking import check_integer, check_number
from rescore.moments import Matrix
from rescore.protocols import Problem
from rescore.weightings import box


@dataclass(frozen=True)
class Drawn:
    """As many rows at the ceiling 1/(τn) as with exact weights, but random ones, drawn once.

    The control for every other weighting: the same box and the same loss of effective rows,
    without any look at the losses.  Which rows are drawn goes by their position, so a permuted
    table gets other weights.

    Examples
    --------
    >>> rows = Problem.unconstrained(np.eye(3))
    >>> player = Drawn(tau=0.5, seed=1)
    >>> player.step(rows, np.ones((3, 3)), player.init(3, 3))[0].round(3)
    array([0.167, 0.667, 0.167])
    """

    tau: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0, at_most=1)
        check_integer("seed", self.seed, at_least=0)

    def init(self, n: int, d: int) -> Matrix:
        """A random loss for every row, (n,)."""
        return np.random.default_rng(self.seed).random(n)

    def step(self, problem: Problem, losses: Matrix, state: Matrix) -> tuple[Matrix, Matrix]:
        """The exact weights of the random losses, the same at every call."""
        return box.heaviest(state, problem.prior, self.tau), state

    def explain(self, state: Matrix) -> dict[str, Any]:
        """What a reader must not overlook."""
        return {"summary": "The weights are random: a control, not a finding."}
