"""Groups of rows whose noise differs, found from the losses alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix

MOST_ITERATIONS, SETTLED = 100, 1e-6  # of EM; log-likelihood per row
SMALLEST = 1e-3  # share of a variable's pooled variance below which no group's variance falls


@dataclass(frozen=True, eq=False)
class Groups:
    """A mixture of zero-mean Gaussians with a variance per group and variable."""

    share: Matrix  # (K,), of the rows
    variance: Matrix  # (K, d)
    membership: Matrix  # (n, K), probabilities
    likelihood: float  # of all rows
    evidence: float  # likelihood less the BIC penalty on the mixture's parameters

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.share)


def find_groups(losses: Matrix, counts: Matrix, most: int) -> Groups:
    """The number of variance groups the rows show, by BIC, and who belongs to them.

    ``counts`` (n,) says how many rows each row stands for.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scale = np.where(np.arange(400)[:, None] < 300, [1.0, 0.1, 1.0], [0.1, 1.0, 1.0])
    >>> losses = (rng.normal(size=(400, 3)) * scale) ** 2
    >>> find_groups(losses, np.ones(400), most=3).count
    2
    """
    losses = losses + 1e-300  # a perfect fit has no logarithm
    best = expectation_maximisation(losses, counts, np.ones((len(losses), 1)))
    for K in range(2, most + 1):
        starts = [_by_pattern(losses, counts, K), _by_size(losses, counts, K, 0.05)]
        starts.append(_by_size(losses, counts, K, 0.2))
        found = [expectation_maximisation(losses, counts, start) for start in starts]
        better = max(found, key=lambda groups: groups.likelihood)
        if better.evidence <= best.evidence:
            break
        best = better
    return best


def expectation_maximisation(losses: Matrix, counts: Matrix, membership: Matrix) -> Groups:
    """The mixture that EM reaches from a first guess of the membership (n, K).

    Examples
    --------
    >>> one = expectation_maximisation(np.ones((9, 2)), np.ones(9), np.ones((9, 1)))
    >>> one.variance
    array([[1., 1.]])
    """
    n, d = counts.sum(), losses.shape[1]
    pooled = counts @ losses / n
    last = -np.inf
    for _ in range(MOST_ITERATIONS):
        size = counts @ membership + 1e-12  # (K,)
        share = size / n
        variance = (membership * counts[:, None]).T @ losses / size[:, None]
        variance = np.maximum(variance, SMALLEST * pooled)
        # One pseudo-row of the pooled variance keeps a group of few rows from collapsing.
        variance = (variance * size[:, None] + pooled) / (size[:, None] + 1)
        log_density = (
            np.log(share) - 0.5 * np.log(variance).sum(axis=1) - 0.5 * losses @ (1 / variance).T
        )
        top = log_density.max(axis=1, keepdims=True)
        density = np.exp(log_density - top)
        total = density.sum(axis=1, keepdims=True)
        membership = density / total
        likelihood = float(counts @ (top + np.log(total))[:, 0])
        if likelihood - last < SETTLED * n:
            break
        last = likelihood
    K = len(share)
    penalty = 0.5 * (K * d + K - 1) * np.log(n)
    return Groups(counts @ membership / n, variance, membership, likelihood, likelihood - penalty)


def _by_pattern(losses: Matrix, counts: Matrix, K: int) -> Matrix:
    """Rows whose losses are large in the same variables, by k-means on their leading patterns.

    It starts from slices of equal size along the first pattern, so that nothing is drawn.
    """
    Z = np.log(losses / (counts @ losses / counts.sum()) + 1e-2)
    Z = Z - counts @ Z / counts.sum()
    patterns = np.linalg.eigh((Z * counts[:, None]).T @ Z)[1][:, ::-1]
    Y = Z @ patterns[:, :K]
    nearest = _slices(Y[:, 0], counts, K)
    for _ in range(15):
        size = np.bincount(nearest, counts, minlength=K)
        totals = [np.bincount(nearest, counts * y, minlength=K) for y in Y.T]
        centres = np.array(totals).T / np.maximum(size, 1e-12)[:, None]
        nearest = _distances(Y, centres).argmin(axis=1)
    return _softened(nearest, K)


def _slices(score: Matrix, counts: Matrix, K: int) -> NDArray[np.intp]:
    """The rows by score in K slices that stand for equally many rows, (n,)."""
    order = np.argsort(score, kind="stable")
    before = np.cumsum(counts[order]) - counts[order] / 2
    slices = np.empty(len(score), dtype=np.intp)
    slices[order] = np.minimum(before * K / counts.sum(), K - 1).astype(np.intp)
    return slices


def _by_size(losses: Matrix, counts: Matrix, K: int, tail: float) -> Matrix:
    """The ``tail`` of the rows that fit worst, cut again for every further group."""
    loss = (losses / (counts @ losses)).sum(axis=1)
    order = np.argsort(loss, kind="stable")
    below = np.cumsum(counts[order]) / counts.sum()
    cuts = [1 - tail * 4.0**-k for k in range(K - 1)]
    group = np.empty(len(loss), dtype=np.intp)
    group[order] = np.searchsorted(cuts, below)
    return _softened(group, K)


def _softened(group: NDArray[np.intp], K: int) -> Matrix:
    membership = np.full((len(group), K), 0.1 / K)
    membership[np.arange(len(group)), group] += 0.9
    return membership


def _distances(Y: Matrix, centres: Matrix) -> Matrix:
    return np.square(Y[:, None] - centres).sum(axis=2)
