"""Latent groups of rows, each with a level and a noise variance of its own in every variable.

A mixture of Gaussians with diagonal covariances, fitted to residuals by EM.  Groups are split in
two as long as that pays for its parameters (BIC).
"""

from dataclasses import dataclass

import numpy as np

from rescore.moments import Matrix

MOST_ITERATIONS, SETTLED = 200, 1e-6  # of EM; log-likelihood per row
RACE = 8  # iterations of every way to split a group; only the best goes on
SMALLEST = 1e-3  # share of a variable's pooled variance below which no group's falls
FEWEST = 2  # rows for each variable that a group to be split must have
CUTS = (0.5, 0.8, 0.95)  # quantiles at which a score along which rows differ is cut
RACING = 1500  # rows that take part in it, evenly spaced
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


def find_mixture(E: Matrix, counts: Matrix, most: int, membership: Matrix | None = None) -> Mixture:
    """The groups that residuals E (n, d) show; row i stands for ``counts[i]`` rows.

    From one group, or from a first guess of the ``membership`` (n, K).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scale = np.where(np.arange(400)[:, None] < 300, [1.0, 0.1, 1.0], [0.1, 1.0, 1.0])
    >>> find_mixture(rng.normal(size=(400, 3)) * scale, np.ones(400), most=4).count
    2
    """
    rows = float(counts.sum())
    found = expectation_maximisation(E, counts, np.ones((len(E), 1)))
    while found.count < most:
        split = _best_split(E, counts, found)
        if split is None:
            break
        finer = expectation_maximisation(E, counts, split)
        if finer.evidence(rows) <= found.evidence(rows):
            break
        found = finer
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
    rows, squares = counts.sum(), np.square(E)
    P, last = membership, -np.inf
    for _ in range(most_iterations):
        share, level, variance = _maximise(E, squares, counts, P)
        P, per_row = _expect(E, squares, share, level, variance)
        likelihood = float(counts @ per_row)
        if likelihood - last < SETTLED * rows:
            break
        last = likelihood
    return Mixture(share, level, variance, P, likelihood)


def as_mixture(E: Matrix, counts: Matrix, membership: Matrix) -> Mixture:
    """The groups as they are given, described by their levels and variances.

    Examples
    --------
    >>> as_mixture(np.array([[0.0], [2.0]]), np.ones(2), np.eye(2)).level
    array([[0.],
           [2.]])
    """
    share, level, variance = _maximise(E, np.square(E), counts, membership)
    _, per_row = _expect(E, np.square(E), share, level, variance)
    return Mixture(share, level, variance, membership, float(counts @ per_row))


def _maximise(
    E: Matrix, squares: Matrix, counts: Matrix, P: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    """Shares (K,), levels and variances (K, d) of the groups with memberships P (n, K)."""
    rows, M = counts.sum(), (P * counts[:, None]).T
    pooled = np.maximum(counts @ squares / rows - np.square(counts @ E / rows), 1e-300)
    size = M.sum(axis=1)[:, None] + 1e-10
    level = M @ E / size
    variance = np.maximum(M @ squares / size - level**2, SMALLEST * pooled)
    # One pseudo-row of the pooled variance keeps a group of few rows from collapsing.
    return size[:, 0] / rows, level, (variance * size + pooled) / (size + 1)


def _expect(
    E: Matrix, squares: Matrix, share: Matrix, level: Matrix, variance: Matrix
) -> tuple[Matrix, Matrix]:
    """Membership (n, K), and the log-likelihood of every row (n,)."""
    precision = 1 / variance
    constant = np.log(share) - 0.5 * (
        np.log(2 * np.pi * variance).sum(axis=1) + (level**2 * precision).sum(axis=1)
    )
    density = E @ (level * precision).T - 0.5 * squares @ precision.T + constant
    top = density.max(axis=1)
    density = np.exp(density - top[:, None])
    total = density.sum(axis=1)
    return density / total[:, None], top + np.log(total)


def _best_split(E: Matrix, counts: Matrix, found: Mixture) -> Matrix | None:
    """Memberships (n, K + 1) with that group in two whose rows gain the most by it."""
    best, which, split = 0.0, 0, None
    for k in range(found.count):
        inside = found.membership[:, k]
        at = np.flatnonzero(inside > PRESENT)
        rows = float(counts[at] @ inside[at])
        if rows < FEWEST * E.shape[1]:
            continue
        some = at[np.unique(np.linspace(0, len(at) - 1, min(len(at), RACING)).astype(np.intp))]
        c = counts[some] * inside[some]
        gain, two = _split(E[some], c)
        if gain * rows / c.sum() > best:
            best, which, split = gain * rows / c.sum(), k, two
    if split is None:
        return None
    inside = found.membership[:, which]
    P, _ = _expect(E, np.square(E), split.share, split.level, split.variance)
    return np.c_[found.membership, inside * P[:, 1]] - np.outer(
        inside * P[:, 1], np.arange(found.count + 1) == which
    )


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
    order = np.argsort(score, kind="stable")
    below = np.empty(len(score))
    below[order] = np.cumsum(c[order]) / c.sum()
    upper = 0.05 + 0.9 * (below > cut)
    return expectation_maximisation(E, c, np.column_stack([1 - upper, upper]), RACE)


def _leading(Z: Matrix, c: Matrix) -> Matrix:
    """The score of every row on the direction of largest variance, (n,)."""
    direction = np.linalg.eigh((Z * c[:, None]).T @ Z)[1][:, -1]
    return np.asarray(Z @ (direction * np.sign(direction[np.abs(direction).argmax()])))
