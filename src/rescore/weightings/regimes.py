"""Rows of a group that follow other coefficients in one variable: two regimes of its mechanism.

A group with one changed mechanism looks like every other row in all variables but one, so it is
not worth the levels and variances of a group.  What gives it away is that variable's noise, which
grows with its causes.
"""

from typing import Any, NamedTuple

import numpy as np

from rescore.moments import GroupMoments, Matrix
from rescore.protocols import Mask, Problem
from rescore.solvers.order_search import edge_price
from rescore.weightings.mechanisms import grouped_order_search, left_over, moments_of
from rescore.weightings.mixture import upper_part

DOUBT = 3.0  # deviations beyond its mean at which White's statistic asks for a closer look
UPPER = 0.8  # quantile above which rows start in the other regime
RACE, MOST_ITERATIONS, SETTLED = 15, 100, 1e-5  # of EM; log-likelihood per row
SMALLEST = 1e-3  # share of the variable's variance below which no regime's noise falls
SURE = 0.5  # membership from which a row counts as one of the regime
FEWEST = 5  # such rows for every coefficient
SHARPENED = 20  # turns of memberships and mechanisms


class Regime(NamedTuple):
    """What coefficients of their own gain for some rows, beyond their price, and whose (n,)."""

    gain: float
    share: Matrix


class Mechanisms(NamedTuple):
    """Of a group: its rows, mean (d,), coefficients (d, d) and noise variances (d,)."""

    rows: float
    mean: Matrix
    W: Matrix
    v: Matrix


def with_regimes(
    problem: Problem, edges: Mask, membership: Matrix, aside: Mask, most: int
) -> Matrix:
    """Memberships (n, K' >= K): groups, and rows of the largest with a mechanism of their own.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, e, some = rng.normal(size=900), rng.normal(size=900), np.arange(900) < 200
    >>> problem = Problem.unconstrained(np.c_[x, np.where(some, -2 * x, 2 * x) + e])
    >>> everyone, edges = np.ones((900, 1)), np.eye(2, k=1, dtype=bool)
    >>> with_regimes(problem, edges, everyone, np.zeros(1, dtype=bool), most=4).shape
    (900, 2)
    """
    X, counts = problem.rows.standardised(problem.prior).matrix(), problem.row_counts()
    core = int(np.where(aside, 0.0, counts @ membership).argmax())
    waiting = set(np.flatnonzero(edges.any(axis=0)).tolist())
    while membership.shape[1] < most and waiting:
        c = counts * membership[:, core]
        tried = {j: _regime(X[:, j], X[:, edges[:, j]], c, X.shape[1]) for j in waiting}
        j = max(tried, key=lambda each: tried[each].gain)
        if tried[j].gain <= 0:
            break
        # What was no regime among more rows is none among fewer; one variable has at most two.
        waiting = {each for each in waiting - {j} if tried[each].gain > 0}
        apart = membership[:, core] * tried[j].share
        membership = np.column_stack([membership, apart])
        membership[:, core] -= apart
    return membership


def _regime(y: Matrix, Z: Matrix, c: Matrix, d: int) -> Regime:
    """Two regressions of y on its causes Z (n, p) against one, in rows counted ``c`` times.

    Rows with more noise are no regime: what is asked of it is to explain more than two sizes of
    noise around the same coefficients do.
    """
    rows, p = c.sum(), Z.shape[1]
    nobody = Regime(0.0, np.zeros(len(y)))
    y, Z = y - c @ y / rows, Z - c @ Z / rows
    r = y - Z @ np.linalg.lstsq(Z * np.sqrt(c)[:, None], y * np.sqrt(c), rcond=None)[0]
    if c @ np.square(r) <= 1e-9 * (c @ np.square(y)) or white(r, Z, c) < DOUBT:
        return nobody
    starts = [np.abs(r), *(sign * r * z for z in Z.T for sign in (1, -1))]
    raced = [_two_lines(y, Z, c, upper_part(score, c, UPPER), True, RACE) for score in starts]
    best = max(raced, key=lambda end: end[0])
    apart = _two_lines(y, Z, c, best[1], True, MOST_ITERATIONS)
    alike = max(
        _two_lines(y, Z, c, P, False, MOST_ITERATIONS)[0]
        for P in (upper_part(np.abs(r), c, UPPER), upper_part(r, c, UPPER), apart[1])
    )
    share = _fewer(apart[1], c)
    one = -0.5 * rows * (np.log(2 * np.pi * (c @ np.square(r)) / rows) + 1)
    price = edge_price(rows, d, 0.0)
    gain = min(apart[0] - alike - p * price, apart[0] - one - (p + 3) * price)
    enough = c[share > SURE].sum() >= FEWEST * (p + 1)
    return Regime(float(gain), share) if enough else nobody


