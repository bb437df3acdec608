"""What each input of each network explains, and which edges that leaves."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore.backbones import networks
from rescore.backbones.inputs import Weighted
from rescore.graph import cut_to_dag
from rescore.moments import Matrix
from rescore.protocols import Mask

SMALLEST_SHARE = 1e-6  # of a variance that counts as noise rather than rounding


@partial(jax.jit, static_argnames=("hidden", "activation"))
def explained(
    x: Array, rows: Weighted, hidden: tuple[int, ...], activation: str
) -> tuple[Array, Array]:
    """``D[i, j] = (v_ij − v_j) / v_j``, (d, d), and the share ``v_j / s_j``, (d,), left as noise.

    ``v_j`` is the residual variance of network j, ``v_ij`` that with input i frozen at its mean,
    ``s_j`` the variance of variable j.  D is zero exactly if network j ignores variable i.

    Examples
    --------
    >>> XT = np.array([[-1, 1], [1, -1]], dtype=np.float32)
    >>> rows = Weighted(XT, XT, np.full(2, 0.5, np.float32))
    >>> D, noise = explained(np.zeros(networks.size(2, (3,))), rows, (3,), "sigmoid")
    >>> print(D.sum(), noise)
    0.0 [1. 1.]
    """
    XT, targets, w = rows
    layers = networks.cast(networks.unflatten(x, len(XT), hidden), XT.dtype)
    Z, mean = networks.first_layer(layers, XT), XT @ w

    def variance(R: Array) -> Array:
        return jnp.square(R - (R @ w)[:, None]) @ w

    def left(Z: Array) -> Array:
        return variance(networks.later_layers(layers, Z, activation) - targets)

    def frozen(i: Array) -> Array:  # one input less in the first layer's sum
        return left(Z - layers[0][0][:, :, i, None] * (XT[i] - mean[i]))

    v, s = left(Z), variance(targets)
    smallest = jnp.finfo(XT.dtype).tiny
    floor = jnp.maximum(jnp.maximum(v, SMALLEST_SHARE * s), smallest)
    rise = jax.lax.map(frozen, jnp.arange(len(XT))) - v
    return rise / floor, v / jnp.maximum(s, smallest)


def break_even(D: Matrix, pruned: int, chance: float) -> float:
    """The D at which an edge is as likely there as not, given all D (k,) and the pruned edges.

    Without an edge D is taken as exponential of mean ``chance``: of M candidates one at most is
    then expected above ``chance · log M``.  Those above count as edges; their number and mean say
    how common and how strong edges are: where they abound, weaker ones are credible.

    Examples
    --------
    >>> D = np.r_[np.full(5, 0.5), np.full(5, 0.01)]
    >>> print(round(break_even(D, pruned=90, chance=0.01), 3))
    0.046
    >>> print(round(break_even(D, pruned=0, chance=0.01), 3))
    0.023
    """
    candidates = len(D) + pruned
    doubtless = chance * np.log(max(candidates, 2))
    certain = D[doubtless < D]
    if len(certain) == 0:
        return float(doubtless)
    odds = (candidates - len(certain) + 1) / (len(certain) + 1)  # against an edge, by Laplace
    mean = certain.mean()
    even = np.log(odds * mean / chance) / (1 / chance - 1 / mean)
    return float(np.clip(even, 0.0, doubtless))


def strongest_dag(D: Matrix, least: float, required: Mask) -> Mask:
    """The required edges; then, by falling D above ``least``, all that close no cycle.

    Examples
    --------
    >>> D = np.array([[0, 0.5, 0], [0.2, 0, 0], [0.3, 0.01, 0]])
    >>> strongest_dag(D, 0.05, np.zeros((3, 3), dtype=bool)).astype(int)
    array([[0, 1, 0],
           [0, 0, 0],
           [1, 0, 0]])
    """
    D = np.where(least < D, D, 0.0)
    D[required] = np.maximum(D[required], np.finfo(float).tiny)
    return cut_to_dag(D, keep=required)[0] != 0
