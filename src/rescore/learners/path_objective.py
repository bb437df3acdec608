"""What NOTEARS and DAGMA minimise along their paths: least squares, or the likelihood of groups."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array

from rescore.learners import group_likelihood
from rescore.learners.polish import closing_lasso
from rescore.learners.straight_lines import (
    least_squares,
    noise_variance,
    penalties,
    regression_moments,
)
from rescore.moments import Cells, Matrix, Weights, simplest
from rescore.protocols import Problem
from rescore.solvers.lasso import Lasso

Score = Callable[[Any, Array], tuple[Array, Array]]  # of moments and W: value and gradient


class Objective(NamedTuple):
    """``score + Σ penalty·|W|``, which a step minimises."""

    score: Score
    moments: Any  # arrays, all that the score sees of the rows
    penalty: Matrix  # (d, d)
    close: Callable[[Matrix], Lasso]  # the minimum on a DAG near W (d, d), once h is small enough
    unit: float  # variance in which the score is measured, so that the path has no units
    start: Callable[[Matrix], Matrix] = lambda W: W  # W (d, d), shrunk to where the score is finite


def path_objective(
    problem: Problem, w: Weights, lambda1: float, unit: float, polish: bool
) -> Objective:
    """Of rows, ``½ Σ_i w_i |x_i − x_i W|² + λ|W|₁`` in units of ``unit``, a variance.

    Of cells (n, d) the same with the weights of each variable, in units of the noise.  Of `Cells`,
    the likelihood of their groups: a score with the precisions fixed keeps to the graph that they
    were made from, while the best precisions are a function of W, and so are found along with it.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem.unconstrained(np.array([[1.0, 3.0], [-1.0, -3.0]]))
    >>> path_objective(problem, problem.prior, 0.1, 2.0, polish=True).moments
    array([[0.5, 1.5],
           [1.5, 4.5]])
    """
    w = simplest(w)
    if isinstance(w, Cells):
        return _of_groups(problem, w, lambda1, polish)
    S, penalty = regression_moments(problem, w).covariance, penalties(problem, lambda1, w)
    if w.ndim == 1:
        return _least_squares(problem, S / unit, penalty / unit, unit, polish)
    # Precisions put the noise of all variables at one, and there λ is what it is said to be.
    unit = noise_variance(problem)
    return _least_squares(problem, S / unit, penalty, unit, polish)


def _least_squares(
    problem: Problem, S: Matrix, penalty: Matrix, unit: float, polish: bool
) -> Objective:
    def close(W: Matrix) -> Lasso:
        return closing_lasso(problem, S, W, penalty, polish)

    return Objective(least_squares, S, penalty, close, unit)


def _of_groups(problem: Problem, cells: Cells, lambda1: float, polish: bool) -> Objective:
    groups = group_likelihood.groups_of(problem, cells)
    penalty = group_likelihood.penalties_within(problem, groups, lambda1)

    def close(W: Matrix) -> Lasso:
        return group_likelihood.closing(problem, groups, W, penalty, polish)

    def start(W: Matrix) -> Matrix:
        return group_likelihood.into_domain(W, groups)

    return Objective(group_likelihood.score, groups, penalty, close, 1.0, start)
