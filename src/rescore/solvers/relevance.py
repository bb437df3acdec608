"""Gaussian processes with a relevance for every input, by the evidence of a variable's rows.

    y ~ N(0, K + v D),    K_ab = A exp(−½ Σ_i ρ_i (x_ai − x_bi)²),    D = diag(1 / precision)

An input whose relevance ρ_i is zero says nothing about y.  Relevances are learned by maximising
the evidence, all inputs at once, so that causes that act only together are found together.  The
slope at ρ_i = 0 is not zero, so inputs leave at the bound exactly, and can come back.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix
from rescore.protocols import Mask

PRICE = 0.5  # of a unit of relevance: an exponential prior, the mean two squared deviations away
SPREAD = 3.0  # deviation of the prior on the logarithms of amplitude and noise
TYPICAL = np.log(0.5)  # and its mean: half of a deviation-one variable is noise
JITTER = 1e-6  # of the amplitude, on the diagonal: nearby rows make K singular
LARGEST = 50.0  # relevance: features a seventh of a deviation wide
LOGS = ((-6.0, 6.0), (-7.0, 1.0))  # bounds on log A and log v
TOTAL, FIRST = 8.0, 1.0  # relevance of all inputs together, and of one at most, at the start
ENTRY = 0.05  # relevance of an input that joins a fit
ROUNDING = 1e-5  # relative fall of the cost at which a fit ends
MEMORY = 20  # steps that L-BFGS remembers
HOPELESS = 1e10  # cost where the kernel matrix cannot be factored


class Target(NamedTuple):
    """One variable to be explained: inputs (n, d), its values (n,), its noise's relative size."""

    X: NDArray[np.float32]
    y: NDArray[np.float32]
    noise: Matrix  # (n,), one where a row counts as one row


class Fit(NamedTuple):
    """Relevances and what they cost: minus the log evidence, and the priors' price."""

    cost: float
    theta: Matrix  # (d + 2,): relevances, log amplitude, log noise
    slope: Matrix  # (d,), of the cost in each relevance; negative where an input would help

    @property
    def relevance(self) -> Matrix:
        """Of every input, (d,)."""
        return self.theta[:-2]

    @property
    def inputs(self) -> NDArray[np.intp]:
        """Those of some relevance."""
        return np.flatnonzero(self.relevance > 0)


def kernel(theta: Matrix, X: NDArray[Any], Y: NDArray[Any], dtype: Any = np.float64) -> Any:
    """``A exp(−½ Σ_i ρ_i (x_ai − y_bi)²)``, (rows of X, rows of Y).

    Examples
    --------
    >>> theta = np.array([2.0, 0.0, 0.0])  # relevance two, amplitude one
    >>> print(kernel(theta, np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3))
    [[1.    0.368]]
    """
    active = np.flatnonzero(theta[:-2] > 0)
    root = np.sqrt(theta[active])
    U, V = ((Z[:, active] * root).astype(dtype) for Z in (X, Y))
    R = U @ V.T
    R -= np.square(U).sum(axis=1)[:, None] / 2
    R -= np.square(V).sum(axis=1) / 2
    np.minimum(R, 0, out=R)
    np.exp(R, out=R)
    R *= dtype(np.exp(theta[-2]))
    return R


def negative_evidence(theta: Matrix, target: Target, dtype: Any = np.float32) -> tuple[float, Any]:
    """``½ yᵀ C⁻¹ y + ½ log |C|`` with C = K + v D, up to a constant; and its gradient (d + 2,).

    Examples
    --------
    >>> target = Target(np.array([[0.0], [9.0]]), np.array([1.0, -1.0]), np.ones(2))
    >>> value, gradient = negative_evidence(np.array([1.0, 0.0, 0.0]), target, np.float64)
    >>> print(round(value, 3), gradient.round(3))  # C = 2 I: ½ + log 2
    1.193 [0.   0.25 0.25]
    """
    X, y, noise = target
    R = kernel(theta, X, X, dtype)
    factor, logdet = _factor(R, theta, noise)
    if factor is None:
        retry = np.finfo(dtype).eps > 1e-10
        return negative_evidence(theta, target, np.float64) if retry else (HOPELESS, 0 * theta)
    half = _half_inverse(factor)  # C⁻¹ is its sum with its transpose
    y = y.astype(dtype)
    weights = half @ y + half.T @ y
    diagonal = 2 * np.diag(half).astype(np.float64)
    value = float(y @ weights) / 2 + logdet
    return value, _gradient(theta, X, R, half, weights, diagonal, noise)


def _factor(R: Any, theta: Matrix, noise: Matrix) -> tuple[Any, float]:
    """The Cholesky factor of K + v D and half its log-determinant; None where there is none."""
    from scipy.linalg import lapack

    C = np.array(R, order="F")
    diagonal = np.diag_indices(len(C))
    C[diagonal] += (np.exp(theta[-1]) * noise + JITTER * np.exp(theta[-2])).astype(C.dtype)
    factorise = lapack.spotrf if C.dtype == np.float32 else lapack.dpotrf
    factor, failed = factorise(C, lower=1, clean=1, overwrite_a=1)
    if failed:
        return None, np.inf
    return factor, float(np.log(np.diag(factor).astype(np.float64)).sum())


def _half_inverse(factor: Any) -> Any:
    """The lower triangle of the inverse, with half the diagonal."""
    from scipy.linalg import lapack

    invert = lapack.spotri if factor.dtype == np.float32 else lapack.dpotri
    half, _ = invert(factor, lower=1, overwrite_c=1)
    half[np.diag_indices(len(half))] *= half.dtype.type(0.5)
    return half


