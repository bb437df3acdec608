"""DICD (nonlinear): NOTEARS-MLP on groups of rows that count alike, invariant between groups."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore.equations import Equations
from rescore.learners.base import GroupedLearner
from rescore.learners.dicd import balanced_weights
from rescore.learners.networks import Inputs, Weighted, effective_rows
from rescore.learners.networks.notears_mlp_paper import PaperMLPBackbone
from rescore.moments import Matrix, Weights, row_weights
from rescore.protocols import Backbone, Codes, Problem, State
from rescore.validation import check_number, check_seed


@dataclass(eq=False, repr=False)
class DICDMLP(GroupedLearner):
    """DICD (nonlinear): the same with a small network per variable, as NOTEARS-MLP published it.

    Parameters
    ----------
    invariance : float
        γ, the price on slopes: see `DICD`.
    hidden : tuple of int
        Units in each hidden layer.
    activation : {"sigmoid", "relu"}
        What a unit does to its input.
    lambda1, lambda2 : float
        Penalties on first-layer weights and on all squared weights.
    threshold : float
        Edges whose first-layer weights have a smaller norm are dropped at the end.
    standardize : bool
        Fit on columns of deviation one.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.
    max_steps : int
        Outer steps at most.
    random_state : int, optional
        Seed of the networks' initial weights; None is 0.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> lab = np.repeat(["old", "new"], [400, 100])
    >>> dose, rest = rng.normal(size=(2, 500)) * np.where(lab == "new", [[0.5], [1]], [[1], [0.5]])
    >>> X = pd.DataFrame({"effect": 2 * np.sin(2 * dose) + rest, "dose": dose})
    >>> list(DICDMLP().fit(X, groups=lab).causal_graph_.edges)
    [('dose', 'effect')]
    """

    invariance: float = 1.0
    _: KW_ONLY
    hidden: tuple[int, ...] = (10,)
    activation: str = "sigmoid"
    lambda1: float = 0.01
    lambda2: float = 0.01
    threshold: float = 0.3
    random_state: int | None = None

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        networks = PaperMLPBackbone(
            hidden=self.hidden,
            activation=self.activation,
            lambda1=self.lambda1,
            lambda2=self.lambda2,
            threshold=self.threshold,
            seed=check_seed(self.random_state),
        )
        return DICDMLPBackbone(self.invariance, networks)


class GroupWeights(NamedTuple):
    """The rows' weights in each of K groups, and what a slope costs there."""

    each: Any  # (distinct rows, K), columns that sum to one
    cost: Any  # (d, K), γ / (K v_ej), of a squared slope


@dataclass(frozen=True)
class DICDMLPBackbone:
    """``min (1/K) Σ_ej (½ E_e (f_j − x_j)² + γ g_ej²/v_ej) + λ₁|W₁|₁ + ½λ₂|W|²  s.t.  h = 0``.

    As `DICDBackbone`, with the networks f_j of the NOTEARS-MLP learner, whose constraint and
    penalties these are: ``g_ej = E_e (f_j − x_j) f_j`` is the slope at s = 1 of the loss
    ``½ E_e (x_j − s f_j)²`` of variable j, centred under the prior, in group e.
    """

    invariance: float = 1.0
    networks: PaperMLPBackbone = field(default_factory=PaperMLPBackbone)

    def __post_init__(self) -> None:
        check_number("invariance", self.invariance, at_least=0)

    @property
    def threshold(self) -> float:
        """That of NOTEARS-MLP."""
        return self.networks.threshold

    def init(self, problem: Problem) -> State:
        """That of NOTEARS-MLP."""
        return self.networks.init(problem)

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """One dual ascent on the weighted rows of each group."""
        w = row_weights(w)
        usual, v = balanced_weights(problem, problem.prior), balanced_weights(problem, w)
        fewer = effective_rows(problem, usual) / effective_rows(problem, v)
        rows = group_rows(state.params.inputs, v, problem.groups, self.invariance)
        return self.networks.ascend(problem, state, rows, fewer, invariant_errors)

    def losses(self, problem: Problem, state: State) -> Matrix:
        """The squared residuals of the networks before the threshold, (n, d)."""
        return self.networks.losses(problem, state)

    def adjacency(self, state: State) -> Matrix:
        """The norms of the first-layer weights, (d, d)."""
        return self.networks.adjacency(state)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """The networks, blind to all but the edges of W."""
        return self.networks.equations(problem, state, W)


def group_rows(inputs: Inputs, w: Matrix, groups: Codes | None, strength: float) -> Weighted:
    """The distinct rows, each with its weight in every group; all of a group's sum to one.

    Examples
    --------
    >>> from rescore.learners.networks import prepare
    >>> inputs = prepare(Problem.unconstrained(np.array([[1, 2.0], [0, 0], [1, 2]])), None)
    >>> rows = group_rows(inputs, np.array([0.25, 0.25, 0.5]), np.array([0, 0, 1]), strength=1.0)
    >>> print(rows.w.each)
    [[0.5 0. ]
     [0.5 1. ]]
    """
    codes = np.zeros(len(w), dtype=np.intp) if groups is None else groups
    K = int(codes.max()) + 1
    table = np.bincount(inputs.distinct * K + codes, w, minlength=inputs.XT.shape[1] * K)
    each = table.reshape(-1, K)
    each = (each / each.sum(axis=0)).astype(np.float32)
    each = np.ascontiguousarray(each[:, np.lexsort(each)])  # whatever the groups are called
    variances = np.square(inputs.targets) @ each  # (d, K)
    cost = strength / K / np.where(variances > 0, variances, np.inf)
    return Weighted(inputs.XT, inputs.targets, GroupWeights(each, cost.astype(np.float32)))


def invariant_errors(F: Array, rows: Weighted) -> Array:
    """``(1/K) Σ_e E_e (f_j − x_j)² + 2 Σ_e cost_ej g_ej²`` for predictions F (d, n), (d,).

    Examples
    --------
    >>> weights = GroupWeights(np.full((2, 1), 0.5), cost=np.full((1, 1), 10.0))
    >>> rows = Weighted(np.zeros((1, 2)), targets=np.array([[1.0, -1.0]]), w=weights)
    >>> print(invariant_errors(jnp.array([[0.5, -0.5]]), rows))  # 1/4 + 20 (1/4)²
    [1.5]
    """
    R = F - rows.targets
    losses, slopes = jnp.square(R) @ rows.w.each, (R * F) @ rows.w.each  # (d, K)
    return losses.mean(axis=1) + 2 * jnp.sum(rows.w.cost * jnp.square(slopes), axis=1)