def _fewer(P: Matrix, c: Matrix) -> Matrix:
    """The memberships in the smaller of two groups: the larger keeps the shared coefficients."""
    return P if c @ P <= 0.5 * c.sum() else np.asarray(1 - P)


def white(r: Matrix, Z: Matrix, c: Matrix) -> float:
    """White's test of residuals r (n,) for a variance that depends on Z (n, p), in deviations.

    Where coefficients b differ between rows, ``Var(r | z) = v + zᵀ Cov(b) z``.

    Examples
    --------
    >>> z, e = np.random.default_rng(0).normal(size=(2, 1000))
    >>> white(e, z[:, None], np.ones(1000)) < 3 < white(e * z, z[:, None], np.ones(1000))
    True
    """
    w = c / c.sum()
    above, right = np.triu_indices(Z.shape[1])
    Q = Z[:, above] * Z[:, right]
    Q, u = Q - w @ Q, np.square(r) - w @ np.square(r)
    spread = float(w @ np.square(u))
    if spread == 0:  # all residuals of one size
        return 0.0
    q = (Q * w[:, None]).T @ u
    explained = q @ np.linalg.lstsq((Q * w[:, None]).T @ Q, q, rcond=None)[0]
    freedom = Q.shape[1]
    return float((c.sum() * explained / spread - freedom) / np.sqrt(2 * freedom))


def _two_lines(
    y: Matrix, Z: Matrix, c: Matrix, P: Matrix, own: bool, most: int
) -> tuple[float, Matrix]:
    """EM of two groups with levels and noise of their own, from memberships P (n,) in the second.

    Coefficients are each group's ``own`` or shared.  Returns log-likelihood and memberships.
    """
    rows, last = c.sum(), -np.inf
    least = SMALLEST * (c @ np.square(y)) / rows
    v = np.full(2, (c @ np.square(y)) / rows)
    for _ in range(most):
        M = np.stack([1 - P, P]) * c + 1e-300  # (2, n)
        share = M.sum(axis=1) / rows
        r = _left(y, Z, M, v, own)
        v = np.maximum((M * np.square(r)).sum(axis=1) / M.sum(axis=1), least)
        log = np.log(share / np.sqrt(2 * np.pi * v))[:, None] - 0.5 * np.square(r) / v[:, None]
        total = np.logaddexp(log[0], log[1])
        P, likelihood = np.exp(log[1] - total), float(c @ total)
        if likelihood - last < SETTLED * rows:
            break
        last = likelihood
    return likelihood, P


