"""The Gaussian likelihood of a linear graph with its noise variances profiled out (GOLEM)."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore.backbones.lasso import lasso
from rescore.moments import Matrix

FLOOR = 1e-12  # share of a variable's variance below which its residual counts as rounding
MOST_ROUNDS = 200  # of lasso and variances in turn; about ten are enough


class Closed(NamedTuple):
    """Coefficients, their penalised negative log-likelihood, and the KKT residual."""

    W: Matrix  # (d, d)
    objective: float
    optimality: float


def likelihood(S: Array, W: Array, equal: bool) -> tuple[Array, Array]:
    """The negative log-likelihood of W without constants, noise variances profiled out; gradient.

    Infinite where det(I − W) is not positive, so that a line search steps back.

    Examples
    --------
    >>> value, gradient = likelihood(jnp.eye(2), jnp.array([[0.0, 2.0], [2.0, 0.0]]), equal=True)
    >>> print(value)
    inf
    """
    R = jnp.eye(len(S)) - W
    SR = S @ R
    variances, slope = profile(jnp.sum(R * SR, axis=0), jnp.diag(S), equal)
    sign, log_det = jnp.linalg.slogdet(R)
    value = jnp.sum(jnp.log(variances)) / 2 - log_det
    return jnp.where(sign > 0, value, jnp.inf), jnp.linalg.inv(R).T - SR * slope


def profile(residual: Array, total: Array, equal: bool) -> tuple[Array, Array]:
    """The noise variances that fit best, up to a constant factor, (d,); and d(Σ log)/d residual.

    Equal ones are each the sum of all residual variances.  A perfect fit is floored, and its
    slope is then zero: there is nothing left to gain.

    Examples
    --------
    >>> print(*profile(jnp.array([1.0, 3.0]), jnp.ones(2), equal=True))
    [4. 4.] [0.5 0.5]
    """
    least = FLOOR * jnp.where(total > 0, total, 1.0)
    if equal:
        residual = jnp.broadcast_to(jnp.sum(residual), residual.shape)
        least = jnp.broadcast_to(jnp.sum(least), residual.shape)
    variances = jnp.maximum(residual, least)
    share = len(total) if equal else 1
    return variances, jnp.where(residual > least, share / variances, 0.0)


def likelihood_on_dag(S: Matrix, W: Matrix, penalty: Matrix, equal: bool) -> Closed:
    """Minimise the likelihood plus ``Σ penalty·|W|`` over the edges of the DAG W.

    Given the noise variances this is a lasso whose penalty is in their units, and given the
    coefficients the variances are those of the residuals.  Taking turns never raises the
    objective, because log lies below its tangents.

    Examples
    --------
    >>> S = np.array([[1.0, 1.0], [1.0, 2.0]])
    >>> found = likelihood_on_dag(S, np.array([[0, 0.3], [0, 0]]), np.full((2, 2), 0.1), True)
    >>> print(found.W.round(3), bool(found.optimality < 1e-9))
    [[0.    0.899]
     [0.    0.   ]] True
    """
    best = _assess(S, W, penalty, equal)
    for _ in range(MOST_ROUNDS):
        found = _assess(S, lasso(S, W, penalty * best[1]).W, penalty, equal)
        settled = best[0].objective - found[0].objective <= 1e-15 * abs(found[0].objective)
        best = found
        if settled and found[0].optimality < 1e-9:
            break
    return best[0]


def noise_on_dag(S: Matrix, W: Matrix, equal: bool) -> Matrix:
    """The noise variances (d,) that fit the DAG W best.

    Examples
    --------
    >>> noise_on_dag(np.array([[1.0, 1.0], [1.0, 4.0]]), np.array([[0, 1.0], [0, 0]]), equal=True)
    array([2., 2.])
    """
    return _assess(S, W, np.zeros_like(S), equal)[1]


def _assess(S: Matrix, W: Matrix, penalty: Matrix, equal: bool) -> tuple[Closed, Matrix]:
    """How good a DAG is, and the noise variance (d,) in which each column's penalty counts."""
    SR = S - S @ W
    residual = np.diag(SR) - np.sum(W * SR, axis=0)
    least = FLOOR * np.where(np.diag(S) > 0, np.diag(S), 1.0)
    sums = (residual.sum(), least.sum()) if equal else (residual, least)
    variances = np.broadcast_to(np.maximum(*sums), residual.shape)
    noise = variances / len(S) if equal else variances
    objective = np.log(variances).sum() / 2 + np.sum(penalty * np.abs(W))
    slope = np.where(W != 0, penalty * np.sign(W) - SR / noise, 0.0)
    return Closed(W, float(objective), float(np.abs(slope).max(initial=0.0))), noise
