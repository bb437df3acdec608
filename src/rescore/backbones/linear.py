"""What the linear learners share: the score from second moments, its unit, the closing lasso."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from rescore.graph import cut_to_dag, topological_order
from rescore.moments import Matrix
from rescore.ordered import least_variance_order
from rescore.protocols import Mask, Problem

LEAST_GAIN = 1e-6  # of the objective, for which another graph is taken: not for rounding
SMALLEST_SHARE = 1e-8  # of a variance that counts as noise rather than rounding


class Lasso(NamedTuple):
    """Coefficients that minimise the score plus the penalty on given edges."""

    W: Matrix  # (d, d)
    objective: float  # score + Σ penalty·|W|
    optimality: float  # largest slope left on an edge that is not zero, in units of correlation


def least_squares(S: Array, W: Array) -> tuple[Array, Array]:
    """``½ tr (I−W)ᵀ S (I−W)`` and its gradient ``−S (I−W)``, from the covariance S alone.

    Examples
    --------
    >>> value, gradient = least_squares(jnp.eye(2), jnp.zeros((2, 2)))
    >>> float(value)
    1.0
    """
    SR = S @ (jnp.eye(len(S)) - W)
    return jnp.vdot(jnp.eye(len(S)) - W, SR) / 2, -SR


def typical_variance(problem: Problem) -> float:
    """The geometric mean of the positive variances of variables with a possible edge, else one.

    Examples
    --------
    >>> round(typical_variance(Problem.unconstrained(np.array([[1.0, 4.0], [-1.0, -4.0]]))), 6)
    4.0
    """
    variances = np.diag(_connected_covariance(problem))
    return float(np.exp(np.log(variances).mean())) if variances.size else 1.0


def noise_variance(problem: Problem) -> float:
    """``det(S)^{1/d}``: whatever the DAG, the geometric mean of its noise variances.

    ``S = (I−W)⁻ᵀ Ω (I−W)⁻¹`` and det(I−W) = 1 for a DAG, so that det S = det Ω.  Eigenvalues of
    the correlation matrix that are rounding, as among collinear variables, are floored.

    Examples
    --------
    >>> x, e = np.random.default_rng(0).normal(size=(2, 1000))
    >>> round(noise_variance(Problem.unconstrained(np.c_[3 * x, 100 * x + 3 * e])), 1)
    9.0
    """
    S = _connected_covariance(problem)
    if not S.size:
        return 1.0
    deviations = np.sqrt(np.diag(S))
    shares = np.linalg.eigvalsh(S / np.outer(deviations, deviations))
    logs = np.log(np.maximum(shares, SMALLEST_SHARE))
    return float(np.exp(logs.mean() + 2 * np.log(deviations).mean()))


def _connected_covariance(problem: Problem) -> Matrix:
    """The covariance of the variables that vary and may have an edge."""
    S = problem.rows.moments(problem.prior).covariance
    used = (problem.allowed.any(axis=0) | problem.allowed.any(axis=1)) & (np.diag(S) > 0)
    return S[np.ix_(used, used)]


def penalties(problem: Problem, lambda1: float) -> Matrix:
    """λ for every edge that may but need not be there, otherwise zero; (d, d).

    Examples
    --------
    >>> penalties(Problem.unconstrained(np.eye(2)), 0.1)
    array([[0. , 0.1],
           [0.1, 0. ]])
    """
    return np.where(problem.allowed & ~problem.required, lambda1, 0.0)


def closing_lasso(problem: Problem, S: Matrix, W: Matrix, penalty: Matrix, polish: bool) -> Lasso:
    """The end of a search: W made a DAG, and the objective minimised on it exactly.

    With ``polish`` also on all edges that the order of W allows, and on all that the order of
    least residual variance allows; the least objective of the three is kept, so that it, and not
    the path's luck, chooses the graph.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(2))
    >>> S, against = np.array([[1.0, 2.0], [2.0, 5.0]]), np.array([[0, 0], [0.4, 0]])
    >>> closing_lasso(problem, S, against, np.full((2, 2), 0.1), polish=True).W
    array([[0. , 1.9],
           [0. , 0. ]])
    """
    dag, _ = cut_to_dag(W, keep=problem.required)
    best = lasso(S, dag, penalty)
    if not polish:
        return best
    by_variance = least_variance_order(S, problem.allowed, problem.required)
    for order in (topological_order(dag), by_variance):
        position = np.argsort(order)
        edges = (position[:, None] < position) & problem.allowed
        found = lasso(S, np.where(edges, dag, 0.0), penalty, edges)
        if found.objective < best.objective * (1 - LEAST_GAIN):
            best = found
    return best


def lasso(S: Matrix, W: Matrix, penalty: Matrix, edges: Mask | None = None) -> Lasso:
    """``min ½ tr (I−W)ᵀ S (I−W) + Σ penalty·|W|`` over the edges of a DAG, exactly, from W.

    The edges are those of W unless others are given.

    Given the edges this is convex and falls apart into columns, so where the search for them
    stopped leaves no trace.

    Examples
    --------
    >>> S = np.array([[1.0, 1.0], [1.0, 2.0]])
    >>> print(lasso(S, np.array([[0, 0.3], [0, 0]]), np.full((2, 2), 0.1)).W)
    [[0.  0.9]
     [0.  0. ]]
    """
    # In units of each variable's deviation, so that scales do not look like collinearity.
    deviations = np.sqrt(np.where(np.diag(S) > 0, np.diag(S), 1.0))[:, None]
    C = S / deviations / deviations.T
    B, lam = W * deviations / deviations.T, penalty / deviations / deviations.T
    among = (W != 0) if edges is None else edges
    columns = [
        _column(C, C[:, j], B[:, j], lam[:, j], np.flatnonzero(among[:, j])) for j in range(len(S))
    ]
    B = np.stack(columns, axis=1)
    slope = np.where(B != 0, C @ B - C + lam * np.sign(B), 0.0)
    W = B / deviations * deviations.T
    R = np.eye(len(S)) - W
    objective = np.vdot(R, S @ R) / 2 + np.sum(penalty * np.abs(W))
    return Lasso(W, float(objective), float(np.abs(slope).max(initial=0.0)))


def _column(
    C: Matrix, target: Matrix, b: Matrix, penalty: Matrix, support: NDArray[np.intp]
) -> Matrix:
    """Minimise ``½ bᵀCb − bᵀtarget + Σ penalty·|b|`` over the support by active sets, from b.

    Solve on the orthant of b; if the way there crosses zero, stop at the first coefficient that
    does and let it rest.  A resting one wakes when its slope exceeds its penalty.  Every move
    lowers the value and there are finitely many orthants; in practice a few solves are enough.
    """
    b, signs = b.copy(), np.sign(b)
    for _ in range(20 * len(support)):
        on = support[signs[support] != 0]
        aim = np.linalg.lstsq(C[np.ix_(on, on)], (target - penalty * signs)[on], rcond=1e-13)[0]
        crossing = (aim * signs[on] < 0) & (penalty[on] > 0)
        if crossing.any():
            _stop_at_zero(b, signs, on, aim, crossing)
            continue
        b[on] = aim
        slope = C[support] @ b - target[support]
        excess = np.where(signs[support] == 0, np.abs(slope) - penalty[support], 0.0)
        woken = np.argmax(excess)
        if excess[woken] <= 1e-12:
            break
        signs[support[woken]] = -np.sign(slope[woken])
    return b


def _stop_at_zero(
    b: Matrix, signs: Matrix, on: NDArray[np.intp], aim: Matrix, crossing: NDArray[np.bool_]
) -> None:
    """Move b towards its aim until the first coefficient is zero."""
    share = np.where(crossing, b[on] / np.where(crossing, b[on] - aim, 1.0), np.inf)
    first = np.argmin(share)
    b[on] += share[first] * (aim - b[on])
    b[on[first]] = signs[on[first]] = 0.0
