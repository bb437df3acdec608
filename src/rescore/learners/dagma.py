"""DAGMA: least squares and an L1 penalty along the central path of a log-det barrier."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore.acyclicity import log_det
from rescore.learners.base import PathLearner
from rescore.learners.notears import Score, path_objective
from rescore.learners.straight_lines import StraightLines, noise_variance
from rescore.moments import Matrix, Weights
from rescore.protocols import Backbone, Problem, State, Status
from rescore.solvers import descent
from rescore.solvers.compilation import float64
from rescore.validation import check_flag, check_number

# Least relative decrease and largest slope of a solved stage: tight, because row weights are
# chosen by its residuals.  Ill-conditioned stages are left after so many iterations instead;
# the next one starts from there.  Both a looser tolerance and a lower cap gave worse minima.
SOLVED = (2.2e-9, 1e-6)
MOST_ITERATIONS = 1000
LEAST_MU = 1e-12  # by then the barrier is all there is


@dataclass(eq=False, repr=False)
class Dagma(PathLearner):
    """DAGMA (linear): ``μ (½ Σ_i w_i |x_i − x_i W|² + λ|W|₁) − log det(I − W∘W)``, μ → 0.

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
    shrink : float in (0, 1)
        μ is multiplied by this from stage to stage.  Nearer to one is a finer and slower path.
    polish : bool
        At the end, look for a better order of causes: neighbours change places in the order found
        and in the order of least residual variance as long as that lowers the objective.
    h_tol, max_steps : float, int
        Where the path stops: tolerance on the barrier, stages.
    n_starts, random_state : int, int, optional
        Starting points, of which the one with the least objective is kept: zero, and random ones
        drawn from this seed.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> Dagma().fit(X).adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     2.0   0.0
    """

    lambda1: float = 0.02
    _: KW_ONLY
    threshold: float = 0.3
    shrink: float = 0.6
    polish: bool = True
    h_tol: float = 1e-8

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return self._filled(DagmaBackbone)


class _Path(NamedTuple):
    """Where the central path stands."""

    W: Matrix  # (d, d), always inside the domain: the spectral radius of W∘W is below one
    mu: float  # weight of the score in the next stage
    h: float
    mean: Matrix  # (d,), of the rows under the weights W was learned with
    unit: float  # variance in which the score is measured, so that μ has no units


@dataclass(frozen=True)
class DagmaBackbone(StraightLines):
    """``min μ (½ Σ_i w_i |x_i − x_i W|² + λ|W|₁) − log det(I − W∘W)`` for μ from one to zero.

    One step is one stage: minimise from the last W, then multiply μ by ``shrink``.  The barrier
    keeps W where the spectral radius of W∘W is below one, so every W on the way is a start for
    the next stage, also when the row weights have changed.  Once the barrier is within its
    tolerance, the last step solves the lasso on the edges found exactly.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> problem = Problem.unconstrained(np.c_[x, 2 * x + rng.normal(size=500)])
    >>> learner = DagmaBackbone()
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> print(learner.adjacency(state).round(1))  # one stage: the cycle is not gone yet
    [[0.  1.9]
     [0.2 0. ]]
    """

    lambda1: float = 0.02
    threshold: float = 0.3
    shrink: float = 0.6
    polish: bool = True
    h_tol: float = 1e-8

    def __post_init__(self) -> None:
        check_number("lambda1", self.lambda1, at_least=0)
        check_number("threshold", self.threshold, at_least=0)
        check_number("shrink", self.shrink, above=0, below=1)
        check_flag("polish", self.polish)
        check_number("h_tol", self.h_tol, above=0)

    def init(self, problem: Problem) -> State:
        """W = 0, μ = 1 in units of the noise variance."""
        mean, S = problem.moments(problem.prior)
        unit = noise_variance(problem)
        return State(_Path(np.zeros_like(S), mu=1.0, h=np.inf, mean=mean, unit=unit))

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """One stage of the path on the moments of the weighted rows."""
        path: _Path = state.params
        mean = problem.moments(w).mean
        objective = path_objective(problem, w, self.lambda1, path.unit, self.polish)
        with float64():
            found = _minimise(
                objective.moments, objective.start(path.W), objective.penalty, problem.allowed,
                path.mu, objective.score,
            )  # fmt: skip
        W, h = np.array(found.W), float(found.h)
        value, optimality = float(found.objective), float(found.optimality)
        if h <= self.h_tol:
            W, value, optimality = objective.close(W)
        trace = {
            "objective": value * objective.unit,
            "h": h,
            "rho": 1 / path.mu,
            "optimality": optimality,
        }
        new = _Path(W, path.mu * self.shrink, h, mean, path.unit)
        return State(new, self._status(new), trace)

    def _status(self, path: _Path) -> Status:
        if path.h <= self.h_tol:
            return Status.CONVERGED
        return Status.PENALTY_CAP if path.mu < LEAST_MU else Status.RUNNING


class _Stage(NamedTuple):
    W: Array
    objective: Array  # score + λ|W|₁
    h: Array
    optimality: Array  # KKT residual
    value: Array  # objective + h/μ


@partial(jax.jit, static_argnames="score")
def _minimise(
    moments: Any, W: Array, penalty: Array, allowed: Array, mu: float, score: Score
) -> _Stage:
    """Minimise score + λ|W|₁ + h/μ over the allowed edges, starting from W."""
    d = len(W)

    def smooth(x: Array) -> tuple[Array, Array]:
        value, gradient = score(moments, x.reshape(d, d))
        h, h_gradient = log_det(x.reshape(d, d))  # infinite outside the domain
        gradient = gradient + h_gradient / mu
        return value + h / mu, jnp.where(allowed, gradient, 0.0).ravel()

    found = descent.minimise(smooth, W.ravel(), penalty.ravel(), MOST_ITERATIONS, *SOLVED)
    W = found.x.reshape(d, d)
    objective = score(moments, W)[0] + jnp.sum(penalty * jnp.abs(W))
    return _Stage(W, objective, log_det(W)[0], found.optimality, found.value)
