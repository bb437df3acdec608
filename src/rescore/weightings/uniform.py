"""The weighting that never moves: ReScore with it is the plain learner."""

from dataclasses import dataclass

from rescore.moments import Matrix


@dataclass(frozen=True)
class Uniform:
    """Every row keeps its prior weight, 1/n unless the caller gave others.

    Examples
    --------
    >>> import numpy as np
    >>> w, _ = Uniform().step(np.ones((2, 3)), np.array([0.5, 0.5]), None)
    >>> w
    array([0.5, 0.5])
    """

    tau: float = 1.0  # C(1) holds the prior alone

    def init(self, n: int, d: int) -> None:
        """Nothing to remember."""

    def step(self, losses: Matrix, prior: Matrix, state: None) -> tuple[Matrix, None]:
        """The prior, whatever the losses."""
        return prior, None