def _left(y: Matrix, Z: Matrix, M: Matrix, v: Matrix, own: bool) -> Matrix:
    """What regressions in two groups with memberships M (2, n) leave, (2, n)."""
    size = M.sum(axis=1, keepdims=True)
    Zc, yc = Z - (M @ Z / size)[:, None], y - M @ y[:, None] / size  # (2, n, p), (2, n)
    weighted = (M[:, :, None] * Zc).transpose(0, 2, 1)  # (2, p, n)
    A, q = weighted @ Zc, (weighted @ yc[:, :, None])[:, :, 0]
    if not own:
        A = np.repeat(np.tensordot(1 / v, A, axes=1)[None], 2, axis=0)
        q = np.repeat(((1 / v) @ q)[None], 2, axis=0)
    ridge = 1e-9 * np.trace(A, axis1=1, axis2=2)[:, None, None] * np.eye(Z.shape[1])
    b = np.linalg.solve(A + ridge, q[:, :, None])  # (2, p, 1)
    return np.asarray(yc - (Zc @ b)[:, :, 0])


def sharpened(problem: Problem, edges: Mask, membership: Matrix, aside: Mask, own: Mask) -> Matrix:
    """Memberships (n, K) of the same groups, as their mechanisms under this graph show them.

    EM: a group's rows are regressed with the shared coefficients, or with its own where the
    mechanism is its own and in groups set aside.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> level = np.repeat([[0.0], [9.0]], 50, axis=0)
    >>> problem = Problem.unconstrained(rng.normal(size=(100, 1)) + level)
    >>> guess, no = np.repeat([[0.6, 0.4], [0.4, 0.6]], 50, axis=0), np.zeros((2, 1), dtype=bool)
    >>> sharpened(problem, np.zeros((1, 1), dtype=bool), guess, no[:, 0], no).round().sum(axis=0)
    array([50., 50.])
    """
    P, last = membership, -np.inf
    for _ in range(SHARPENED):
        groups = mechanisms(problem, edges, moments_of(problem, P), aside, own)
        P, likelihood = _expected(problem, groups)
        if likelihood - last < SETTLED * len(P):
            break
        last = likelihood
    return P


def description_length(
    problem: Problem, edges: Mask, membership: Matrix, aside: Mask, own: Mask
) -> float:
    """Minus the log-likelihood of graph and groups together, and the price of all parameters.

    In deviations of every variable, so that it does not depend on the units.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(200, 1)))
    >>> one, no = np.zeros((1, 1), dtype=bool), np.zeros((2, 1), dtype=bool)
    >>> halves = np.repeat(np.eye(2), 100, axis=0)
    >>> alike = description_length(problem, one, np.ones((200, 1)), one[:, 0], one)
    >>> alike < description_length(problem, one, halves, no[:, 0], no)
    True
    """
    rows, d = problem.row_counts().sum(), len(edges)
    groups = mechanisms(problem, edges, moments_of(problem, membership), aside, own)
    theirs = (own | aside[:, None]) @ edges.sum(axis=0)  # (K,) coefficients of their own
    price = edges.sum() * edge_price(rows, d, 0.0)
    price += sum(
        many * edge_price(group.rows, d, 0.0) for many, group in zip(theirs, groups, strict=True)
    )
    varies = _varying(problem)
    price += _noise_price(groups, varies)
    variances = np.diag(problem.moments(problem.prior).covariance)
    units = 0.5 * rows * np.log(variances[varies]).sum()
    return float(price - units - _expected(problem, groups)[1])


def _noise_price(groups: list[Mechanisms], varies: Mask) -> float:
    """Of shares, levels and variances.

    A group that is much like the largest in a variable could have its level and variance there,
    and would lose no more than its own gain.
    """
    core = max(groups, key=lambda group: group.rows)
    rows = sum(group.rows for group in groups)
    each = np.log(max(rows, 2.0))  # a level and a variance
    price = varies.sum() * each + 0.5 * (len(groups) - 1) * each
    for group in groups:
        if group is not core:
            apart = (group.mean - core.mean)[varies] @ (np.eye(len(varies)) - group.W)[varies]
            v = core.v[varies]
            ratio = group.v[varies] / v
            gain = 0.5 * group.rows * (ratio + apart[varies] ** 2 / v - 1 - np.log(ratio))
            price += np.minimum(gain, each).sum()
    return float(price)


