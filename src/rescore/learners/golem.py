"""GOLEM: a Gaussian likelihood with soft penalties on edges and cycles, on second moments."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from rescore.acyclicity import trace_exponential
from rescore.graph.dag import cut_to_dag
from rescore.learners import group_likelihood
from rescore.learners.base import PathLearner
from rescore.learners.group_likelihood import Groups, groups_of
from rescore.learners.polish import LEAST_GAIN, polished
from rescore.learners.straight_lines import (
    StraightLines,
    by_column,
    noise_variance,
    own_variances,
    penalties,
    regression_moments,
)
from rescore.moments import Cells, Matrix, Weights, simplest
from rescore.protocols import Backbone, Problem, State, Status
from rescore.solvers import descent
from rescore.solvers.compilation import float64
from rescore.solvers.lasso import Column, Lasso, column, lasso, own
from rescore.validation import check_choice, check_flag, check_number

Indices = NDArray[np.intp]
LAMBDA1 = {"equal": 2e-2, "unequal": 2e-3}  # GOLEM's own defaults
GROWTH = 10.0  # of the penalty on cycles, from step to step
MOST_LAMBDA2 = 1e16
SOLVED = (1e-11, 1e-6)  # least relative decrease and largest slope: tight, for the row weights
# Of one step; the next starts from there, and a polish at the end makes up for the rest.
MOST_ITERATIONS, MOST_BEFORE_POLISH = 4000, 500
FLOOR = 1e-12  # share of a variable's variance below which its residual counts as rounding
MOST_ROUNDS = 200  # of lasso and variances in turn; about ten are enough
Score = Callable[[Any, Array], tuple[Array, Array]]  # of moments and W: value and gradient


@dataclass(eq=False, repr=False)
class Golem(PathLearner):
    """GOLEM (linear Gaussian): ``L(W) − log|det(I−W)| + λ₁|W|₁ + λ₂ h(W)``.

    Parameters
    ----------
    lambda1 : float, optional
        λ₁, the penalty on the coefficients; if None, 0.02 for equal and 0.002 for unequal
        variances.
    variance : {"equal", "unequal"}
        Whether the noise of all variables has one variance, ``L = d/2 · log Σ_ij w_i r_ij²``, or
        each its own, ``L = ½ Σ_j log Σ_i w_i r_ij²``.  Where weights of cells come from groups of
        rows, every group and variable has a noise variance of its own, and there is no such
        choice: only the default of λ₁ and the two searches of "unequal" are left of it.
    lambda2 : float
        λ₂, the first penalty on cycles; it grows until there are none.
    threshold : float
        Coefficients smaller than this are dropped at the end.
    standardize : bool
        Fit on columns of deviation one.  Coefficients are then in standard deviations, and the
        graph no longer depends on units; but nor does it profit from informative ones.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.
    polish : bool
        At the end, look for a better order of causes: neighbours change places in the order found
        and in the order of least residual variance as long as that lowers the objective.
    h_tol, max_steps : float, int
        Where the search stops: tolerance on h, outer steps.
    n_starts, random_state : int, int, optional
        Starting points, of which the one with the least objective is kept: zero, and random ones
        drawn from this seed.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> Golem().fit(X).adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     2.0   0.0
    """

    lambda1: float | None = None
    _: KW_ONLY
    variance: str = "equal"
    lambda2: float = 5.0
    threshold: float = 0.3
    polish: bool = True
    h_tol: float = 1e-8

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return self._filled(GolemBackbone)


class _Search(NamedTuple):
    """Where the search stands."""

    W: Matrix  # (d, d), det(I − W) > 0
    equal: bool  # which likelihood the next step lowers
    lambda2: float  # its penalty on cycles
    h: float
    mean: Matrix  # (d,), of the rows under the weights W was learned with
    unit: float  # variance in which rows are measured, so that tolerances have no units
    fallback: Matrix | None  # the DAG found with equal variances, when they may differ


class _Objective(NamedTuple):
    """Likelihood plus ``Σ penalty·|W|``: what a step minimises."""

    score: Score
    moments: Any  # arrays, all that the score sees of the rows
    penalty: Matrix  # (d, d)
    start: Callable[[Matrix], Matrix]  # W (d, d), shrunk to where the score is finite
    on_dag: Callable[[Matrix], Lasso]  # its minimum on the edges of a DAG (d, d)
    polished: Callable[[Lasso], Lasso]  # and on those of better orders
    constant: float = 0.0  # what the score leaves out, for its units


@dataclass(frozen=True)
class GolemBackbone(StraightLines):
    """``min L(W) − log|det(I−W)| + λ₁|W|₁ + λ₂ h(W)`` with the noise variances profiled out.

    ``L = d/2 · log Σ_ij w_i r_ij²`` for equal noise variances, ``½ Σ_j log Σ_i w_i r_ij²`` for
    unequal ones, which start from the solution for equal ones.  One step is one minimisation
    from the last W; λ₂ starts at ``lambda2`` and grows tenfold per step until h is within its
    tolerance.  The last step then solves the penalised likelihood on the edges found exactly, and
    with ``polish`` looks for a better order.
    With weights of cells (n, d), w_i is w_ij, a precision up to a factor that is profiled out; with
    groups of rows (`Cells`), L is that of `group_likelihood`, whatever ``variance`` says.
    ``lambda1=None`` is GOLEM's default, 0.02 for equal and 0.002 for unequal variances.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> problem = Problem.unconstrained(np.c_[x, 2 * x + rng.normal(size=500)])
    >>> learner = GolemBackbone()
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> print(learner.adjacency(state).round(1))
    [[0. 2.]
     [0. 0.]]
    """

    variance: str = "equal"
    lambda1: float | None = None
    lambda2: float = 5.0
    threshold: float = 0.3
    polish: bool = True
    h_tol: float = 1e-8

    def __post_init__(self) -> None:
        check_choice("variance", self.variance, LAMBDA1)
        if self.lambda1 is not None:
            check_number("lambda1", self.lambda1, at_least=0)
        check_number("lambda2", self.lambda2, above=0)
        check_number("threshold", self.threshold, at_least=0)
        check_flag("polish", self.polish)
        check_number("h_tol", self.h_tol, above=0)

    def init(self, problem: Problem) -> State:
        """W = 0, and equal variances to begin with."""
        mean, S = problem.moments(problem.prior)
        unit = noise_variance(problem)
        return State(_Search(np.zeros_like(S), True, self.lambda2, np.inf, mean, unit, None))

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """One minimisation on the moments of the weighted rows."""
        search: _Search = state.params
        w = simplest(w)
        objective = self._objective(problem, w, search)
        with float64():
            start = objective.start(search.W)
            most = MOST_BEFORE_POLISH if self.polish else MOST_ITERATIONS
            found = _minimise(
                objective.moments, start, objective.penalty, problem.allowed,
                search.lambda2, most, objective.score,
            )  # fmt: skip
        mean = problem.moments(w).mean
        new = search._replace(W=np.array(found.W), h=float(found.h), mean=mean)
        closed = Lasso(new.W, float(found.objective), float(found.optimality))
        if new.h <= self.h_tol:
            closed = self._close(problem, objective, new)
            new = new._replace(W=closed.W)
        trace = {
            "objective": closed.objective + objective.constant,
            "h": new.h,
            "rho": search.lambda2,
            "optimality": closed.optimality,
        }
        return State(self._next(new), self._status(new), trace)

    def _objective(self, problem: Problem, w: Weights, search: _Search) -> _Objective:
        """The likelihood of groups where there are any, else with one noise variance or d."""
        lambda1 = self._lambda1(search.equal)
        if isinstance(w, Cells):
            return _of_groups(problem, groups_of(problem, w), lambda1)
        S = regression_moments(problem, w).covariance
        return _of_rows(problem, S / search.unit, penalties(problem, lambda1, w), search)

    def _lambda1(self, equal: bool) -> float:
        """The penalty on edges; a search that only prepares another has GOLEM's own."""
        last = equal == (self.variance == "equal")
        return self.lambda1 if last and self.lambda1 is not None else _default_lambda1(equal)

    def _close(self, problem: Problem, objective: _Objective, search: _Search) -> Lasso:
        """The exact solution on the DAG found, or on the fallback's edges where that is better."""
        dag, _ = cut_to_dag(search.W, keep=problem.required)
        starts = [dag] if search.fallback is None else [dag, search.fallback]
        best = min((objective.on_dag(W) for W in starts), key=lambda s: s.objective)
        return objective.polished(best) if self.polish else best

    def _next(self, search: _Search) -> _Search:
        if search.h > self.h_tol:
            return search._replace(lambda2=search.lambda2 * GROWTH)
        if search.equal and self.variance == "unequal":
            return search._replace(equal=False, lambda2=self.lambda2, fallback=search.W)
        return search

    def _status(self, search: _Search) -> Status:
        if search.h <= self.h_tol:
            last = search.equal == (self.variance == "equal")
            return Status.CONVERGED if last else Status.RUNNING
        return Status.PENALTY_CAP if search.lambda2 * GROWTH > MOST_LAMBDA2 else Status.RUNNING


