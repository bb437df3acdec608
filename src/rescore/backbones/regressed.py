"""Learners that find a graph at one go; the equations are then regressions on its parents."""

from typing import NamedTuple

import numpy as np

from rescore.backbones.straight_lines import StraightLines
from rescore.moments import Matrix, Moments
from rescore.ordered import steady_inverse
from rescore.protocols import Mask, Problem, State, Status


class Found(NamedTuple):
    """A graph, the means its straight lines go through, and directions that it left open."""

    W: Matrix  # (d, d)
    mean: Matrix  # (d,)
    undecided: Mask | None = None  # (d, d)


def on_parents(S: Matrix, A: Mask) -> Matrix:
    """Coefficients W (d, d) of every variable on its parents in ``A`` (d, d), from moments.

    Examples
    --------
    >>> S = np.array([[5.0, 2.0], [2.0, 1.0]])
    >>> on_parents(S, np.array([[False, False], [True, False]])).round(6)
    array([[0., 0.],
           [2., 0.]])
    """
    W = np.zeros(S.shape)
    for j in np.flatnonzero(A.any(axis=0)):
        parents = np.flatnonzero(A[:, j])
        W[parents, j] = steady_inverse(S[np.ix_(parents, parents)]) @ S[parents, j]
    return W


class Regressed(StraightLines):
    """A backbone whose only step is a whole search; a subclass says how it finds its graph."""

    threshold = 0.0  # the search itself decides which edges there are

    def graph(self, problem: Problem, w: Matrix, moments: Moments) -> Mask:
        """A DAG (d, d) with all required edges and allowed ones only."""
        raise NotImplementedError

    def objective(self, problem: Problem, w: Matrix, S: Matrix, W: Matrix) -> float:
        """What is told of the graph found: ``½ tr (I−W)ᵀ S (I−W)``, half the squared residuals."""
        B = np.eye(len(S)) - W
        return float(np.vdot(B, S @ B) / 2)

    def init(self, problem: Problem) -> State:
        """No edges."""
        mean, S = problem.rows.moments(problem.prior)
        return State(Found(np.zeros_like(S), mean))

    def step(self, problem: Problem, w: Matrix, state: State) -> State:
        """Search on the weighted rows; it does not depend on the last graph."""
        moments = problem.rows.moments(w)
        W = on_parents(moments.covariance, self.graph(problem, w, moments))
        return self._found(problem, w, moments, Found(W, moments.mean))

    def _found(self, problem: Problem, w: Matrix, moments: Moments, found: Found) -> State:
        value = self.objective(problem, w, moments.covariance, found.W)
        return State(found, Status.CONVERGED, {"objective": value, "h": 0.0})
