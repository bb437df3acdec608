"""The caller's row weights, checked: as a probability vector, and as a number of rows."""

from typing import Any

import numpy as np

from rescore.moments import Matrix

MOST_ROWS = 1e9  # a whole number beyond this is no count of rows


def prior_weights(sample_weight: Any, n: int) -> Matrix:
    """``s_i / Σ s``, (n,): the caller's weights as a probability vector; 1/n without any.

    Examples
    --------
    >>> prior_weights([1, 3], 2)
    array([0.25, 0.75])
    """
    if sample_weight is None:
        return np.full(n, 1 / n)
    s = np.asarray(sample_weight)
    if s.ndim == 0 and s.dtype.kind in "iuf":
        s = np.full(n, s)
    if s.ndim != 1 or len(s) != n:
        raise ValueError(
            f"sample_weight must be 1D with one weight for each of the {n} rows, "
            f"got the shape {s.shape}."
        )
    if s.dtype.kind not in "biuf":
        raise TypeError(f"sample_weight must hold numbers, got the type {s.dtype}.")
    s = s.astype(np.float64)
    if not np.isfinite(s).all() or (s < 0).any():
        bad = int(np.flatnonzero(~np.isfinite(s) | (s < 0))[0])
        raise ValueError(
            f"sample_weight must be finite and not negative, got {s[bad]} at position {bad}."
        )
    if not s.any():
        raise ValueError("sample_weight is zero in every row; give some row a positive weight.")
    return s / s.max() / (s / s.max()).sum()  # the first division keeps the sum from overflowing


def rows_stood_for(sample_weight: Any, prior: Matrix) -> float:
    """How many rows a weighted table stands for: whole numbers count rows, others only compare.

    Where weights are not whole numbers it is ``1 / Σ s_i²``, as many equal rows as would be as
    informative; their overall size then does not matter.

    Examples
    --------
    >>> rows_stood_for([3, 1], np.array([0.75, 0.25]))
    4.0
    >>> rows_stood_for([1.5, 1.5], np.array([0.5, 0.5]))
    2.0
    """
    if sample_weight is None:
        return float(len(prior))
    s = np.asarray(sample_weight, dtype=np.float64)
    if (s == np.round(s)).all() and s.max() < MOST_ROWS:
        return float(s.sum() if s.ndim else s * len(prior))
    return float(1 / np.sum(prior**2))
