"""CAM pruning: after any learner, drop the parents that a smooth additive model can do without.

A smooth function of one variable is a cubic spline in a basis that data and penalty both like.
With weights w that sum to one, the columns of a term are orthonormal, ``Zᵀ diag(w) Z = I``, and
have weighted mean zero; for f = Z b the roughness is ``∫ f″² ∝ Σ_l penalty_l b_l²``.  The first
column is the straight line, which costs nothing; the unit is such that the next one costs 1.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.graph.dag import as_square
from rescore.moments import Matrix, standardised
from rescore.protocols import Mask
from rescore.tables.table import as_table, names_index
from rescore.text import listing, printable
from rescore.validation import check_number
from rescore.weight_box import prior_weights, rows_stood_for

FUNCTIONS = 10  # of each parent, the constant among them
ROWS_PER_FUNCTION = 3  # with fewer rows than this for each, there are fewer functions
TINY = float(np.finfo(float).tiny)
NEARLY = 1e-9  # a rank this close to a whole number is that number
NEGLIGIBLE = 1e-10  # share of a column's variance below which the columns before it make it up
LEAST_NOISE = 1e-14  # share of y's variance that counts as noise even where nothing is left
CUBIC = 3
FINEST = 4  # decimals of the range that separate two knots: roughness grows with the cube of this
ROUNDED = 1e-10  # share of the largest variance below which a direction is rounding
# Bounds and start of θ = log(λ / (1 + λ)): from no smoothing to as good as a straight line.
ROUGHEST, START, SMOOTHEST = -20.0, -5.0, -1e-8


class Term(NamedTuple):
    """Columns (n, r) of one smooth function, and what each costs in roughness, (r,)."""

    columns: Matrix
    penalty: Matrix


def cam_prune(X: Any, graph: Any, cutoff: float = 0.001, sample_weight: Any = None) -> Any:
    """The graph without edges i → j whose function f_i in ``x_j = Σ_i f_i(x_i) + noise`` may be 0.

    Each variable is regressed once on all of its parents by penalised cubic splines, and those
    with a p-value above ``cutoff`` go, all at once (Bühlmann, Peters and Ernest 2014, CAM).

    Parameters
    ----------
    X
        Rows of numbers: an array, a list of rows, or a table of pandas, polars or pyarrow.
    graph
        A square matrix, a pandas table with the names of X on both sides, or a fitted learner.
        Entries that stay keep their value; a table gives a table, anything else an array.
    cutoff
        The largest p-value of an edge that stays.
    sample_weight
        One weight per row.  Whole numbers count rows; others only compare them.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> X[:, 2] += np.sin(2 * X[:, 0])
    >>> cam_prune(X, np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]]))
    array([[0, 0, 1],
           [0, 0, 0],
           [0, 0, 0]])
    """
    cutoff = check_number("cutoff", cutoff, at_least=0, at_most=1)
    table = as_table(X)
    graph = getattr(graph, "adjacency_matrix_", graph)
    W = as_square(graph)
    at = _positions(graph, table.names) if isinstance(graph, pd.DataFrame) else range(len(W))
    _refuse_unfit(W, table.names)
    w = prior_weights(sample_weight, len(table.values))
    rows = rows_stood_for(sample_weight, w)
    kept = significant(table.values[:, list(at)], W != 0, w, rows, cutoff)
    pruned: NDArray[Any] = np.where(kept, W, 0).astype(W.dtype)
    if isinstance(graph, pd.DataFrame):
        return pd.DataFrame(pruned, index=graph.index, columns=graph.columns)
    return pruned


def term_p_values(
    X: Any, target: Hashable, parents: Iterable[Hashable], sample_weight: Any = None
) -> pd.Series:
    """The p-value of each parent's function in ``target = Σ_i f_i(parent_i) + noise``.

    Columns go by their names; those of an array are x0, x1, and so on.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> X[:, 2] += np.sin(2 * X[:, 0])
    >>> term_p_values(X, "x2", ["x0", "x1"]).round(3)
    x0    0.000
    x1    0.939
    Name: x2, dtype: float64
    """
    table = as_table(X)
    wanted = list(parents)
    _refuse_unknown([target, *wanted], table.names)
    if target in wanted or len(set(wanted)) < len(wanted):
        raise ValueError(
            f"parents must differ from each other and from the target '{printable(target)}'; "
            f"got {listing(wanted)}."
        )
    position = {name: i for i, name in enumerate(table.names)}
    w = prior_weights(sample_weight, len(table.values))
    P, y = table.values[:, [position[name] for name in wanted]], table.values[:, position[target]]
    found = p_values(P, y, w, rows_stood_for(sample_weight, w)) if wanted else np.empty(0)
    return pd.Series(found, index=names_index(wanted), name=target)


def _positions(graph: pd.DataFrame, names: Sequence[Hashable]) -> list[int]:
    """Where the variables of the graph are in the data; both sides of it must agree."""
    nodes = list(graph.columns)
    if list(graph.index) != nodes or set(nodes) != set(names) or len(nodes) != len(names):
        raise ValueError(
            "The rows and the columns of the graph must have the names of the data's columns, "
            f"each once and in the same order on both sides; got rows {listing(graph.index)} and "
            f"columns {listing(nodes)} for the data's {listing(names)}."
        )
    position = {name: i for i, name in enumerate(names)}
    return [position[node] for node in nodes]


def _refuse_unfit(W: NDArray[Any], names: Sequence[Hashable]) -> None:
    if len(W) != len(names):
        raise ValueError(f"The graph has {len(W)} node(s) but the data {len(names)} column(s).")
    if np.diagonal(W).any():
        raise ValueError("The graph has a self-loop; no variable is a parent of itself.")


def _refuse_unknown(asked: Sequence[Hashable], names: Sequence[Hashable]) -> None:
    unknown = [name for name in asked if name not in names]
    if unknown:
        raise ValueError(
            f"The data have no column {listing(unknown)}; the columns are {listing(names)}."
        )


def significant(X: Matrix, edges: Mask, w: Matrix, rows: Any, cutoff: float) -> Mask:
    """``edges`` (d, d) without those i → j whose p-value, given all parents of j, is above cutoff.

    Row weights ``w`` (n,) sum to one and are worth ``rows`` equal rows; so do the columns of
    weights of cells (n, d), worth as many (d,).

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
        parents, own = np.flatnonzero(edges[:, j]), (w, rows) if w.ndim == 1 else (w[:, j], rows[j])
        kept[parents, j] = p_values(X[:, parents], X[:, j], *own) <= cutoff
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
    target = standardised((y - y.min())[:, None], w).values[:, 0]  # a large offset rounds
    products = cross_products([smooth_term(x, w, functions) for x in P.T], target, w, rows)
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


def _refuse_too_few_rows(parents: int, rows: float) -> None:
    if rows < parents + 2:
        raise ValueError(
            f"{parents} parent(s) of one variable cannot be tested with rows that are worth "
            f"{rows:.3g}; at least {parents + 2} are needed. Give more rows or fewer parents."
        )


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
    kept = variance > ROUNDED * variance[-1]
    T = U[:, kept] / np.sqrt(variance[kept])
    roughness, V = np.linalg.eigh(T.T @ S @ T)
    roughness[0] = 0.0  # that of a straight line, but for rounding
    unit = roughness[1:2].sum()
    return T @ V, roughness / unit if unit > 0 else np.zeros_like(roughness)
