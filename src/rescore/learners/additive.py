"""Additive: a sum of smooth functions of the causes, from one Gram matrix of features."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.algorithm import Result
from rescore.directions import Totals, Verdict, open_directions
from rescore.equations import Equations
from rescore.graph.dag import precedence
from rescore.learners.base import GraphLearner, Unpenalised
from rescore.moments import Cells, GroupMoments, Matrix, Weights, simplest
from rescore.protocols import Backbone, Mask, Problem, State, Status
from rescore.solvers import noise
from rescore.solvers.order_search import (
    FIRST_BRANCHES,
    FIRST_NODES,
    ROWS_PER_PARENT,
    Ordered,
    OrderSearch,
    edge_price,
)
from rescore.solvers.smooth_features import FEATURES, Basis
from rescore.validation import check_integer, check_number

BENT = (0.1, 2.0, 40.0, 800.0)  # variances of what is not straight, in units of the noise
ROOM = 8  # times that of straight lines: what is forgotten when it is full costs more here


def directions(problem: Problem, found: Result) -> Verdict:
    """Which directions the functions tell: those of edges that would cost more if turned.

    Where all functions are straight that is the class of the graph, as for `Linear`.
    """
    edges = found.W != 0
    search = SmoothSearch.of(problem, Basis.of(problem), found.weights, 0.0)
    straight = int(sum((search.local(j, p)[1] < len(edges)).sum() for j, p in _sets(edges)))
    total = Totals(lambda j, parents: search.local(j, parents)[0]).of
    price = edge_price(problem.effective_rows(problem.prior), len(edges), 0.0)
    graph = open_directions(edges, problem.allowed, problem.required, total, price)
    return Verdict(graph, _told(graph, straight, len(search.S) > 1))


@dataclass(eq=False, repr=False)
class Additive(Unpenalised, GraphLearner):
    """Smooth additive relations in any units: ``x_j = Σ_i f_ij(x_i) + noise`` (the model of CAM).

    One pass over the rows gives the Gram matrix of ten spline features of every variable; after
    that the number of rows does not matter.  Orders of the variables are searched as `Linear` does,
    each parent a block of features.  A function pays for the degrees of freedom that it takes: its
    wiggles are Gaussian coefficients of unknown size, integrated out, and a straight line costs
    what it costs in BIC.  Every variable has noise of its own size, with `ReScore` every group of
    rows too.  Bent functions tell causes from effects; where all are straight, ``cpdag_`` says
    that directions are open.  The strength of an edge is the variance of its function in units of
    its effect's noise variance.

    Parameters
    ----------
    least_share : float
        The share of its effect's noise variance that an edge must explain, whatever the number
        of rows.
    n_starts : int
        How often the best order is shaken and improved again, the first search included.
    threshold : float
        Edges weaker than this are dropped at the end.
    standardize : bool
        Fit on columns of deviation one; the graph is the same.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.
    max_steps : int
        Fits at most, where row weights move between fits.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> dose = rng.normal(size=500)
    >>> X = pd.DataFrame({"effect": np.sin(2 * dose) + 0.5 * rng.normal(size=500), "dose": dose})
    >>> model = Additive().fit(X)
    >>> list(model.causal_graph_.edges)
    [('dose', 'effect')]
    >>> print(model.diagnostics_["noise"]["summary"])
    Bent functions tell causes from effects, in any units: 1 of 1 edges. Every edge has a direction.
    """

    one_step = True
    in_passes = True
    automatic_weighting = "precision"
    directions = staticmethod(directions)

    least_share: float = 0.005
    _: KW_ONLY
    n_starts: int = 6
    threshold: float = 0.0

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return self._filled(AdditiveBackbone)


class Functions(NamedTuple):
    """What was found: strengths, coefficients of features, and where predictions start."""

    strength: Matrix  # (d, d)
    coefficients: Matrix  # (d·m, d)
    offset: Matrix  # (d,)
    basis: Basis


@dataclass(frozen=True)
class AdditiveBackbone:
    """The graph of smooth functions with the greatest evidence that the search found.

    Examples
    --------
    >>> x, e = np.random.default_rng(0).normal(size=(2, 500))
    >>> problem = Problem.unconstrained(np.c_[x, x**2 + e])
    >>> learner = AdditiveBackbone()
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> print(learner.adjacency(state).round(0))
    [[0. 3.]
     [0. 0.]]
    """

    least_share: float = 0.005
    n_starts: int = 6
    threshold: float = 0.0

    def __post_init__(self) -> None:
        check_number("least_share", self.least_share, at_least=0, below=1)
        check_integer("n_starts", self.n_starts, at_least=1)
        check_number("threshold", self.threshold, at_least=0)

    def init(self, problem: Problem) -> State:
        """No edges."""
        basis, d = Basis.of(problem), problem.rows.shape[1]
        return State(Functions(np.zeros((d, d)), np.zeros((basis.width, d)), basis.mean, basis))

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """A whole search on the weighted rows or cells; it does not depend on the last graph."""
        basis = state.params.basis
        search = SmoothSearch.of(problem, basis, w, self.least_share)
        found = search.best(self.n_starts)
        B, strength = search.functions(found.edges)
        offset = basis.mean + basis.deviation * search.level(B)
        functions = Functions(strength, B, offset, basis)
        return State(functions, Status.CONVERGED, {"objective": found.score, "h": 0.0})

    def losses(self, problem: Problem, state: State) -> Matrix:
        """Squared residuals of every row and variable before the threshold, (n, d)."""
        X = problem.rows.matrix()
        return np.square(X - self.equations(problem, state, state.params.strength).predict(X))

    def adjacency(self, state: State) -> Matrix:
        """The variance of every function in units of its effect's noise variance, (d, d)."""
        return np.array(state.params.strength)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """The functions of the edges of W."""
        found: Functions = state.params
        return found.basis.equations(found.coefficients, W != 0, found.offset)


