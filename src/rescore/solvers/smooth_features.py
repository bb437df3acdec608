"""Smooth functions of every variable as a few features each, and their Gram matrix.

The first feature of a variable is the variable itself in deviations.  The others are natural cubic
splines with knots at quantiles, orthonormal, uncorrelated with the first, the smoothest first; a
coefficient b_l of theirs costs ``rough_l b_l²`` in roughness ``∫f″²``, the first of them one.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rescore.equations import AdditiveEquations, cubic
from rescore.moments import Matrix, standardised
from rescore.protocols import Mask, Problem

KNOTS = 20  # of every variable, fewer where it has few distinct values
FEATURES = 10  # of every variable, itself among them: the smoothest that 20 knots allow
FENCE = 10.0  # interquartile ranges beyond the quartiles from which functions are straight lines
APART = 1e-4  # share of the range that separates two knots at least
NEGLIGIBLE = 1e-9  # share of the largest variance below which a direction is rounding


class Smooth(NamedTuple):
    """The features of one variable in deviations from its mean: splines, lines and constants."""

    knots: Matrix  # (K,)
    values: Matrix  # (K, m) at the knots
    bends: Matrix  # (K, m)
    slope: Matrix  # (m,)
    constant: Matrix  # (m,)
    rough: Matrix  # (m,), zero for the line


@dataclass(frozen=True, eq=False)
class Basis:
    """The features of all variables.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(500, 2)))
    >>> basis = Basis.of(problem)
    >>> Phi = basis.features(problem.rows.matrix())
    >>> bool(np.allclose(Phi[:, :10].T @ Phi[:, :10] / 500, np.eye(10), atol=1e-6))
    True
    """

    mean: Matrix  # (d,)
    deviation: Matrix  # (d,)
    smooth: tuple[Smooth, ...]

    @classmethod
    def of(cls, problem: Problem) -> "Basis":
        """For the rows of a problem under its prior weights."""
        Z, mean, deviation = standardised(problem.rows.matrix(), problem.prior)
        return cls(mean, deviation, tuple(smooth(z, problem.prior) for z in Z.T))

    @property
    def width(self) -> int:
        """Of all features together."""
        return FEATURES * len(self.mean)

    @property
    def rough(self) -> Matrix:
        """What every coefficient costs in roughness, (d·m,)."""
        return np.concatenate([one.rough for one in self.smooth])

    def features(self, X: Matrix) -> Matrix:
        """Of rows (n, d), those of each variable side by side: (n, d·m)."""
        Z = (X - self.mean) / self.deviation
        out = np.empty((len(X), self.width))
        for i, (knots, values, bends, slope, constant, _) in enumerate(self.smooth):
            own = out[:, i * FEATURES : (i + 1) * FEATURES]
            own[:] = cubic(Z[:, i], knots, values, bends)
            own += Z[:, [i]] * slope + constant
        return out

    def equations(self, coefficients: Matrix, edges: Mask, offset: Matrix) -> AdditiveEquations:
        """The functions of the edges with these coefficients of features, (d·m, d)."""
        d = len(edges)
        B = coefficients.reshape(d, FEATURES, d) * edges[:, None, :]
        values = np.stack([one.values @ b for one, b in zip(self.smooth, B, strict=True)])
        bends = np.stack([one.bends @ b for one, b in zip(self.smooth, B, strict=True)])
        slope = np.stack([one.slope @ b for one, b in zip(self.smooth, B, strict=True)])
        level = np.stack([one.constant @ b for one, b in zip(self.smooth, B, strict=True)])
        knots = np.stack([one.knots for one in self.smooth])
        moved = offset + self.deviation * level.sum(axis=0)
        by_edge = values.transpose(0, 2, 1), bends.transpose(0, 2, 1)
        return AdditiveEquations(knots, *by_edge, slope, self.mean, moved, self.deviation)


def smooth(z: Matrix, w: Matrix) -> Smooth:
    """The features of z (n,), of mean zero and deviation one under the weights w.

    Two distinct values make a straight line alone.

    Examples
    --------
    >>> smooth(np.array([-1.0, 1.0]), np.array([0.5, 0.5])).values.any()
    np.False_
    """
    knots = quantile_knots(z)
    splines, lines = np.zeros((2, KNOTS, FEATURES)), np.zeros((3, FEATURES))
    knots_apart = np.arange(KNOTS, dtype=float)
    found = Smooth(knots_apart, splines[0], splines[1], lines[0], lines[1], lines[2])
    found.rough[1:] = 1.0
    found.slope[0] = float(z.any())
    if len(knots) > 2:
        _fill(found, z, w, knots)
    return found


def quantile_knots(z: Matrix) -> Matrix:
    """Quantiles of the distinct values: neither repeated rows nor weights move them.

    Values far beyond the quartiles are left out, for the knots must be where the rows are.

    Examples
    --------
    >>> quantile_knots(np.r_[np.arange(39.0), 1e6]).max()
    np.float64(38.0)
    """
    distinct = np.unique(z)
    low, high = np.quantile(distinct, [0.25, 0.75])
    far = FENCE * (high - low)
    inside = distinct[(distinct >= low - far) & (distinct <= high + far)]
    knots = np.quantile(inside, np.linspace(0, 1, KNOTS))
    steps = (knots - knots[0]) / max(knots[-1] - knots[0], np.finfo(float).tiny)
    return np.asarray(knots[np.unique(np.round(steps / APART), return_index=True)[1]])


def _fill(found: Smooth, z: Matrix, w: Matrix, knots: Matrix) -> None:
    """Splines through these knots, orthonormal and by rising roughness, into their places."""
    K, curvature = len(knots), bends_of(knots)
    C = cubic(z, knots, np.eye(K), curvature)
    level, slope = w @ C, (w * z) @ C
    C -= level + np.outer(z, slope)
    variance, U = np.linalg.eigh((C.T * w) @ C)
    kept = variance > NEGLIGIBLE * max(variance[-1], NEGLIGIBLE)
    T = U[:, kept] / np.sqrt(variance[kept])
    rough, V = np.linalg.eigh(T.T @ roughness(knots, curvature) @ T)
    T = (T @ V)[:, : FEATURES - 1]
    # A line that outlying values make straight only in part has no roughness of its own.
    bent = rough[rough > NEGLIGIBLE * rough[-1:].sum()]
    own = slice(1, 1 + T.shape[1])
    found.rough[own] = np.maximum(rough[: T.shape[1]] / bent[:1].sum(), 1.0) if len(bent) else 1.0
    found.knots[:K], found.knots[K:] = knots, knots[-1] + 1 + np.arange(KNOTS - K)
    found.values[:K, own], found.values[K:, own] = T, T[-1]
    found.bends[:K, own] = curvature @ T
    found.slope[own], found.constant[own] = -slope @ T, -level @ T


def bends_of(knots: Matrix) -> Matrix:
    """Second derivatives (K, K) at the knots of natural splines that are one at a knot each.

    Examples
    --------
    >>> bends_of(np.array([0.0, 1.0, 2.0]))[1]
    array([ 1.5, -3. ,  1.5])
    """
    h, K = np.diff(knots), len(knots)
    inner = np.arange(K - 2)
    Q = np.zeros((K - 2, K))  # second differences
    Q[inner, inner], Q[inner, inner + 2] = 1 / h[:-1], 1 / h[1:]
    Q[inner, inner + 1] = -1 / h[:-1] - 1 / h[1:]
    R = np.diag((h[:-1] + h[1:]) / 3) + np.diag(h[1:-1] / 6, 1) + np.diag(h[1:-1] / 6, -1)
    return np.asarray(np.pad(np.linalg.solve(R, Q), ((1, 1), (0, 0))))


def roughness(knots: Matrix, bends: Matrix) -> Matrix:
    """``∫ f_k″ f_l″`` (K, K) of functions whose second derivatives are straight between knots.

    Examples
    --------
    >>> roughness(np.array([0.0, 1.0, 2.0]), np.array([[0.0], [3.0], [0.0]]))
    array([[6.]])
    """
    h = np.diff(knots)[:, None]
    low, high = bends[:-1], bends[1:]
    both = (h * low).T @ high
    return np.asarray((2 * ((h * low).T @ low + (h * high).T @ high) + both + both.T) / 6)
