"""Rows reduced to what a learner needs: weighted moments and per-row losses.

The one place that reads rows.  With the weights fixed, a linear learner's loss is
``Σ_i w_i |x_i − x_i W|² = tr (I−W)ᵀ S (I−W)`` with ``S`` the weighted covariance (d, d), so one
pass here replaces the table for a whole outer iteration, however long the table is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

CHUNK = 2**15  # rows at a time: temporaries stay in cache, and memory at one copy of X


class Moments(NamedTuple):
    """Weighted mean (d,), and weighted, weighted-centred covariance (d, d)."""

    mean: Matrix
    covariance: Matrix


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of n rows and d variables that can be asked for moments and losses.

    Examples
    --------
    >>> rows = Rows(np.array([[0.0, 0.0], [2.0, 4.0]]))
    >>> rows.moments(np.array([0.5, 0.5])).covariance
    array([[1., 2.],
           [2., 4.]])
    """

    values: Matrix  # (n, d)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of variables, ``(n, d)``."""
        n, d = self.values.shape
        return n, d

    def moments(self, w: Matrix) -> Moments:
        """``μ = Σ w_i x_i`` and ``S = Σ w_i (x_i − μ)(x_i − μ)ᵀ`` for weights that sum to one."""
        mean = np.zeros(self.shape[1])
        for part in self._chunks():
            mean += w[part] @ self.values[part]
        S = np.zeros((self.shape[1],) * 2)
        for part in self._chunks():
            # √w on both sides keeps the product exactly symmetric.
            centred = (self.values[part] - mean) * np.sqrt(w[part])[:, None]
            S += centred.T @ centred
        return Moments(mean, S)

    def squared_residuals(self, W: Matrix, mean: Matrix) -> Matrix:
        """``r_ij² = ((x_i − μ)(I − W))_j²``, (n, d): the least-squares loss of each cell."""
        out = np.empty(self.shape)
        for part in self._chunks():
            centred = self.values[part] - mean
            out[part] = np.square(centred - centred @ W)
        return out

    def coefficients(
        self, parents: NDArray[np.intp], j: int, moments: Moments, w: Matrix, counts: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Regression of variable j on ``parents``: coefficients and their variances.

        ``C (Σ w_i²/c_i e_i² z_i z_iᵀ) C`` with ``C = (Σ w_i z_i z_iᵀ)⁻¹``, row i standing for c_i
        rows: right also where the noise differs between rows, as wherever weights should move.
        ``moments`` are those under the weights ``w``.
        """
        mean, S = moments
        C, b = _normal_equations(S, parents, j)
        variance = np.zeros(len(parents))
        for part in self._chunks():
            Z = self.values[part][:, parents] - mean[parents]
            error = self.values[part, j] - mean[j] - Z @ b
            variance += (np.square(w[part] * error) / counts[part]) @ np.square(Z @ C)
        return b, variance

    def _chunks(self) -> Iterator[slice]:
        n = self.shape[0]
        return (slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK))


class Summary(Rows):
    """Rows known by their mean and covariance alone, behind 2d stand-ins that share both.

    Whatever a linear learner asks of rows it asks of moments, so the answers are those of the
    rows themselves.  Only how the noise differs between rows cannot be known: standard errors
    are those of equal noise.

    Examples
    --------
    >>> rows = Summary.of(np.array([5.0, 0.0]), np.array([[4.0, 1.0], [1.0, 1.0]]))
    >>> rows.moments(np.full(4, 1 / 4)).covariance.round(9)
    array([[4., 1.],
           [1., 1.]])
    """

    @classmethod
    def of(cls, mean: Matrix, covariance: Matrix) -> "Summary":
        """Stand-ins ``μ ± √d u_k``, with ``Σ_k u_k u_kᵀ`` the covariance."""
        deviations = np.sqrt(np.diag(covariance))
        units = np.where(deviations > 0, deviations, 1.0)
        # Of the correlation matrix, so that a wide column does not round a narrow one away.
        values, vectors = np.linalg.eigh(covariance / np.outer(units, units))
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T * deviations * np.sqrt(len(mean))
        return cls(np.vstack([mean + root, mean - root]))

    def coefficients(
        self, parents: NDArray[np.intp], j: int, moments: Moments, w: Matrix, counts: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Regression of variable j on ``parents``: coefficients and their variances."""
        S = moments.covariance
        C, b = _normal_equations(S, parents, j)
        return b, (S[j, j] - b @ S[parents, j]) * np.diag(C) / counts.sum()


def _normal_equations(S: Matrix, parents: NDArray[np.intp], j: int) -> tuple[Matrix, Matrix]:
    """The inverse covariance C of the parents, and the coefficients of j on them."""
    C: Matrix = np.linalg.pinv(S[np.ix_(parents, parents)], hermitian=True).astype(np.float64)
    return C, C @ S[parents, j]
