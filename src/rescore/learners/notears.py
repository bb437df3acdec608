"""NOTEARS: least squares, an L1 penalty and a smooth acyclicity constraint, on second moments."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore import acyclicity
from rescore.learners import group_likelihood
from rescore.learners.base import PathLearner
from rescore.learners.polish import closing_lasso
from rescore.learners.straight_lines import (
    StraightLines,
    least_squares,
    noise_variance,
    penalties,
    regression_moments,
    typical_variance,
)
from rescore.moments import Cells, Matrix, Weights, simplest
from rescore.protocols import Backbone, Problem, State, Status
from rescore.solvers import descent
from rescore.solvers.compilation import float64
from rescore.solvers.lasso import Lasso
from rescore.validation import check_choice, check_flag, check_number

Score = Callable[[Any, Array], tuple[Array, Array]]  # of moments and W: value and gradient
CONSTRAINTS = {
    "exponential": acyclicity.trace_exponential,
    "polynomial": acyclicity.polynomial,
}
# Of one subproblem; the next one starts from there.  Where the orders of causes are polished at the
# end, more have not changed the graph.
MOST_ITERATIONS, MOST_BEFORE_POLISH = 15_000, 500
# L-BFGS-B's customary tolerances, so that both solvers mean the same by a solved subproblem:
# least relative decrease, largest slope.
SOLVED = (2.2e-9, 1e-5)
PROGRESS = 0.25  # a dual step must bring h below this share of what it was
GROWTH = 10.0  # otherwise the penalty grows by this factor


@dataclass(eq=False, repr=False)
class Notears(PathLearner):
    """NOTEARS (linear): ``½ Σ_i w_i |x_i − x_i W|² + λ|W|₁`` subject to ``h(W) = 0``.

    With weights of cells from groups of rows the score is the likelihood of the groups, and λ is
    in units of the variables' spread within groups.

    Parameters
    ----------
    lambda1 : float
        λ, the penalty on the coefficients.
    threshold : float
        Coefficients smaller than this are dropped at the end.
    standardize : bool
        Fit on columns of deviation one.  Coefficients are then in standard deviations, and the
        graph no longer depends on units; but nor does it profit from informative ones.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.
    constraint : {"exponential", "polynomial"}
        The acyclicity measure h.
    polish : bool
        At the end, look for a better order of causes: neighbours change places in the order found
        and in the order of least residual variance as long as that lowers the objective.
    h_tol, rho_max, max_steps : float, float, int
        Where the augmented Lagrangian stops: tolerance on h, cap of its penalty, outer steps.
    n_starts, random_state : int, int, optional
        Starting points, of which the one with the least objective is kept: zero, and random ones
        drawn from this seed.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> Notears().fit(X).adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     1.9   0.0
    """

    lambda1: float = 0.1
    _: KW_ONLY
    threshold: float = 0.3
    constraint: str = "exponential"
    polish: bool = True
    h_tol: float = 1e-8
    rho_max: float = 1e16

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return self._filled(NotearsBackbone)


class Dual(NamedTuple):
    """Where the augmented Lagrangian stands."""

    W: Matrix  # (d, d)
    alpha: float  # multiplier of h
    rho: float  # penalty on h²
    h: float
    mean: Matrix  # (d,), of the rows under the weights W was learned with
    unit: float  # variance in which the score is measured, so that α and ρ have no units


class Objective(NamedTuple):
    """``score + Σ penalty·|W|``, which a step minimises."""

    score: Score
    moments: Any  # arrays, all that the score sees of the rows
    penalty: Matrix  # (d, d)
    close: Callable[[Matrix], Lasso]  # the minimum on a DAG near W (d, d), once h is small enough
    unit: float  # variance in which the score is measured, so that the path has no units
    start: Callable[[Matrix], Matrix] = lambda W: W  # W (d, d), shrunk to where the score is finite


@dataclass(frozen=True)
class NotearsBackbone(StraightLines):
    """``min ½ Σ_i w_i |x_i − x_i W|² + λ|W|₁  s.t.  h(W) = 0`` by an augmented Lagrangian.

    One step is one dual ascent: minimise ``… + α h + ½ρ h²`` from the last W, with ρ growing
    until h has fallen to a quarter; then α grows by ρh.  Once h is within its tolerance, what is
    left given the edges found is a lasso, which is convex; the last step solves it exactly.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> problem = Problem.unconstrained(np.c_[x, 2 * x + rng.normal(size=500)])
    >>> learner = NotearsBackbone(lambda1=0.1)
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> print(learner.adjacency(state).round(1))  # one dual step: the cycle is not gone yet
    [[0.  1.8]
     [0.2 0. ]]
    """

    lambda1: float = 0.1
    threshold: float = 0.3
    constraint: str = "exponential"
    polish: bool = True
    h_tol: float = 1e-8
    rho_max: float = 1e16

    def __post_init__(self) -> None:
        check_number("lambda1", self.lambda1, at_least=0)
        check_number("threshold", self.threshold, at_least=0)
        check_choice("constraint", self.constraint, CONSTRAINTS)
        check_flag("polish", self.polish)
        check_number("h_tol", self.h_tol, above=0)
        check_number("rho_max", self.rho_max, above=1)

    def init(self, problem: Problem) -> State:
        """W = 0, no multiplier, penalty one."""
        mean, S = problem.moments(problem.prior)
        unit = typical_variance(problem)
        return State(Dual(np.zeros_like(S), alpha=0.0, rho=1.0, h=np.inf, mean=mean, unit=unit))

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """One dual ascent on the moments of the weighted rows."""
        unit, mean = state.params.unit, problem.moments(w).mean
        objective = path_objective(problem, w, self.lambda1, unit, self.polish)
        return self.ascend(problem, mean, state, objective)

    def ascend(self, problem: Problem, mean: Matrix, state: State, objective: Objective) -> State:
        """One dual ascent on any objective, for rows centred at ``mean`` (d,)."""
        dual: Dual = state.params
        start = objective.start(dual.W)

        def minimise(rho: float) -> _Solution:
            most = MOST_BEFORE_POLISH if self.polish else MOST_ITERATIONS
            return _minimise(
                objective.moments, start, objective.penalty, problem.allowed, dual.alpha, rho, most,
                objective.score, self.constraint,
            )  # fmt: skip

        with float64():
            rho, found = ascended(minimise, dual.rho, dual.h, self.h_tol, self.rho_max)
        W, h = np.array(found.W), float(found.h)
        value, optimality = float(found.objective), float(found.optimality)
        if h <= self.h_tol:
            W, value, optimality = objective.close(W)
        trace = {"objective": value * objective.unit, "h": h, "rho": rho, "optimality": optimality}
        new = Dual(W, dual.alpha + rho * h, rho, h, mean, dual.unit)
        return State(new, dual_status(rho, h, self.h_tol, self.rho_max), trace)


class Solved(Protocol):
    """A minimum of the Lagrangian: whatever else it has, the h there."""

    @property
    def h(self) -> Any:
        """How far from acyclic."""


Solution = TypeVar("Solution", bound=Solved)


def ascended(
    minimise: Callable[[float], Solution], rho: float, h: float, h_tol: float, rho_max: float
) -> tuple[float, Solution]:
    """Minimise ``… + α h + ½ρ h²``, raising ρ until h has fallen to a quarter of what it was.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> ascended(lambda rho: SimpleNamespace(h=1 / rho), 1.0, 0.5, 1e-8, 1e16)
    (10.0, namespace(h=0.1))
    """
    while True:
        found = minimise(rho)
        if found.h <= max(PROGRESS * h, h_tol) or rho * GROWTH > rho_max:
            return rho, found
        rho *= GROWTH


def dual_status(rho: float, h: float, h_tol: float, rho_max: float) -> Status:
    """Whether the constraint holds, could not be made to hold, or needs further steps.

    Examples
    --------
    >>> dual_status(10.0, 1e-9, 1e-8, 1e16).name
    'CONVERGED'
    """
    if h <= h_tol:
        return Status.CONVERGED
    return Status.PENALTY_CAP if rho * GROWTH > rho_max else Status.RUNNING


def path_objective(
    problem: Problem, w: Weights, lambda1: float, unit: float, polish: bool
) -> Objective:
    """What NOTEARS and DAGMA minimise along their paths: least squares, or a likelihood of groups.

    Of rows it is ``½ Σ_i w_i |x_i − x_i W|² + λ|W|₁`` in units of ``unit``, a variance.  Of cells
    (n, d) the same with the weights of each variable, in units of the noise.  Of `Cells`, the
    likelihood of their groups: a score with the precisions fixed keeps to the graph that they were
    made from, while the best precisions are a function of W, and so are found along with it.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.array([[1.0, 3.0], [-1.0, -3.0]]))
    >>> path_objective(problem, problem.prior, 0.1, 2.0, polish=True).moments
    array([[0.5, 1.5],
           [1.5, 4.5]])
    """
    w = simplest(w)
    if isinstance(w, Cells):
        return _of_groups(problem, w, lambda1, polish)
    S, penalty = regression_moments(problem, w).covariance, penalties(problem, lambda1, w)
    if w.ndim == 1:
        return _least_squares(problem, S / unit, penalty / unit, unit, polish)
    # Precisions put the noise of all variables at one, and there λ is what it is said to be.
    unit = noise_variance(problem)
    return _least_squares(problem, S / unit, penalty, unit, polish)


def _least_squares(
    problem: Problem, S: Matrix, penalty: Matrix, unit: float, polish: bool
) -> Objective:
    def close(W: Matrix) -> Lasso:
        return closing_lasso(problem, S, W, penalty, polish)

    return Objective(least_squares, S, penalty, close, unit)


def _of_groups(problem: Problem, cells: Cells, lambda1: float, polish: bool) -> Objective:
    groups = group_likelihood.groups_of(problem, cells)
    penalty = group_likelihood.penalties_within(problem, groups, lambda1)

    def close(W: Matrix) -> Lasso:
        return group_likelihood.closing(problem, groups, W, penalty, polish)

    def start(W: Matrix) -> Matrix:
        return group_likelihood.into_domain(W, groups)

    return Objective(group_likelihood.score, groups, penalty, close, 1.0, start)


class _Solution(NamedTuple):
    W: Array
    objective: Array  # score + λ|W|₁
    h: Array
    optimality: Array  # KKT residual


@partial(jax.jit, static_argnames=("score", "constraint"))
def _minimise(
    moments: Any,
    W: Array,
    penalty: Array,
    allowed: Array,
    alpha: float,
    rho: float,
    most: int,
    score: Score,
    constraint: str,
) -> _Solution:
    """Minimise the augmented Lagrangian over the allowed edges, starting from W."""
    d = len(W)
    h_and_gradient = CONSTRAINTS[constraint]

    def lagrangian(x: Array) -> tuple[Array, Array]:
        value, score_gradient = score(moments, x.reshape(d, d))
        h, h_gradient = h_and_gradient(x.reshape(d, d))
        gradient = score_gradient + (alpha + rho * h) * h_gradient
        return value + alpha * h + rho * h * h / 2, jnp.where(allowed, gradient, 0.0).ravel()

    found = descent.minimise(lagrangian, W.ravel(), penalty.ravel(), most, *SOLVED)
    W = found.x.reshape(d, d)
    objective = score(moments, W)[0] + jnp.sum(penalty * jnp.abs(W))
    return _Solution(W, objective, h_and_gradient(W)[0], found.optimality)
