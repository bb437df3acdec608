"""Which parents a variable needs: a p-value for each smooth function of an additive model."""

import numpy as np

from rescore.moments import Matrix
from rescore.protocols import Mask
from rescore.pruning.additive import cross_products, fitted, likeliest_smoothing
from rescore.pruning.splines import smooth_term

FUNCTIONS = 10  # of each parent, the constant among them
ROWS_PER_FUNCTION = 3  # with fewer rows than this for each, there are fewer functions
TINY = float(np.finfo(float).tiny)
NEARLY = 1e-9  # a rank this close to a whole number is that number


def significant(X: Matrix, edges: Mask, w: Matrix, rows: float, cutoff: float) -> Mask:
    """``edges`` (d, d) without those i → j whose p-value, given all parents of j, is above cutoff.

    Row weights ``w`` (n,) sum to one and are worth ``rows`` equal rows.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> X[:, 2] += np.sin(2 * X[:, 0])
    >>> into_last = np.array([[False, False, True], [False, False, True], [False] * 3])
    >>> significant(X, into_last, np.full(300, 1 / 300), 300, cutoff=0.001)[:, 2]
    array([ True, False, False])
    """
    kept = np.zeros_like(edges)
    for j in np.flatnonzero(edges.any(axis=0)):
        parents = np.flatnonzero(edges[:, j])
        kept[parents, j] = p_values(X[:, parents], X[:, j], w, rows) <= cutoff
    return kept


def p_values(P: Matrix, y: Matrix, w: Matrix, rows: float) -> Matrix:
    """Of ``f_i = 0`` in ``y = Σ_i f_i(p_i) + noise``, for each of the parents P (n, m): (m,).

    1 where there is nothing to test: a constant parent or y, or a parent that the ones before it
    make up.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> p_values(X[:, :2], np.sin(2 * X[:, 0]) + X[:, 2], np.full(300, 1 / 300), 300) < 0.001
    array([ True, False])
    """
    m = P.shape[1]
    used = w > 0
    P, y, w = P[used], y[used], w[used]
    _refuse_too_few_rows(m, rows)
    if y.min() == y.max():
        return np.ones(m)
    functions = min(FUNCTIONS, max(2, int(np.ceil(rows / (ROWS_PER_FUNCTION * m)))))
    products = cross_products(
        [smooth_term(x, w, functions) for x in P.T], _standardised(y, w), w, rows
    )
    fit = fitted(products, likeliest_smoothing(products))
    out = np.ones(m)
    for i in np.unique(products.term):
        own = products.term == i
        V = fit.covariance[np.ix_(own, own)]
        out[i] = wald_p_value(fit.coefficients[own], V, fit.taken[own].sum(), fit.left)
    return out


def wald_p_value(b: Matrix, V: Matrix, rank: float, residual_freedom: float) -> float:
    """The p-value of b = 0 for estimates b (r,) with covariance V (r, r), its scale estimated.

    ``T = bᵀV⁻b`` with a pseudo-inverse of rank k + ν from the k + 1 largest eigenvalues, such that
    T has the mean and variance of χ² with k + ν degrees of freedom (Wood 2013, Biometrika 100,
    221–228); T / rank is compared with F.  At full rank and without a penalty that is the F test.

    Examples
    --------
    >>> round(wald_p_value(np.array([2.0]), np.eye(1), rank=1, residual_freedom=1e9), 4)
    0.0455
    """
    from scipy.special import fdtrc

    rank = float(np.clip(rank, 1.0, len(b)))
    k = int(rank + NEARLY)
    variance, U = np.linalg.eigh(V)
    # Standard normal under the null, least penalised first; the last may be lost to rounding.
    z = ((b @ U) / np.sqrt(np.maximum(variance, TINY)))[::-1]
    T = np.sum(z[:k] ** 2)
    part = rank - k
    if part > NEARLY:
        # The sign of an eigenvector is arbitrary, and with it that of the mixed term: try both.
        mixed = np.sqrt(2 * part * (1 - part)) * z[k - 1] * z[k]
        T = np.maximum(T + part * z[k] ** 2 + np.array([mixed, -mixed]), 0.0)
    return float(np.mean(fdtrc(rank, residual_freedom, T / rank)))


def _standardised(y: Matrix, w: Matrix) -> Matrix:
    """Mean zero and variance one, with no square that leaves float64."""
    y = (y - y.min()) / (y.max() - y.min())
    y = y - w @ y
    return y / np.sqrt(w @ y**2)


def _refuse_too_few_rows(parents: int, rows: float) -> None:
    if rows < parents + 2:
        raise ValueError(
            f"{parents} parent(s) of one variable cannot be tested with rows that are worth "
            f"{rows:.3g}; at least {parents + 2} are needed. Give more rows or fewer parents."
        )