def _expected(problem: Problem, groups: list[Mechanisms]) -> tuple[Matrix, float]:
    """Memberships (n, K) by the densities of the groups, and the log-likelihood."""
    P, logs = expected(problem.rows.matrix(), groups, _varying(problem))
    return P, float(problem.row_counts() @ logs)


def expected(
    X: Matrix, groups: list[Mechanisms], varies: Mask, room: Matrix | None = None
) -> tuple[Matrix, Matrix]:
    """Memberships (n, K) of any rows X (n, d), and how likely each is, (n,).

    ``room`` (2, n·d) or more is memory to compute in.

    Examples
    --------
    >>> one = Mechanisms(9.0, np.zeros(1), np.zeros((1, 1)), np.ones(1))
    >>> other = one._replace(mean=np.array([9.0]))
    >>> expected(np.array([[0.0], [9.0]]), [one, other], np.array([True]))[0].round(3)
    array([[1., 0.],
           [0., 1.]])
    """
    rows, log = sum(group.rows for group in groups), np.empty((len(groups), len(X)))
    (n, d), many = X.shape, int(varies.sum())
    room = np.empty((2, X.size)) if room is None else room
    Z, square = (room[0, : width * n].reshape(width, n) for width in (d, many))
    R = room[1, : many * n].reshape(many, n)
    last: Matrix | None = None
    for k, (size, mean, W, v) in enumerate(groups):
        B = (np.eye(d) - W)[:, varies].T.copy()
        if last is None or not np.array_equal(B, last):  # else residuals differ in their level only
            np.dot(B, np.subtract(X.T, mean[:, None], out=Z), out=R)
            near, last = mean, B
        np.subtract(R, B.dot(mean - near)[:, None], out=square)
        log[k] = np.log(size / rows) - 0.5 * np.log(2 * np.pi * v[varies]).sum()
        log[k] -= (0.5 / v[varies]).dot(np.square(square, out=square))
    top = log.max(axis=0)
    P = np.exp(log - top)
    total = P.sum(axis=0)
    return (P / total).T, top + np.log(total)


def mechanisms(
    problem: Problem, edges: Mask, groups: GroupMoments, aside: Mask, own: Mask
) -> list[Mechanisms]:
    """Every group's, its coefficients the shared ones but where they are its own.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.array([[0.0], [2.0], [4.0]]))
    >>> everyone, no = moments_of(problem, np.ones((3, 1))), np.zeros((1, 1), dtype=bool)
    >>> mechanisms(problem, no, everyone, no[0], no)[0].mean
    array([2.])
    """
    shared = grouped_order_search(problem, groups, aside, own).coefficients(edges)
    pooled, found = _left_variances(shared, problem.moments(problem.prior).covariance), []
    for k, (rows, mean, S) in enumerate(zip(*groups, strict=True)):
        W = _own_columns(shared.copy(), S, edges, own[k] | aside[k])
        v = np.maximum(_left_variances(W, S), SMALLEST * pooled)
        v = (v * rows + pooled) / (rows + 1)  # one pseudo-row, as in the mixture
        found.append(Mechanisms(float(rows), mean, W, v))
    return found


def _left_variances(W: Matrix, S: Matrix) -> Matrix:
    """What coefficients leave of variables with the covariance S, (d,)."""
    B = np.eye(len(W)) - W
    return np.maximum(np.einsum("ij,ij->j", B, S @ B), 1e-12 * np.diag(S))


def _varying(problem: Problem) -> Mask:
    return np.asarray(np.diag(problem.moments(problem.prior).covariance) > 0)


def _own_columns(W: Matrix, S: Matrix, edges: Mask, own: Any) -> Matrix:
    """Coefficients with those of a group's covariance S where the mechanism is its own."""
    for j in np.flatnonzero(own & edges.any(axis=0)):
        parents = np.flatnonzero(edges[:, j])
        W[parents, j] = left_over(S, int(j), parents, W[parents, j])[2]
    return W
