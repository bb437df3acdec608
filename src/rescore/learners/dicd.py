"""DICD (linear): NOTEARS on groups of rows that count alike, invariant from group to group."""

from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from rescore.graph.dag import cut_to_dag
from rescore.learners import invariance
from rescore.learners.base import GroupedLearner
from rescore.learners.notears import NotearsBackbone
from rescore.learners.path_objective import Objective
from rescore.learners.polish import LEAST_GAIN, closing_lasso
from rescore.learners.straight_lines import StraightLines, penalties
from rescore.moments import Matrix, Weights, row_weights
from rescore.protocols import Backbone, Problem, State
from rescore.solvers.lasso import Lasso, joined
from rescore.validation import check_number


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
        mean, groups = invariance.group_moments(problem, w, self.invariance, unit)
        penalty = penalties(problem, self.notears.lambda1) / unit

        def close(W: Matrix) -> Lasso:
            return closing(problem, groups, W, penalty, self.notears.polish)

        objective = Objective(invariance.score, groups, penalty, close, unit)
        return self.notears.ascend(problem, mean, state, objective)


def closing(
    problem: Problem, groups: invariance.GroupMoments, W: Matrix, penalty: Matrix, polish: bool
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


def on_edges(groups: invariance.GroupMoments, W: Matrix, penalty: Matrix) -> Lasso:
    """The objective minimised over the edges of a DAG, from its coefficients W (d, d)."""
    columns = range(len(W))
    return joined([invariance.column(groups, penalty, j, W[:, j]) for j in columns])
