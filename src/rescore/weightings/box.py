"""The set C(τ) the row weights must stay in, and the best weights inside it."""

import numpy as np

from rescore.moments import Matrix

TIE = 1e-12  # losses closer than this, relative to the larger, count as equal


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
