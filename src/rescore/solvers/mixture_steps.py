"""Compiled steps of EM for mixtures of Gaussians with diagonal covariances.

Imported only where groups of rows are looked for: it needs numba.
"""

from typing import Any

import numpy as np
from numba import njit

SMALLEST = 1e-3  # share of a variable's pooled variance below which no group's falls
NOTHING = -40.0  # log of a membership that is not worth an exponential


@njit(cache=True)
def maximise(
    E: Any, counts: Any, P: Any, pooled: Any, share: Any, level: Any, variance: Any
) -> None:
    """Shares (K,), levels and variances (K, d) of groups with memberships P (n, K), in place."""
    n, d = E.shape
    K, rows = P.shape[1], counts.sum()
    share[:] = 1e-10
    level[:] = 0.0
    variance[:] = 0.0
    for i in range(n):
        for k in range(K):
            p = P[i, k] * counts[i]
            if p > 0.0:
                share[k] += p
                for j in range(d):
                    level[k, j] += p * E[i, j]
                    variance[k, j] += p * E[i, j] * E[i, j]
    for k in range(K):
        size = share[k]
        for j in range(d):
            level[k, j] /= size
            v = max(variance[k, j] / size - level[k, j] ** 2, SMALLEST * pooled[j])
            # One pseudo-row of the pooled variance keeps a group of few rows from collapsing.
            variance[k, j] = (v * size + pooled[j]) / (size + 1.0)
        share[k] = size / rows


@njit(cache=True)
def expect(E: Any, counts: Any, share: Any, level: Any, variance: Any, P: Any) -> float:
    """Memberships (n, K) into P; returns the log-likelihood of all rows."""
    n, d = E.shape
    K = len(share)
    constant, linear, square = np.log(share), level / variance, -0.5 / variance
    for k in range(K):
        for j in range(d):
            constant[k] -= 0.5 * (np.log(2 * np.pi * variance[k, j]) + level[k, j] * linear[k, j])
    likelihood = 0.0
    for i in range(n):
        top = -np.inf
        for k in range(K):
            value = constant[k]
            for j in range(d):
                value += E[i, j] * (linear[k, j] + E[i, j] * square[k, j])
            P[i, k] = value
            top = max(top, value)
        total = 0.0
        for k in range(K):
            away = P[i, k] - top
            P[i, k] = np.exp(away) if away > NOTHING else 0.0
            total += P[i, k]
        for k in range(K):
            P[i, k] /= total
        likelihood += counts[i] * (top + np.log(total))
    return likelihood


@njit(cache=True)
def alternate(
    E: Any,
    counts: Any,
    P: Any,
    pooled: Any,
    share: Any,
    level: Any,
    variance: Any,
    most: int,
    settled: float,
) -> float:
    """Both in turn, all in place, until a turn gains less than ``settled``; the likelihood."""
    last = -np.inf
    for _ in range(most):
        maximise(E, counts, P, pooled, share, level, variance)
        likelihood = expect(E, counts, share, level, variance, P)
        if likelihood - last < settled:
            return likelihood
        last = likelihood
    return last
