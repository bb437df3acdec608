"""Linear graphs by order: least squares finds the order, an information criterion the edges.

If the noise of all variables has the same variance, the order of causes is the order in which
least squares leaves the smallest residual: every variable that comes too early keeps the noise
of its causes on top of its own.  Everything but the last test is read off covariances, as many at
once as there are: S is a stack (B, d, d), a single fit a stack of one.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.graph.dag import precedence
from rescore.moments import Matrix, Moments, Regression, Rows
from rescore.protocols import Mask, Problem
from rescore.solvers.order_search import OrderSearch, edge_price

TINY = float(np.finfo(float).tiny)
LEAST_SHARE = 1e-30  # of the largest variance: what is less counts as that, lest ratios overflow
TIE = 1e-9  # relative difference below which two variances count as equal
NEGLIGIBLE = 1e-12  # share of a variance below which a column is a combination of others
RIDGE = 1e-10  # trace of noise added to correlations
FEW_ROWS = 0.4  # variables for each row; beyond it regressing on all those before wastes too many
MOST_CELLS = 2**20  # of the matrices that are solved in one call
Indices = NDArray[np.intp]
Part = tuple[Indices, Indices, Matrix, Matrix]
Measure = Callable[[Indices, Mask], Matrix]


class Sample(NamedTuple):
    """Weighted rows and their moments; row i stands for ``counts[i]`` rows."""

    rows: Rows
    w: Matrix  # (n,)
    counts: Matrix  # (n,)
    moments: Moments


def ordered_graph(problem: Problem, w: Matrix) -> tuple[Matrix, Moments]:
    """The graph W (d, d) of the rows weighted by ``w``, and their moments.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(200, 1))
    >>> problem = Problem.unconstrained(np.hstack([x, x + x[::-1]]))
    >>> ordered_graph(problem, problem.prior)[0].round(1)
    array([[0., 1.],
           [0., 0.]])
    """
    W, moments = ordered_graphs([problem], [w])
    return W[0], moments[0]


def ordered_graphs(
    problems: Sequence[Problem], weights: Sequence[Matrix]
) -> tuple[Matrix, list[Moments]]:
    """The graphs (B, d, d) of B problems with the same known edges, and their rows' moments."""
    pairs = list(zip(problems, weights, strict=True))
    samples = [Sample(p.rows, w, p.row_counts(), p.moments(w)) for p, w in pairs]
    S = np.stack([each.moments.covariance for each in samples])
    rows = np.array([p.effective_rows(w) for p, w in pairs])
    known = problems[0].allowed, problems[0].required
    if S.shape[-1] > FEW_ROWS * rows.min():
        parents = np.stack([screened_parents(*each, *known) for each in zip(S, rows, strict=True)])
    else:
        parents = parent_sets(S, least_variance_order(S, *known), *known, rows)
    W = beyond_chance(samples, parents, known[1], chance_level(rows, S.shape[-1]))
    return W, [each.moments for each in samples]


def chance_level(rows: Any, d: int) -> Any:
    """The squared t-value that chance alone may reach: extended BIC over d candidates.

    Examples
    --------
    >>> chance_level(np.array([100.0, 1000.0]), 10).round(2)
    array([ 9.21, 11.51])
    """
    return np.log(rows) + 2 * np.log(max(d, 2))


