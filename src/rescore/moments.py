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
        self, parents: NDArray[np.intp], j: int, w: Matrix, counts: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Weighted regression of variable j on ``parents``: coefficients and their variances.

        ``C (Σ w_i²/c_i e_i² z_i z_iᵀ) C`` with ``C = (Σ w_i z_i z_iᵀ)⁻¹``, row i standing for c_i
        rows: right also where the noise differs between rows, as wherever weights should move.
        """
        Z, y = self.values[:, parents], self.values[:, j]
        Z, y = Z - w @ Z, y - w @ y
        C = np.linalg.pinv((Z * w[:, None]).T @ Z, hermitian=True)
        b = C @ (Z * w[:, None]).T @ y
        spread = np.square(w * (y - Z @ b)) / counts
        return b, spread @ np.square(Z @ C)

    def regression_losses(self, edges: NDArray[np.bool_], cell_weights: Matrix) -> Matrix:
        """Squared residuals (n, d) of each variable regressed on its parents in ``edges`` (d, d).

        ``cell_weights`` (n, d) hold a weight per row and variable: with inverse noise variances
        these are the most precise coefficients the rows allow.
        """
        out = np.empty(self.shape)
        for j in range(self.shape[1]):
            A = np.column_stack([np.ones(self.shape[0]), self.values[:, edges[:, j]]])
            root = np.sqrt(cell_weights[:, j])
            b = np.linalg.lstsq(A * root[:, None], self.values[:, j] * root, rcond=None)[0]
            out[:, j] = np.square(self.values[:, j] - A @ b)
        return out

    def _chunks(self) -> Iterator[slice]:
        n = self.shape[0]
        return (slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK))
