"""What every learner of straight lines answers in the same way, from its coefficients and mean."""

import numpy as np

from rescore.equations import Equations, LinearEquations
from rescore.moments import Matrix
from rescore.protocols import Problem, State

__all__ = ["StraightLines"]


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

    def losses(self, problem: Problem, state: State) -> Matrix:
        """``(x_i − x_i W)_j²`` with W as it is before the threshold, (n, d)."""
        return problem.rows.squared_residuals(state.params.W, state.params.mean)

    def adjacency(self, state: State) -> Matrix:
        """The coefficients W, (d, d)."""
        return np.array(state.params.W)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """Straight lines with the coefficients W, (d, d), through the mean."""
        return LinearEquations(W, state.params.mean)