@dataclass(eq=False)
class SmoothSearch(OrderSearch):
    """The order search with a block of features for every candidate; S is (K, d·m, d·m).

    Examples
    --------
    >>> x, e = np.random.default_rng(0).normal(size=(2, 500))
    >>> problem = Problem.unconstrained(np.c_[x, x**2 + e])
    >>> search = SmoothSearch.of(problem, Basis.of(problem), problem.prior, 0.0)
    >>> search.best(starts=1).edges.astype(int)
    array([[0, 1],
           [0, 0]])
    """

    scores: Any = field(init=False)
    rough: Matrix = field(kw_only=True)  # (d·m,) of the features
    mean: Matrix = field(kw_only=True)  # (d·m,) of the features, all rows together

    @classmethod
    def of(cls, problem: Problem, basis: Basis, w: Weights, least_share: float) -> "SmoothSearch":
        """The features of weighted rows, or of groups of rows with noise of their own."""
        w, d = simplest(w), problem.rows.shape[1]
        rows = problem.effective_rows(w if w.ndim == 1 else problem.prior)
        (mass, means, S), n = _groups(problem, basis, w, rows)
        price = edge_price(rows, d, least_share) - 0.5 * np.log(max(rows, 2.0))
        mean = mass @ means / mass.sum()
        known = problem.allowed, problem.required
        return cls(S, n, *known, price, rough=basis.rough, mean=mean)

    def __post_init__(self) -> None:
        from rescore.solvers import block_regression, grow_shrink  # compiled

        self._compiled, self._blocks = grow_shrink, block_regression
        self._must = np.ascontiguousarray(precedence(self.allowed, self.required))
        self.deviations = np.ones(len(self.allowed))
        rows = self.n.sum(axis=0).max()
        line = np.arange(len(self.rough)) % FEATURES == 0
        ridge = np.stack([np.where(line, 0.0, self.rough / (a * rows)) for a in (1.0, *BENT)])
        most = min(self.most_parents, len(self.allowed) - 1, max(int(rows / ROWS_PER_PARENT), 1))
        self.scores = block_regression.BlockScores(
            np.ascontiguousarray(self.S),
            np.ascontiguousarray(self.n),
            ridge,
            np.array([1, *(FEATURES for _ in BENT)]),
            np.ascontiguousarray(self.allowed & ~self.required),
            np.ascontiguousarray(self.required),
            float(self.penalty),
            most,
        )
        self._grow(ROOM * FIRST_NODES, ROOM * FIRST_BRANCHES)

    def best(self, starts: int, first: NDArray[np.int64] | None = None) -> Ordered:
        """Where the search leads from the likeliest order, and again from the best one, shaken."""
        found = self.improved(self._likeliest() if first is None else first)
        return self._shaken(found, starts - 1, self.improved)

    def _likeliest(self) -> NDArray[np.int64]:
        """First the variables whose features explain more of others than others' of them."""
        rows = self.n.max(axis=1)
        S = np.tensordot(rows / rows.sum(), self.S, axes=1)
        d = len(self.allowed)
        R = np.square(S[::FEATURES]).reshape(d, d, FEATURES).sum(axis=2)  # [j, i]
        return self.obedient(np.argsort(R.sum(axis=1) - R.sum(axis=0), kind="stable"))

    def local(self, j: int, parents: NDArray[Any]) -> tuple[float, Any, Matrix]:
        """What variable j costs with these parents, their codes, and the coefficients (d·m,)."""
        d, k = len(self.allowed), len(parents)
        codes = (parents + d * (len(self.scores.width) // 2)).astype(np.int64)
        b, v = np.zeros(max(k, 1) * FEATURES), np.empty(len(self.S))
        value, _ = self._blocks.settled(self.scores, j, codes, k, k, b, v)
        F = np.empty(max(k, 1) * FEATURES, dtype=np.int64)
        p = self._blocks.gathered(self.scores, codes, k, F, np.empty(len(F)))
        placed = np.zeros(len(self.rough))
        placed[F[:p]] = b[:p]
        return float(value), codes, placed

    def functions(self, edges: Mask) -> tuple[Matrix, Matrix]:
        """Coefficients (d·m, d), and every function's variance in units of the noise, (d, d)."""
        d, rows = len(edges), self.n / np.maximum(self.n.sum(axis=0), 1e-300)
        B, strength = np.zeros((len(self.rough), d)), np.zeros((d, d))
        for j, parents in _sets(edges):
            B[:, j] = b = self.local(j, parents)[2]
            S = np.tensordot(rows[:, j], self.S, axes=1)
            left = b.copy()
            left[j * FEATURES] -= 1.0
            noise_variance = max(float(left @ S @ left), 1e-12)
            for i in parents:
                own = slice(i * FEATURES, (i + 1) * FEATURES)
                strength[i, j] = b[own] @ S[own, own] @ b[own] / noise_variance
        return B, strength

    def level(self, B: Matrix) -> Matrix:
        """What must be added to ``Σ f`` so that residuals average to zero, in deviations, (d,)."""
        return np.asarray(self.mean[::FEATURES] - self.mean @ B)


def _groups(problem: Problem, basis: Basis, w: Weights, rows: float) -> tuple[GroupMoments, Matrix]:
    """The features' moments in every group, and how many rows count in each variable, (K, d).

    Cells that count nothing in a variable's regression are not there for it.
    """
    features, d = problem.rows.expanded(basis.features, basis.width), problem.rows.shape[1]
    if isinstance(w, Cells):
        moments = features.group_moments(w.membership)
        return moments, rows * moments.mass[:, None] * (w.precision > 0)
    if w.ndim == 1:
        mean, S = features.moments(w)
        return GroupMoments(np.ones(1), mean[None], S[None]), np.full((1, d), rows)
    mass = np.maximum(w.sum(axis=0), 1e-300)
    each = [features.moments(column) for column in (w / mass).T]
    mean, S = (np.array(part) for part in zip(*each, strict=True))
    n = np.diag([problem.effective_rows(column) for column in (w / mass).T])
    return GroupMoments(mass, mean, S), n


def _sets(edges: Mask) -> list[tuple[int, NDArray[np.intp]]]:
    """The variables with parents, and these."""
    return [(int(j), np.flatnonzero(edges[:, j])) for j in np.flatnonzero(edges.any(axis=0))]


def _told(graph: NDArray[np.int8], straight: int, grouped: bool) -> dict[str, Any]:
    """What tells directions, as plain data and as sentences."""
    edges = int(((graph | graph.T) != 0).sum()) // 2
    both = int((graph & graph.T).sum()) // 2
    bent = edges - straight
    by = "and what all groups share " if grouped else ""
    told = f"Bent functions {by}tell causes from effects, in any units: {bent} of {edges} edges."
    if not edges:
        told = "There is no edge."
    elif bent == 0:
        told = (
            "All relations look straight, which rs.Linear() learns with more hypotheses on noise."
        )
    opened = (
        f"Of {edges} edges {both} could as well be turned."
        if both
        else "Every edge has a direction."
    )
    return {
        "hypothesis": noise.GROUPED if grouped else noise.UNEQUAL,
        "summary": f"{told} {opened}" if edges else told,
        "costs": {},
        "edges": edges,
        "bent_edges": bent,
        "open_directions": both,
    }
