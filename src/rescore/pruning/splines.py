"""A smooth function of one variable: cubic splines in a basis that data and penalty both like.

With weights w that sum to one, the columns of a term are orthonormal, ``Zᵀ diag(w) Z = I``, and
have weighted mean zero; for f = Z b the roughness is ``∫ f″² ∝ Σ_l penalty_l b_l²``.  The first
column is the straight line, which costs nothing; the unit is such that the next one costs 1.
"""

from typing import NamedTuple

import numpy as np

from rescore.moments import Matrix

CUBIC = 3
FINEST = 4  # decimals of the range that separate two knots: roughness grows with the cube of this
NEGLIGIBLE = 1e-10  # share of the largest variance below which a direction is rounding


class Term(NamedTuple):
    """Columns (n, r) of one smooth function, and what each costs in roughness, (r,)."""

    columns: Matrix
    penalty: Matrix


def smooth_term(x: Matrix, w: Matrix, functions: int) -> Term:
    """A spline of x (n,) from at most ``functions`` basis functions, the constant among them.

    Knots are quantiles of the distinct values, so neither repeated rows nor weights move them.
    Two distinct values make a straight line, three a parabola, and a constant no column at all.

    Examples
    --------
    >>> x, w = np.linspace(0, 1, 50), np.full(50, 1 / 50)
    >>> Z = smooth_term(x, w, functions=6).columns
    >>> bool(np.allclose((Z.T * w) @ Z, np.eye(5)))
    True
    >>> smooth_term(np.ones(50), w, functions=6).columns.shape
    (50, 0)
    """
    distinct, position = np.unique(x, return_inverse=True)
    if len(distinct) == 1:
        return Term(np.empty((len(x), 0)), np.empty(0))
    points = np.minimum((distinct - distinct[0]) / (distinct[-1] - distinct[0]), 1.0)
    mass = np.bincount(position, weights=w).astype(np.float64)
    B, S = _b_splines(points, min(functions, len(distinct)))
    B -= mass @ B
    T, penalty = _diagonalised(B, mass, S)
    return Term((B @ T)[position], penalty)


def _b_splines(points: Matrix, functions: int) -> tuple[Matrix, Matrix]:
    """B-splines at ``points`` in [0, 1], (u, k), and ``∫ B_k″ B_l″``, (k, k)."""
    from scipy.interpolate import BSpline

    degree = min(CUBIC, functions - 1)
    breaks = np.quantile(points, np.linspace(0, 1, functions - degree + 1))
    breaks = np.unique(np.round(breaks, FINEST))
    knots = np.concatenate([np.zeros(degree), breaks, np.ones(degree)])
    B = BSpline.design_matrix(points, knots, degree).toarray()
    if degree == 1:
        return B, np.zeros((2, 2))
    # The product of two second derivatives is quadratic between breaks: two points are exact.
    middle, half = (breaks[1:] + breaks[:-1]) / 2, np.diff(breaks) / 2
    nodes = np.concatenate([middle - half / np.sqrt(3), middle + half / np.sqrt(3)])
    second = BSpline(knots, np.eye(B.shape[1]), degree).derivative(2)(nodes)
    return B, (second.T * np.tile(half, 2)) @ second


def _diagonalised(B: Matrix, mass: Matrix, S: Matrix) -> tuple[Matrix, Matrix]:
    """T (k, r) with ``TᵀBᵀ diag(mass) B T = I`` and ``TᵀST`` diagonal, and that diagonal (r,)."""
    variance, U = np.linalg.eigh((B.T * mass) @ B)
    kept = variance > NEGLIGIBLE * variance[-1]
    T = U[:, kept] / np.sqrt(variance[kept])
    roughness, V = np.linalg.eigh(T.T @ S @ T)
    roughness[0] = 0.0  # that of a straight line, but for rounding
    unit = roughness[1:2].sum()
    return T @ V, roughness / unit if unit > 0 else np.zeros_like(roughness)
