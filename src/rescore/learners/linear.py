"""Linear: ordered least squares, the recommended learner of linear data."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rescore.learners.base import LinearLearner
from rescore.learners.straight_lines import StraightLines
from rescore.moments import Matrix, half_squared_residuals
from rescore.protocols import Backbone, Problem, State, Status
from rescore.solvers.ordered_regression import ordered_graph
from rescore.validation import check_number


@dataclass(eq=False, repr=False)
class Linear(LinearLearner):
    """Ordered least squares: the recommended learner for linear data, exact and immediate.

    The order of causes is that of least residual variance, each variable given those before it;
    the edges are those that explain more than chance could (extended BIC on the effective rows).
    Like every least-squares learner (NOTEARS, DAGMA, GOLEM-EV) it tells causes from effects by
    the variances, so it assumes noise of similar size in all variables, in the units given.

    Parameters
    ----------
    threshold : float
        Coefficients smaller than this are dropped at the end.
    standardize : bool
        Fit on columns of deviation one.  The order then has little left to go by.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.
    max_steps : int
        Fits at most, where row weights move between fits.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> Linear().fit(X).adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     2.0   0.0
    """

    one_step = True

    threshold: float = 0.3

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return self._filled(OrderedBackbone)


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
        mean, S = problem.moments(problem.prior)
        return State(_Found(np.zeros_like(S), mean))

    def step(self, problem: Problem, w: Matrix, state: State) -> State:
        """Search on the moments of the weighted rows; it does not depend on the last graph."""
        W, (mean, S) = ordered_graph(problem, w)
        trace = {"objective": half_squared_residuals(S, W), "h": 0.0}
        return State(_Found(W, mean), Status.CONVERGED, trace)
