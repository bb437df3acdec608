"""An order of the variables from how their log-density bends, by Stein's identity.

Where ``x_j = f_j(causes) + Gaussian noise``, the second derivative of ``log p`` along a variable
that causes nothing is the same everywhere; along a cause it varies with what its effects show.  So
the variable whose curvature varies least comes last, and so on without it (SCORE, Rolland et al.,
ICML 2022).  No graph and no function is fitted, all causes may act jointly, and every variable
costs one factorisation.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from rescore.moments import Matrix, Weights
from rescore.protocols import Problem
from rescore.solvers.gaussian_inputs import Inputs, relative_noise, spread_rows

RIDGE = 1e-3  # of a row that counts as one, beside a kernel of one
LEAST_RIDGE = 1e-9  # of rows that count as many: nearby ones make the kernel matrix singular
ENOUGH = 1000  # rows: its time grows with their cube


def curvature(X: Matrix, counts: Matrix) -> Matrix:
    """``∂² log p / ∂x_j²`` at every row of X (n, d), which count as so many rows (n,).

    Kernel ridge estimates of the slopes G and of the sum of their squares and the curvature, from
    ``E[k G] = −E[∇k]`` and ``E[k (H + G²)] = E[∇²k]`` for a Gaussian kernel k as wide as the rows
    lie apart on average.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 1))
    >>> bend = curvature(X, np.ones(500))  # of a standard normal: -1 everywhere
    >>> bool(-1.5 < np.median(bend) < -0.7)
    True
    """
    m = counts[:, None]
    width = 2 * float(np.average((X - np.average(X, axis=0, weights=counts)) ** 2, 0, counts).sum())
    width = width or 1.0  # of columns that are all constant
    squares = np.square(X)
    sums = squares.sum(axis=1)
    K = np.exp(-np.maximum(sums[:, None] + sums - 2 * X @ X.T, 0.0) / (2 * width))
    mass, by_x, by_square = K @ counts[:, None], K @ (m * X), K @ (m * squares)
    slopes = (by_x - X * mass) / width
    bends = (squares * mass - 2 * X * by_x + by_square) / width**2 - mass / width
    K[np.diag_indices(len(K))] += np.maximum(RIDGE / counts, LEAST_RIDGE)
    factor = cho_factor(K, lower=True, overwrite_a=True)
    solved = cho_solve(factor, np.hstack((slopes, bends))) / m
    d = X.shape[1]
    return np.asarray(solved[:, d:] - np.square(solved[:, :d]))


def by_curvature(X: Matrix, counts: Matrix) -> list[int]:
    """The columns of X (n, d), causes first, its rows counting as so many rows (n,).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.normal(size=300)
    >>> X = np.column_stack([np.sin(2 * cause) + rng.normal(size=300), cause])
    >>> by_curvature(X, np.ones(300))
    [1, 0]
    """
    left, last = list(range(X.shape[1])), []
    while len(left) > 1:
        H = curvature(X[:, left], counts)
        spread = np.average(np.square(H - np.average(H, axis=0, weights=counts)), 0, counts)
        last.append(left.pop(int(np.argmin(spread))))
    return left + last[::-1]


def curvature_order(
    problem: Problem, w: Weights, inputs: Inputs, *, standard: bool, most: int = ENOUGH
) -> list[int]:
    """The table's columns by curvature, in standard units or in its own, on so many rows at most.

    Examples
    --------
    >>> from rescore.solvers.gaussian_inputs import prepare
    >>> cause, noise = np.random.default_rng(0).normal(size=(2, 300))
    >>> problem = Problem.unconstrained(np.c_[np.sin(2 * cause) + noise, cause])
    >>> curvature_order(problem, problem.prior, prepare(problem), standard=True)
    [1, 0]
    """
    rows = spread_rows(len(inputs.X), most)
    deviation = inputs.deviation[inputs.columns]
    units = np.ones(len(deviation)) if standard else deviation / deviation.max()
    counts = (1 / relative_noise(problem, w, inputs)[rows]).mean(axis=1)
    return [int(inputs.columns[v]) for v in by_curvature(inputs.X[rows] * units, counts)]
