"""First guesses of who belongs together, for groups to be found from; nothing is drawn."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix

ROUNDS = 15  # of k-means: a start need not be settled
TAILS = (0.05, 0.2)  # shares of the rows that fit worst


def starts(losses: Matrix, counts: Matrix, most: int) -> Iterator[list[Matrix]]:
    """For every number of groups K from 2 to ``most``, some memberships (K, n).

    Examples
    --------
    >>> losses = np.random.default_rng(0).exponential(size=(50, 3))
    >>> [[start.shape for start in few] for few in starts(losses, np.ones(50), most=3)]
    [[(2, 50), (2, 50), (2, 50)], [(3, 50), (3, 50), (3, 50)]]
    """
    relative = losses / np.maximum(counts @ losses / counts.sum(), 1e-300)
    patterns = _patterns(relative, counts)[:, :most]
    below = _share_below(relative.sum(axis=1), counts)
    for K in range(2, most + 1):
        by_size = [_by_size(below, K, tail) for tail in TAILS]
        yield [_softened(group, K) for group in (_by_pattern(patterns[:, :K], counts, K), *by_size)]


def _patterns(relative: Matrix, counts: Matrix) -> Matrix:
    """Scores of every row on the patterns in which losses are large together, leading first."""
    Z = np.log(relative + 1e-2)
    Z -= counts @ Z / counts.sum()
    scores: Matrix = Z @ np.linalg.eigh((Z * counts[:, None]).T @ Z)[1][:, ::-1]
    return scores


def _by_pattern(Y: Matrix, counts: Matrix, K: int) -> NDArray[np.intp]:
    """k-means on the patterns Y, from slices of equal size along the first, (n,)."""
    before = _share_below(Y[:, 0], counts) - counts / (2 * counts.sum())
    nearest = np.minimum(before * K, K - 1).astype(np.intp)
    counted = Y * counts[:, None]
    for _ in range(ROUNDS):
        member = (nearest == np.arange(K)[:, None]).astype(float)  # (K, n)
        centres = member @ counted / np.maximum(member @ counts, 1e-12)[:, None]
        last = nearest
        # The square of Y itself is the same for all centres.
        nearest = (np.square(centres).sum(axis=1)[:, None] - 2 * centres @ Y.T).argmin(axis=0)
        if (nearest == last).all():
            break
    return nearest


def _by_size(below: Matrix, K: int, tail: float) -> NDArray[np.intp]:
    """The ``tail`` of the rows that fit worst, cut again for every further group, (n,)."""
    return np.searchsorted([1 - tail * 4.0**-k for k in range(K - 1)], below)


def _share_below(score: Matrix, counts: Matrix) -> Matrix:
    """The share of the rows up to and including each in the order of the score, (n,)."""
    order = np.argsort(score, kind="stable")
    below = np.empty(len(score))
    below[order] = np.cumsum(counts[order]) / counts.sum()
    return below


def _softened(group: NDArray[np.intp], K: int) -> Matrix:
    return 0.1 / K + 0.9 * (group == np.arange(K)[:, None])
