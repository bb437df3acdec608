"""Graphs that take no learning, or next to none: what every learner must beat."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from rescore.graph.dag import precedence
from rescore.learners.base import LinearLearner, Unpenalised
from rescore.learners.straight_lines import Regressed
from rescore.moments import Matrix, Moments
from rescore.protocols import Backbone, Mask, Problem
from rescore.solvers.ordered_regression import parent_sets, steady_inverse
from rescore.validation import check_choice, check_integer, check_number

CRITERIA = ("variance", "r2")
DIGITS = 9  # to which two values must agree to be called equal


@dataclass(eq=False, repr=False)
class Empty(Unpenalised, LinearLearner):
    """The graph without edges, but the required ones: every variable is predicted by its mean.

    Parameters
    ----------
    standardize : bool
        Coefficients, where there are any, for columns of deviation one.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.
    max_steps : int
        Fits at most, where row weights move between fits.

    Examples
    --------
    >>> from rescore import simulate
    >>> Empty().fit(simulate(nodes=3, degree=1, random_state=100).X).causal_graph_.size()
    0
    """

    one_step = True
    silenced = Unpenalised.silenced | {"empty"}  # that there is no edge is no surprise

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return self._filled(EmptyBackbone)


@dataclass(eq=False, repr=False)
class Random(Unpenalised, LinearLearner):
    """A random graph, whatever the data say; its coefficients are regressions on the parents.

    The variables are put in a random order, and the edges drawn evenly from those it allows.

    Parameters
    ----------
    degree : float
        Edges per variable: with d variables ``degree·d`` edges, or all possible if those are fewer.
    standardize : bool
        Coefficients for columns of deviation one.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.
    max_steps : int
        Fits at most, where row weights move between fits.
    random_state : int
        Seed of the order and of the edges.

    Examples
    --------
    >>> from rescore import simulate
    >>> X = simulate(nodes=5, degree=1, random_state=100).X
    >>> Random(degree=1, random_state=1).fit(X).causal_graph_.size()
    5
    """

    one_step = True
    silenced = Unpenalised.silenced | {"empty"}

    degree: float = 2
    _: KW_ONLY
    random_state: int = 0

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return self._filled(RandomBackbone)


@dataclass(eq=False, repr=False)
class SortNRegress(Unpenalised, LinearLearner):
    """Sort the variables by variance or R², then regress each on those before it.

    How well this does says how much of the order of causes a data set gives away by its scales
    (Reisach, Seiler, Weichwald 2021) or by what all other variables explain of each (Reisach,
    Tami, Seiler, Chambaz, Weichwald 2023).  Where the published method chooses edges by the lasso
    with BIC, predecessors here stay if dropping them costs more than chance could (extended BIC
    on the effective rows), without the further
    tests of `Linear`.

    Parameters
    ----------
    criterion : {"variance", "r2"}
        What rises from causes to effects; "r2" does not depend on units.
    standardize : bool
        Fit on columns of deviation one.  Their variances then say nothing.
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
    >>> SortNRegress().fit(X).adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     2.0   0.0
    """

    one_step = True

    criterion: str = "variance"

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return self._filled(SortNRegressBackbone)


@dataclass(frozen=True)
class EmptyBackbone(Regressed):
    """No edge, but the required ones.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(3))
    >>> moments = problem.moments(problem.prior)
    >>> int(EmptyBackbone().graph(problem, problem.prior, moments).sum())
    0
    """

    def graph(self, problem: Problem, w: Matrix, moments: Moments) -> Mask:
        """The required edges."""
        return problem.required.copy()


@dataclass(frozen=True)
class RandomBackbone(Regressed):
    """``degree`` edges per variable, drawn evenly from those that a random order allows.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(9))
    >>> moments = problem.moments(problem.prior)
    >>> int(RandomBackbone(degree=2).graph(problem, problem.prior, moments).sum())
    18
    """

    degree: float = 2
    random_state: int = 0

    def __post_init__(self) -> None:
        check_number("degree", self.degree, at_least=0)
        check_integer("random_state", self.random_state, at_least=0)

    def graph(self, problem: Problem, w: Matrix, moments: Moments) -> Mask:
        """The required edges, and random ones up to the number asked for or possible."""
        rng = np.random.default_rng(self.random_state)
        d = len(moments.mean)
        before = precedence(problem.allowed, problem.required)
        place = np.argsort(sorted_causes(rng.uniform(size=d), before))
        free = problem.allowed & ~problem.required & (place[:, None] < place)
        wanted = round(self.degree * d) - int(problem.required.sum())
        drawn = rng.permutation(np.argwhere(free))[: max(wanted, 0)]
        A = problem.required.copy()
        A[drawn[:, 0], drawn[:, 1]] = True
        return A


@dataclass(frozen=True)
class SortNRegressBackbone(Regressed):
    """Sort the variables by a marginal quantity, and regress each on those before it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> problem = Problem.unconstrained(np.c_[2 * x + rng.normal(size=500), x])
    >>> learner = SortNRegressBackbone()
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> print(learner.adjacency(state).round(1))
    [[0. 0.]
     [2. 0.]]
    """

    criterion: str = "variance"

    def __post_init__(self) -> None:
        check_choice("criterion", self.criterion, CRITERIA)

    def graph(self, problem: Problem, w: Matrix, moments: Moments) -> Mask:
        """The predecessors that explain more than chance could (extended BIC)."""
        S = moments.covariance
        by_variance = check_choice("criterion", self.criterion, CRITERIA) == "variance"
        values = np.log(np.maximum(np.diag(S), np.finfo(float).tiny)) if by_variance else r2(S)
        before = precedence(problem.allowed, problem.required)
        order = sorted_causes(np.round(values, DIGITS), before)
        rows = problem.effective_rows(w)
        known = problem.allowed, problem.required
        return parent_sets(S[None], np.array([order]), *known, rows)[0] | problem.required


def sorted_causes(values: Matrix, before: Mask) -> list[int]:
    """The variables by rising value, but those that must come ``before`` another before it.

    Examples
    --------
    >>> nothing, must = np.zeros((2, 2), dtype=bool), np.array([[False, True], [False, False]])
    >>> [sorted_causes(np.array([5.0, 1.0]), before) for before in (nothing, must)]
    [[1, 0], [0, 1]]
    """
    waiting, order = np.ones(len(values), dtype=bool), []
    for _ in range(len(values)):
        ready = waiting & ~before[waiting].any(axis=0)
        j = int(np.argmin(np.where(ready, values, np.inf)))
        order.append(j)
        waiting[j] = False
    return order


def r2(S: Matrix) -> Matrix:
    """The share of each variable's variance that all others explain, (d,); 0 if it has none.

    Examples
    --------
    >>> r2(np.array([[4.0, 1.0], [1.0, 1.0]])).round(6)
    array([0.25, 0.25])
    """
    varying = np.flatnonzero(np.diag(S) > 0)
    block = S[np.ix_(varying, varying)]
    out = np.zeros(len(S))
    out[varying] = 1 - 1 / (np.diag(steady_inverse(block)) * np.diag(block))
    return out
