"""How much each group of rows would gain by stretching a prediction: the penalty, from moments."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore.learners.straight_lines import least_squares
from rescore.moments import Matrix
from rescore.protocols import Problem
from rescore.solvers import lasso
from rescore.weight_box import equal_groups

MOST_ITERATIONS = 100
SOLVED = 1e-12  # least relative decrease
HALVINGS = 30  # of a step before it is given up


class GroupMoments(NamedTuple):
    """Second moments of K groups about the mean of all, and what a slope costs in each."""

    pooled: Any  # (d, d), the mean of the groups'
    each: Any  # (K, d, d)
    cost: Any  # (K, d), γ / (K v_ej), of a squared slope


def balanced_weights(problem: Problem, w: Matrix) -> Matrix:
    """``w_i / (K π_e)`` for a row of group e, π_e the weight of the group: all groups count alike.

    Examples
    --------
    >>> from dataclasses import replace
    >>> problem = replace(Problem.unconstrained(np.eye(4)), groups=np.array([0, 0, 0, 1]))
    >>> balanced_weights(problem, problem.prior).round(3)
    array([0.167, 0.167, 0.167, 0.5  ])
    """
    if problem.groups is None:
        raise ValueError("DICD needs the groups of the rows: groups=...")
    return equal_groups(w, problem.groups)


def group_moments(
    problem: Problem, w: Matrix, strength: float, unit: float
) -> tuple[Matrix, GroupMoments]:
    """The mean (d,) of groups that count alike, and their moments in the given unit.

    Examples
    --------
    >>> from dataclasses import replace
    >>> problem = Problem.unconstrained(np.array([[1.0], [-1.0], [3.0], [-3.0]]))
    >>> problem = replace(problem, groups=np.array([0, 0, 1, 1]))
    >>> mean, groups = group_moments(problem, problem.prior, strength=1.0, unit=1.0)
    >>> groups.each.ravel(), groups.pooled, groups.cost.ravel().round(3)
    (array([1., 9.]), array([[5.]]), array([0.5  , 0.056]))
    """
    v = balanced_weights(problem, w)
    mean, pooled = problem.moments(v)
    K = int(problem.groups.max()) + 1 if problem.groups is not None else 1
    each = np.stack([_about(problem, v, mean, e) for e in range(K)])
    variances = np.diagonal(each, axis1=1, axis2=2) / unit
    cost = strength / K / np.where(variances > 0, variances, np.inf)
    return mean, GroupMoments(pooled / unit, each / unit, cost)


def _about(problem: Problem, w: Matrix, mean: Matrix, e: int) -> Matrix:
    """The second moments (d, d) of group e about a given mean."""
    members = problem.groups == e
    own, S = problem.rows.part(members).moments(w[members] / w[members].sum())
    return S + np.outer(own - mean, own - mean)


def slopes(each: Any, W: Any) -> Any:
    """``g_ej = −(Wᵀ S_e (I − W))_jj``: of group e's loss of variable j as W_j stretches, (K, d).

    Examples
    --------
    >>> slopes(np.array([[[1.0, 1.0], [1.0, 2.0]]]), np.array([[0.0, 0.5], [0.0, 0.0]]))
    array([[ 0.  , -0.25]])
    """
    return (W * (each @ (W - np.eye(len(W))))).sum(axis=1)


def score(groups: GroupMoments, W: Array) -> tuple[Array, Array]:
    """``½ tr (I−W)ᵀ S (I−W) + Σ_ej cost_ej g_ej²``, S the pooled moments, and its gradient.

    Examples
    --------
    >>> one = np.array([[1.0, 1.0], [1.0, 2.0]])
    >>> groups = GroupMoments(one, one[None], cost=np.full((1, 2), 4.0))
    >>> float(score(groups, jnp.array([[0.0, 0.5], [0.0, 0.0]]))[0])
    1.375
    """
    value, gradient = least_squares(groups.pooled, W)
    g = slopes(groups.each, W)
    by_slope = jnp.asarray(groups.each) @ (2 * W - jnp.eye(len(W)))  # (K, d, d), ∂g_ej / ∂W_ij
    pulled = jnp.sum(2 * (groups.cost * g)[:, None, :] * by_slope, axis=0)
    return value + jnp.sum(groups.cost * g**2), gradient + pulled


def column(groups: GroupMoments, penalty: Matrix, j: int, start: Matrix) -> lasso.Column:
    """The coefficients (d,) of variable j that minimise its part of ``score + Σ penalty·|W|``.

    On the parents in ``start`` (d,), from there.  With the slopes linear in the coefficients this
    is a lasso: that is solved, a step towards its solution taken, and again (Gauss–Newton).

    Examples
    --------
    >>> one = np.array([[1.0, 1.0], [1.0, 2.0]])
    >>> groups = GroupMoments(one, one[None], cost=np.full((1, 2), 1e9))  # no slope at any price
    >>> column(groups, np.full((2, 2), 0.1), 1, np.array([0.5, 0.0])).coefficients.round(3)
    array([1., 0.])
    """
    parents = np.flatnonzero(start)
    b, value = start, _value(groups, penalty, j, start)
    for _ in range(MOST_ITERATIONS):
        aim = lasso.column(_linearised(groups, j, b), penalty, j, parents, b).coefficients
        closer, lower = _towards(groups, penalty, j, b, aim)
        if not lower < value * (1 - SOLVED):
            break
        b, value = closer, lower
    return lasso.Column(b, value, _optimality(groups, penalty, j, b))


def _towards(
    groups: GroupMoments, penalty: Matrix, j: int, b: Matrix, aim: Matrix
) -> tuple[Matrix, float]:
    """The first point below b on halving the way to ``aim``, and its value."""
    value, step = _value(groups, penalty, j, b), aim - b
    for halvings in range(HALVINGS):
        lower = _value(groups, penalty, j, b + step / 2**halvings)
        if lower < value:
            return b + step / 2**halvings, lower
    return b, value


def _value(groups: GroupMoments, penalty: Matrix, j: int, b: Matrix) -> float:
    r = -b
    r[j] += 1
    g = -(groups.each @ r) @ b  # (K,)
    return float(r @ groups.pooled @ r / 2 + groups.cost[:, j] @ g**2 + penalty[:, j] @ np.abs(b))


def _linearised(groups: GroupMoments, j: int, b: Matrix) -> Matrix:
    """Moments (d, d) whose least squares are the score of variable j with slopes linear about b."""
    J = 2 * groups.each @ b - groups.each[:, :, j]  # (K, d), how slopes change with b
    g = (groups.each @ b - groups.each[:, :, j]) @ b  # (K,)
    J[:, j] = J @ b - g  # b_j is zero
    return groups.pooled + J.T @ (2 * groups.cost[:, j, None] * J)


def _optimality(groups: GroupMoments, penalty: Matrix, j: int, b: Matrix) -> float:
    """The largest slope left on a coefficient that is not zero, in units of correlation."""
    S = _linearised(groups, j, b)
    slope = S @ b - S[:, j] + penalty[:, j] * np.sign(b)
    deviations = np.sqrt(np.where(np.diag(S) > 0, np.diag(S), 1.0))
    units = deviations * deviations[j]
    return float(np.abs(np.where(b != 0, slope / units, 0.0)).max(initial=0.0))
