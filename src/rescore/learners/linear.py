"""Linear: the recommended learner of linear data, whose noise is a hypothesis."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rescore.learners.base import LinearLearner, Unpenalised
from rescore.learners.straight_lines import Found, StraightLines
from rescore.moments import Matrix, Weights, row_weights, simplest
from rescore.protocols import Backbone, Problem, State, Status
from rescore.solvers.noise import EQUAL, SHAPED, UNEQUAL, Sample, explanations
from rescore.solvers.order_search import grouped_search
from rescore.validation import check_choice, check_integer, check_number


@dataclass(eq=False, repr=False)
class Linear(Unpenalised, LinearLearner):
    """Linear relations in any units: the recommended learner, exact regressions and no penalty.

    What tells causes from effects is a hypothesis on the noise, and the table decides between
    three of them by BIC: noise of one size in all variables, in the units given, which is what
    every least-squares learner (NOTEARS, DAGMA, GOLEM-EV) takes for granted; Gaussian noise of
    its own size in each variable, which leaves directions open where ``cpdag_`` says so; and
    independent noise that is not Gaussian, which identifies them in any units.  `ReScore` adds
    groups of rows whose noise differs.  Orders of the variables are searched under each
    (the best move of one variable at a time, from several starts), and an edge must gain more
    than chance could (extended BIC) and explain some of its effect.  Where only the class of
    graphs can be known, a number of causes costs the less the more variables have as many: where
    nearly all have one, two that meet by chance are not believed.

    Parameters
    ----------
    noise : {"auto", "equal", "unequal", "non-Gaussian"}
        The hypothesis on the noise of rows that are alike; "auto" lets the table decide.
    least_share : float
        The share of its effect's noise variance that an edge must explain, whatever the number
        of rows.
    n_starts : int
        Orders to start from, at most: no more are tried when two of them led to the same best.
        Where only the class can be known the best order is then shaken, at most four times for
        each start but the first.
    threshold : float
        Coefficients smaller than this, in the units of X, are dropped at the end.
    standardize : bool
        Fit on columns of deviation one.  Noise of equal size is then hardly ever supported.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.
    max_steps : int
        Fits at most, where row weights move between fits.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> model = Linear().fit(X)
    >>> model.adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     2.0   0.0
    >>> model.diagnostics_["noise"]["hypothesis"]
    'equal'
    """

    one_step = True
    in_passes = True
    first: ClassVar[tuple[int, ...] | None] = None  # an order of the columns to search from

    noise: str = "auto"
    _: KW_ONLY
    least_share: float = 0.005
    n_starts: int = 6
    threshold: float = 0.0

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return self._filled(OrderBackbone)


@dataclass(frozen=True)
class OrderBackbone(StraightLines):
    """The graph of the hypothesis on the noise that the rows support best.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> problem = Problem.unconstrained(np.c_[x, 2 * x + rng.normal(size=500)])
    >>> learner = OrderBackbone()
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> print(learner.adjacency(state).round(1))
    [[0. 2.]
     [0. 0.]]
    """

    noise: str = "auto"
    least_share: float = 0.005
    n_starts: int = 6
    threshold: float = 0.0
    first: tuple[int, ...] | None = None  # of a graph that nearly fits: one more start

    def __post_init__(self) -> None:
        check_choice("noise", self.noise, ("auto", EQUAL, UNEQUAL, SHAPED))
        check_number("least_share", self.least_share, at_least=0, below=1)
        check_integer("n_starts", self.n_starts, at_least=1)
        check_number("threshold", self.threshold, at_least=0)

    def init(self, problem: Problem) -> State:
        """No edges."""
        mean, S = problem.moments(problem.prior)
        return State(Found(np.zeros_like(S), mean))

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """A whole search on the weighted rows or cells; it does not depend on the last graph."""
        w = simplest(w)
        W, cost = (self._of_rows if w.ndim == 1 else self._of_cells)(problem, w)
        mean = problem.moments(w).mean
        return State(Found(W, mean), Status.CONVERGED, {"objective": cost, "h": 0.0})

    @property
    def _near(self) -> NDArray[np.int64] | None:
        return None if self.first is None else np.array(self.first, dtype=np.int64)

    def _of_rows(self, problem: Problem, w: Weights) -> tuple[Matrix, float]:
        """The graph of the cheapest hypothesis, and its cost."""
        sample = Sample.of(problem, row_weights(w), self.least_share)
        only = None if self.noise == "auto" else self.noise
        tried = explanations(sample, self.n_starts, only, self._near)
        best = min(tried, key=lambda one: one.cost)
        return best.W, best.cost

    def _of_cells(self, problem: Problem, w: Weights) -> tuple[Matrix, float]:
        """The graph under which the groups' noise is least, each group with its own."""
        search = grouped_search(problem, w, self.least_share)
        ends = [] if self._near is None else [search.improved(search.obedient(self._near))]
        if not ends or self.n_starts > 1:
            ends.append(search.best(self.n_starts))
        found = min(ends, key=lambda end: end.score)
        return search.coefficients(found.edges), found.score
