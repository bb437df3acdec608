"""Gaussian processes with a relevance for every input, by the evidence of a variable's rows.

    y ~ N(0, K + P Pᵀ + v D),    K_ab = A exp(−½ Σ_i ρ_i (x_ai − x_bi)²),    D = diag(1 / precision)

An input whose relevance ρ_i is zero says nothing about y.  Relevances are learned by maximising
the evidence, all inputs at once, so that causes that act only together are found together.  The
slope at ρ_i = 0 is not zero, so inputs leave at the bound exactly, and can come back.

Steps are those of Fisher scoring inside the bounds (`gaussian_covariance` has the information),
which saves nine tenths of the factorisations that a quasi-Newton method needs here.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix
from rescore.protocols import Mask
from rescore.solvers.gaussian_covariance import (
    JITTER,
    Factored,
    Target,
    drawn,
    factored,
    gradient,
    half_inverse,
    information,
)
from rescore.solvers.lasso import inside

PRICE = 0.5  # of a unit of relevance, while inputs are looked for: an exponential prior
SPREAD = 3.0  # deviation of the prior on the logarithm of the noise
TYPICAL = np.log(0.5)  # and its mean: half of a deviation-one variable is noise
LARGEST = 50.0  # relevance: features a seventh of a deviation wide
LOGS = ((-6.0, 6.0), (-7.0, 1.0))  # bounds on log A and log v
TOTAL = 8.0  # relevance of all inputs together, at most, at the start
HARDLY = 0.25  # relevance of an input that hardly bends: its features are two deviations wide
ENTRY = 0.05  # relevance of an input that joins a fit; below it steps are linear, above relative
LONGEST = 1.5  # step, in logarithms
STEPS_ALONE = 12  # of a fit without inputs: more than it ever takes, and they cost nothing
ENOUGH = 0.02  # log evidence: a step that promises less is not taken
DAMPING = (1e-3, 1e4)  # of the first step, and where no step helps any more
PATIENCE = 3.0  # times what a step promises: more is not to be had after it
TINY = 1e-3  # information that is none
HOPELESS = 1e10  # cost where the kernel matrix cannot be factored


class Fit(NamedTuple):
    """Relevances and what they cost: minus the log evidence, and the priors' price."""

    cost: float
    theta: Matrix  # (d + 2,): relevances, log amplitude, log noise
    stake: Matrix  # (d,), log evidence that each input adds, or would add, to second order
    doubt: Matrix  # (d + 1,), variances left to log(1 + ρ / ENTRY) of inputs and to log A − log v

    @property
    def relevance(self) -> Matrix:
        """Of every input, (d,)."""
        return self.theta[:-2]

    @property
    def inputs(self) -> NDArray[np.intp]:
        """Those of some relevance."""
        return np.flatnonzero(self.relevance > 0)


