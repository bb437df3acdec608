"""Rows reduced to what a learner needs: weighted moments and per-row losses.

The one place that reads rows.  With the weights fixed, a linear learner's loss is
``Σ_i w_i |x_i − x_i W|² = tr (I−W)ᵀ S (I−W)`` with ``S`` the weighted covariance (d, d), so one
pass here replaces the table for a whole outer iteration, however long the table is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

TINY = float(np.finfo(float).tiny)
# Powers of two, of deviations: how far apart columns may be, and how large or small all of them.
FARTHEST, LARGEST = 27, 30
CHUNK = 2**15  # rows at a time: temporaries stay in cache, and memory at one copy of X


@dataclass(frozen=True, eq=False)
class Cells:
    """Weights of every row and variable (n, d), kept as the factors ``w_ij = Σ_k M_ik p_kj``.

    Row i belongs to group k with the share M_ik, and group k counts p_kj in the regression of
    variable j: in proportion to the precision of its noise there, or not at all.  An array made
    from it is the whole matrix; it sums to d, so that equal cells are 1/n each.

    Examples
    --------
    >>> cells = Cells(np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([[1.0, 1.5], [1.0, 0.5]]))
    >>> np.asarray(cells)
    array([[0.5 , 0.75],
           [0.5 , 0.25]])
    """

    membership: Matrix  # (n, K), sums to one over all rows and groups
    precision: Matrix  # (K, d)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of variables, ``(n, d)``."""
        return len(self.membership), self.precision.shape[1]

    @property
    def ndim(self) -> int:
        """Two, as of any matrix."""
        return 2

    def __array__(self, dtype: Any = None, copy: Any = None) -> Matrix:
        return np.asarray(self.membership @ self.precision, dtype=dtype)


Weights = Matrix | Cells  # (n,) or (n, d)


def row_weights(w: Weights) -> Matrix:
    """One weight a row, (n,), that sum to one: what all cells of the row have together.

    Examples
    --------
    >>> row_weights(np.array([[0.5, 1.0], [0.5, 0.0]]))
    array([0.75, 0.25])
    """
    w = simplest(w)
    if isinstance(w, Cells):
        total = w.membership @ w.precision.sum(axis=1)
        return total / total.sum()
    return w if w.ndim == 1 else w.sum(axis=1) / w.sum()


def simplest(w: Weights) -> Weights:
    """Weights of rows (n,) where all variables count the rows alike, else ``w`` as it is.

    So equal cells are the plain learner to the last bit.  Several groups are another matter even
    with equal precisions, because each has a level of its own.

    Examples
    --------
    >>> simplest(np.array([[0.75, 0.75], [0.25, 0.25]]))
    array([0.75, 0.25])
    """
    if w.ndim == 1:
        return w
    if isinstance(w, Cells):
        counted = np.flatnonzero(w.precision.any(axis=1))
        p = w.precision[counted]
        alike = len(counted) == 1 and (p == p[0, 0]).all()
        return w.membership[:, counted[0]] * p[0, 0] if alike else w
    return w[:, 0].copy() if (w == w[:, :1]).all() else w


def of_rows(w: Weights, place: NDArray[np.intp], share: Matrix) -> Weights:
    """The weights of n rows, row i being ``share[i]`` of the row ``place[i]`` of those weighted.

    Examples
    --------
    >>> of_rows(np.array([0.4, 0.6]), np.array([0, 1, 1]), np.array([1.0, 0.5, 0.5]))
    array([0.4, 0.3, 0.3])
    """
    if isinstance(w, Cells):
        return Cells(w.membership[place] * share[:, None], w.precision)
    return w[place] * (share if w.ndim == 1 else share[:, None])


class Moments(NamedTuple):
    """Weighted mean (d,), and weighted, weighted-centred covariance (d, d)."""

    mean: Matrix
    covariance: Matrix


class GroupMoments(NamedTuple):
    """Of K groups of rows: their weight (K,), means (K, d), covariances within (K, d, d)."""

    mass: Matrix
    mean: Matrix
    covariance: Matrix


