"""The noise as a hypothesis: equal, one size for each variable, or not Gaussian.

Each is a likelihood of the rows with a number of parameters, and has a graph of its own that fits
it best.  Their costs, minus log-likelihood plus the price of the parameters (BIC), say which one
the table supports; which directions that identifies follows from it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rescore.graph.dag import topological_order
from rescore.moments import Matrix, Moments, evenly_spaced
from rescore.protocols import Mask, Problem
from rescore.solvers.order_search import OrderSearch, arrangements, edge_price, parent_numbers
from rescore.solvers.ordered_regression import ordered_graph

EQUAL, UNEQUAL, SHAPED, GROUPED = "equal", "unequal", "non-Gaussian", "groups"
LEAST_VARIANCE = 1e-10  # share of a variable's variance that counts as noise rather than rounding
MOST_ROWS = 10_000  # looked at for the shape of the noise, evenly spaced
MOST_COMPONENTS = 3  # of the mixture that describes the noise of one variable
MIXTURE_STEPS = 30
MAXIMUM_ENTROPY = (79.047, 0.374567207491438, 7.4129)  # Hyvärinen (1998)


@dataclass(frozen=True, eq=False)
class Sample:
    """Weighted rows, their moments, and what an edge costs.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> round(Sample.of(Problem.unconstrained(rows), np.full(100, 0.01), 0.0).rows, 6)
    100.0
    """

    problem: Problem
    w: Matrix  # (n,)
    moments: Moments
    rows: float  # as many equal ones would be as informative
    price: float  # of an edge

    @classmethod
    def of(cls, problem: Problem, w: Matrix, least_share: float) -> "Sample":
        """The rows of a problem under the weights ``w`` (n,)."""
        rows, d = problem.effective_rows(w), problem.rows.shape[1]
        return cls(problem, w, problem.moments(w), rows, edge_price(rows, d, least_share))

    @cached_property
    def used(self) -> NDArray[np.intp]:
        """The variables that vary."""
        return np.flatnonzero(np.diag(self.moments.covariance) > 0)

    @cached_property
    def search(self) -> OrderSearch:
        """Over graphs with one Gaussian noise for each variable."""
        n = np.full((1, self.problem.rows.shape[1]), self.rows)
        known = self.problem.allowed, self.problem.required
        return OrderSearch(self.moments.covariance[None], n, *known, self.price)

    @cached_property
    def values(self) -> tuple[Matrix, Matrix]:
        """Some rows, centred, (m, d), and their weights (m,) that sum to one."""
        X = self.problem.rows.matrix()
        at = evenly_spaced(len(X), MOST_ROWS)
        w = self.w[at]
        return X[at] - self.moments.mean, w / w.sum()

    def order(self, W: Matrix) -> NDArray[np.int64]:
        """An order of causes that the graph W obeys; columns that may change places by variance."""
        narrow = np.argsort(np.diag(self.moments.covariance), kind="stable")
        return narrow[topological_order(W[np.ix_(narrow, narrow)])].astype(np.int64)

    def residuals(self, W: Matrix) -> Matrix:
        """Of those rows, in deviations of each variable's noise, (m, d)."""
        X, w = self.values
        R = (X - X @ W)[:, self.used]
        return R / np.sqrt(np.maximum(w @ np.square(R), np.finfo(float).tiny))


@dataclass(frozen=True, eq=False)
class Explained:
    """A graph as a hypothesis on the noise sees it.

    Its edges are paid at BIC here: whether they explain enough to be of use says nothing about
    the noise.
    """

    name: str
    W: Matrix  # (d, d)
    likelihood: float  # log-likelihood of all rows
    parameters: float  # of the noise
    rows: float

    @property
    def cost(self) -> float:
        """Minus log-likelihood plus the price of all parameters: the less, the better."""
        edges = edge_price(self.rows, len(self.W), 0.0) * np.count_nonzero(self.W)
        edges += arrangements(parent_numbers(self.W != 0))
        return float(edges + 0.5 * self.parameters * np.log(max(self.rows, 2.0)) - self.likelihood)


def noise_variances(sample: Sample, W: Matrix) -> Matrix:
    """What W leaves of every variable that varies, from the moments.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.array([[1.0], [3.0]]))
    >>> noise_variances(Sample.of(problem, problem.prior, 0.0), np.zeros((1, 1)))
    array([1.])
    """
    S, B = sample.moments.covariance, np.eye(len(W)) - W
    v = np.einsum("ij,ij->j", B, S @ B)
    return np.maximum(v, LEAST_VARIANCE * np.diag(S))[sample.used]


def with_equal_noise(sample: Sample, W: Matrix) -> Explained:
    """One Gaussian noise variance for all variables, in the units given."""
    v = noise_variances(sample, W)
    size = v.mean() if len(v) else 1.0
    value = -0.5 * sample.rows * len(v) * (np.log(size) + 1 + np.log(2 * np.pi))
    return Explained(EQUAL, W, float(value), min(len(v), 1), sample.rows)


