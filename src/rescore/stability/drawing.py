"""Which rows a resample has: how often each row was drawn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rescore.row_weights import MOST_ROWS

__all__ = ["SCHEMES", "Counts", "draw", "rows_behind"]

SCHEMES = ("bootstrap", "subsample")
FEWEST_ROWS = 2  # of a group: one row alone has no spread

Counts = NDArray[np.int64]


def rows_behind(sample_weight: Any, n: int) -> Counts | None:
    """How many rows each row of the table stands for, (n,); None where weights only compare.

    Whole numbers count rows, as in every fit: a row repeated k times is a row of weight k.

    Examples
    --------
    >>> rows_behind(None, 3), rows_behind([2, 0, 1], 3), rows_behind([0.5, 1, 1], 3)
    (array([1, 1, 1]), array([2, 0, 1]), None)
    """
    if sample_weight is None:
        return np.ones(n, dtype=np.int64)
    s = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n)
    # Beyond so many rows numpy draws none without replacement.
    return s.astype(np.int64) if (s == np.round(s)).all() and s.sum() < MOST_ROWS else None


def draw(
    rows: Counts, scheme: str, groups: NDArray[np.intp] | None, rng: np.random.Generator
) -> Counts:
    """How often each row is in a resample, (n,), if the table has ``rows`` (n,) of each.

    As many as there are, with replacement, or half of them without.  With ``groups`` (n,) each is
    drawn from by itself, so that none is lost by chance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draw(np.ones(6, dtype=np.int64), "bootstrap", None, rng).sum()
    np.int64(6)
    >>> draw(np.ones(6, dtype=np.int64), "subsample", None, rng)
    array([1, 0, 0, 1, 0, 1])
    """
    if groups is None:
        return _drawn(rows, scheme, rng, fewest=0)
    counts = np.zeros_like(rows)
    for group in range(groups.max() + 1):
        inside = groups == group
        counts[inside] = _drawn(rows[inside], scheme, rng, FEWEST_ROWS)
    return counts


def _drawn(rows: Counts, scheme: str, rng: np.random.Generator, fewest: int) -> Counts:
    total = int(rows.sum())
    if scheme == "bootstrap":
        if (rows == 1).all():  # the usual case, and the faster way
            return np.bincount(rng.integers(total, size=total), minlength=total)
        return rng.multinomial(total, rows / total)
    half = min(max(total // 2, fewest), total)
    return rng.multivariate_hypergeometric(rows, half, method="marginals")