def _default_lambda1(equal: bool) -> float:
    return LAMBDA1["equal" if equal else "unequal"]


def _of_rows(problem: Problem, S: Matrix, penalty: Matrix, search: _Search) -> _Objective:
    """From one covariance (d, d), or from one for each variable (d, d, d)."""
    equal = search.equal

    def on_dag(W: Matrix) -> Lasso:
        return likelihood_on_dag(S, W, penalty, equal)

    def polish(best: Lasso) -> Lasso:
        """Better orders with the noise variances fixed, better variances on them, and again."""
        for _ in range(MOST_ROUNDS):
            noise = noise_on_dag(S, best.W, equal)

            def regression(
                j: int, parents: Indices, start: Matrix, noise: Matrix = noise
            ) -> Column:
                found = column(own(S, j), penalty * noise, j, parents, start)
                return found._replace(objective=found.objective / noise[j])

            found = on_dag(polished(problem, S, best.W, regression).W)
            if not found.objective <= best.objective - LEAST_GAIN * abs(best.objective):
                break
            best = found
        return best

    constant = len(S) / 2 * np.log(search.unit)
    return _Objective(LIKELIHOODS[equal], S, penalty, into_domain, on_dag, polish, constant)


def _of_groups(problem: Problem, groups: Groups, lambda1: float) -> _Objective:
    """From the covariances of groups of rows, each with its own noise in every variable."""
    penalty = group_likelihood.penalties_within(problem, groups, lambda1)

    def on_dag(W: Matrix) -> Lasso:
        return group_likelihood.on_dag(groups, W, penalty)

    def polish(best: Lasso) -> Lasso:
        return group_likelihood.better_order(problem, groups, penalty, best)

    def start(W: Matrix) -> Matrix:
        return group_likelihood.into_domain(W, groups)

    return _Objective(group_likelihood.score, groups, penalty, start, on_dag, polish)


