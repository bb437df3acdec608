"""Additive: a sum of smooth functions of the causes, from one Gram matrix of features."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.algorithm import Result
from rescore.directions import Totals, Verdict, open_directions
from rescore.equations import Equations
from rescore.learners.base import GraphLearner, Unpenalised
from rescore.moments import Matrix, Weights
from rescore.protocols import Backbone, Problem, State, Status
from rescore.solvers import noise
from rescore.solvers.order_search import edge_price
from rescore.solvers.smooth_features import Basis
from rescore.solvers.smooth_search import SmoothSearch, parent_sets
from rescore.validation import check_integer, check_number


def directions(problem: Problem, found: Result) -> Verdict:
    """Which directions the functions tell: those of edges that would cost more if turned.

    Where all functions are straight that is the class of the graph, as for `Linear`.
    """
    edges = found.W != 0
    search = SmoothSearch.of(problem, Basis.of(problem), found.weights, 0.0)
    straight = int(sum((search.local(j, p)[1] < len(edges)).sum() for j, p in parent_sets(edges)))
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
    levels_of_groups = True
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
