"""Graphs that take no learning, or next to none: what every learner must beat."""

from dataclasses import dataclass

import numpy as np

from rescore.backbones.regressed import Regressed
from rescore.checking import check_choice, check_integer, check_number
from rescore.graph.paths import precedence
from rescore.moments import Matrix, Moments
from rescore.ordered import regressions, steady_inverse
from rescore.protocols import Mask, Problem

CRITERIA = ("variance", "r2")
DIGITS = 9  # to which two values must agree to be called equal


@dataclass(frozen=True)
class EmptyBackbone(Regressed):
    """No edge, but the required ones.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(3))
    >>> moments = problem.rows.moments(problem.prior)
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
    >>> moments = problem.rows.moments(problem.prior)
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
        W = regressions(S, order, problem.allowed, problem.required, rows)
        return (W != 0) | problem.required


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