def into_domain(W: Matrix) -> Matrix:
    """W, scaled down if need be until det(I − W) > 0, as it is for small W.

    Examples
    --------
    >>> W = into_domain(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> bool(np.linalg.det(np.eye(2) - W) > 0)
    True
    """
    while np.linalg.slogdet(np.eye(len(W)) - W)[0] <= 0:
        W = 0.9 * W
    return W


class _Solution(NamedTuple):
    W: Array
    objective: Array  # likelihood + λ₁|W|₁
    h: Array
    optimality: Array  # KKT residual
    value: Array  # objective + λ₂ h


@partial(jax.jit, static_argnames="score")
def _minimise(
    moments: Any, W: Array, penalty: Array, allowed: Array, lambda2: float, most: int, score: Score
) -> _Solution:
    """Minimise likelihood + λ₁|W|₁ + λ₂ h over the allowed edges, starting from W."""
    d = len(W)

    def smooth(x: Array) -> tuple[Array, Array]:
        value, gradient = score(moments, x.reshape(d, d))
        h, h_gradient = trace_exponential(x.reshape(d, d))
        gradient = gradient + lambda2 * h_gradient
        return value + lambda2 * h, jnp.where(allowed, gradient, 0.0).ravel()

    found = descent.minimise(smooth, W.ravel(), penalty.ravel(), most, *SOLVED)
    W = found.x.reshape(d, d)
    objective = score(moments, W)[0] + jnp.sum(penalty * jnp.abs(W))
    return _Solution(W, objective, trace_exponential(W)[0], found.optimality, found.value)