def with_unequal_noise(sample: Sample, W: Matrix) -> Explained:
    """A Gaussian noise variance for each variable, in any units."""
    v = noise_variances(sample, W)
    value = -0.5 * sample.rows * (np.log(v) + 1 + np.log(2 * np.pi)).sum()
    return Explained(UNEQUAL, W, float(value), len(v), sample.rows)


def with_shaped_noise(sample: Sample, W: Matrix) -> Explained:
    """Independent noise of any shape: for each variable a mixture of a few Gaussians."""
    Z, (_, w) = sample.residuals(W), sample.values
    gain, parameters = shape_gains(Z, w, sample.rows)
    plain = with_unequal_noise(sample, W)
    likelihood = plain.likelihood + gain.sum()
    total = plain.parameters + parameters.sum()
    return Explained(SHAPED, W, float(likelihood), float(total), sample.rows)


def explanations(
    sample: Sample, starts: int, only: str | None = None, first: NDArray[np.int64] | None = None
) -> Iterator[Explained]:
    """The best graph of every hypothesis worth a look, cheapest search first; or of one of them.

    With ``first`` (d,), the order of a graph that nearly fits, one of them is searched from there:
    too, or from there alone if there is one start.

    Examples
    --------
    >>> x, e = np.random.default_rng(0).normal(size=(2, 500))
    >>> problem = Problem.unconstrained(np.c_[x, x + e])
    >>> found = explanations(Sample.of(problem, problem.prior, 0.0), starts=2)
    >>> min(found, key=lambda one: one.cost).name
    'equal'
    """
    if first is not None and only in (UNEQUAL, SHAPED):
        yield _from_near(sample, only, first)
        if starts == 1:
            return
    W, _ = ordered_graph(sample.problem, sample.w)
    equal = with_equal_noise(sample, W)
    if only in (None, EQUAL):
        yield equal
    if only == EQUAL:
        return
    if only is None and _not_contradicted(equal, with_unequal_noise(sample, W)):
        if looks_shaped(sample, W):
            yield with_shaped_noise(sample, shaped_graph(sample, [sample.order(W)]))
        return
    # Within a class of graphs the order of least variance is as good a member as any.
    found = sample.search.best_by_number(starts, sample.order(W))
    graphs = [equal.W, sample.search.coefficients(found.edges)]
    shaped = only == SHAPED or (
        only is None and any(looks_shaped(sample, graph) for graph in graphs)
    )
    if not shaped:  # nothing else tells directions, so that it matters which class is the best
        found = sample.search.shaken_by_number(found, starts)
    if only in (None, UNEQUAL):
        yield with_unequal_noise(sample, sample.search.coefficients(found.edges))
    if shaped:
        orders = [sample.order(graph) for graph in graphs]
        yield with_shaped_noise(sample, shaped_graph(sample, orders))


def _from_near(sample: Sample, only: str, order: NDArray[np.int64]) -> Explained:
    """The graph of a hypothesis, searched from the order of one that nearly fits."""
    order = sample.search.obedient(order)
    if only == SHAPED:
        return with_shaped_noise(sample, shaped_graph(sample, [order]))
    edges = sample.search.best_by_number(1, order).edges
    return with_unequal_noise(sample, sample.search.coefficients(edges))


def _not_contradicted(equal: Explained, unequal: Explained) -> bool:
    """Whether noise of one size in all variables passes a likelihood-ratio test in its own graph.

    Then no other graph with noise of all sizes need be searched; with many edges one that fits
    nearly as well with fewer could win by their price alone.
    """
    freedom = unequal.parameters - equal.parameters
    ratio = 2 * (unequal.likelihood - equal.likelihood)
    return bool(ratio <= freedom + 3 * np.sqrt(2 * freedom))


def looks_shaped(sample: Sample, W: Matrix) -> bool:
    """Whether the shape of some variable's noise is worth parameters of its own."""
    if not sample.problem.rows.individual:
        return False
    return bool(is_shaped(sample.residuals(W), sample.values[1], sample.rows).any())