class Prior(NamedTuple):
    """What relations of one table have in common: how relevant inputs are, signal to noise.

    An input that is there has ``log(1 + ρ / ENTRY)`` about a level; one that is not costs nothing.
    While inputs are looked for (``relaxed``) every unit of relevance has its price instead, so
    that they can come and go.
    """

    level: float = float(np.log1p(1 / ENTRY))
    spread: float = 1.0
    ratio: float = 0.0  # log A − log v
    width: float = SPREAD
    relaxed: bool = False

    @property
    def relevance(self) -> float:
        """Of an input like others."""
        return float(ENTRY * np.expm1(self.level))

    @property
    def entrance(self) -> float:
        """What it costs at least to fit chance, which gains most by an input that hardly bends.

        Under a prior learned from inputs that matter that is more than chance can gain.
        """
        away = np.log1p(HARDLY / ENTRY) - self.level
        return float(min(away, 0.0) ** 2 / self.spread**2 / 2)

    def value(self, theta: Matrix) -> float:
        """Minus its logarithm, up to a constant."""
        ratio, noise = self._away(theta)
        rho = theta[:-2][theta[:-2] > 0]
        inputs = PRICE * rho.sum() if self.relaxed else (self._from_level(rho) ** 2).sum() / 2
        return float(inputs + (ratio**2 + noise**2) / 2)

    def slope(self, theta: Matrix) -> Matrix:
        """Its gradient (d + 2,)."""
        rho, (ratio, noise) = theta[:-2], self._away(theta)
        out = np.full(len(theta), PRICE)
        if not self.relaxed:
            there = self._from_level(rho) / self.spread / (ENTRY + rho)
            out[:-2] = np.where(rho > 0, there, PRICE)
        out[-2:] = ratio / self.width, noise / SPREAD - ratio / self.width
        return out

    def curvature(self, rho: Matrix) -> Matrix:
        """Of the inputs' logarithms, log A and log v, (p + 2, p + 2)."""
        p, sharp = len(rho), 1 / self.width**2
        bend = PRICE * (ENTRY + rho) if self.relaxed else np.full(p, 1 / self.spread**2)
        H = np.diag(np.r_[bend, sharp, sharp + 1 / SPREAD**2])
        H[p, p + 1] = H[p + 1, p] = -sharp
        return H

    def _from_level(self, rho: Matrix) -> Matrix:
        return (np.log1p(rho / ENTRY) - self.level) / self.spread

    def _away(self, theta: Matrix) -> tuple[float, float]:
        log_signal, log_noise = theta[-2:]
        ratio = (log_signal - log_noise - self.ratio) / self.width
        return ratio, (log_noise - TYPICAL) / SPREAD


RELAXED = Prior(relaxed=True)


def learned(fits: Iterable[Fit], sure: float) -> Prior:
    """The prior that fits agree on, from inputs worth so much: a step of EM.

    As if one relation more were known, a deviation of one away.

    Examples
    --------
    >>> theta, doubt = np.array([2.0, 0.5, 0.0]), np.array([0.1, 0.2])
    >>> found = learned([Fit(0.0, theta, np.array([9.0]), doubt)] * 3, sure=4.0)
    >>> print(f"{ENTRY * np.expm1(found.level):.2f} {found.spread:.2f} {found.ratio:.2f}")
    2.00 0.57 0.50
    """
    kept = [(fit, np.flatnonzero((fit.relevance > 0) & (fit.stake > sure))) for fit in fits]
    kept = [(fit, inputs) for fit, inputs in kept if len(inputs) > 0]
    if not kept:
        return Prior()
    x = np.concatenate([np.log1p(fit.relevance[inputs] / ENTRY) for fit, inputs in kept])
    unsure = np.concatenate([fit.doubt[inputs] for fit, inputs in kept])
    ratios = np.array([fit.theta[-2] - fit.theta[-1] for fit, _ in kept])
    level, spread = _agreed(x, unsure)
    return Prior(level, spread, *_agreed(ratios, np.array([fit.doubt[-1] for fit, _ in kept])))


def _agreed(values: Matrix, unsure: Matrix) -> tuple[float, float]:
    """Mean and deviation."""
    mean = float(values.mean())
    square = (1 + (np.square(values - mean) + unsure).sum()) / (1 + len(values))
    return mean, float(np.sqrt(square))


def cost(theta: Matrix, target: Target, prior: Prior = RELAXED) -> float:
    """Minus the log evidence, and the prior."""
    if not (theta[:-2] > 0).any():
        return _noise_alone(theta, target) + prior.value(theta)
    parts = factored(theta, target)
    return HOPELESS if parts is None else parts.value + prior.value(theta)


def _noise_alone(theta: Matrix, target: Target) -> float:
    """Minus the log evidence of no function at all."""
    variance = np.exp(theta[-1]) * target.noise + JITTER * np.exp(theta[-2])
    left = beside_levels(variance, target)
    return float((target.y * left.y / variance + np.log(variance)).sum() + left.logdet) / 2


class Left(NamedTuple):
    """What levels leave of y, how many of them the rows tell, and ``log |I + Pᵀ V⁻¹ P|``."""

    y: Matrix
    told: float
    logdet: float