def _gradient(
    theta: Matrix, X: Any, R: Any, half: Any, weights: Any, diagonal: Matrix, noise: Matrix
) -> Matrix:
    """With G = (C⁻¹y yᵀC⁻¹ − C⁻¹) ∘ K: −½ Σ G ∂log K, from one half of the symmetric matrices."""
    H = np.multiply.outer(weights / 2, weights)
    H -= half
    H *= R
    sums = (H.sum(axis=0) + H.sum(axis=1)).astype(np.float64)  # of the rows of G
    X = X.astype(H.dtype)
    products = 2 * np.einsum("ai,ai->i", X, H @ X).astype(np.float64)  # xᵀ G x
    squares = 2 * (sums @ np.square(X, dtype=np.float64) - products)  # Σ_ab G_ab (x_a − x_b)²
    weights = weights.astype(np.float64)
    by_noise = -np.exp(theta[-1]) / 2 * ((np.square(weights) - diagonal) @ noise)
    jitter = -JITTER * np.exp(theta[-2]) / 2 * (np.square(weights) - diagonal).sum()
    return np.r_[squares / 4, jitter - sums.sum() / 2, by_noise]


def cost(theta: Matrix, target: Target) -> tuple[float, Matrix]:
    """Minus the log evidence, the price of relevances and the prior on the rest; its gradient."""
    value, gradient = negative_evidence(theta, target)
    away = (theta[-2:] - TYPICAL) / SPREAD
    value += PRICE * theta[:-2].sum() + away @ away / 2
    return value, gradient + np.r_[np.full(len(theta) - 2, PRICE), away / SPREAD]


def cost_alone(theta: Matrix, target: Target) -> float:
    """The same without its gradient, in a third of the time."""
    from scipy.linalg import lapack

    for dtype, solve in ((np.float32, lapack.spotrs), (np.float64, lapack.dpotrs)):
        R = kernel(theta, target.X, target.X, dtype)
        factor, logdet = _factor(R, theta, target.noise)
        if factor is not None:
            y = target.y.astype(dtype)
            away = (theta[-2:] - TYPICAL) / SPREAD
            prior = PRICE * theta[:-2].sum() + away @ away / 2
            return float(y @ solve(factor, y, lower=1)[0]) / 2 + logdet + float(prior)
    return HOPELESS


def fresh(candidates: Mask) -> Matrix:
    """Where a fit starts that knows nothing: all candidates (d,) a little relevant.

    Examples
    --------
    >>> print(fresh(np.array([True, False])).round(1))
    [ 1.   0.  -0.7 -0.7]
    """
    theta = np.r_[np.zeros(len(candidates)), TYPICAL, TYPICAL]
    theta[:-2][candidates] = min(TOTAL / max(candidates.sum(), 1), FIRST)
    return theta


def maximise(target: Target, candidates: Mask, start: Matrix, iterations: int) -> Fit:
    """The fit of largest evidence near the start, with only the candidates (d,) of any relevance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=200)
    >>> both = np.array([True, True])
    >>> fit = maximise(Target(X, y, np.ones(200)), both, fresh(both), iterations=50)
    >>> bool(fit.relevance[0] > 10 * fit.relevance[1])
    True
    """
    from scipy.optimize import minimize

    bounds = [(0.0, LARGEST if free else 0.0) for free in candidates] + list(LOGS)
    start = np.clip(start, *np.transpose(bounds))
    objective: Callable[..., Any] = partial(cost, target=target)
    options = {"maxiter": iterations, "maxcor": MEMORY, "ftol": ROUNDING}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return Fit(float(found.fun), found.x, np.asarray(found.jac)[:-2])


class Predictor(NamedTuple):
    """What predicts from the rows of a fit: ``C⁻¹ y`` (n,), ``C⁻¹`` (n, n) and its diagonal (n,).

    The residual of row a, predicted from all others, is ``(C⁻¹y)_a / (C⁻¹)_aa``, and its variance
    ``1 / (C⁻¹)_aa``, of which only the part ``v / precision`` is noise.
    """

    theta: Matrix
    target: Target
    dual: Matrix
    inverse: Matrix

    def left_out(self) -> Matrix:
        """What each row leaves when it is predicted from the others, (n,)."""
        return self.dual / np.diag(self.inverse)

    def noises(self) -> Matrix:
        """The same shrunk to the deviation of the noise: a function less certain is no noise."""
        size = np.exp(self.theta[-1]) * self.target.noise
        return self.left_out() * np.sqrt(np.minimum(size * np.diag(self.inverse), 1.0))

    def noises_of(self, X: NDArray[Any], y: NDArray[Any], noise: Matrix) -> Matrix:
        """That of other rows X with values y and relative noise variances, (n,)."""
        R = kernel(self.theta, X, self.target.X)
        unsure = np.exp(self.theta[-2]) - ((R @ self.inverse) * R).sum(axis=1)
        size = np.exp(self.theta[-1]) * noise
        return (y - R @ self.dual) * np.sqrt(size / (size + np.maximum(unsure, 0.0)))


def predictor(theta: Matrix, target: Target) -> Predictor:
    """In double precision.

    Examples
    --------
    >>> target = Target(np.array([[0.0], [9.0]]), np.array([1.0, -1.0]), np.ones(2))
    >>> predictor(np.array([1.0, 0.0, 0.0]), target).left_out().round(3)
    array([ 1., -1.])
    """
    R = kernel(theta, target.X, target.X, np.float64)
    for boost in (0.0, 1e-4, 1e-2, 1.0):  # rows nearly repeated with hardly any noise
        factor, _ = _factor(R, theta, target.noise + boost)
        if factor is not None:
            break
    half = _half_inverse(factor)
    inverse = half + half.T
    return Predictor(theta, target, inverse @ target.y.astype(np.float64), inverse)