def least_variance_order(S: Matrix, allowed: Mask, required: Mask) -> Indices:
    """Variables one by one, always the one with the least variance given those before it; (B, d).

    Only allowed parents explain a variable.  Required parents come first, and so do variables that
    may be causes of another but not its effects.

    Examples
    --------
    >>> S = np.array([[[5.0, 2.0], [2.0, 1.0]]])  # x1 → x0 with coefficient 2, unit noise
    >>> anything, nothing = ~np.eye(2, dtype=bool), np.zeros((2, 2), dtype=bool)
    >>> least_variance_order(S, anything, nothing)
    array([[1, 0]])
    """
    B, d, _ = S.shape
    every = np.arange(B)
    # The covariance given the variables placed so far is S - UᵀU: only its diagonal and the columns
    # that are asked for are computed, as in a pivoted Cholesky decomposition.
    U, variance = np.zeros((B, d, d)), _diagonal(S).copy()
    hindered = np.flatnonzero((~allowed).sum(axis=0) > 1)  # may not have all others as parents
    before = precedence(allowed, required).astype(np.intp)
    ahead = np.tile(before.sum(axis=0), (B, 1))  # how many still have to come before each
    waiting = np.ones((B, d), dtype=bool)
    order = np.empty((B, d), dtype=np.intp)
    for place in range(d):
        left = variance.copy()
        if len(hindered):
            left[:, hindered] = _variance_left(S, ~waiting, allowed, hindered)
        j = first_of(np.where(waiting & (ahead == 0), left, np.inf), S, U[:, :place])
        order[:, place] = j
        waiting[every, j] = False
        ahead -= before[j]
        own = variance[every, j]
        told = own > NEGLIGIBLE * S[every, j, j]
        root = np.sqrt(np.where(told, own, 1.0))
        R = _given_placed(S[every, :, j, None], U[:, :place], U[every, :place, j, None])[..., 0]
        U[:, place] = np.where(told[:, None], R / root[:, None], 0.0)
        variance -= np.square(U[:, place])
    return order


def _given_placed(S: Matrix, U: Matrix, own: Matrix) -> Matrix:
    """Columns ``S`` (B, d, k) of a covariance given the variables placed: less ``Uᵀ own``."""
    return S - np.matmul(U.transpose(0, 2, 1), own)


def _variance_left(S: Matrix, placed: Mask, allowed: Mask, hindered: Indices) -> Matrix:
    """The variance of each hindered variable given its allowed parents among the placed, (B, h)."""
    B, d, _ = S.shape
    sets = placed[:, None, :] & allowed.T[hindered] & ~placed[:, hindered, None]
    tasks = (np.arange(B)[:, None] * d + hindered).ravel()
    left = unexplained(_correlation(S), tasks, sets.reshape(-1, d))
    return _diagonal(S)[:, hindered] * left.reshape(B, -1)


def first_of(variance: Matrix, S: Matrix, U: Matrix) -> Indices:
    """The variable of least variance; among equals, the one that explains most of the others; (B,).

    The covariance given the variables placed is ``S - UᵀU``, U (B, placed, d).

    Examples
    --------
    >>> S = np.array([[[2.0, 0, 1], [0, 1, 0], [1, 0, 1]]])
    >>> first_of(np.array([[2.0, 1.0, 1.0]]), S, np.zeros((1, 0, 3)))
    array([2])
    """
    least = variance.min(axis=1)
    equal = variance <= (least + TIE * np.abs(least))[:, None]
    first = equal.argmax(axis=1)
    for b in np.flatnonzero(equal.sum(axis=1) > 1):
        equals = np.flatnonzero(equal[b])
        R = _given_placed(S[b : b + 1][..., equals], U[b : b + 1], U[b : b + 1][..., equals])[0]
        widest = float((S[b].diagonal() - np.square(U[b]).sum(axis=0)).max())
        floor = max(LEAST_SHARE * widest, TINY)
        explained = np.square(R).sum(axis=0) / np.maximum(variance[b, equals], floor)
        # Rounded, so that the order of equals in this too is that of the columns, not of rounding.
        first[b] = equals[np.argmax(np.round(explained / max(explained.max(), TINY), 9))]
    return first