def shape_gains(Z: Matrix, w: Matrix, rows: float) -> tuple[Matrix, Matrix]:
    """By how much a mixture explains standardised noise better than one Gaussian, (d,) each.

    The log-likelihood gained in so many rows, and the parameters that took; none where it is not
    worth them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = np.c_[rng.normal(size=900), rng.exponential(size=900) - 1]
    >>> gain, parameters = shape_gains(Z / Z.std(axis=0), np.full(900, 1 / 900), 900.0)
    >>> parameters[0], bool(gain[1] > 100)
    (np.float64(0.0), True)
    """
    gain, parameters = np.zeros(Z.shape[1]), np.zeros(Z.shape[1])
    shaped = np.flatnonzero(is_shaped(Z, w, rows))
    Z = Z[:, shaped]
    base = -0.5 * (w @ np.square(Z) + np.log(2 * np.pi))
    for M in range(2, MOST_COMPONENTS + 1) if len(shaped) else ():
        more, count = rows * (_mixture_likelihood(Z, w, M) - base), 3.0 * (M - 1)
        extra = count - parameters[shaped]
        better = more - gain[shaped] > 0.5 * extra * np.log(max(rows, 2.0))
        gain[shaped] = np.where(better, more, gain[shaped])
        parameters[shaped] = np.where(better, count, parameters[shaped])
    return gain, parameters


def is_shaped(Z: Matrix, w: Matrix, rows: float) -> NDArray[np.bool_]:
    """Whether skewness or tails of standardised noise are worth parameters of their own, (d,).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = np.c_[rng.normal(size=900), rng.exponential(size=900) - 1]
    >>> is_shaped(Z / Z.std(axis=0), np.full(900, 1 / 900), 900.0)
    array([False,  True])
    """
    squares = Z * Z
    skew, tails = w @ (squares * Z), w @ (squares * squares) - 3
    rows = min(rows, MOST_ROWS)
    evidence = rows * (np.square(skew) / 6 + np.square(tails) / 24)
    return np.asarray(evidence > 3 * np.log(max(rows, 2.0)))


def _mixture_likelihood(Z: Matrix, w: Matrix, M: int) -> Matrix:
    """Mean log-likelihood of each column under a mixture of M Gaussians fitted to it by EM, (d,).

    From slices of equal weight; no component narrower than a fiftieth of the whole.
    """
    P = 0.1 / M + 0.9 * _slices(Z, w, M)
    squares, value = np.square(Z), np.full(Z.shape[1], -np.inf)
    for _ in range(MIXTURE_STEPS):
        share = np.einsum("i,kij->kj", w, P) + 1e-12
        mean = np.einsum("i,kij,ij->kj", w, P, Z) / share
        variance = np.einsum("i,kij,ij->kj", w, P, squares) / share - mean**2
        variance = np.maximum(variance, 4e-4)
        log = np.log(share) - 0.5 * np.log(2 * np.pi * variance)
        P = log[:, None] - 0.5 * np.square(Z - mean[:, None]) / variance[:, None]
        top = P.max(axis=0)
        P = np.exp(P - top)
        total = P.sum(axis=0)
        P /= total
        last, value = value, w @ (top + np.log(total))
        if (value - last < 1e-4).all():
            break
    return value


def _slices(Z: Matrix, w: Matrix, M: int) -> Matrix:
    """The part of every value that lies in each of M slices of equal weight, (M, m, d)."""
    order = np.argsort(Z, axis=0, kind="stable")
    above = np.empty_like(Z)
    np.put_along_axis(above, order, np.cumsum(w[order], axis=0), axis=0)
    below, edge = above - w[:, None], np.arange(M + 1)[:, None, None] / M
    inside = np.minimum(above, edge[1:]) - np.maximum(below, edge[:-1])
    return np.maximum(inside, 0.0) / np.maximum(w, 1e-300)[:, None]


def shaped_graph(sample: Sample, orders: list[NDArray[np.int64]]) -> Matrix:
    """The graph whose residuals are least Gaussian for their size, W (d, d).

    The orders are improved as in the Gaussian search, whose parents each variable keeps; but what
    it costs is ``n (½ log v_j − J_j)``, J_j the negentropy of its residuals.
    """
    costs = Negentropies(sample)
    ends = [improve_order(order, costs.score, costs.touched_by) for order in orders]
    order = min(ends, key=lambda end: end[0])[1]
    return sample.search.coefficients(costs.edges(order))


