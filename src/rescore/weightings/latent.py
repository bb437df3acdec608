"""Groups of rows whose noise differs, found from the losses alone."""

from dataclasses import dataclass

import numpy as np

from rescore.moments import Matrix
from rescore.weightings.starts import starts

MOST_ITERATIONS, SETTLED = 100, 1e-6  # of EM; log-likelihood per row
RACE = 8  # iterations from every start before only the likeliest goes on
PATIENCE = 50  # iterations at the last one's gain in which a goal must come within reach
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
    best = one_group(losses, counts)
    for few in starts(losses, counts, most):
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
        share, variance = _maximise(losses, P * counts, pooled, n)
        P, per_row = _expect(losses, share, variance)
        likelihood = float(counts @ per_row)
        gain, last = likelihood - last, likelihood
        if gain < SETTLED * n or likelihood + PATIENCE * gain < goal:
            break
    K = len(share)
    penalty = 0.5 * (K * d + K - 1) * np.log(n)
    return Groups(P @ counts / n, variance, P.T, likelihood, likelihood - penalty)


def _maximise(losses: Matrix, P: Matrix, pooled: Matrix, n: float) -> tuple[Matrix, Matrix]:
    """Shares (K,) and variances (K, d) of the groups of rows counted in P (K, n)."""
    size = P.sum(axis=1)[:, None] + 1e-12
    variance = np.maximum(P @ losses / size, SMALLEST * pooled)
    # One pseudo-row of the pooled variance keeps a group of few rows from collapsing.
    return size[:, 0] / n, (variance * size + pooled) / (size + 1)


def _expect(losses: Matrix, share: Matrix, variance: Matrix) -> tuple[Matrix, Matrix]:
    """Membership (K, n), and the log-likelihood of every row (n,)."""
    density = (-0.5 / variance) @ losses.T
    density += (np.log(share) - 0.5 * np.log(variance).sum(axis=1))[:, None]
    top = density.max(axis=0)
    density -= top
    np.exp(density, out=density)
    total = density.sum(axis=0)
    density /= total
    return density, top + np.log(total)