def parent_sets(S: Matrix, order: Indices, allowed: Mask, required: Mask, rows: Any) -> Mask:
    """``[b, i, j]`` where j has the parent i, (B, d, d): before j, and explaining enough of it.

    A parent stays if dropping it raises the residual variance by more than the share
    ``(log n + 2 log d) / n`` that chance alone could explain (extended BIC), n the effective
    ``rows``, one number or one for each covariance.

    Examples
    --------
    >>> S = np.array([[[5.0, 2.0], [2.0, 1.0]]])
    >>> anything, nothing = ~np.eye(2, dtype=bool), np.zeros((2, 2), dtype=bool)
    >>> parent_sets(S, np.array([[1, 0]]), anything, nothing, 100.0)
    array([[[False, False],
            [ True, False]]])
    """
    B, d, _ = S.shape
    rows = np.broadcast_to(rows, B)[:, None]
    chance = chance_level(rows, d)
    backward = np.arange(B)[:, None, None], order[:, None, :], order[:, :, None]
    R = _correlation(S)[backward]  # from here on in the order's positions, [b, p, q]: q before p
    before = allowed[backward[1:]] & np.tri(d, k=-1, dtype=bool)
    must = required[backward[1:]]
    gain, left = _given_all(R, before)
    few = before & (must | (gain >= (chance / rows / 4)[:, :, None]))
    # The others can all go at once, unless they stand in for each other: then together they
    # explain more than so many could by chance, a chi-squared of as many degrees.
    many = before.sum(axis=2)
    others = many - few.sum(axis=2)
    tasks = np.arange(B * d)
    left_by_few = unexplained(R, tasks, few.reshape(-1, d)).reshape(B, d)
    rise = (left_by_few / left - 1) * np.maximum(rows - many, 1.0)
    at_once = rise <= others + 3 * np.sqrt(2 * others) + chance
    found = np.zeros_like(before)
    found[backward] = eliminate(
        np.where(at_once[:, :, None], few, before), must, (chance / rows)[:, 0],
        lambda tasks, sets: explained(R, tasks, sets)[0],
    )  # fmt: skip
    return found


def screened_parents(S: Matrix, rows: float, allowed: Mask, required: Mask) -> Mask:
    """Parents (d, d) where the rows are too few to regress on all variables before.

    The order is again that of the least variance left, but by few parents, grown and shrunk among
    those before, and never more of them than the rows can tell apart.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(12, 30))
    >>> X[:, 0] += 5 * X[:, 29]
    >>> anything, nothing = ~np.eye(30, dtype=bool), np.zeros((30, 30), dtype=bool)
    >>> parents = screened_parents(np.cov(X.T), 12.0, anything, nothing)
    >>> bool(parents[29, 0]), int(parents.sum(axis=0).max())
    (True, 2)
    """
    d = len(S)
    price = _price_of_few(edge_price(rows, d, 0.0), rows)
    search = OrderSearch(S[None], np.full((1, d), rows), allowed, required, price)
    before = precedence(allowed, required)
    placed, parents = np.zeros(d, dtype=bool), np.zeros((d, d), dtype=bool)
    left = np.diag(S).copy()
    while not placed.all():
        free = ~placed & ~before[~placed].any(axis=0)
        j = int(first_of(np.where(free, left, np.inf)[None], S[None], np.empty((1, 0, len(S))))[0])
        placed[j] = True
        for v in np.flatnonzero(~placed & allowed[j] & (left > 0) & search.touched_by(j)):
            parents[:, v] = search.parents(int(v), placed)
            left[v] = search.local(int(v), np.flatnonzero(parents[:, v]))[2][0]
    return parents


def _price_of_few(price: float, rows: float) -> float:
    """The gain in log-likelihood that chance exceeds as rarely as ``price`` where rows are many."""
    from scipy import stats  # not before: most tables do without this import

    freedom = max(rows - 2, 1.0)
    squared_t = stats.f.isf(stats.chi2.sf(2 * price, 1), 1, freedom)
    return float(0.5 * rows * np.log1p(squared_t / freedom))


def _given_all(R: Matrix, before: Mask) -> tuple[Matrix, Matrix]:
    """What each variable before p explains of p given the others (B, d, d), and what all leave."""
    B, d, _ = R.shape
    over_all = over_all_before(R)
    complete = before.sum(axis=2) == np.arange(d)
    if over_all is not None and complete.all():
        return over_all
    gain, left = explained(R, np.arange(B * d), before.reshape(-1, d))
    gain, left = gain.reshape(R.shape), left.reshape(B, d)
    if over_all is None:
        return gain, left
    return np.where(complete[:, :, None], over_all[0], gain), np.where(complete, over_all[1], left)


