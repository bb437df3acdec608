"""What the linear learners share: the score from second moments, its unit and its penalty."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore.moments import Matrix
from rescore.protocols import Problem

SMALLEST_SHARE = 1e-8  # of a variance that counts as noise rather than rounding


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
