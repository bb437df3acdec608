"""What every learner of straight lines answers in the same way, from its coefficients and mean."""

from dataclasses import replace
from typing import Any

import numpy as np

from rescore.equations import Equations, LinearEquations
from rescore.moments import Matrix
from rescore.protocols import Problem, State

__all__ = ["StraightLines"]

SPREAD = 0.3  # of the random coefficients at a start, in standard deviations, over √d


class StraightLines:
    """The half of the protocol that reads ``W`` (d, d) and ``mean`` (d,) of ``state.params``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> params = SimpleNamespace(W=np.array([[0.0, 2.0], [0.0, 0.0]]), mean=np.zeros(2))
    >>> problem = Problem.unconstrained(np.array([[1.0, 2.0], [1.0, 3.0]]))
    >>> StraightLines().losses(problem, State(params))
    array([[1., 0.],
           [1., 1.]])
    """

    def restart(self: Any, problem: Problem, rng: np.random.Generator) -> State:
        """The start with small random coefficients, in the units of the variables."""
        first: State = self.init(problem)
        S = problem.rows.moments(problem.prior).covariance
        deviations = np.sqrt(np.diag(S))
        units = deviations / np.where(deviations > 0, deviations, 1.0)[:, None]
        W = SPREAD * rng.normal(size=S.shape) * units / len(S) ** 0.5
        return replace(first, params=first.params._replace(W=np.where(problem.allowed, W, 0.0)))

    def losses(self, problem: Problem, state: State) -> Matrix:
        """``(x_i − x_i W)_j²`` with W as it is before the threshold, (n, d)."""
        return problem.rows.squared_residuals(state.params.W, state.params.mean)

    def adjacency(self, state: State) -> Matrix:
        """The coefficients W, (d, d)."""
        return np.array(state.params.W)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """Straight lines with the coefficients W, (d, d), through the mean."""
        return LinearEquations(W, state.params.mean)
