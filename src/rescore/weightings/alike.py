"""Whether rows look alike, before any groups are sought: a matter of microseconds."""

import numpy as np

from rescore.moments import Matrix

# Deviations above what chance makes of rows that are alike.  Lax: an alarm only costs a search.
ALARM = 1.5


def alike(losses: Matrix, counts: Matrix) -> bool:
    """Whether the losses of different variables are as uncorrelated as in rows that are alike.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(300, 4))
    >>> alike(noise**2, np.ones(300))
    True
    >>> alike((noise * np.linspace(1, 3, 300)[:, None]) ** 2, np.ones(300))
    False
    """
    return excess(losses, counts) < ALARM


def excess(losses: Matrix, counts: Matrix) -> float:
    """By how many deviations the losses (n, d) are more correlated than in rows that are alike.

    With independent noise, of whatever distribution, ``n ρ²`` of two variables' losses is about
    χ² with one degree of freedom.  Rows whose noise differs have large losses in several
    variables together, so the sum over all pairs grows.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(300, 4))
    >>> excess((noise * np.linspace(1, 3, 300)[:, None]) ** 2, np.ones(300)) > ALARM
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
