"""Which inputs of the networks are edges: what each explains, beyond chance and the others."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore.graph.dag import cut_to_dag
from rescore.learners.networks import Weighted, mlp
from rescore.moments import Matrix
from rescore.protocols import Mask

# More inputs overfit more: beyond so many variables the penalties grow, by this power.
ALONE, CROWDING = 18, 1.2
FEW = 10  # refits on a DAG of more variables than this have penalties as much larger
# What an input explains by chance, on average, is CHANCE · units / rows; penalties that are x times
# larger leave it less by x^CALM.
CHANCE, CALM = 2.4, 0.2
ROWS = 2000  # of the data this was tuned on
SMALLEST_SHARE = 1e-6  # of a variance that counts as noise rather than rounding
RIDGE = 1e-3  # of a variance, added to it: copies of a column then have a guess too


def stiffness(d: int, *, dag: bool) -> float:
    """The factor on the penalties of d networks, which see all variables or those of a DAG.

    Examples
    --------
    >>> stiffness(10, dag=False), stiffness(20, dag=True)
    (1.0, 2.0)
    """
    return max(1.0, d / FEW if dag else (d / ALONE) ** CROWDING)


def floor(least_share: float, rows: Any) -> Any:
    """The share of its effect's variance that an edge must explain: none up to 2,000 rows.

    Few rows leave so much to chance that only sizeable effects are certain.  With more, the
    slightest dependence is, and its size must decide: ``least_share (1 − 2000/rows)`` is asked for.

    Examples
    --------
    >>> floor(0.01, 2000), floor(0.01, 8000)
    (np.float64(0.0), np.float64(0.0075))
    """
    return least_share * np.maximum(0.0, 1 - ROWS / rows)


def cut(D: Matrix, d: int, pairs: int, units: int, rows: float) -> float:
    """What an input of a DAG of d networks must explain: the D of an edge as likely there as not.

    D (k,) are those of the edges left; a DAG has one candidate for each of so many possible pairs.

    Examples
    --------
    >>> import numpy as np
    >>> round(cut(np.full(9, 0.5), d=10, pairs=45, units=10, rows=2000), 3)
    0.046
    """
    chance = CHANCE * units / rows / stiffness(d, dag=True) ** CALM
    return break_even(D, max(pairs - len(D), 0), chance)


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
    >>> D, noise = explained(np.zeros(mlp.size(2, (3,))), rows, (3,), "sigmoid")
    >>> print(D.sum(), noise)
    0.0 [1. 1.]
    """
    XT, targets, w = rows
    layers = mlp.cast(mlp.unflatten(x, len(XT), hidden), XT.dtype)
    Z, mean = mlp.first_layer(layers, XT), XT @ w if w.ndim == 1 else _own_means(XT, w)

    def variance(R: Array) -> Array:
        return _variance(R, w)

    def left(Z: Array) -> Array:
        return variance(mlp.later_layers(layers, Z, activation) - targets)

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


def substantial(
    x: Matrix,
    rows: Weighted,
    edges: Mask,
    D: Matrix,
    least: Any,  # or one of each variable, (d,)
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
    >>> x = np.ones(mlp.size(3, (2,)))
    >>> edges = np.array([[False, False, True], [False, False, True], [False] * 3])
    >>> substantial(x, rows, edges, 1.0 * edges, 0.02, hidden=(2,), activation="sigmoid")[:, 2]
    array([False,  True, False])
    """
    kept, count = edges.copy(), edges.sum(axis=0)
    order = np.argsort(np.where(edges, D, np.inf), axis=0, kind="stable")
    S, (W, x) = _covariances(rows), _first_layer(x, edges, hidden[0])
    whole = W.copy()
    v, s = map(np.asarray, _variances(x, rows, hidden, activation))
    for turn in range(int(count.max(initial=0))):
        W[:] = whole
        for j in np.flatnonzero(turn < count):
            W[j] = _guessing(W[j], order[turn, j], kept[:, j], S[j % len(S)])
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


def _covariances(rows: Weighted) -> list[Matrix]:
    """Of the inputs, (d, d): one for all networks, or one for each where rows count differently."""
    XT = np.asarray(rows.XT, np.float64)
    return [_covariance(XT, w) for w in np.atleast_2d(rows.w)]


def _covariance(XT: Matrix, w: Matrix) -> Matrix:
    S = (XT * w) @ XT.T
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
    layers = mlp.cast(mlp.unflatten(x, len(rows.XT), hidden), rows.XT.dtype)

    out = mlp.predict(layers, rows.XT, activation)
    return _variance(out - rows.targets, rows.w), _variance(rows.targets, rows.w)


def _variance(R: Array, w: Array) -> Array:
    """Of each row of R (d, n), (d,), under weights of rows that sum to one, or of cells."""
    w = w if w.ndim == 1 else _summing_to_one(w)
    return mlp.over_rows(jnp.square(R - mlp.over_rows(R, w)[:, None]), w)


def _own_means(XT: Array, w: Array) -> Array:
    """The mean of every input as the rows count for each network, (inputs, networks, 1, 1)."""
    return (XT @ _summing_to_one(w).T)[:, :, None, None]


def _summing_to_one(w: Array) -> Array:
    return w / jnp.maximum(w.sum(axis=1, keepdims=True), jnp.finfo(w.dtype).tiny)
