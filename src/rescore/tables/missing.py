"""Missing cells: the Gaussian that makes the others likeliest, and rows completed by it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

STEPS, SETTLED = 300, 1e-6  # of EM at most; change of the moments, in deviations, that ends it
CELLS = 1 << 21  # numbers of a batch in memory
FEW = 2  # rows per column, below which the likelihood alone does not determine a covariance
ROUNDS, PARTS, CLOSE = 6, 80, 1e-9  # corrections of the moments, steps of each, error allowed


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Mean (d,) and covariance (d, d), and the log-likelihood per row of each step towards them."""

    mean: Matrix
    covariance: Matrix
    likelihoods: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Gaps:
    """Rows with gaps; those with the same gaps share a pattern, and so a regression.

    Examples
    --------
    >>> Gaps.of(np.array([[1.0, np.nan], [2.0, 3.0], [4.0, np.nan]])).seen
    array([[1., 0.],
           [1., 1.]])
    """

    X: Matrix  # (n, d), zero in the gaps
    seen: Matrix  # (P, d), one where a cell is there
    pattern: NDArray[np.intp]  # (n,)

    @classmethod
    def of(cls, X: Matrix) -> "Gaps":
        """The rows of X, NaN where a cell is missing."""
        there = ~np.isnan(X)
        seen, pattern = np.unique(there, axis=0, return_inverse=True)
        return cls(np.where(there, X, 0.0), seen.astype(np.float64), pattern.ravel())

    def batches(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Patterns, a few at a time, with their rows."""
        d = self.X.shape[1]
        order = np.argsort(self.pattern, kind="stable")
        ends = np.searchsorted(self.pattern[order], np.arange(len(self.seen) + 1))
        size = max(CELLS // (d * d), 1)
        for start in range(0, len(self.seen), size):
            stop = min(start + size, len(self.seen))
            yield np.arange(start, stop), order[ends[start] : ends[stop]]

    def given_seen(self, at: Gaussian, patterns: NDArray[np.intp]) -> tuple[Matrix, Matrix, Matrix]:
        """Of some patterns: regressions on what is seen, what they leave open, log-determinants.

        ``K`` (p, d, d) takes what is seen to all variables, itself to itself; ``C`` (p, d, d) is
        the covariance that remains, zero where there is no gap.
        """
        S, M = at.covariance, self.seen[patterns]
        both = M[:, :, None] * M[:, None, :]
        A = both * S + np.einsum("pi,ij->pij", 1 - M, np.eye(len(S)))  # identity in the gaps
        inverse = np.linalg.inv(A) * both
        K = M[:, :, None] * np.eye(len(S)) + (1 - M)[:, :, None] * (S @ inverse)
        C = (1 - M)[:, :, None] * (S - K @ S) * (1 - M)[:, None, :]
        return K, (C + C.transpose(0, 2, 1)) / 2, np.linalg.slogdet(A)[1]


@dataclass(frozen=True, eq=False)
class Expected:
    """What a Gaussian expects of rows with gaps: their cells, moments and likelihood."""

    X: Matrix  # (n, d), gaps filled by their conditional means
    mean: Matrix  # (d,)
    covariance: Matrix  # (d, d), with what remains open
    likelihood: float


def expected(gaps: Gaps, w: Matrix, at: Gaussian) -> Expected:
    """The E-step: conditional means, and the moments that all rows are expected to have.

    Examples
    --------
    >>> gaps = Gaps.of(np.array([[1.0, np.nan], [3.0, 2.0]]))
    >>> at = Gaussian(np.array([2.0, 0.0]), np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> expected(gaps, np.full(2, 0.5), at).X
    array([[ 1. , -0.5],
           [ 3. ,  2. ]])
    """
    n, d = gaps.X.shape
    X, open_, likelihood = np.empty((n, d)), np.zeros((d, d)), 0.0
    for patterns, rows in gaps.batches():
        K, C, logdet = gaps.given_seen(at, patterns)
        place = gaps.pattern[rows] - patterns[0]
        Z = (gaps.X[rows] - at.mean) * gaps.seen[gaps.pattern[rows]]
        X[rows] = at.mean + _through(K, place, Z)
        mass = np.bincount(place, w[rows], minlength=len(patterns))
        open_ += np.tensordot(mass, C, axes=1)
        distance = np.linalg.solve(at.covariance, (X[rows] - at.mean).T).T * (X[rows] - at.mean)
        count = gaps.seen[patterns].sum(axis=1)
        likelihood -= 0.5 * (mass @ (logdet + count * np.log(2 * np.pi)))
        likelihood -= 0.5 * float(w[rows] @ distance.sum(axis=1))
    mean = w @ X
    centred = (X - mean) * np.sqrt(w)[:, None]
    return Expected(X, mean, centred.T @ centred + open_, likelihood)


def _through(K: Matrix, place: NDArray[np.intp], Z: Matrix) -> Matrix:
    """Every row of Z (m, d) through the matrix of its pattern."""
    out, d = np.empty_like(Z), Z.shape[1]
    size = max(CELLS // (d * d), 1)
    for start in range(0, len(Z), size):
        part = slice(start, start + size)
        out[part] = np.einsum("ijk,ik->ij", K[place[part]], Z[part])
    return out


def likeliest(X: Matrix, w: Matrix, towards: Gaussian | None = None) -> Gaussian:
    """The Gaussian of maximum likelihood for rows with gaps (NaN), weighted by ``w``, by EM.

    Without gaps it has the rows' own moments.  With fewer than two rows for each column, or
    where ``towards`` gives a covariance that is known better, d rows of it are added.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [2.0, np.nan], [4.0, 4.0], [6.0, 6.5]])
    >>> likeliest(X, np.full(4, 0.25)).mean.round(2)
    array([3.  , 3.14])
    """
    d = X.shape[1]
    gaps = Gaps.of(X)
    rows = float(1 / np.sum(np.square(w)))
    at, prior = _start(gaps, w), towards
    if towards is None and rows < FEW * d:
        prior = Gaussian(at.mean, np.diag(np.diag(at.covariance)))
    extra = 0.0 if prior is None else d / (rows + d)
    if prior is not None:
        at = Gaussian(prior.mean, prior.covariance)
    unit = np.sqrt(np.maximum(np.diag(at.covariance), np.finfo(float).tiny))
    told: list[float] = []
    for _ in range(STEPS):
        found = expected(gaps, w, at)
        told.append(found.likelihood)
        S = found.covariance
        if prior is not None:
            S = (1 - extra) * S + extra * prior.covariance
        change = np.abs((S - at.covariance) / np.outer(unit, unit)).max()
        change = max(change, np.abs((found.mean - at.mean) / unit).max())
        at = Gaussian(found.mean, S)
        if change < SETTLED:
            break
    return Gaussian(at.mean, at.covariance, tuple(told))


def _start(gaps: Gaps, w: Matrix) -> Gaussian:
    """Means and variances of what is there, and half of the correlations of means in the gaps."""
    there = gaps.seen[gaps.pattern]
    mass = w @ there
    mean = w @ gaps.X / mass
    Z = (gaps.X - mean) * there
    variance = w @ np.square(Z) / mass
    S = (Z * w[:, None]).T @ Z / 2
    np.fill_diagonal(S, np.where(variance > 0, variance, 1.0))
    return Gaussian(mean, S)


def completed(
    X: Matrix, w: Matrix, groups: NDArray[np.intp] | None = None, seed: int = 0
) -> Matrix:
    """The rows with their gaps drawn from what is there, as near to the expected moments as can be.

    Each gap gets its conditional mean and a draw of what remains open; then the draws are moved, as
    little as will do, until mean and covariance are those that EM expects of all rows.  So a
    learner that needs moments alone gets the maximum-likelihood ones, and any other gets rows
    that scatter as they should.  Rows of a group are completed by the group's own moments, d
    rows of all others' added.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) @ np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> X[:100, 1] = np.nan
    >>> best, filled = likeliest(X, np.full(500, 1 / 500)), completed(X, np.full(500, 1 / 500))
    >>> bool(np.allclose(np.cov(filled.T, bias=True), best.covariance, atol=1e-4))
    True
    """
    mean, unit = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    Z = (X - mean) / np.where(unit > 0, unit, 1.0)
    every = likeliest(Z, w)
    noise = np.random.default_rng(seed).standard_normal(Z.shape)
    if groups is None:
        out = _drawn(Z, w, every, noise)
    else:
        out = np.empty_like(Z)
        for k in range(groups.max() + 1):
            rows = groups == k
            share = w[rows] / w[rows].sum()
            own = likeliest(Z[rows], share, every)
            out[rows] = _drawn(Z[rows], share, own, noise[rows])
    return np.where(np.isnan(X), mean + out * np.where(unit > 0, unit, 1.0), X)


def _drawn(X: Matrix, w: Matrix, at: Gaussian, noise: Matrix) -> Matrix:
    """Conditional means plus draws, moved to the moments that are expected."""
    gaps = Gaps.of(X)
    aim = expected(gaps, w, at)
    Z, room = aim.X.copy(), np.zeros_like(X)
    for patterns, rows in gaps.batches():
        _, C, _ = gaps.given_seen(at, patterns)
        place = gaps.pattern[rows] - patterns[0]
        values, vectors = np.linalg.eigh(C)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1)
        Z[rows] += _through(root, place, noise[rows])
        room[rows] = np.sqrt(np.maximum(np.einsum("pii->pi", C), 0.0))[place]
    return _moved(Z, w, room, aim)


def _moved(Z: Matrix, w: Matrix, room: Matrix, aim: Expected) -> Matrix:
    """Z with its cells moved by least squares, each in its ``room``, to the moments of ``aim``.

    ``Z + δ`` has the covariance ``S + Σ_i w_i (z_i δ_iᵀ + δ_i z_iᵀ)`` to first order.
    """
    from scipy.sparse.linalg import LinearOperator, lsqr

    cells = np.flatnonzero(room)
    if len(cells) == 0:
        return Z
    d, shape = Z.shape[1], Z.shape
    for _ in range(ROUNDS):
        mean = w @ Z
        centred = Z - mean
        error = np.vstack([aim.mean - mean, aim.covariance - (centred * w[:, None]).T @ centred])
        if np.abs(error).max() < CLOSE:
            break

        def moments(u: Matrix, centred: Matrix = centred) -> Matrix:
            delta = np.zeros(shape).ravel()
            delta[cells] = u * room.ravel()[cells]
            weighted = delta.reshape(shape) * w[:, None]
            both = centred.T @ weighted
            return np.vstack([weighted.sum(axis=0), both + both.T]).ravel()

        def back(v: Matrix, centred: Matrix = centred) -> Matrix:
            parts = v.reshape(d + 1, d)
            delta = w[:, None] * (parts[0] + centred @ (parts[1:] + parts[1:].T))
            return (delta * room).ravel()[cells]

        step = LinearOperator(((d + 1) * d, len(cells)), matvec=moments, rmatvec=back)
        u = lsqr(step, error.ravel(), atol=1e-12, btol=1e-12, iter_lim=PARTS)[0]
        Z.ravel()[cells] += u * room.ravel()[cells]
    return Z
