"""Ordered least squares as a backbone: the whole search is one step."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rescore.backbones.straight_lines import StraightLines
from rescore.checking import check_number
from rescore.moments import Matrix
from rescore.ordered import ordered_graph
from rescore.protocols import Problem, State, Status


class _Found(NamedTuple):
    W: Matrix  # (d, d)
    mean: Matrix  # (d,)


@dataclass(frozen=True)
class OrderedBackbone(StraightLines):
    """Place the variables by least residual variance, then regress each on what explains it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> problem = Problem.unconstrained(np.c_[x, 2 * x + rng.normal(size=500)])
    >>> learner = OrderedBackbone()
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> print(learner.adjacency(state).round(1))
    [[0. 2.]
     [0. 0.]]
    """

    threshold: float = 0.3

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold, at_least=0)

    def init(self, problem: Problem) -> State:
        """No edges."""
        mean, S = problem.rows.moments(problem.prior)
        return State(_Found(np.zeros_like(S), mean))

    def step(self, problem: Problem, w: Matrix, state: State) -> State:
        """Search on the moments of the weighted rows; it does not depend on the last graph."""
        W, mean = ordered_graph(problem, w)
        loss = problem.rows.squared_residuals(W, mean)
        trace = {"objective": float(w @ loss.sum(axis=1) / 2), "h": 0.0}
        return State(_Found(W, mean), Status.CONVERGED, trace)
