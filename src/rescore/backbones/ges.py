"""Greedy equivalence search as a backbone: the whole search is one step."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rescore.backbones.equivalence_search import equivalence_search
from rescore.backbones.regressed import Regressed
from rescore.checking import check_integer
from rescore.moments import Matrix, Moments
from rescore.protocols import Mask, Problem

ROWS_PER_PARENT = 10  # fewer of them, and likelihoods of large families mean nothing
DIGITS = 9  # to which two variances must agree to be called equal


@dataclass(frozen=True)
class GESBackbone(Regressed):
    """Greedy equivalence search on the Gaussian BIC of the weighted moments.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(2, 500))
    >>> problem = Problem.unconstrained(np.c_[x + y + rng.normal(size=500), x, y])
    >>> learner = GESBackbone()
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> print(learner.adjacency(state).round(1))
    [[0. 0. 0.]
     [1. 0. 0.]
     [1. 0. 0.]]
    """

    max_parents: int | None = None

    def __post_init__(self) -> None:
        if self.max_parents is not None:
            check_integer("max_parents", self.max_parents, at_least=1)

    def graph(self, problem: Problem, w: Matrix, moments: Moments) -> Mask:
        """A DAG of the class found; the search knows no order of the columns but this one."""
        S, d = moments.covariance, len(moments.mean)
        order = _widest_first(S, problem)
        block = np.ix_(order, order)
        deviations = np.sqrt(np.diag(S)[order])
        A = np.zeros((d, d), dtype=bool)
        A[block] = equivalence_search(
            S[block] / np.outer(deviations, deviations),
            problem.effective_rows(w),
            problem.allowed[block],
            problem.required[block],
            self._most_parents(problem, w),
        )
        return A

    def objective(self, problem: Problem, w: Matrix, S: Matrix, W: Matrix) -> float:
        """Minus the BIC of the graph, from the weighted moments and the effective rows."""
        B = np.eye(len(S)) - W
        noise = np.einsum("ij,ij->j", B, S @ B)[np.diag(S) > 0]
        noise = np.maximum(noise, np.finfo(float).tiny)
        rows, parameters = problem.effective_rows(w), len(noise) + np.count_nonzero(W)
        return float(rows * (1 + np.log(noise)).sum() + parameters * np.log(rows)) / 2

    def _most_parents(self, problem: Problem, w: Matrix) -> int:
        if self.max_parents is not None:
            return self.max_parents
        return max(1, int(problem.effective_rows(w) / ROWS_PER_PARENT))


def _widest_first(S: Matrix, problem: Problem) -> NDArray[np.intp]:
    """Variables that may have an edge, the largest variance first; equals by their columns.

    The search takes the first possible sink, so undirected edges point at the wider end.
    """
    used = problem.allowed.any(axis=0) | problem.allowed.any(axis=1)
    columns = np.flatnonzero(used & (np.diag(S) > 0))
    return columns[np.argsort(-np.round(np.log(np.diag(S)[columns]), DIGITS), kind="stable")]
