"""Gaussian processes: an order of the variables, and parents chosen jointly by evidence."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.equations import Equations, GaussianProcessEquations
from rescore.graph.dag import topological_order
from rescore.learners.base import Unpenalised
from rescore.moments import Matrix, Weights, simplest
from rescore.protocols import Backbone, Mask, Problem, State, Status
from rescore.solvers.curvature_orders import curvature_order
from rescore.solvers.gaussian_covariance import Target
from rescore.solvers.gaussian_inputs import Inputs, prepare, spread_rows
from rescore.solvers.gaussian_orders import (
    FEW,
    SETTLED,
    Costs,
    Found,
    completed,
    consistent,
    gathered,
    improved,
    total,
)
from rescore.solvers.gaussian_parents import causes, threshold, worths
from rescore.solvers.gaussian_prediction import predictor
from rescore.solvers.relevance import Fit, Prior, fresh, learned
from rescore.validation import check_integer, check_number, check_seed

LEVELS = FEW, 1000  # rows on which orders are compared first, before all rows decide
ROUNDS = 8  # of moves in the order on each of them, at most
GATHERINGS = 2  # rounds of sets of causes that show themselves only together, at most


@dataclass(eq=False, repr=False)
class GaussianProcess(Unpenalised):
    """Gaussian processes (nonlinear, joint): parents found together, by the evidence for each.

    Every variable is a smooth function of its causes plus noise, ``x_j = f_j(causes) + e_j``,
    with a Gaussian process for f_j: a length scale for each cause, an amplitude and a noise
    variance of its own, all learned, and with them what relations have in common.  The curvature of
    the log-density, `Additive` and small networks (`NotearsMLP`) propose orders of the variables;
    all that come before a variable are its candidates at once; variables move to where the
    evidence is best; and in the end a cause stays if the evidence without it is worse than chance
    allows.  Units make no difference to the evidence, they only
    help to propose orders.  The strength of an edge is the log evidence that it is worth.

    Parameters
    ----------
    false_edges : float
        How many edges to expect by chance in the whole graph, where there are none.  Where there
        are many, an edge beside others is kept if it is as likely there as not.
    n_starts : int
        Proposed orders, at most five: of the log-density's curvature in standard units; of
        `Additive`; of the curvature in the units given; of networks with noise of one size in
        these; of networks in standard units with noise of a size for each variable.
    hidden : tuple of int
        Units in each hidden layer of these networks.
    most_rows : int
        Rows at most that the final fits see, drawn at random; the time grows with their cube.
    standardize : bool
        Fit on columns of deviation one: here it matters only for the proposed orders.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.
    max_steps : int
        Steps at most: the proposals, rounds of moves, the final fits.
    random_state : int, optional
        Seed of the networks' initial weights; None is 0.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> dose = rng.normal(size=200)
    >>> X = pd.DataFrame({"effect": np.sin(2 * dose) + 0.5 * rng.normal(size=200), "dose": dose})
    >>> list(GaussianProcess().fit(X).causal_graph_.edges)
    [('dose', 'effect')]
    """

    automatic_weighting = "precision"
    levels_of_groups = True

    false_edges: float = 0.2
    _: KW_ONLY
    n_starts: int = 5
    hidden: tuple[int, ...] = (10,)
    most_rows: int = 2000
    random_state: int | None = None

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return GaussianProcessBackbone(
            self.false_edges,
            self.n_starts,
            tuple(self.hidden),
            self.most_rows,
            check_seed(self.random_state),
        )

    def scout(self) -> Backbone | None:
        """`Additive`, whose residuals show groups in a second where a first fit takes minutes."""
        from rescore.learners.additive import AdditiveBackbone

        return AdditiveBackbone() if self.n_starts > 1 else None


class _Search(NamedTuple):
    """Where the search stands; variables by their place among the inputs' columns."""

    inputs: Inputs
    found: Found
    waiting: tuple[Found, ...] = ()  # proposals from which the search on few rows is to start yet
    rivals: tuple[Found, ...] = ()  # where it ended from others, and from where it began
    costs: Any = None  # Costs on the rows of this level, and on those of the one before it
    fewer: Any = None
    w: Weights | None = None  # the weights that they belong to
    level: int = 0
    round: int = 0
    gatherings: int = 0  # on all rows, once no variable moves any more
    worth: Matrix | None = None  # (d, d), of the final edges