class Regression(NamedTuple):
    """A variable on k others: which, their coefficients, and their inverse covariance."""

    effect: int
    parents: NDArray[np.intp]  # (k,)
    coefficients: Matrix  # (k,)
    inverse: Matrix  # (k, k)


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

    _values: Matrix  # (n, d), read by nobody else: rows may one day come from elsewhere

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of variables, ``(n, d)``."""
        n, d = self._values.shape
        return n, d

    @property
    def individual(self) -> bool:
        """Whether each row is one that was observed, rather than a stand-in for moments."""
        return True

    def matrix(self) -> Matrix:
        """All rows in memory, (n, d): for a learner that needs each of them, not their moments."""
        return self._values

    def columns(self, which: NDArray[Any]) -> Matrix:
        """These columns of all rows in memory, (n, k): a copy, which a learner may change."""
        return self._values[:, which]

    def only(self, columns: NDArray[Any]) -> "Rows":
        """The same rows with these columns alone."""
        return type(self)(self.columns(columns))

    def part(self, used: Any) -> "Rows":
        """The rows for which ``used`` (n,) is true."""
        return Rows(self._values[used])

    def standardised(self, w: Matrix) -> "Rows":
        """The same in units in which every column has mean zero and deviation one under ``w``."""
        return Rows(standardised(self._values, w).values)

    def expanded(self, expansion: Callable[[Matrix], Matrix], width: int) -> "Rows":
        """The same rows with ``width`` features of theirs in the place of their columns."""
        return Expanded(self._values, expansion, width)

    def moments(self, w: Matrix) -> Moments:
        """``μ = Σ w_i x_i`` and ``S = Σ w_i (x_i − μ)(x_i − μ)ᵀ`` for weights that sum to one."""
        mean = np.zeros(self.shape[1])
        for part in self._chunks():
            mean += w[part] @ self._values[part]
        S = np.zeros((self.shape[1],) * 2)
        for part in self._chunks():
            # √w on both sides keeps the product exactly symmetric.
            centred = (self._values[part] - mean) * np.sqrt(w[part])[:, None]
            S += centred.T @ centred
        return Moments(mean, S)

    def cell_moments(self, w: Weights) -> Moments:
        """For every variable the moments of the rows as they count in its regression.

        ``mean`` (d, d) and ``covariance`` (d, d, d), whose first axis is the variable; its weights
        need not sum to one, and neither do the covariances average over them.  Of `Cells` the
        means of the groups are taken out, so that each group may have a level of its own.
        """
        if isinstance(w, Cells):
            groups = self.group_moments(w.membership)
            weight = groups.mass[:, None] * w.precision  # (K, d)
            mean = weight.T @ groups.mean / np.maximum(weight.sum(axis=0), TINY)[:, None]
            return Moments(mean, np.tensordot(weight.T, groups.covariance, axes=1))
        totals = np.maximum(w.sum(axis=0), TINY)
        each = [self.moments(column / total) for column, total in zip(w.T, totals, strict=True)]
        mean, S = (np.array(part) for part in zip(*each, strict=True))
        return Moments(mean, S * totals[:, None, None])

    def group_moments(self, membership: Matrix) -> "GroupMoments":
        """Mass (K,), means (K, d) and covariances (K, d, d) within the groups of rows."""
        mass = np.maximum(membership.sum(axis=0), TINY)
        each = [self.moments(column) for column in (membership / mass).T]
        mean, S = (np.array(part) for part in zip(*each, strict=True))
        return GroupMoments(mass, mean, S)

    def squared_residuals(self, W: Matrix, mean: Matrix) -> Matrix:
        """``r_ij² = ((x_i − μ)(I − W))_j²``, (n, d): the least-squares loss of each cell."""
        out = np.empty(self.shape)
        for part in self._chunks():
            centred = self._values[part] - mean
            out[part] = np.square(centred - centred @ W)
        return out

    def coefficient_variances(
        self, regressions: Sequence[Regression], w: Matrix, counts: Matrix, moments: Moments
    ) -> list[Matrix]:
        """The variance of each coefficient of regressions under the weights ``w``.

        ``C (Σ w_i²/c_i e_i² z_i z_iᵀ) C`` with ``C = (Σ w_i z_i z_iᵀ)⁻¹``, row i standing for c_i
        rows: right also where the noise differs between rows, as wherever weights should move.
        """
        variances = [np.zeros(len(each.parents)) for each in regressions]
        for part in self._chunks():
            centred = np.subtract(self._values[part].T, moments.mean[:, None], order="C")
            share = np.square(w[part]) / counts[part]
            for (effect, parents, b, C), variance in zip(regressions, variances, strict=True):
                Z = centred[parents]
                error = centred[effect] - b @ Z
                variance += np.square(C @ Z) @ (share * np.square(error))
        return variances

    def _chunks(self) -> Iterator[slice]:
        n = self.shape[0]
        return (slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK))


@dataclass(frozen=True, eq=False)
class Expanded(Rows):
    """Features of rows, computed block by block when their moments are asked for.

    Features have about mean zero and deviation one, so that one pass is as good as two.

    Examples
    --------
    >>> rows = Rows(np.array([[1.0], [2.0]])).expanded(lambda X: np.hstack([X, X**2]), 2)
    >>> rows.moments(np.array([0.5, 0.5])).mean
    array([1.5, 2.5])
    """

    expansion: Callable[[Matrix], Matrix]
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of features."""
        return len(self._values), self.width

    def moments(self, w: Matrix) -> Moments:
        """The mean (width,) and the covariance of the features under weights that sum to one."""
        mean, S = np.zeros(self.width), np.zeros((self.width,) * 2)
        step = max(CHUNK * self._values.shape[1] // max(self.width, 1), 1)
        for start in range(0, len(self._values), step):
            part = slice(start, start + step)
            features = self.expansion(self._values[part])
            mean += w[part] @ features
            features *= np.sqrt(w[part])[:, None]
            S += features.T @ features
        return Moments(mean, S - np.outer(mean, mean))


class Standardised(NamedTuple):
    """Columns of mean zero and deviation one, (n, d), and what they had before, (d,) each."""

    values: Matrix
    mean: Matrix
    deviation: Matrix  # one for constant columns


def evenly_spaced(n: int, most: int) -> NDArray[np.intp]:
    """Places among n rows, all of them or ``most`` evenly spaced, for what more would only slow.

    Examples
    --------
    >>> evenly_spaced(9, 5), evenly_spaced(3, 5)
    (array([0, 2, 4, 6, 8]), array([0, 1, 2]))
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def share_below(score: Matrix, counts: Matrix) -> Matrix:
    """The share of the rows up to and including each in the order of the score, (n,).

    Examples
    --------
    >>> share_below(np.array([3.0, 1.0]), np.array([1.0, 3.0]))
    array([1.  , 0.75])
    """
    order = np.argsort(score, kind="stable")
    below = np.empty(len(score))
    below[order] = np.cumsum(counts[order]) / counts.sum()
    return below


def standardised(X: Matrix, w: Matrix) -> Standardised:
    """Mean zero and deviation one under weights that sum to one; constant columns become zero.

    Examples
    --------
    >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0]]), np.full(2, 0.5)).values
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    low = X.min(axis=0)
    moved = np.where(np.abs(low) > 2.0**FARTHEST * (X.max(axis=0) - low), low, 0.0)
    if moved.any():  # far from zero for their width: their means would round it away
        X = X - moved
    # Dividing by the largest entry first keeps squares within float64, whatever the units.
    largest = np.abs(X).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    Z = X / unit
    mean = w @ Z
    Z -= mean
    deviation = np.sqrt(w @ Z**2)
    varies = deviation > 1e-12
    np.divide(Z, deviation, out=Z, where=varies)
    Z[:, ~varies] = 0.0
    return Standardised(Z, moved + mean * unit, np.where(varies, deviation * unit, 1.0))


