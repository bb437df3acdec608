"""The Gaussian likelihood of rows in groups that share coefficients and differ in their noise.

    ½ Σ_k Σ_j m_kj log[(I−W)ᵀ S_k (I−W)]_jj − Σ_k m_k log|det(I−W_k)|

per row, with the noise variance of every group k and variable j profiled out; ``m_kj`` is the share
of rows of group k where it speaks of variable j, else zero.  In W_k the columns of which it
does not speak are zero: those variables have other equations there.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from rescore.graph.dag import cut_to_dag
from rescore.learners.polish import LEAST_GAIN, moved, polished
from rescore.learners.straight_lines import penalties
from rescore.moments import Cells, Matrix
from rescore.protocols import Problem
from rescore.solvers import lasso

# Of the pooled noise, which no group's noise is taken to be less than: a few rows that happen to
# fit perfectly would otherwise have all the say.
SMALLEST = 1e-3
MOST_ROUNDS = 200  # of lasso and variances in turn; about ten are enough
SETTLED = 1e-14  # fall of the objective, relative to its size, that ends them
ROUGHLY = 1e-6  # the same while orders are compared


class Groups(NamedTuple):
    """All that the likelihood sees of the rows."""

    covariance: Any  # (K, d, d), within each group
    mass: Any  # (K,), sums to one
    counted: Any  # (K, d), m_kj


def groups_of(problem: Problem, cells: Cells) -> Groups:
    """The moments of the groups that say something of a variable; the others are set aside.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.array([[1.0, 0], [-1, 0], [0, 3], [0, -3]]))
    >>> cells = Cells(np.repeat(np.eye(2), 2, axis=0) / 4, np.array([[1.0, 2.0], [1.0, 0.0]]))
    >>> groups_of(problem, cells).counted
    array([[0.5, 0.5],
           [0.5, 0. ]])
    """
    speaks = cells.precision > 0
    used = speaks.any(axis=1)
    mass, _, each = problem.rows.group_moments(cells.membership[:, used])
    mass = mass / mass.sum()
    pooled = np.tensordot(mass, each, axes=1)
    within = (1 - SMALLEST) * each + SMALLEST * pooled
    return Groups(within, mass, mass[:, None] * speaks[used])


def score(groups: Groups, W: Array) -> tuple[Array, Array]:
    """The negative log-likelihood of W (d, d) without constants, and its gradient.

    Infinite where a determinant is not positive, so that a line search steps back.

    Examples
    --------
    >>> groups = Groups(np.array([np.eye(2), 4 * np.eye(2)]), np.full(2, 0.5), np.full((2, 2), 0.5))
    >>> round(float(score(groups, jnp.zeros((2, 2)))[0]), 4)  # ½ (½ log 4 + ½ log 4)
    0.6931
    """
    R = jnp.eye(len(W)) - W
    SR = jnp.asarray(groups.covariance) @ R  # (K, d, d)
    variances = jnp.sum(R * SR, axis=1)  # (K, d)
    known = variances > 0  # a constant column has none, whatever its causes
    variances = jnp.where(known, variances, 1.0)
    slope = jnp.where(known, groups.counted / variances, 0.0)
    speaks = (jnp.asarray(groups.counted) > 0)[:, None, :]
    equations = jnp.eye(len(W)) - jnp.where(speaks, W, 0.0)  # (K, d, d)
    signs, log_dets = jnp.linalg.slogdet(equations)
    inverses = jnp.where(speaks, jnp.swapaxes(jnp.linalg.inv(equations), 1, 2), 0.0)
    value = jnp.sum(groups.counted * jnp.log(variances)) / 2 - groups.mass @ log_dets
    gradient = jnp.tensordot(groups.mass, inverses, 1) - jnp.sum(SR * slope[:, None, :], axis=0)
    return jnp.where(jnp.all(signs > 0), value, jnp.inf), gradient


def weighed(groups: Groups, W: Matrix) -> Matrix:
    """For every variable the covariance (d, d, d) of rows that count as precisely as W fits them.

    Examples
    --------
    >>> groups = Groups(np.array([np.eye(2), 4 * np.eye(2)]), np.full(2, 0.5), np.full((2, 2), 0.5))
    >>> weighed(groups, np.zeros((2, 2)))[0]
    array([[1., 0.],
           [0., 1.]])
    """
    precision = np.stack([_precision(groups, j, W[:, j]) for j in range(len(W))])  # (d, K)
    return np.tensordot(precision, groups.covariance, axes=1)


def column(
    groups: Groups,
    penalty: Matrix,
    j: int,
    parents: NDArray[np.intp],
    start: Matrix,
    settled: float = SETTLED,
) -> lasso.Column:
    """The coefficients (d,) of variable j that minimise its part of the score plus penalty.

    Given the groups' noise this is a lasso on the rows weighted by their precision, and given the
    coefficients the noise is what they leave.  Taking turns never raises the objective, because
    log lies below its tangents.

    Examples
    --------
    >>> one = np.array([[[1.0, 1.0], [1.0, 2.0]]])
    >>> groups = Groups(one, np.ones(1), np.ones((1, 2)))
    >>> column(groups, np.zeros((2, 2)), 1, np.array([0]), np.zeros(2)).coefficients.round(6)
    array([1., 0.])
    """
    b = np.zeros_like(start)
    b[parents] = start[parents]
    precision, value = _precision(groups, j, b), _value(groups, penalty, j, b)
    for _ in range(MOST_ROUNDS):
        S = np.tensordot(precision, groups.covariance, axes=1)
        b = lasso.column(S, penalty, j, parents, b).coefficients
        precision, last = _precision(groups, j, b), value
        value = _value(groups, penalty, j, b)
        if last - value <= settled * max(abs(value), 1.0):
            break
    return lasso.Column(b, value, _optimality(groups, penalty, j, b))


def on_dag(groups: Groups, W: Matrix, penalty: Matrix) -> lasso.Lasso:
    """The score plus ``Σ penalty·|W|`` minimised over the edges of the DAG W (d, d).

    Examples
    --------
    >>> one = np.array([[[1.0, 1.0], [1.0, 2.0]]])
    >>> groups = Groups(one, np.ones(1), np.ones((1, 2)))
    >>> on_dag(groups, np.array([[0.0, 0.3], [0.0, 0.0]]), np.zeros((2, 2))).W.round(6)
    array([[0., 1.],
           [0., 0.]])
    """
    edges = [np.flatnonzero(W[:, j]) for j in range(len(W))]
    return lasso.joined([column(groups, penalty, j, edges[j], W[:, j]) for j in range(len(W))])


def closing(
    problem: Problem, groups: Groups, W: Matrix, penalty: Matrix, polish: bool
) -> lasso.Lasso:
    """W made a DAG, and the objective minimised on it exactly; with ``polish``, on others too.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(2))
    >>> S = np.array([[[1.0, 2.0], [2.0, 5.0]], [[9.0, 18.0], [18.0, 37.0]]])  # x1 = 2 x0 + noise
    >>> groups = Groups(S, np.full(2, 0.5), np.full((2, 2), 0.5))
    >>> closing(problem, groups, np.array([[0, 0], [0.4, 0]]), np.zeros((2, 2)), True).W.round(6)
    array([[0., 2.],
           [0., 0.]])
    """
    dag, _ = cut_to_dag(W, keep=problem.required)
    best = on_dag(groups, dag, penalty)
    return better_order(problem, groups, penalty, best) if polish else best


def better_order(
    problem: Problem, groups: Groups, penalty: Matrix, best: lasso.Lasso
) -> lasso.Lasso:
    """A better order of causes, if there is one: by swaps of neighbours, then by moves.

    Swaps alone stay near the start, because a wrong order may fit all groups well at the price
    of coefficients that none of them has.
    """

    def regression(j: int, parents: NDArray[np.intp], start: Matrix) -> lasso.Column:
        return column(groups, penalty, j, parents, start, ROUGHLY)

    for search in (polished, moved):
        W = search(problem, weighed(groups, best.W), best.W, regression).W
        found = on_dag(groups, W, penalty)
        best = found if found.objective < best.objective - LEAST_GAIN else best
    return best


def penalties_within(problem: Problem, groups: Groups, lambda1: float) -> Matrix:
    """λ for every edge that may but need not be there, in units of spread within groups; (d, d).

    The likelihood knows no units, and so its penalty must not.  The noise would be a unit too,
    but it is that of the graph at hand, and prices made from it hold on to that graph.

    Examples
    --------
    >>> groups = Groups(np.diag([1.0, 4.0])[None], np.ones(1), np.ones((1, 2)))
    >>> penalties_within(Problem.unconstrained(np.eye(2)), groups, 0.1)
    array([[0.  , 0.05],
           [0.2 , 0.  ]])
    """
    variances = np.tensordot(groups.mass, groups.covariance.diagonal(axis1=1, axis2=2), axes=1)
    deviations = np.sqrt(np.where(variances > 0, variances, 1.0))
    return penalties(problem, lambda1) * np.outer(deviations, 1 / deviations)


def into_domain(W: Matrix, groups: Groups) -> Matrix:
    """W, scaled down if need be until all determinants are positive, as they are for small W.

    Examples
    --------
    >>> groups = Groups(np.eye(2)[None], np.ones(1), np.ones((1, 2)))
    >>> score(groups, into_domain(np.array([[0.0, 2.0], [2.0, 0.0]]), groups))[0] < np.inf
    Array(True, dtype=bool)
    """
    speaks = (groups.counted > 0)[:, None, :]
    while (np.linalg.slogdet(np.eye(len(W)) - W * speaks)[0] <= 0).any():
        W = 0.9 * W
    return W


def _variances(groups: Groups, j: int, b: Matrix) -> Matrix:
    """What the coefficients b (d,) leave of variable j in every group, (K,)."""
    r = -b
    r[j] += 1
    left: Matrix = (groups.covariance @ r) @ r
    return left


def _precision(groups: Groups, j: int, b: Matrix) -> Matrix:
    """``m_kj / v_kj`` of every group k, (K,)."""
    variances = _variances(groups, j, b)
    known = variances > 0
    return np.where(known, groups.counted[:, j] / np.where(known, variances, 1.0), 0.0)


def _value(groups: Groups, penalty: Matrix, j: int, b: Matrix) -> float:
    variances = _variances(groups, j, b)
    logs = np.log(np.where(variances > 0, variances, 1.0))
    return float(groups.counted[:, j] @ logs / 2 + penalty[:, j] @ np.abs(b))


def _optimality(groups: Groups, penalty: Matrix, j: int, b: Matrix) -> float:
    """The largest slope left on a coefficient that is not zero."""
    r = -b
    r[j] += 1
    slope = penalty[:, j] * np.sign(b) - _precision(groups, j, b) @ (groups.covariance @ r)
    return float(np.abs(np.where(b != 0, slope, 0.0)).max(initial=0.0))
