"""Latent groups of rows, each with a level and a noise variance of its own in every variable.

A mixture of Gaussians with diagonal covariances, fitted to residuals by EM.  Groups are split in
two as long as that pays for its parameters (BIC).  Its steps are compiled: numba is imported where
groups are looked for, and nowhere before.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rescore.moments import Matrix, evenly_spaced, share_below
from rescore.solvers.compilation import compiled

MOST_ITERATIONS, SETTLED = 200, 1e-6  # of EM; log-likelihood per row
RACE = 8  # iterations of every way to split a group; only the best goes on
FEWEST = 2  # rows for each variable that a group to be split must have
CUTS = (0.5, 0.8, 0.95)  # quantiles at which a score along which rows differ is cut
RACING = 1500  # rows that take part in it, evenly spaced
MOVED = 0.05  # by which a group's share must change before its halves are looked for again
SMALLEST = 1e-3  # share of a variable's pooled variance below which no group's falls
NOTHING = -40.0  # log of a membership that is not worth an exponential
PRESENT = 1e-3  # membership below which a row is not looked at when its group is split


@dataclass(frozen=True, eq=False)
class Mixture:
    """K groups: shares (K,), levels and variances (K, d), and who belongs to them (n, K)."""

    share: Matrix
    level: Matrix
    variance: Matrix
    membership: Matrix
    likelihood: float  # log-likelihood of all rows

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.share)

    def evidence(self, rows: float) -> float:
        """The log-likelihood less the BIC price of shares, levels and variances."""
        K, d = self.level.shape
        return self.likelihood - 0.5 * (2 * K * d + K - 1) * np.log(max(rows, 2.0))


def find_mixture(E: Matrix, counts: Matrix, most: int) -> Mixture:
    """The groups that residuals E (n, d) show; row i stands for ``counts[i]`` rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scale = np.where(np.arange(400)[:, None] < 300, [1.0, 0.1, 1.0], [0.1, 1.0, 1.0])
    >>> find_mixture(rng.normal(size=(400, 3)) * scale, np.ones(400), most=4).count
    2
    """
    rows = float(counts.sum())
    found = expectation_maximisation(E, counts, np.ones((len(E), 1)))
    halves: dict[int, Halves] = {}  # of the groups that are as they were
    while found.count < most:
        unknown = set(range(found.count)) - halves.keys()
        halves |= {k: _halves(E, counts, found.membership[:, k]) for k in unknown}
        k = max(halves, key=lambda each: halves[each].gain)
        finer = _finer(E, counts, found, k, halves[k].two)
        if finer is not None and finer.evidence(rows) > found.evidence(rows):
            same = np.abs(finer.share[:-1] / found.share - 1) <= MOVED
            halves = {each: halves[each] for each in np.flatnonzero(same).tolist()}
            found = finer
        elif len(unknown) == found.count:
            break
        else:  # what was remembered may be out of date: look again before giving up
            halves = {}
    return found


def expectation_maximisation(
    E: Matrix, counts: Matrix, membership: Matrix, most_iterations: int = MOST_ITERATIONS
) -> Mixture:
    """The mixture that EM reaches from a first guess of the membership (n, K).

    Examples
    --------
    >>> E = np.array([[0.0], [2.0]])
    >>> expectation_maximisation(E, np.ones(2), np.ones((2, 1))).level
    array([[1.]])
    """
    P, rows = np.array(membership, order="C"), counts.sum()
    E, counts = np.ascontiguousarray(E), np.ascontiguousarray(counts, dtype=np.float64)
    pooled = np.maximum(counts @ np.square(E) / rows - np.square(counts @ E / rows), 1e-300)
    share, (level, variance) = np.empty(P.shape[1]), np.empty((2, P.shape[1], E.shape[1]))
    end = most_iterations, float(SETTLED * rows)
    value = alternate(E, counts, P, pooled, share, level, variance, *end)
    return Mixture(share, level, variance, P, value)


def as_mixture(E: Matrix, counts: Matrix, membership: Matrix) -> Mixture:
    """The groups as they are given, described by their levels and variances.

    Examples
    --------
    >>> as_mixture(np.array([[0.0], [2.0]]), np.ones(2), np.eye(2)).level
    array([[0.],
           [2.]])
    """
    described = expectation_maximisation(E, counts, membership, 1)
    return replace(described, membership=membership)


class Halves(NamedTuple):
    """A group of rows as two, and the log-likelihood that all its rows gain by it."""

    gain: float
    two: Mixture | None  # none where there are too few rows to look


def _halves(E: Matrix, counts: Matrix, inside: Matrix) -> Halves:
    """The best two groups in the rows with memberships ``inside`` (n,) in one."""
    at = np.flatnonzero(inside > PRESENT)
    rows = float(counts[at] @ inside[at])
    if rows < FEWEST * E.shape[1]:
        return Halves(0.0, None)
    some = at[evenly_spaced(len(at), RACING)]
    c = counts[some] * inside[some]
    gain, two = _split(E[some], c)
    return Halves(gain * rows / c.sum(), two)


def _finer(
    E: Matrix, counts: Matrix, found: Mixture, k: int, two: Mixture | None
) -> Mixture | None:
    """The mixture with group k in two."""
    if two is None:
        return None
    return expectation_maximisation(E, counts, _divided(E, found.membership, k, two))


def _divided(E: Matrix, membership: Matrix, k: int, two: Mixture) -> Matrix:
    """Memberships (n, K + 1) with the second half of group k as a group of its own."""
    P = np.empty((len(E), 2))
    E = np.ascontiguousarray(E)
    expect(E, np.ones(len(E)), two.share, two.level, two.variance, P)
    divided = np.column_stack([membership, membership[:, k] * P[:, 1]])
    divided[:, k] *= P[:, 0]
    return divided


def _split(E: Matrix, c: Matrix) -> tuple[float, Mixture]:
    """Two groups in rows counted ``c`` times, and the log-likelihood that they gain over one.

    Rows are cut along the direction in which levels differ most, along the pattern in which sizes
    do, or by the size of the residuals as a whole; in the middle first, then where that is best
    also higher up.
    """
    Z = E - c @ E / c.sum()
    Z /= np.sqrt(np.maximum(c @ np.square(Z) / c.sum(), 1e-300))
    sizes = np.log(np.square(Z) + 1e-2)
    sizes -= c @ sizes / c.sum()
    pattern = _leading(sizes, c)
    scores = (_leading(Z, c), pattern, -pattern, np.square(Z).sum(axis=1))
    halves = [_cut(E, c, score, CUTS[0]) for score in scores]
    ahead = int(np.argmax([two.likelihood for two in halves]))
    further = [_cut(E, c, scores[ahead], cut) for cut in CUTS[1:]]
    best = max([halves[ahead], *further], key=lambda two: two.likelihood)
    whole = expectation_maximisation(E, c, np.ones((len(E), 1)), 1)
    return best.likelihood - whole.likelihood, best


def _cut(E: Matrix, c: Matrix, score: Matrix, cut: float) -> Mixture:
    """Where EM leads in a few iterations from the rows cut at a quantile of their score."""
    upper = upper_part(score, c, cut)
    return expectation_maximisation(E, c, np.column_stack([1 - upper, upper]), RACE)


def upper_part(score: Matrix, c: Matrix, cut: float) -> Matrix:
    """Most of the membership (n,) for scores above a quantile of rows counted ``c`` times.

    Examples
    --------
    >>> upper_part(np.array([3.0, 1.0, 2.0]), np.ones(3), 0.7)
    array([0.95, 0.05, 0.05])
    """
    return np.asarray(0.05 + 0.9 * (share_below(score, c) > cut))


def _leading(Z: Matrix, c: Matrix) -> Matrix:
    """The score of every row on the direction of largest variance, (n,)."""
    direction = np.linalg.eigh((Z * c[:, None]).T @ Z)[1][:, -1]
    return np.asarray(Z @ (direction * np.sign(direction[np.abs(direction).argmax()])))


@compiled()
def maximise(
    E: Any, counts: Any, P: Any, pooled: Any, share: Any, level: Any, variance: Any
) -> None:
    """Shares (K,), levels and variances (K, d) of groups with memberships P (n, K), in place."""
    n, d = E.shape
    K, rows = P.shape[1], counts.sum()
    share[:] = 1e-10
    level[:] = 0.0
    variance[:] = 0.0
    for i in range(n):
        for k in range(K):
            p = P[i, k] * counts[i]
            if p > 0.0:
                share[k] += p
                for j in range(d):
                    level[k, j] += p * E[i, j]
                    variance[k, j] += p * E[i, j] * E[i, j]
    for k in range(K):
        size = share[k]
        for j in range(d):
            level[k, j] /= size
            v = max(variance[k, j] / size - level[k, j] ** 2, SMALLEST * pooled[j])
            # One pseudo-row of the pooled variance keeps a group of few rows from collapsing.
            variance[k, j] = (v * size + pooled[j]) / (size + 1.0)
        share[k] = size / rows


@compiled()
def expect(E: Any, counts: Any, share: Any, level: Any, variance: Any, P: Any) -> float:
    """Memberships (n, K) into P; returns the log-likelihood of all rows."""
    n, d = E.shape
    K = len(share)
    constant, linear, square = np.log(share), level / variance, -0.5 / variance
    for k in range(K):
        for j in range(d):
            constant[k] -= 0.5 * (np.log(2 * np.pi * variance[k, j]) + level[k, j] * linear[k, j])
    likelihood = 0.0
    for i in range(n):
        top = -np.inf
        for k in range(K):
            value = constant[k]
            for j in range(d):
                value += E[i, j] * (linear[k, j] + E[i, j] * square[k, j])
            P[i, k] = value
            top = max(top, value)
        total = 0.0
        for k in range(K):
            away = P[i, k] - top
            P[i, k] = np.exp(away) if away > NOTHING else 0.0
            total += P[i, k]
        for k in range(K):
            P[i, k] /= total
        likelihood += counts[i] * (top + np.log(total))
    return likelihood


@compiled()
def alternate(
    E: Any,
    counts: Any,
    P: Any,
    pooled: Any,
    share: Any,
    level: Any,
    variance: Any,
    most: int,
    settled: float,
) -> float:
    """Both in turn, all in place, until a turn gains less than ``settled``; the likelihood."""
    last = -np.inf
    for _ in range(most):
        maximise(E, counts, P, pooled, share, level, variance)
        likelihood = expect(E, counts, share, level, variance, P)
        if likelihood - last < settled:
            return likelihood
        last = likelihood
    return last