def within_range(X: Matrix, mean: Matrix, deviation: Matrix) -> Standardised | None:
    """X in units whose squares lie within both precisions; None if it is in such units already.

    Deviations keep their ratio to the middle one up to `FARTHEST` (the squares of a narrower column
    are lost in rounding beside those of a wide one), and that keeps its size up to `LARGEST`; so
    only what no learner could tell apart changes.  Units are powers of two, and
    rounding is the same in all of them.  A column far from zero for its width is moved there.

    Examples
    --------
    >>> X = np.array([[1.0, 1e99], [3.0, 4e99]])
    >>> seen = within_range(X, X.mean(axis=0), X.std(axis=0))
    >>> seen.values.std(axis=0).round(-6), within_range(np.eye(2), np.zeros(2), np.ones(2))
    (array([0.00e+00, 1.84e+08]), None)
    """
    varies = deviation > 0
    log = np.log2(deviation[varies])
    ordered = np.sort(log)
    middles = ordered[(len(log) - 1) // 2 : len(log) // 2 + 1] if len(log) else np.zeros(1)
    middle = middles[np.abs(middles).argmin()]
    kept = np.clip(log - middle, -FARTHEST, FARTHEST) + np.clip(middle, -LARGEST, LARGEST)
    power = np.zeros(len(deviation), dtype=int)
    power[varies] = np.round(log - kept)
    moved = np.where(np.abs(mean) > 2.0**FARTHEST * deviation, mean, 0.0)
    if not (power.any() or moved.any()):
        return None
    return Standardised(np.ldexp(X - moved, -power), moved, np.ldexp(1.0, power))


def half_squared_residuals(S: Matrix, W: Matrix) -> float:
    """``½ tr (I−W)ᵀ S (I−W)``: what the graph W (d, d) leaves of rows with the covariance S.

    Examples
    --------
    >>> half_squared_residuals(np.diag([1.0, 4.0]), np.zeros((2, 2)))
    2.5
    """
    B = np.eye(len(S)) - W
    return float(np.vdot(B, S @ B) / 2)


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

    @property
    def individual(self) -> bool:
        """False: only the moments are right."""
        return False

    @classmethod
    def of(cls, mean: Matrix, covariance: Matrix) -> "Summary":
        """Stand-ins ``μ ± √d u_k``, with ``Σ_k u_k u_kᵀ`` the covariance."""
        deviations = np.sqrt(np.diag(covariance))
        units = np.where(deviations > 0, deviations, 1.0)
        # Of the correlation matrix, so that a wide column does not round a narrow one away.
        values, vectors = np.linalg.eigh(covariance / np.outer(units, units))
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T * deviations * np.sqrt(len(mean))
        return cls(np.vstack([mean + root, mean - root]))

    def coefficient_variances(
        self, regressions: Sequence[Regression], w: Matrix, counts: Matrix, moments: Moments
    ) -> list[Matrix]:
        """The variance of each coefficient of regressions under the weights ``w``."""
        S, n = moments.covariance, counts.sum()
        return [
            (S[effect, effect] - b @ S[parents, effect]) * np.diag(C) / n
            for effect, parents, b, C in regressions
        ]