def over_all_before(R: Matrix) -> tuple[Matrix, Matrix] | None:
    """How much each variable before explains of each, given all others before, (..., d, d).

    And the share of the variance that all of them leave, (..., d).  None if some matrix is singular
    to working precision.

    With ``R = L Lᵀ`` and ``M = L⁻¹``, the leading blocks of M invert those of L: row p of M holds
    the coefficients of variable p, the rows above it the inverse of what they are regressed on.

    Examples
    --------
    >>> gains, left = over_all_before(np.array([[1.0, 0.6], [0.6, 1.0]]))
    >>> gains.round(4)[1, 0], left.round(4)
    (np.float64(0.5625), array([1.  , 0.64]))
    """
    try:
        M = np.linalg.inv(np.linalg.cholesky(R))
    except np.linalg.LinAlgError:
        return None
    own = _diagonal(M)[..., None]
    residual = np.maximum(1 / own**2 - RIDGE, NEGLIGIBLE)
    precision = np.cumsum(np.square(M), axis=-2) - np.square(M)  # diagonals of the inverses
    gains = np.zeros_like(M)
    np.divide(
        np.square(M / own), precision * residual, out=gains, where=np.tri(M.shape[-1], k=-1) > 0
    )
    return gains, residual[..., 0]


def beyond_chance(
    samples: Sequence[Sample], parents: Mask, required: Mask, chance: Matrix
) -> Matrix:
    """W (B, d, d): each variable regressed on those of its parents whose t-value is beyond chance.

    The t-values are those of noise that may differ between rows.
    """
    B, d, _ = parents.shape
    S = np.stack([each.moments.covariance for each in samples])
    W = np.zeros((B * d, d))  # a line for each variable: what the last test of its parents found

    def squared_t(tasks: Indices, sets: Mask) -> Matrix:
        found = _least_squares(S, tasks, sets)
        variances: list[Matrix] = []
        for owner, part in groupby(zip(tasks // d, found, strict=True), key=itemgetter(0)):
            rows, *weighted = samples[owner]
            variances += rows.coefficient_variances([each for _, each in part], *weighted)
        b = np.concatenate([each.coefficients for each in found])
        lines = np.zeros(sets.shape)
        lines[sets] = b
        W[tasks] = lines
        with np.errstate(over="ignore"):  # no variance left: as far beyond chance as can be
            lines[sets] = b**2 / np.maximum(np.concatenate(variances), TINY)
        return lines

    by_effect = parents.transpose(0, 2, 1)
    must = np.broadcast_to(required.T, by_effect.shape)
    kept = eliminate(by_effect, must, chance, squared_t, largest_first=False)
    return np.where(kept, W.reshape(B, d, d), 0.0).transpose(0, 2, 1)


def _least_squares(S: Matrix, tasks: Indices, sets: Mask) -> list[Regression]:
    """The regression of each task on its set; collinear parents share what they explain."""
    found: dict[int, Regression] = {}
    effects = (tasks % S.shape[-1]).tolist()
    for at, index, A, r in by_size(S, tasks, sets):
        C = np.asarray(np.linalg.pinv(A, hermitian=True), dtype=np.float64)
        for k, *each in zip(at.tolist(), index, _times(C, r), C, strict=True):
            found[k] = Regression(effects[k], *each)
    return [found[k] for k in range(len(tasks))]


def eliminate(
    sets: Mask, keep: Mask, least: Matrix, measure: Measure, largest_first: bool = True
) -> Mask:
    """Backward elimination: drop from each set (B, d, d) its weakest until all measure enough.

    ``measure`` takes the numbers of some sets, counted through the stack, and those sets (m, d),
    and says how much each member is worth; ``least`` (B,) is enough, what is to ``keep`` stays.
    Largest sets first, most are measured beside others of their size, which is fastest unless
    every call has to read the rows.

    Examples
    --------
    >>> everything, nothing = np.ones((1, 2, 2), dtype=bool), np.zeros((1, 2, 2), dtype=bool)
    >>> worth = np.array([[0.1, 0.9], [0.2, 0.3]])
    >>> eliminate(everything, nothing, np.array([0.25]), lambda tasks, sets: worth[tasks])
    array([[[False,  True],
            [False,  True]]])
    """
    d = sets.shape[-1]
    kept, keep, least = sets.reshape(-1, d).copy(), keep.reshape(-1, d), np.repeat(least, d)
    sizes = kept.sum(axis=1)  # of the sets that may still lose a member; zero for all others
    while sizes.any():
        tasks = np.flatnonzero(sizes == sizes.max() if largest_first else sizes)
        worth = np.where(kept[tasks] & ~keep[tasks], measure(tasks, kept[tasks]), np.inf)
        short = ~(worth.min(axis=1) >= least[tasks])
        kept[tasks[short], worth.argmin(axis=1)[short]] = False
        sizes[tasks] = np.where(short, sizes[tasks] - 1, 0)
    return kept.reshape(sets.shape)


def explained(R: Matrix, tasks: Indices, sets: Mask) -> tuple[Matrix, Matrix]:
    """The rise of the variance without each member of a set (m, d), and the share all leave (m,).

    Set k is that of the variable ``tasks[k]``, counted through the stack of correlations R.

    Examples
    --------
    >>> R = np.array([[[1.0, 0.6], [0.6, 1.0]]])
    >>> explained(R, np.array([1]), np.array([[True, False]]))
    (array([[0.5625, 0.    ]]), array([0.64]))
    """
    gain, left = np.zeros(sets.shape), np.ones(len(sets))
    for at, index, A, r in by_size(R, tasks, sets):
        inverse: Matrix = np.linalg.inv(A).astype(np.float64, copy=False)
        b = _times(inverse, r)
        left[at] = np.maximum(1 - np.vecdot(b, r), NEGLIGIBLE)
        gain[at[:, None], index] = b**2 / (_diagonal(inverse) * left[at][:, None])
    return gain, left


def unexplained(R: Matrix, tasks: Indices, sets: Mask) -> Matrix:
    """The share of each variable's variance that its set leaves, (m,), as in `explained`."""
    left = np.ones(len(sets))
    for at, _, A, r in by_size(R, tasks, sets):
        solved = np.linalg.solve(A, r[:, :, None])[:, :, 0]
        left[at] = np.maximum(1 - np.vecdot(r, solved), NEGLIGIBLE)
    return left


def by_size(A: Matrix, tasks: Indices, sets: Mask) -> Iterator[Part]:
    """Sets (m, d) of one size at a time, so that their matrices can be solved in one call.

    Their numbers among the m, their members (., k), the members' part of A (., k, k), and the
    members' entries in the column of the variable whose set it is (., k).

    Examples
    --------
    >>> sets = np.array([[True, False], [False, False], [True, True]])
    >>> parts = by_size(np.eye(2)[None], np.array([0, 1, 1]), sets)
    >>> [(at.tolist(), index.tolist()) for at, index, _, _ in parts]
    [([0], [[0]]), ([2], [[0, 1]])]
    """
    sizes = sets.sum(axis=1)
    for size in np.flatnonzero(np.bincount(sizes, minlength=1)[1:]) + 1:
        of_size = np.flatnonzero(sizes == size)
        step = 1 + MOST_CELLS // size**2
        for first in range(0, len(of_size), step):
            at = of_size[first : first + step]
            index = np.nonzero(sets[at])[1].reshape(-1, size)
            b, j = np.divmod(tasks[at][:, None], A.shape[-1])
            yield at, index, A[b[:, :, None], index[:, :, None], index[:, None, :]], A[b, index, j]


def steady_inverse(A: Matrix) -> Matrix:
    """The inverse of a covariance; a trace of noise keeps collinear columns from dividing by 0.

    Examples
    --------
    >>> steady_inverse(np.diag([4.0, 0.5])).round(6)
    array([[0.25, 0.  ],
           [0.  , 2.  ]])
    """
    return np.linalg.inv(_correlation(A)) / _outer(_deviations(A))


def _deviations(S: Matrix) -> Matrix:
    deviations = np.sqrt(_diagonal(S))
    deviations[deviations == 0] = 1.0  # so small that its square is zero
    return deviations


def _correlation(S: Matrix) -> Matrix:
    R = S / _outer(_deviations(S))
    _diagonal(R)[...] += RIDGE
    return R


def _outer(v: Matrix) -> Matrix:
    return v[..., :, None] * v[..., None, :]


def _diagonal(A: Matrix) -> Matrix:
    """The diagonals of a stack, (..., d); what is written to them is written to A."""
    return np.einsum("...ii->...i", A)


def _times(A: Matrix, v: Matrix) -> Matrix:
    """The products of matrices (m, k, k) and vectors (m, k)."""
    return (A @ v[:, :, None])[:, :, 0]
