"""Row weights: the caller's, the set C(τ) they may move in, and the heaviest inside it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix

TIE = 1e-12  # losses closer than this, relative to the larger, count as equal
MOST_ROWS = 1e9  # a whole number beyond this is no count of rows


def bounds(prior: Matrix, tau: float) -> tuple[Matrix, Matrix]:
    """The box ``τ s_i ≤ w_i ≤ s_i / τ`` around prior weights ``s`` that sum to one.

    With ``s_i = 1/n`` this is the paper's C(τ); τ = 1 leaves only the prior itself.

    Examples
    --------
    >>> floor, ceiling = bounds(np.array([0.5, 0.5]), 0.5)
    >>> print(floor, ceiling)
    [0.25 0.25] [1. 1.]
    """
    return tau * prior, prior / tau


def ceiling_share(w: Matrix, prior: Matrix, tau: float) -> float:
    """The share of the rows whose weight is at the ceiling of the box.

    Examples
    --------
    >>> ceiling_share(np.array([0.25, 0.75]), np.array([0.5, 0.5]), 0.5)
    0.0
    """
    return float(np.mean(w >= bounds(prior, tau)[1] * (1 - 1e-9)))


def heaviest(losses: Matrix, prior: Matrix, tau: float) -> Matrix:
    """``argmax_{w ∈ C(τ)} Σ_i w_i ℓ_i``, exactly (the inner problem; paper, equation 5).

    A linear program over a box and a simplex: every row gets its floor, the rest of the mass
    fills the rows up to their ceilings from the largest loss ℓ_i (n,) downwards.  Rows tied at
    the last loss served share what is left in proportion to their prior, so the answer does not
    depend on the order of the rows, and a row repeated k times gets k times the weight.

    Examples
    --------
    >>> heaviest(np.array([1.0, 3.0, 2.0]), np.full(3, 1 / 3), 0.5).round(3)
    array([0.167, 0.667, 0.167])
    """
    floor, ceiling = bounds(prior, tau)
    room = ceiling - floor
    mass = 1.0 - floor.sum()
    if mass <= 0:  # τ = 1
        return prior.copy()
    falling = np.argsort(-losses, kind="stable")
    filled = np.cumsum(room[falling])
    last = losses[falling[min(np.searchsorted(filled, mass), len(losses) - 1)]]
    tied = np.abs(losses - last) <= TIE * abs(last)
    full = (losses > last) & ~tied
    left = mass - room[full].sum()
    w = floor + np.where(full, room, 0.0)
    w[tied] += left * prior[tied] / prior[tied].sum()
    return np.clip(w, floor, ceiling)


def project(v: Matrix, prior: Matrix, tau: float) -> Matrix:
    """The point of C(τ) nearest to ``v`` (n,): ``argmin_{w ∈ C(τ)} Σ_i (w_i − v_i)²/s_i``.

    Euclidean for equal prior weights ``s``; the division by s makes a row repeated k times act
    like weight k.  The answer is ``s_i·clip(v_i/s_i − μ, τ, 1/τ)``: every row is moved by the same
    share of its prior.  Its sum falls with μ along straight lines that bend where a row reaches
    a bound, so sorting the 2n bends finds μ exactly.

    Examples
    --------
    >>> project(np.array([0.5, 0.4, 0.0]), np.full(3, 1 / 3), 0.5).round(3)
    array([0.467, 0.367, 0.167])
    """
    floor, ceiling = bounds(prior, tau)
    inside = (floor <= v).all() and (v <= ceiling).all()
    if inside and abs(v.sum() - 1) <= np.finfo(float).eps * len(v):
        return v.copy()
    if floor.sum() >= 1:  # τ = 1
        return prior.copy()
    ratio = v / prior
    shift = _shift_to_sum_one(ratio, prior, tau)
    for _ in range(2):  # what summing 2n bends lost to rounding
        density = np.clip(ratio - shift, tau, 1 / tau)
        free = prior[(density > tau) & (density < 1 / tau)].sum()
        shift += (prior @ density - 1) / free if free > 0 else 0.0
    return np.clip(prior * (ratio - shift), floor, ceiling)


def _shift_to_sum_one(ratio: Matrix, prior: Matrix, tau: float) -> float:
    """The μ with ``Σ s_i clip(ratio_i − μ, τ, 1/τ) = 1``."""
    bends = np.concatenate([ratio - 1 / tau, ratio - tau])  # leaves the ceiling, reaches the floor
    slopes = np.concatenate([-prior, prior])
    order = np.argsort(bends, kind="stable")
    bends, slope = bends[order], np.cumsum(slopes[order])
    total = prior.sum() / tau + np.r_[0.0, np.cumsum(slope[:-1] * np.diff(bends))]
    last = max(int(np.searchsorted(-total, -1.0, side="right")) - 1, 0)  # total still at least one
    return float(bends[last] + (1 - total[last]) / slope[last])


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


def equal_groups(w: Matrix, groups: NDArray[np.intp]) -> Matrix:
    """``w_i / (K π_k)`` for a row of group k of K, π_k the weight of the group: all count alike.

    Examples
    --------
    >>> equal_groups(np.full(4, 0.25), np.array([0, 0, 0, 1])).round(3)
    array([0.167, 0.167, 0.167, 0.5  ])
    """
    v = w / np.bincount(groups, w)[groups]
    return v / v.sum()


def likelihood_units(losses: Matrix, prior: Matrix) -> Matrix:
    """``ℓ_i = Σ_j r_ij² / σ_j²`` with ``σ_j² = Σ_i s_i r_ij²``, (n,).

    A variable that is fitted perfectly, or constant, says nothing about any row: it is left out.

    Examples
    --------
    >>> likelihood_units(np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([0.5, 0.5]))
    array([0.5, 1.5])
    """
    variance = prior @ losses  # (d,)
    tells = variance > np.finfo(float).tiny  # below it, 1/σ² is no longer a number
    precision = np.divide(1.0, variance, out=np.zeros_like(variance), where=tells)
    return losses @ precision