@dataclass(eq=False)
class Negentropies:
    """What variables with given parents cost if the noise is not Gaussian; remembered.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.exponential(size=500)
    >>> problem = Problem.unconstrained(np.c_[x + rng.exponential(size=500), x])
    >>> costs = Negentropies(Sample.of(problem, problem.prior, 0.0))
    >>> forward = costs.cost(1, np.array([], int)) + costs.cost(0, np.array([1]))
    >>> forward < costs.cost(0, np.array([], int)) + costs.cost(1, np.array([0]))
    True
    """

    sample: Sample
    _costs: dict[tuple[int, bytes], float] = field(default_factory=dict)
    _chosen: dict[tuple[int, bytes], tuple[float, Mask]] = field(default_factory=dict)

    def cost(self, j: int, parents: NDArray[np.intp]) -> float:
        """``n (½ log v − J)`` of variable j given its parents."""
        key = j, parents.tobytes()
        if key not in self._costs:
            value, b, _ = self.sample.search.local(j, parents)
            X, w = self.sample.values
            self._costs[key] = value - self.sample.rows * negentropy(X[:, j] - X[:, parents] @ b, w)
        return self._costs[key]

    def score(self, j: int, before: Mask) -> float:
        """The cost of variable j with the parents that the Gaussian search gives it."""
        waits = (self.sample.problem.required[:, j] & ~before).any()
        return np.inf if waits else self._choose(j, before)[0]

    def touched_by(self, i: int) -> Mask:
        """Variables (d,) whose score may be another if i comes before them too."""
        return self.sample.search.touched_by(i) | self.sample.problem.required[i]

    def edges(self, order: NDArray[np.intp]) -> Mask:
        """The graph of an order, (d, d)."""
        before = np.zeros(len(order), dtype=np.bool_)
        A = np.zeros((len(order),) * 2, dtype=np.bool_)
        for j in order:
            A[:, j] = self._choose(int(j), before)[1]
            before[j] = True
        return A

    def _choose(self, j: int, before: Mask) -> tuple[float, Mask]:
        key = j, np.packbits(before).tobytes()
        if key not in self._chosen:
            parents = self.sample.search.parents(j, before)
            at = np.flatnonzero(parents)
            cost = self.cost(j, at) + self.sample.price * len(at)
            self._chosen[key] = cost, parents
        return self._chosen[key]


def negentropy(r: Matrix, w: Matrix) -> float:
    """How far a variable is from Gaussian, by Hyvärinen's maximum-entropy approximation.

    Examples
    --------
    >>> rng, w = np.random.default_rng(0), np.full(2000, 1 / 2000)
    >>> negentropy(rng.normal(size=2000), w) < 0.01 < negentropy(rng.exponential(size=2000), w)
    True
    """
    r = r - w @ r
    u = r / max(float(np.sqrt(w @ np.square(r))), 1e-300)
    k1, gamma, k2 = MAXIMUM_ENTROPY
    size = np.abs(u)
    log_cosh = size + np.log1p(np.exp(-2 * size)) - np.log(2)
    lopsided = w @ (u * np.exp(-np.square(u) / 2))
    return float(k1 * (w @ log_cosh - gamma) ** 2 + k2 * lopsided**2)


def improve_order(
    order: NDArray[np.intp],
    score: Callable[[int, Mask], float],
    touched_by: Callable[[int], Mask] | None = None,
) -> tuple[float, NDArray[np.intp]]:
    """Moves of one variable at a time to its best place, under any score of a variable.

    ``touched_by`` tells whose scores may depend on whether a variable comes before, if few do.

    Examples
    --------
    >>> improve_order(np.arange(3), lambda j, before: float(j != 1 and not before[1]))
    (0.0, array([1, 0, 2]))
    """
    d, moved, total = len(order), True, np.inf
    near = touched_by or (lambda i: np.ones(d, dtype=np.bool_))
    current = np.zeros(d)
    _rescore(order, score, np.ones(d, dtype=np.bool_), current)
    while moved:
        moved = False
        for v in order.copy():
            rest = order[order != v]
            totals = _totals(int(v), rest, score, near, current)
            here, best = int(np.flatnonzero(order == v)[0]), int(np.argmin(totals))
            total = totals[here]
            if totals[best] < total - 1e-6:
                order, total, moved = np.insert(rest, best, v), totals[best], True
                again = near(int(v)).copy()
                again[v] = True
                _rescore(order, score, again, current)
    return float(total if d else 0.0), order


def _rescore(
    order: NDArray[np.intp], score: Callable[[int, Mask], float], which: Mask, current: Matrix
) -> None:
    """The scores of some variables in an order, into ``current`` (d,)."""
    before = np.zeros(len(order), dtype=np.bool_)
    for u in order:
        if which[u]:
            current[u] = score(int(u), before)
        before[u] = True


def _totals(
    v: int,
    rest: NDArray[np.intp],
    score: Callable[[int, Mask], float],
    near: Callable[[int], Mask],
    current: Matrix,
) -> Matrix:
    """The score of all variables with v before each of ``rest`` in turn, or last, (d,)."""
    d = len(rest) + 1
    before, own = np.zeros(d, dtype=np.bool_), np.empty(d)
    ahead, behind = np.zeros(d), np.zeros(d)
    mine, changed = near(v), True
    for p in range(d):
        own[p] = score(v, before) if changed else own[p - 1]
        if p == d - 1:
            break
        u = int(rest[p])
        without = behind[p] = current[u]
        if mine[u]:
            without = score(u, before)
            before[v] = True
            behind[p] = score(u, before)
            before[v] = False
        ahead[p + 1] = ahead[p] + without
        before[u] = True
        changed = bool(near(u)[v])
    return own + ahead + np.cumsum(behind[::-1])[::-1]
