"""The additive model ``y = Σ_i f_i(x_i) + noise``, its smoothness chosen by restricted likelihood.

Everything is read off the cross-products of the columns, (p, p).  With P = diag(λ·penalty) and
``V = (ZᵀwZ + P)⁻¹`` the coefficients are ``b = V Zᵀwy``, and σ²/N · V is their covariance if the
penalty is read as a prior on b (Wood 2017, Generalized Additive Models, chapter 6).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix
from rescore.pruning.splines import Term

NEGLIGIBLE = 1e-10  # share of a column's variance below which the columns before it make it up
LEAST_NOISE = 1e-14  # share of y's variance that counts as noise even where nothing is left
# Bounds and start of θ = log(λ / (1 + λ)): from no smoothing to as good as a straight line.
ROUGHEST, START, SMOOTHEST = -20.0, -5.0, -1e-8


class Products(NamedTuple):
    """All that a fit needs of the rows; y has mean zero and variance one."""

    gram: Matrix  # (p, p), ZᵀwZ
    moment: Matrix  # (p,), Zᵀwy
    penalty: Matrix  # (p,)
    term: NDArray[np.intp]  # (p,), the term each column belongs to
    terms: int
    rows: float  # N, what the weights are worth


class Fit(NamedTuple):
    """Coefficients, their covariance, and how many degrees of freedom they take and leave."""

    coefficients: Matrix  # (p,)
    covariance: Matrix  # (p, p)
    taken: Matrix  # (p,), the diagonal of 2F − FF with F = V ZᵀwZ
    left: float  # N − 1 − tr F


def cross_products(terms: Sequence[Term], y: Matrix, w: Matrix, rows: float) -> Products:
    """The columns of all terms with each other and with y, less those that earlier ones make up.

    So of two parents that say the same, the first keeps its columns and the second has none.

    Examples
    --------
    >>> w, line = np.full(4, 1 / 4), np.array([[-1.0], [-1.0], [1.0], [1.0]])
    >>> term = Term(line, np.zeros(1))
    >>> cross_products([term, term], line[:, 0], w, rows=4).term
    array([0])
    """
    Z = np.hstack([term.columns for term in terms])
    G = (Z.T * w) @ Z
    kept = _independent(G)
    penalty = np.concatenate([term.penalty for term in terms])
    owner = np.repeat(np.arange(len(terms)), [len(term.penalty) for term in terms])
    moment = Z[:, kept].T @ (w * y)
    return Products(
        G[np.ix_(kept, kept)], moment, penalty[kept], owner[kept], len(terms), float(rows)
    )


def _independent(G: Matrix) -> NDArray[np.intp]:
    """Positions of the columns that no combination of earlier ones makes up, by elimination."""
    left = G.copy()  # what the columns kept so far leave of the others
    kept = []
    for j in range(len(G)):
        if left[j, j] > NEGLIGIBLE * G[j, j]:
            kept.append(j)
            left[j:, j:] -= np.outer(left[j:, j], left[j, j:] / left[j, j])
    return np.array(kept, dtype=np.intp)


def fitted(products: Products, smoothing: Matrix) -> Fit:
    """The fit with a given λ ≥ 0 for each term; 0 everywhere is least squares.

    Examples
    --------
    >>> products = Products(np.eye(1), np.array([0.5]), np.zeros(1), np.zeros(1, int), 1, 100.0)
    >>> fitted(products, np.zeros(1)).coefficients, fitted(products, np.zeros(1)).left
    (array([0.5]), 98.0)
    """
    G, moment = products.gram, products.moment
    P = np.diag(smoothing[products.term] * products.penalty)
    V = np.asarray(np.linalg.inv(G + P), dtype=np.float64)
    b, F = V @ moment, V @ G
    left = float(products.rows - 1 - np.trace(F))
    residual = max(float(1 - 2 * b @ moment + b @ G @ b), LEAST_NOISE)
    taken = 2 * np.diag(F) - np.einsum("ij,ji->i", F, F)
    return Fit(b, residual / left * V, taken, left)  # residual · N / left is σ²


def likeliest_smoothing(products: Products) -> Matrix:
    """λ for each term, (terms,): where the restricted likelihood is greatest.

    The search is over ``θ = log(λ / (1 + λ))``: like log λ where λ is small, while the straight
    line, λ = ∞, is at a finite bound that the search can reach and stay at.

    Examples
    --------
    >>> noise = Products(np.eye(2), np.zeros(2), np.array([0.0, 1.0]), np.zeros(2, int), 1, 100.0)
    >>> bool(likeliest_smoothing(noise)[0] > 1e6)
    True
    """
    from scipy.optimize import minimize

    found = minimize(
        _at_bounded,
        np.full(products.terms, START),
        args=(products,),
        jac=True,
        method="L-BFGS-B",
        bounds=[(ROUGHEST, SMOOTHEST)] * products.terms,
        options={"gtol": 1e-4, "ftol": 1e-15},
    )
    return 1 / np.expm1(-found.x)


def _at_bounded(theta: Matrix, products: Products) -> tuple[float, Matrix]:
    smoothing = 1 / np.expm1(-theta)
    value, gradient = restricted_likelihood(smoothing, products)
    return value, gradient * (1 + smoothing)


def restricted_likelihood(smoothing: Matrix, products: Products) -> tuple[float, Matrix]:
    """Minus twice its logarithm, the noise variance profiled out, and the gradient in log λ.

    ``(N − M) log(yᵀwy − bᵀZᵀwy) + log|ZᵀwZ + P| − log|P|₊`` with M columns without penalty.

    Examples
    --------
    >>> line = Products(np.eye(1), np.zeros(1), np.zeros(1), np.zeros(1, int), 1, 100.0)
    >>> restricted_likelihood(np.ones(1), line)
    (0.0, array([0.]))
    """
    G, moment, penalty, term, terms, rows = products
    rough = penalty > 0
    free = rows - 1 - np.sum(~rough)
    P = smoothing[term] * penalty
    L = np.linalg.cholesky(G + np.diag(P))
    inverse = np.linalg.inv(L)  # V = inverseᵀ inverse
    half = inverse @ moment
    misfit = max(float(1 - half @ half), LEAST_NOISE)
    value = free * np.log(misfit) + 2 * np.log(np.diag(L)).sum() - np.log(P[rough]).sum()
    explained = free * np.square(inverse.T @ half) / misfit + np.square(inverse).sum(axis=0)
    gradient = np.bincount(term, weights=P * explained - rough, minlength=terms)
    return float(value), gradient.astype(np.float64)