@dataclass(frozen=True)
class GaussianProcessBackbone:
    """``max Σ_j log p(x_j | its predecessors)`` over orders, then edges worth a threshold.

    ``p`` is the evidence of a Gaussian process with a relevance per input (`solvers.relevance`),
    the noise variance of cell ij being ``v_j / c_ij``, c the weights in rows.  Steps: proposed
    orders; rounds of moves on few rows from the best of each kind; from the best of what they led
    to, rounds on more and more rows up to ``most_rows``; on the last of them, sets of causes that
    show themselves only together, and the parents.
    """

    false_edges: float = 0.2
    n_starts: int = 5
    hidden: tuple[int, ...] = (10,)
    most_rows: int = 2000
    seed: int = 0
    threshold = 0.0

    def __post_init__(self) -> None:
        check_number("false_edges", self.false_edges, above=0)
        check_integer("n_starts", self.n_starts, at_least=1)
        check_integer("most_rows", self.most_rows, at_least=2)

    def init(self, problem: Problem) -> State:
        """No edges."""
        inputs = prepare(problem)
        d = len(inputs.columns)
        nothing = Fit(0.0, fresh(np.zeros(d, dtype=bool)), np.zeros(d), np.zeros(d + 1))
        start = Found(tuple(range(d)), dict.fromkeys(range(d), nothing))
        return State(_Search(inputs, start))

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """A proposal, a round of moves, or the final fits."""
        search: _Search = state.params
        w = simplest(w)
        if search.w is None:
            return self._told(self._proposed(problem, w, search))
        if not np.array_equal(np.asarray(search.w), np.asarray(w)):
            search = self._reweighted(problem, w, search)
        required = search.inputs.inward(problem.required)
        if search.round < ROUNDS and (search.round == 0 or search.found.moves > 0):
            found = improved(search.costs, search.found, required, search.fewer)
            return self._told(search._replace(found=found, round=search.round + 1))
        if search.waiting:
            return self._told(self._from_next(search))
        if not self._last(search):
            return self._told(self._at_level(problem, w, search, search.level + 1))
        if search.rivals:  # few rows are all there are
            best = _cheapest(search.costs, [search.found, *search.rivals])
            return self._told(search._replace(found=best, rivals=()))
        if search.gatherings < GATHERINGS and (search.gatherings == 0 or search.found.moves > 0):
            every = completed(search.costs, search.found) if not search.gatherings else search.found
            found = gathered(search.costs, every, required)
            return self._told(search._replace(found=found, gatherings=search.gatherings + 1))
        return self._told(self._cut(problem, search, required), Status.CONVERGED)

    def losses(self, problem: Problem, state: State) -> Matrix:
        """The squared noise (n, d) of every row, as its prediction from the others shows it."""
        search: _Search = state.params
        inputs, every = search.inputs, _every_row(problem, search)
        R = np.empty(inputs.X.shape)
        for j, fit in search.found.fits.items():
            R[:, j] = _noises(every.target(j), self._rows(search), fit)
        R = R[:, np.argsort(inputs.columns)] * inputs.deviation
        return np.square(R)[inputs.distinct]

    def adjacency(self, state: State) -> Matrix:
        """What the edges are worth, (d, d); before the end, the relevances."""
        search: _Search = state.params
        A = search.worth
        if A is None:
            fits = search.found.fits
            A = np.column_stack([fits[j].relevance for j in range(len(fits))])
        return search.inputs.outward(A)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """The mean functions of the processes, given the edges of W alone."""
        search: _Search = state.params
        inputs, every = search.inputs, _every_row(problem, search)
        edges, d = inputs.inward(W != 0), len(W)
        rows = self._rows(search)
        theta, dual, level = np.zeros((d, d + 2)), np.zeros((len(rows), d)), np.zeros(d)
        for j, fit in search.found.fits.items():
            theta[j] = np.r_[np.where(edges[:, j], fit.relevance, 0.0), fit.theta[-2:]]
            fitted = predictor(theta[j], every.target(j).part(rows))
            dual[:, j], level[j] = fitted.dual, fitted.level()
        place = np.argsort(inputs.columns)
        return GaussianProcessEquations(
            inputs=inputs.X[np.ix_(rows, place)].astype(np.float64),
            dual=dual[:, place] * np.exp(theta[place, -2]),
            relevance=theta[place][:, place].T,
            centre=inputs.mean,
            offset=inputs.mean + inputs.deviation * level[place],
            scale=inputs.deviation,
        )

    def _least(self, problem: Problem) -> float:
        """The log evidence that chance would exceed as often as is asked for."""
        return threshold(self.false_edges, _pairs(problem))

    def _told(self, search: _Search, status: Status = Status.RUNNING) -> State:
        trace = {"objective": total(search.found.fits), "h": 0.0}
        return State(search, status, trace)

    def _levels(self, inputs: Inputs) -> list[int]:
        """How many rows, first to last."""
        return sorted({min(rows, self.most_rows, len(inputs.X)) for rows in (*LEVELS, 10**9)})

    def _last(self, search: _Search) -> bool:
        return search.level + 1 == len(self._levels(search.inputs))

    def _rows(self, search: _Search) -> NDArray[np.intp]:
        """Those that the fits have seen."""
        return spread_rows(len(search.inputs.X), self._levels(search.inputs)[search.level])

    def _proposed(self, problem: Problem, w: Weights, search: _Search) -> _Search:
        """The proposed orders that are best by evidence on few rows, one of each kind.

        Functions of many causes do not show on few rows, so that an order from graphs of the
        stronger ones looks better there than one from curvature with half as many errors.
        """
        inputs = search.inputs
        required = inputs.inward(problem.required)
        costs = self._costs(problem, w, search, Prior())
        place = np.argsort(inputs.columns)
        best: dict[str, Found] = {}
        for kind, order in islice(self._orders(problem, w, inputs), self.n_starts):
            obeying = consistent([int(place[v]) for v in order], required)
            tried = Found(obeying, costs.along(obeying))
            best[kind] = min(best.get(kind, tried), tried, key=lambda one: total(one.fits))
        first, *others = _unlike(sorted(best.values(), key=lambda one: total(one.fits)))
        waiting = tuple(others)
        return search._replace(w=w, costs=costs, found=first, waiting=waiting, rivals=(first,))

    def _from_next(self, search: _Search) -> _Search:
        """The search on few rows from another proposal; where it ended is kept."""
        begun, *waiting = search.waiting
        found = Found(begun.order, search.costs.along(begun.order, begun.fits))
        rivals = (*search.rivals, search.found)
        return search._replace(found=found, waiting=tuple(waiting), rivals=rivals, round=0)

    def _orders(
        self, problem: Problem, w: Weights, inputs: Inputs
    ) -> Iterator[tuple[str, list[int]]]:
        """Of the columns; by curvature, and by graphs of additive functions and of networks."""
        from rescore.learners.additive import AdditiveBackbone

        most = min(LEVELS[-1], self.most_rows)
        yield "curvature", curvature_order(problem, w, inputs, standard=True, most=most)
        additive = AdditiveBackbone()
        found = additive.step(problem, w, additive.init(problem))
        yield "graph", list(topological_order(additive.adjacency(found)))
        yield "curvature", curvature_order(problem, w, inputs, standard=False, most=most)
        yield "graph", self._by_networks(problem, w, "equal")
        standard = replace(problem, rows=problem.rows.standardised(problem.prior))
        yield "graph", self._by_networks(standard, w, "unequal")

    def _by_networks(self, problem: Problem, w: Weights, variance: str) -> list[int]:
        from rescore.learners.networks import outward
        from rescore.learners.networks.notears_mlp import CYCLES, NotearsMLPBackbone

        networks = NotearsMLPBackbone(hidden=self.hidden, variance=variance, seed=self.seed)
        state = networks.init(problem)
        for _ in CYCLES:
            state = networks.step(problem, w, state)
        edges = outward(state.params.inputs, state.params.edges)
        return list(topological_order(edges.astype(float)))

    def _at_level(self, problem: Problem, w: Weights, search: _Search, level: int) -> _Search:
        """The same order, fitted anew to so many rows that count in this way."""
        fewer = search.costs if level > search.level else None
        prior = self._learned(problem, search)
        costs = self._costs(problem, w, search._replace(level=level), prior)
        rivals = search.rivals if level == 1 else ()
        return search._replace(
            found=_cheapest(costs, [search.found, *rivals]),
            rivals=() if level else search.rivals,
            costs=costs,
            fewer=fewer,
            w=w,
            level=level,
            round=0,
            worth=None,
        )

    def _reweighted(self, problem: Problem, w: Weights, search: _Search) -> _Search:
        """The same order in rows that count in another way; the search goes on where it stood.

        Weights may change before every step, and a search that began anew would never end.
        """
        again = self._at_level(problem, w, search, search.level)
        found = again.found._replace(moves=search.found.moves)
        return again._replace(found=found, round=search.round)

    def _learned(self, problem: Problem, search: _Search) -> Prior:
        """What the relations found so far have in common."""
        return learned(search.found.fits.values(), self._least(problem))

    def _costs(self, problem: Problem, w: Weights, search: _Search, prior: Prior) -> Costs:
        inputs, rows = search.inputs, self._rows(search)
        few = len(rows) <= LEVELS[-1]
        return Costs.of(problem, w, inputs, rows, prior, few)

    def _cut(self, problem: Problem, search: _Search, required: Mask) -> _Search:
        """The parents that are worth what chance would not give."""
        fits, prior = search.found.fits, self._learned(problem, search)
        targets = {j: search.costs.target(j) for j in fits}
        among = search.inputs.inward(problem.allowed).sum(axis=0)  # wherever the order has them
        pairs = _pairs(problem)
        found = causes(targets, fits, required, among, pairs, self.false_edges, prior)
        kept = {j: one.fit for j, one in found.items()}
        worth = np.column_stack([worths(targets[j], kept[j], prior) for j in range(len(kept))])
        return search._replace(found=search.found._replace(fits=kept), worth=worth)


