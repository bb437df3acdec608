"""Inputs of a network that its other inputs can stand in for.

A linear guess of input i from the others only moves first-layer weights from i to the others: the
result is a network that does not see i.  Refitted without i, none need leave more unexplained.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore.backbones import networks
from rescore.backbones.inputs import Weighted
from rescore.moments import Matrix
from rescore.protocols import Mask

RIDGE = 1e-3  # of a variance, added to it: copies of a column then have a guess too


def substantial(
    x: Matrix,
    rows: Weighted,
    edges: Mask,
    D: Matrix,
    least: float,
    *,
    hidden: tuple[int, ...],
    activation: str,
) -> Mask:
    """The edges i → j, (d, d), that explain the share ``least`` of j's variance beyond the others.

    Inputs are tried in turn, by rising D (d, d): one goes if, with its guess from those not gone in
    its place and all others as they are, the residual variance rises by less.  So of two that stand
    for each other one stays, and so do two that act only together.  The inputs' means are zero, as
    `prepare` leaves them under the prior weights.

    Examples
    --------
    >>> XT = np.repeat([[-2, 1, 1]], 3, axis=0).astype(np.float32)  # three equal variables
    >>> rows = Weighted(XT, XT, np.full(3, 1 / 3, np.float32))
    >>> x = np.ones(networks.size(3, (2,)))
    >>> edges = np.array([[False, False, True], [False, False, True], [False] * 3])
    >>> substantial(x, rows, edges, 1.0 * edges, 0.02, hidden=(2,), activation="sigmoid")[:, 2]
    array([False,  True, False])
    """
    kept, count = edges.copy(), edges.sum(axis=0)
    order = np.argsort(np.where(edges, D, np.inf), axis=0, kind="stable")
    S, (W, x) = _covariance(rows), _first_layer(x, edges, hidden[0])
    whole = W.copy()
    v, s = map(np.asarray, _variances(x, rows, hidden, activation))
    for turn in range(int(count.max(initial=0))):
        W[:] = whole
        for j in np.flatnonzero(turn < count):
            W[j] = _guessing(W[j], order[turn, j], kept[:, j], S)
        u = np.asarray(_variances(x, rows, hidden, activation)[0])
        goes = (turn < count) & (u - v < least * s)
        kept[order[turn, goes], goes] = False
    return kept


def _first_layer(x: Matrix, edges: Mask, units: int) -> tuple[Matrix, Matrix]:
    """The first-layer weights of the edges, (d, units, d), a view into a copy of x; and that."""
    x, d = np.array(x, dtype=np.float64), len(edges)
    W = x[: d * units * d].reshape(d, units, d)
    W *= edges.T[:, None, :]
    return W, x


def _covariance(rows: Weighted) -> Matrix:
    XT = np.asarray(rows.XT, np.float64)
    S = (XT * rows.w) @ XT.T
    variance = np.diag(S)
    return S + np.diag(np.where(variance > 0, RIDGE * variance, 1.0))


def _guessing(W: Matrix, i: int, kept: Mask, S: Matrix) -> Matrix:
    """First-layer weights (units, d) with those from i given to the inputs kept that guess it."""
    others = np.flatnonzero(kept & (np.arange(len(kept)) != i))
    W, from_i = W.copy(), W[:, i]
    W[:, others] += np.outer(from_i, np.linalg.solve(S[np.ix_(others, others)], S[others, i]))
    W[:, i] = 0.0
    return W


@partial(jax.jit, static_argnames=("hidden", "activation"))
def _variances(
    x: Array, rows: Weighted, hidden: tuple[int, ...], activation: str
) -> tuple[Array, Array]:
    """What each network leaves of its variable's variance, and that variance, (d,)."""
    layers = networks.cast(networks.unflatten(x, len(rows.XT), hidden), rows.XT.dtype)

    def variance(R: Array) -> Array:
        return jnp.square(R - (R @ rows.w)[:, None]) @ rows.w

    out = networks.predict(layers, rows.XT, activation)
    return variance(out - rows.targets), variance(rows.targets)
