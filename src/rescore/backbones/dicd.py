"""DICD (linear): NOTEARS on groups of rows that count alike, invariant from group to group."""

from dataclasses import dataclass, field

import numpy as np

from rescore.backbones import invariance, linear
from rescore.backbones.closing import LEAST_GAIN, closing_lasso
from rescore.backbones.lasso import Lasso, joined
from rescore.backbones.notears import NotearsBackbone, Objective
from rescore.backbones.straight_lines import StraightLines
from rescore.checking import check_number
from rescore.graph import cut_to_dag
from rescore.moments import Matrix
from rescore.protocols import Problem, State


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

    def step(self, problem: Problem, w: Matrix, state: State) -> State:
        """One dual ascent on the moments of the groups under the weights within them."""
        unit = state.params.unit
        mean, groups = invariance.group_moments(problem, w, self.invariance, unit)
        penalty = linear.penalties(problem, self.notears.lambda1) / unit

        def close(W: Matrix) -> Lasso:
            return closing(problem, groups, W, penalty, self.notears.polish)

        objective = Objective(invariance.score, groups, penalty, close)
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
