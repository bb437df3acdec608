"""Groups of rows whose noise differs: whether there are any, which they are, how likely."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix, share_below

MOST_ITERATIONS, SETTLED = 100, 1e-6  # of EM; log-likelihood per row
RACE = 8  # iterations from every start before only the likeliest goes on
PATIENCE = 50  # iterations at the last one's gain in which a goal must come within reach
SMALLEST = 1e-3  # share of a variable's pooled variance below which no group's variance falls
KMEANS_ROUNDS = 15  # of k-means: a start need not be settled
TAILS = (0.05, 0.2)  # shares of the rows that fit worst


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
    best = one_group(losses, counts)
    for few in first_guesses(losses, counts, most):
        raced = [expectation_maximisation(losses, counts, start.T, RACE) for start in few]
        ahead = max(raced, key=lambda groups: groups.likelihood)
        goal = best.evidence + ahead.likelihood - ahead.evidence
        better = expectation_maximisation(losses, counts, ahead.membership, goal=goal)
        if better.evidence <= best.evidence:
            break
        best = better
    return best


def one_group(losses: Matrix, counts: Matrix) -> Groups:
    """All rows alike.

    Examples
    --------
    >>> one_group(np.array([[1.0], [3.0]]), np.ones(2)).variance
    array([[2.]])
    """
    return expectation_maximisation(losses, counts, np.ones((len(losses), 1)), 1)


def expectation_maximisation(
    losses: Matrix,
    counts: Matrix,
    membership: Matrix,
    most_iterations: int | None = None,
    goal: float = -np.inf,
) -> Groups:
    """The mixture that EM reaches from a first guess of the membership (n, K).

    It gives up where even many more steps like the last could not lift the likelihood to the goal.

    Examples
    --------
    >>> two = expectation_maximisation(np.ones((9, 2)), np.ones(9), np.full((9, 2), 0.5))
    >>> two.variance
    array([[1., 1.],
           [1., 1.]])
    """
    n, d = counts.sum(), losses.shape[1]
    pooled = np.maximum(counts @ losses / n, 1e-300)  # a perfect fit has no logarithm
    P = membership.T  # (K, n): sums over the groups run along whole rows
    last = -np.inf
    for _ in range(most_iterations or MOST_ITERATIONS):
        M = P * counts
        share, variance = maximised(M @ losses, M.sum(axis=1), pooled)
        P, per_row = expected(losses, share, variance)
        likelihood = float(counts @ per_row)
        gain, last = likelihood - last, likelihood
        if gain < SETTLED * n or likelihood + PATIENCE * gain < goal:
            break
    K = len(share)
    penalty = 0.5 * (K * d + K - 1) * np.log(n)
    return Groups(P @ counts / n, variance, P.T, likelihood, likelihood - penalty)


def maximised(squares: Matrix, mass: Matrix, pooled: Matrix) -> tuple[Matrix, Matrix]:
    """Shares (K,) and variances (K, d) of groups of so many rows with these sums of losses.

    Examples
    --------
    >>> maximised(np.array([[6.0], [3.0]]), np.array([2.0, 2.0]), np.array([2.25]))[1].round(2)
    array([[2.75],
           [1.75]])
    """
    size = mass[:, None] + 1e-12
    variance = np.maximum(squares / size, SMALLEST * pooled)
    # One pseudo-row of the pooled variance keeps a group of few rows from collapsing.
    return size[:, 0] / mass.sum(), (variance * size + pooled) / (size + 1)


def expected(
    losses: Matrix, share: Matrix, variance: Matrix, shifted: Matrix | float = 0.0
) -> tuple[Matrix, Matrix]:
    """Membership (K, n), and the log-likelihood of every row (n,).

    ``shifted`` (K, n) is what levels add to the log-densities of groups without.

    Examples
    --------
    >>> expected(np.array([[0.0], [9.0]]), np.full(2, 0.5), np.array([[0.01], [9.0]]))[0].round(2)
    array([[0.97, 0.  ],
           [0.03, 1.  ]])
    """
    density = (-0.5 / variance) @ losses.T
    density += shifted
    density += (np.log(share) - 0.5 * np.log(variance).sum(axis=1))[:, None]
    top = density.max(axis=0)
    density -= top
    np.exp(density, out=density)
    total = density.sum(axis=0)
    density /= total
    return density, top + np.log(total)


def excess(losses: Matrix, counts: Matrix) -> float:
    """By how many deviations the losses (n, d) are more correlated than in rows that are alike.

    With independent noise, of whatever distribution, ``n ρ²`` of two variables' losses is about
    χ² with one degree of freedom.  Rows whose noise differs have large losses in several
    variables together, so the sum over all pairs grows.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(300, 4))
    >>> excess((noise * np.linspace(1, 3, 300)[:, None]) ** 2, np.ones(300)) > 4
    True
    """
    n, d = counts.sum(), losses.shape[1]
    if d == 1:
        return 0.0
    # Logarithms, so that no single row decides; of 1 + …, so that small losses do not either.
    Z = np.log1p(losses / np.maximum(counts @ losses / n, 1e-300))
    Z -= counts @ Z / n
    C = (Z * counts[:, None]).T @ Z
    spread = np.sqrt(np.diag(C))
    spread[spread == 0] = np.inf  # a perfect fit says nothing about any row
    pairs = d * (d - 1) / 2
    total = n * (np.square(C / np.outer(spread, spread)).sum() - np.isfinite(spread).sum()) / 2
    return float((total - pairs) / np.sqrt(2 * pairs))


def first_guesses(losses: Matrix, counts: Matrix, most: int) -> Iterator[list[Matrix]]:
    """For every number of groups K from 2 to ``most``, some memberships (K, n).

    Examples
    --------
    >>> losses = np.random.default_rng(0).exponential(size=(50, 3))
    >>> [[start.shape for start in few] for few in first_guesses(losses, np.ones(50), most=3)]
    [[(2, 50), (2, 50), (2, 50)], [(3, 50), (3, 50), (3, 50)]]
    """
    relative = losses / np.maximum(counts @ losses / counts.sum(), 1e-300)
    patterns = _patterns(relative, counts)[:, :most]
    below = share_below(relative.sum(axis=1), counts)
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
    before = share_below(Y[:, 0], counts) - counts / (2 * counts.sum())
    nearest = np.minimum(before * K, K - 1).astype(np.intp)
    counted = Y * counts[:, None]
    for _ in range(KMEANS_ROUNDS):
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


def _softened(group: NDArray[np.intp], K: int) -> Matrix:
    return 0.1 / K + 0.9 * (group == np.arange(K)[:, None])
