"""How likely a graph and groups of rows make the data, for hypotheses to be compared."""

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix
from rescore.ordered import steady_inverse
from rescore.protocols import Mask, Problem
from rescore.weightings.latent import Groups, expectation_maximisation

ROUNDS = 2  # regressions and groups fitted in turn


def row_counts(problem: Problem) -> Matrix:
    """How many rows each row stands for, (n,).

    Examples
    --------
    >>> row_counts(Problem.unconstrained(np.eye(3)))
    array([1., 1., 1.])
    """
    return problem.prior * problem.effective_rows(problem.prior)


def evidence(problem: Problem, edges: Mask, groups: Groups) -> float:
    """BIC of graph and groups together, each regression at its most precise.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(50, 2)))
    >>> one = Groups(np.ones(1), np.ones((1, 2)), np.ones((50, 1)), 0.0, 0.0)
    >>> no_edge, edge = np.zeros((2, 2), dtype=bool), np.eye(2, k=1, dtype=bool)
    >>> evidence(problem, no_edge, one) > evidence(problem, edge, one)
    True
    """
    counts = row_counts(problem)
    for _ in range(ROUNDS):
        losses = precise_losses(problem, edges, groups)
        groups = expectation_maximisation(losses, counts, groups.membership)
    return float(groups.evidence - 0.5 * edges.sum() * np.log(counts.sum()))


def precise_losses(problem: Problem, edges: Mask, groups: Groups) -> Matrix:
    """Squared residuals (n, d) of every variable regressed on its parents in ``edges`` (d, d).

    Rows count inversely to the noise of their groups in that variable, which makes the
    coefficients as precise as they can be.  The moments of each group are enough for that.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]]))
    >>> one = Groups(np.ones(1), np.ones((1, 2)), np.ones((3, 1)), 0.0, 0.0)
    >>> precise_losses(problem, np.eye(2, k=1, dtype=bool), one).round(6)
    array([[1., 0.],
           [0., 0.],
           [1., 0.]])
    """
    mass = groups.membership.T * problem.prior  # (K, n)
    total = np.maximum(mass.sum(axis=1), 1e-300)
    per_group = [problem.rows.moments(m) for m in mass / total[:, None]]
    means, covariances = (np.array(part) for part in zip(*per_group, strict=True))
    shares = total[:, None] / groups.variance  # (K, d)
    shares = shares / shares.sum(axis=0)
    d = len(edges)
    W, intercept = np.zeros((d, d)), np.empty(d)
    for j in range(d):
        parents = np.flatnonzero(edges[:, j])
        mean, S = _pooled(means, covariances, shares[:, j], np.append(parents, j))
        W[parents, j] = steady_inverse(S[:-1, :-1]) @ S[:-1, -1]
        intercept[j] = mean[-1] - mean[:-1] @ W[parents, j]
    origin: Matrix = np.linalg.solve((np.eye(d) - W).T, intercept).astype(np.float64)
    return problem.rows.squared_residuals(W, origin)


def _pooled(
    means: Matrix, covariances: Matrix, share: Matrix, columns: NDArray[np.intp]
) -> tuple[Matrix, Matrix]:
    """Mean and covariance of some columns where the groups have these shares (K,)."""
    means = means[:, columns]
    mean = share @ means
    apart = means - mean
    within = np.tensordot(share, covariances[:, columns[:, None], columns], axes=1)
    return mean, within + (apart * share[:, None]).T @ apart