def likelihood(S: Array, W: Array, equal: bool) -> tuple[Array, Array]:
    """The negative log-likelihood of W without constants, noise variances profiled out; gradient.

    S is one covariance (d, d), or one for each variable (d, d, d), whose rows then count in
    proportion to the precision of their noise, the factor of which is what is profiled out.
    Infinite where det(I − W) is not positive, so that a line search steps back.

    Examples
    --------
    >>> value, gradient = likelihood(jnp.eye(2), jnp.array([[0.0, 2.0], [2.0, 0.0]]), equal=True)
    >>> print(value)
    inf
    """
    R = jnp.eye(len(S)) - W
    SR = by_column(S, R)
    variances, slope = profile(jnp.sum(R * SR, axis=0), own_variances(S), equal)
    sign, log_det = jnp.linalg.slogdet(R)
    value = jnp.sum(jnp.log(variances)) / 2 - log_det
    return jnp.where(sign > 0, value, jnp.inf), jnp.linalg.inv(R).T - SR * slope


# One object each, because a compiled program belongs to the function it was made for.
LIKELIHOODS = {equal: partial(likelihood, equal=equal) for equal in (True, False)}


def profile(residual: Array, total: Array, equal: bool) -> tuple[Array, Array]:
    """The noise variances that fit best, up to a constant factor, (d,); and d(Σ log)/d residual.

    Equal ones are each the sum of all residual variances.  A perfect fit is floored, and its
    slope is then zero: there is nothing left to gain.

    Examples
    --------
    >>> print(*profile(jnp.array([1.0, 3.0]), jnp.ones(2), equal=True))
    [4. 4.] [0.5 0.5]
    """
    least = FLOOR * jnp.where(total > 0, total, 1.0)
    if equal:
        residual = jnp.broadcast_to(jnp.sum(residual), residual.shape)
        least = jnp.broadcast_to(jnp.sum(least), residual.shape)
    variances = jnp.maximum(residual, least)
    share = len(total) if equal else 1
    return variances, jnp.where(residual > least, share / variances, 0.0)


def likelihood_on_dag(S: Matrix, W: Matrix, penalty: Matrix, equal: bool) -> Lasso:
    """Minimise the likelihood plus ``Σ penalty·|W|`` over the edges of the DAG W.

    Given the noise variances this is a lasso whose penalty is in their units, and given the
    coefficients the variances are those of the residuals.  Taking turns never raises the
    objective, because log lies below its tangents.

    Examples
    --------
    >>> S = np.array([[1.0, 1.0], [1.0, 2.0]])
    >>> found = likelihood_on_dag(S, np.array([[0, 0.3], [0, 0]]), np.full((2, 2), 0.1), True)
    >>> print(found.W.round(3), bool(found.optimality < 1e-9))
    [[0.    0.899]
     [0.    0.   ]] True
    """
    best = _assess(S, W, penalty, equal)
    for _ in range(MOST_ROUNDS):
        found = _assess(S, lasso(S, W, penalty * best[1]).W, penalty, equal)
        settled = best[0].objective - found[0].objective <= 1e-15 * abs(found[0].objective)
        best = found
        if settled and found[0].optimality < 1e-9:
            break
    return best[0]


def noise_on_dag(S: Matrix, W: Matrix, equal: bool) -> Matrix:
    """The noise variances (d,) that fit the DAG W best.

    Examples
    --------
    >>> noise_on_dag(np.array([[1.0, 1.0], [1.0, 4.0]]), np.array([[0, 1.0], [0, 0]]), equal=True)
    array([2., 2.])
    """
    return _assess(S, W, np.zeros_like(W), equal)[1]


def _assess(S: Matrix, W: Matrix, penalty: Matrix, equal: bool) -> tuple[Lasso, Matrix]:
    """How good a DAG is, and the noise variance (d,) in which each column's penalty counts."""
    SR, total = by_column(S, np.eye(len(S)) - W), own_variances(S)
    residual = np.diag(SR) - np.sum(W * SR, axis=0)
    least = FLOOR * np.where(total > 0, total, 1.0)
    sums = (residual.sum(), least.sum()) if equal else (residual, least)
    variances = np.broadcast_to(np.maximum(*sums), residual.shape)
    noise = variances / len(S) if equal else variances
    objective = np.log(variances).sum() / 2 + np.sum(penalty * np.abs(W))
    slope = np.where(W != 0, penalty * np.sign(W) - SR / noise, 0.0)
    return Lasso(W, float(objective), float(np.abs(slope).max(initial=0.0))), noise
