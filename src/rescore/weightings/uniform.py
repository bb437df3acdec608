"""The weighting that never moves: ReScore with it is the plain learner."""

from dataclasses import dataclass
from typing import Any

from rescore.moments import Matrix
from rescore.protocols import Problem


@dataclass(frozen=True)
class Uniform:
    """Every row keeps its prior weight, 1/n unless the caller gave others.

    Examples
    --------
    >>> import numpy as np
    >>> from rescore.protocols import Problem
    >>> w, _ = Uniform().step(Problem.unconstrained(np.eye(2)), np.ones((2, 2)), None)
    >>> w
    array([0.5, 0.5])
    """

    tau: float = 1.0  # C(1) holds the prior alone

    def init(self, n: int, d: int) -> None:
        """Nothing to remember."""

    def step(self, problem: Problem, losses: Matrix, state: None) -> tuple[Matrix, None]:
        """The prior, whatever the losses."""
        return problem.prior, None

    def explain(self, state: None) -> dict[str, Any]:
        """Nothing was decided."""
        return {}
