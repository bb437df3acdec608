"""DICD (linear): NOTEARS on groups of rows that count alike, invariant from group to group."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore.graph.dag import cut_to_dag
from rescore.learners.base import GroupedLearner
from rescore.learners.notears import NotearsBackbone, Objective
from rescore.learners.polish import LEAST_GAIN, closing_lasso
from rescore.learners.straight_lines import StraightLines, least_squares, penalties
from rescore.moments import Matrix, Weights, row_weights
from rescore.protocols import Backbone, Problem, State
from rescore.solvers import lasso
from rescore.solvers.lasso import Lasso, joined
from rescore.validation import check_number
from rescore.weight_box import equal_groups

MOST_ITERATIONS = 100
SOLVED = 1e-12  # least relative decrease
HALVINGS = 30  # of a step before it is given up


@dataclass(eq=False, repr=False)
class DICD(GroupedLearner):
    """DICD (linear): equations that are optimal in every group of rows, as causal ones must be.

    NOTEARS on the mean of the groups' losses, ``½ (1/K) Σ_e E_e|x − xW|² + λ|W|₁``, with a price
    on what a group would gain by stretching a prediction: γ times the mean over groups of
    ``Σ_j g_ej²/v_ej``, where ``g_ej`` is the slope of group e's loss of variable j with respect to
    a multiplier of its prediction, and ``v_ej`` the variable's variance there.  Every group counts
    the same, whatever its size: row weights matter within groups.

    Parameters
    ----------
    invariance : float
        γ, the price on slopes, a number without unit.  0 is NOTEARS with inverse-propensity
        weights; a price far above 1 shuns edges, for a prediction that is constant has no slope.
    lambda1 : float
        λ, the penalty on the coefficients.
    threshold : float
        Coefficients smaller than this are dropped at the end.
    standardize : bool
        Fit on columns of deviation one.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.
    constraint : {"exponential", "polynomial"}
        The acyclicity measure h.
    polish : bool
        At the end, try the graph that a search among orders of causes by least squares makes of
        the one found; it is kept if the whole objective is lower there.
    h_tol, rho_max, max_steps : float, float, int
        Where the augmented Lagrangian stops: tolerance on h, cap of its penalty, outer steps.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> lab = np.repeat(["old", "new"], [450, 50])
    >>> rain, rest = rng.normal(size=(2, 500)) * np.where(lab == "new", [[1], [3]], [[3], [1]])
    >>> X = pd.DataFrame({"grass": 2 * rain + rest, "rain": rain})
    >>> DICD().fit(X, groups=lab).adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     2.0   0.0
    """

    linear = True

    invariance: float = 1.0
    _: KW_ONLY
    lambda1: float = 0.1
    threshold: float = 0.3
    constraint: str = "exponential"
    polish: bool = True
    h_tol: float = 1e-8
    rho_max: float = 1e16

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        notears = NotearsBackbone(
            lambda1=self.lambda1,
            threshold=self.threshold,
            constraint=self.constraint,
            polish=self.polish,
            h_tol=self.h_tol,
            rho_max=self.rho_max,
        )
        return DICDBackbone(self.invariance, notears)


class GroupMoments(NamedTuple):
    """Second moments of K groups about the mean of all, and what a slope costs in each."""

    pooled: Any  # (d, d), the mean of the groups'
    each: Any  # (K, d, d)
    cost: Any  # (K, d), γ / (K v_ej), of a squared slope


@dataclass(frozen=True)
class DICDBackbone(StraightLines):
    """``min (1/K) Σ_e (½ E_e|x − xW|² + γ Σ_j g_ej²/v_ej) + λ|W|₁  s.t.  h(W) = 0``.

    E_e is the weighted mean over the rows of group e of K, about the mean of all; ``v_ej`` is the
    variance of variable j in group e, and ``g_ej = E_e (f_j − x_j) f_j`` for its prediction
    ``f = xW``: the slope at s = 1 of its loss ``½ E_e (x_j − s f_j)²``.  An invariant equation is
    optimal in every group, so that no group would gain by stretching it.  The constraint, λ and
    all else are those of the NOTEARS learner; γ has no unit.

    Examples
    --------
    >>> from dataclasses import replace
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat([0, 1], [450, 50])
    >>> x, e = rng.normal(size=(2, 500)) * np.where(groups == 1, [[0.1], [1.0]], [[1.0], [0.1]])
    >>> problem = replace(Problem.unconstrained(np.c_[x, x + e]), groups=groups)
    >>> learner, w = DICDBackbone(invariance=1.0), problem.prior
    >>> state = learner.init(problem)
    >>> while state.status.name == "RUNNING":
    ...     state = learner.step(problem, w, state)
    >>> print(learner.adjacency(state).round(1))
    [[0.  0.9]
     [0.  0. ]]
    """

    invariance: float = 1.0
    notears: NotearsBackbone = field(default_factory=NotearsBackbone)

    def __post_init__(self) -> None:
        check_number("invariance", self.invariance, at_least=0)

    @property
    def threshold(self) -> float:
        """That of NOTEARS."""
        return self.notears.threshold

    def init(self, problem: Problem) -> State:
        """That of NOTEARS."""
        return self.notears.init(problem)

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """One dual ascent on the moments of the groups under the weights within them."""
        w = row_weights(w)
        unit = state.params.unit
        mean, groups = group_moments(problem, w, self.invariance, unit)
        penalty = penalties(problem, self.notears.lambda1) / unit

        def close(W: Matrix) -> Lasso:
            return closing(problem, groups, W, penalty, self.notears.polish)

        objective = Objective(score, groups, penalty, close, unit)
        return self.notears.ascend(problem, mean, state, objective)


def closing(
    problem: Problem, groups: GroupMoments, W: Matrix, penalty: Matrix, polish: bool
) -> Lasso:
    """W made a DAG, and the objective minimised on its edges.

    With ``polish``, so is that of the graph that plain least squares would turn it into, and the
    lesser objective wins.
    """
    dag, _ = cut_to_dag(W, keep=problem.required)
    best = on_edges(groups, dag, penalty)
    if not polish:
        return best
    other = closing_lasso(problem, np.asarray(groups.pooled), dag, penalty, polish).W
    found = on_edges(groups, other, penalty)
    return found if found.objective < best.objective * (1 - LEAST_GAIN) else best


def on_edges(groups: GroupMoments, W: Matrix, penalty: Matrix) -> Lasso:
    """The objective minimised over the edges of a DAG, from its coefficients W (d, d)."""
    columns = range(len(W))
    return joined([column(groups, penalty, j, W[:, j]) for j in columns])


def balanced_weights(problem: Problem, w: Matrix) -> Matrix:
    """``w_i / (K π_e)`` for a row of group e, π_e the weight of the group: all groups count alike.

    Examples
    --------
    >>> from dataclasses import replace
    >>> problem = replace(Problem.unconstrained(np.eye(4)), groups=np.array([0, 0, 0, 1]))
    >>> balanced_weights(problem, problem.prior).round(3)
    array([0.167, 0.167, 0.167, 0.5  ])
    """
    if problem.groups is None:
        raise ValueError("DICD needs the groups of the rows: groups=...")
    return equal_groups(w, problem.groups)


def group_moments(
    problem: Problem, w: Matrix, strength: float, unit: float
) -> tuple[Matrix, GroupMoments]:
    """The mean (d,) of groups that count alike, and their moments in the given unit.

    Examples
    --------
    >>> from dataclasses import replace
    >>> problem = Problem.unconstrained(np.array([[1.0], [-1.0], [3.0], [-3.0]]))
    >>> problem = replace(problem, groups=np.array([0, 0, 1, 1]))
    >>> mean, groups = group_moments(problem, problem.prior, strength=1.0, unit=1.0)
    >>> groups.each.ravel(), groups.pooled, groups.cost.ravel().round(3)
    (array([1., 9.]), array([[5.]]), array([0.5  , 0.056]))
    """
    v = balanced_weights(problem, w)
    mean, pooled = problem.moments(v)
    K = int(problem.groups.max()) + 1 if problem.groups is not None else 1
    each = np.stack([_about(problem, v, mean, e) for e in range(K)])
    variances = np.diagonal(each, axis1=1, axis2=2) / unit
    cost = strength / K / np.where(variances > 0, variances, np.inf)
    return mean, GroupMoments(pooled / unit, each / unit, cost)


def _about(problem: Problem, w: Matrix, mean: Matrix, e: int) -> Matrix:
    """The second moments (d, d) of group e about a given mean."""
    members = problem.groups == e
    own, S = problem.rows.part(members).moments(w[members] / w[members].sum())
    return S + np.outer(own - mean, own - mean)


def slopes(each: Any, W: Any) -> Any:
    """``g_ej = −(Wᵀ S_e (I − W))_jj``: of group e's loss of variable j as W_j stretches, (K, d).

    Examples
    --------
    >>> slopes(np.array([[[1.0, 1.0], [1.0, 2.0]]]), np.array([[0.0, 0.5], [0.0, 0.0]]))
    array([[ 0.  , -0.25]])
    """
    return (W * (each @ (W - np.eye(len(W))))).sum(axis=1)


def score(groups: GroupMoments, W: Array) -> tuple[Array, Array]:
    """``½ tr (I−W)ᵀ S (I−W) + Σ_ej cost_ej g_ej²``, S the pooled moments, and its gradient.

    Examples
    --------
    >>> one = np.array([[1.0, 1.0], [1.0, 2.0]])
    >>> groups = GroupMoments(one, one[None], cost=np.full((1, 2), 4.0))
    >>> float(score(groups, jnp.array([[0.0, 0.5], [0.0, 0.0]]))[0])
    1.375
    """
    value, gradient = least_squares(groups.pooled, W)
    g = slopes(groups.each, W)
    by_slope = jnp.asarray(groups.each) @ (2 * W - jnp.eye(len(W)))  # (K, d, d), ∂g_ej / ∂W_ij
    pulled = jnp.sum(2 * (groups.cost * g)[:, None, :] * by_slope, axis=0)
    return value + jnp.sum(groups.cost * g**2), gradient + pulled


def column(groups: GroupMoments, penalty: Matrix, j: int, start: Matrix) -> lasso.Column:
    """The coefficients (d,) of variable j that minimise its part of ``score + Σ penalty·|W|``.

    On the parents in ``start`` (d,), from there.  With the slopes linear in the coefficients this
    is a lasso: that is solved, a step towards its solution taken, and again (Gauss–Newton).

    Examples
    --------
    >>> one = np.array([[1.0, 1.0], [1.0, 2.0]])
    >>> groups = GroupMoments(one, one[None], cost=np.full((1, 2), 1e9))  # no slope at any price
    >>> column(groups, np.full((2, 2), 0.1), 1, np.array([0.5, 0.0])).coefficients.round(3)
    array([1., 0.])
    """
    parents = np.flatnonzero(start)
    b, value = start, _value(groups, penalty, j, start)
    for _ in range(MOST_ITERATIONS):
        aim = lasso.column(_linearised(groups, j, b), penalty, j, parents, b).coefficients
        closer, lower = _towards(groups, penalty, j, b, aim)
        if not lower < value * (1 - SOLVED):
            break
        b, value = closer, lower
    return lasso.Column(b, value, _optimality(groups, penalty, j, b))


def _towards(
    groups: GroupMoments, penalty: Matrix, j: int, b: Matrix, aim: Matrix
) -> tuple[Matrix, float]:
    """The first point below b on halving the way to ``aim``, and its value."""
    value, step = _value(groups, penalty, j, b), aim - b
    for halvings in range(HALVINGS):
        lower = _value(groups, penalty, j, b + step / 2**halvings)
        if lower < value:
            return b + step / 2**halvings, lower
    return b, value


def _value(groups: GroupMoments, penalty: Matrix, j: int, b: Matrix) -> float:
    r = -b
    r[j] += 1
    g = -(groups.each @ r) @ b  # (K,)
    return float(r @ groups.pooled @ r / 2 + groups.cost[:, j] @ g**2 + penalty[:, j] @ np.abs(b))


def _linearised(groups: GroupMoments, j: int, b: Matrix) -> Matrix:
    """Moments (d, d) whose least squares are the score of variable j with slopes linear about b."""
    J = 2 * groups.each @ b - groups.each[:, :, j]  # (K, d), how slopes change with b
    g = (groups.each @ b - groups.each[:, :, j]) @ b  # (K,)
    J[:, j] = J @ b - g  # b_j is zero
    return groups.pooled + J.T @ (2 * groups.cost[:, j, None] * J)


def _optimality(groups: GroupMoments, penalty: Matrix, j: int, b: Matrix) -> float:
    """The largest slope left on a coefficient that is not zero, in units of correlation."""
    S = _linearised(groups, j, b)
    slope = S @ b - S[:, j] + penalty[:, j] * np.sign(b)
    deviations = np.sqrt(np.where(np.diag(S) > 0, np.diag(S), 1.0))
    units = deviations * deviations[j]
    return float(np.abs(np.where(b != 0, slope / units, 0.0)).max(initial=0.0))