def beside_levels(variance: Matrix, target: Target) -> Left:
    """By Woodbury: ``(V + P Pᵀ)⁻¹ y = V⁻¹ (y − P m)``, m the levels as the rows tell them."""
    y, P = target.y.astype(np.float64), target.groups
    if P is None:
        return Left(y, 0.0, 0.0)
    scaled = P / variance[:, None]
    H = np.eye(P.shape[1]) + P.T @ scaled
    inverse = np.linalg.inv(H)
    told = P.shape[1] - float(np.trace(inverse))
    return Left(y - P @ (inverse @ (scaled.T @ y)), told, float(np.linalg.slogdet(H)[1]))


def nothing(target: Target, prior: Prior) -> Fit:
    """The fit of noise alone, by Newton's method on the logarithm of its variance.

    Examples
    --------
    >>> one = Target(np.zeros((4, 1)), np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4))
    >>> print(nothing(one, Prior()).theta.round(2))
    [ 0.   -0.04 -0.04]
    """
    d, n = target.X.shape[1], len(target.y)
    at = TYPICAL
    for _ in range(STEPS_ALONE):
        left = beside_levels(np.exp(at) * target.noise, target)
        squares = float((np.square(left.y) / target.noise).sum()) / 2
        slope = (n - left.told) / 2 - squares * np.exp(-at) + (at - TYPICAL) / SPREAD**2
        at -= np.clip(slope / (squares * np.exp(-at) + 1 / SPREAD**2), -LONGEST, LONGEST)
    at = float(np.clip(at, *LOGS[1]))
    theta = np.r_[np.zeros(d), np.clip(at + prior.ratio, *LOGS[0]), at]
    return Fit(cost(theta, target, prior), theta, np.zeros(d), np.zeros(d + 1))


def fresh(candidates: Mask, prior: Prior = RELAXED) -> Matrix:
    """Where a fit starts that knows nothing: all candidates (d,) a little relevant.

    Examples
    --------
    >>> print(fresh(np.array([True, False])).round(1))
    [ 1.   0.  -0.7 -0.7]
    """
    noise = -np.log1p(np.exp(prior.ratio))
    theta = np.r_[np.zeros(len(candidates)), noise + prior.ratio, noise]
    theta[:-2][candidates] = min(TOTAL / max(candidates.sum(), 1), prior.relevance)
    return theta