def _cheapest(costs: Costs, found: list[Found]) -> Found:
    """Of these orders the one that costs least on these rows."""
    tried = (Found(one.order, costs.along(one.order, one.fits)) for one in _unlike(found))
    return min(tried, key=lambda one: total(one.fits))


def _unlike(found: list[Found]) -> list[Found]:
    """Those that cost something else on the same rows: orders may differ where nothing tells."""
    costs = [round(total(one.fits) / SETTLED) for one in found]
    return [one for k, one in enumerate(found) if costs[k] not in costs[:k]]


def _pairs(problem: Problem) -> int:
    """Of variables that may have an edge."""
    return int(np.triu(problem.allowed | problem.allowed.T).sum())


def _every_row(problem: Problem, search: _Search) -> Costs:
    """What every row says, whether a fit has seen it or not."""
    w = problem.prior if search.w is None else search.w
    return Costs.of(problem, w, search.inputs, slice(None), Prior())


def _noises(every: Target, rows: NDArray[np.intp], fit: Fit) -> Matrix:
    """The noise of a variable, in its deviations, (n,): each row predicted from the others."""
    fitted = predictor(fit.theta, every.part(rows))
    E = np.empty(len(every.y))
    E[rows] = fitted.noises()
    others = np.setdiff1d(np.arange(len(E)), rows)
    for some in np.array_split(others, len(others) // len(rows) + 1):
        E[some] = fitted.noises_of(every.part(some))
    return E