def maximise(
    target: Target,
    candidates: Mask,
    start: Matrix,
    iterations: int,
    prior: Prior = RELAXED,
    enough: float = ENOUGH,
    limit: float = np.inf,
) -> Fit:
    """The fit of largest evidence near the start, with only the candidates (d,) of any relevance.

    It ends early where its cost will clearly stay above a limit.

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
    inputs = np.flatnonzero(candidates)
    if len(inputs) == 0:
        return nothing(target, prior)
    point = _Point.at(np.r_[np.where(candidates, start[:-2], 0.0), start[-2:]], target, prior)
    if point is None:  # nothing can be learned from here
        return Fit(HOPELESS, start, np.zeros(len(candidates)), np.zeros(len(candidates) + 1))
    damping = DAMPING[0]
    for _ in range(iterations):
        point, damping, moved = _stepped(point, inputs, damping, enough, limit)
        if not moved:
            break
    return Fit(point.cost, point.theta, *point.known())


class _Point:
    """Parameters with what is known of the evidence there; slopes only once they are asked for."""

    def __init__(self, theta: Matrix, target: Target, parts: Factored, prior: Prior) -> None:
        self.theta, self.target, self.prior = theta, target, prior
        self._K, self._factor = parts.K, parts
        self.cost = parts.value + prior.value(theta)

    @classmethod
    def at(cls, theta: Matrix, target: Target, prior: Prior) -> "_Point | None":
        parts = factored(theta, target)
        return None if parts is None else cls(theta, target, parts, prior)

    @cached_property
    def _solved(self) -> tuple[Any, Any, Matrix]:
        """Half the inverse, C⁻¹ times the data and what is drawn, and the gradient of the cost."""
        parts = self._factor
        duals = np.column_stack((parts.dual, drawn(parts.factor)))
        half = half_inverse(parts.factor)  # in the factor's place
        slope = gradient(self.theta, self.target, parts, half) + self.prior.slope(self.theta)
        return half, duals, slope

    @property
    def gradient(self) -> Matrix:
        return self._solved[2]

    def information(self, inputs: NDArray[np.intp]) -> Matrix:
        half, duals, _ = self._solved
        return information(self.theta, self.target, self._K, half, duals, inputs)

    def known(self) -> tuple[Matrix, Matrix]:
        """Stakes, by the tests of Wald and, for inputs not there, of the score; and `Fit.doubt`."""
        d, rho = len(self.theta) - 2, self.theta[:-2]
        F = self.information(np.arange(d))
        F[np.diag_indices(d + 2)] += np.r_[np.full(d, TINY), TINY, 1 / SPREAD**2]
        there = np.flatnonzero(np.r_[rho > 0, True, True])
        known = np.linalg.inv(F[np.ix_(there, there)])
        out = np.square(np.minimum(self.gradient[:-2], 0.0)) / 2
        C = F[:d][:, there]
        out /= np.maximum(np.diag(F)[:-2] - np.einsum("ia,ab,ib->i", C, known, C), TINY)
        inputs = there[:-2]
        out[inputs] = np.square(rho[inputs]) / np.diag(known)[:-2] / 2
        return out, self._doubt(F[np.ix_(there, there)], inputs)

    def _doubt(self, F: Matrix, inputs: NDArray[np.intp]) -> Matrix:
        scale = np.r_[ENTRY + self.theta[inputs], 1.0, 1.0]
        H = F * np.outer(scale, scale) + self.prior.curvature(self.theta[inputs])
        V = np.linalg.inv(H)
        doubt = np.zeros(len(self.theta) - 1)
        doubt[inputs] = np.diag(V)[:-2]
        doubt[-1] = V[-2, -2] + V[-1, -1] - 2 * V[-1, -2]
        return doubt


def _stepped(
    point: _Point, inputs: NDArray[np.intp], damping: float, enough: float, limit: float
) -> tuple[_Point, float, bool]:
    """A damped step of Fisher scoring in log(1 + ρ / ENTRY), log A and log v."""
    p, theta = len(inputs), point.theta
    scale = np.r_[ENTRY + theta[inputs], 1.0, 1.0]
    at = np.r_[np.log1p(theta[inputs] / ENTRY), theta[-2:]]
    slope = np.r_[point.gradient[inputs], point.gradient[-2:]] * scale
    F = point.information(inputs) * np.outer(scale, scale)
    F += point.prior.curvature(theta[inputs])
    lowest = np.r_[np.zeros(p), LOGS[0][0], LOGS[1][0]]
    highest = np.r_[np.full(p, np.log1p(LARGEST / ENTRY)), LOGS[0][1], LOGS[1][1]]
    box = np.maximum(lowest - at, -LONGEST), np.minimum(highest - at, LONGEST)
    while damping < DAMPING[1]:
        step = inside(slope, F + damping * np.diag(np.diag(F) + TINY), *box)
        promised = -(slope @ step + step @ F @ step / 2)
        stays = damping <= DAMPING[0] and point.cost - PATIENCE * promised > limit
        if promised < enough or stays:
            break
        new = np.r_[np.zeros(len(theta) - 2), at[p:] + step[p:]]
        new[inputs] = ENTRY * np.expm1(at[:p] + step[:p])
        other = _Point.at(new, point.target, point.prior)
        gained = -np.inf if other is None else point.cost - other.cost
        if other is not None and gained > 0.1 * promised:
            return other, max(damping / 5, 1e-4) if gained > 0.7 * promised else damping, True
        damping = max(8 * damping, 0.05)
    return point, damping, False
