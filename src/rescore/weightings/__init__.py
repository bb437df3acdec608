"""Weights in one step: what no loss moves, and the inner problem of ReScore solved exactly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rescore.moments import Matrix, Weights
from rescore.protocols import Losses, Problem
from rescore.validation import check_choice, check_integer, check_number
from rescore.weight_box import equal_groups, heaviest, likelihood_units

LOSSES = ("nll", "raw")


@dataclass(frozen=True)
class Uniform:
    """Every row keeps its prior weight, 1/n unless the caller gave others.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem.unconstrained(np.eye(2))
    >>> w, _ = Uniform().step(problem, lambda: np.ones((2, 2)), None)
    >>> w
    array([0.5, 0.5])
    """

    tau: float = 1.0  # C(1) holds the prior alone

    def init(self, n: int, d: int) -> None:
        """Nothing to remember."""

    def step(self, problem: Problem, losses: Losses, state: None) -> tuple[Matrix, None]:
        """The prior, whatever the losses."""
        return problem.prior, None

    def explain(self, state: None) -> dict[str, Any]:
        """Nothing was decided."""
        return {}


@dataclass(frozen=True, eq=False)
class Kept:
    """The weights of rows (n,) or cells (n, d) that an earlier fit ended with, and why.

    A graph that should differ in an edge or two is found again without weighing the rows anew.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(2))
    >>> Kept(np.array([0.25, 0.75])).step(problem, lambda: np.ones((2, 2)), None)[0]
    array([0.25, 0.75])
    """

    weights: Weights
    why: Mapping[str, Any] = field(default_factory=dict)
    tau: float = 1e-9

    def init(self, n: int, d: int) -> None:
        """Nothing to remember."""

    def step(self, problem: Problem, losses: Losses, state: None) -> tuple[Weights, None]:
        """The weights, whatever the losses."""
        if self.weights.shape[0] != problem.rows.shape[0]:
            raise ValueError(
                f"There are weights of {self.weights.shape[0]} rows for {problem.rows.shape[0]}."
            )
        return self.weights, None

    def explain(self, state: None) -> dict[str, Any]:
        """What the earlier fit said of them."""
        return dict(self.why)


@dataclass(frozen=True)
class Drawn:
    """As many rows at the ceiling 1/(τn) as with exact weights, but random ones, drawn once.

    The control for every other weighting: the same box and the same loss of effective rows,
    without any look at the losses.  Which rows are drawn goes by their position, so a permuted
    table gets other weights.

    Examples
    --------
    >>> rows = Problem.unconstrained(np.eye(3))
    >>> player = Drawn(tau=0.5, seed=1)
    >>> player.step(rows, lambda: np.ones((3, 3)), player.init(3, 3))[0].round(3)
    array([0.167, 0.667, 0.167])
    """

    tau: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0, at_most=1)
        check_integer("seed", self.seed, at_least=0)

    def init(self, n: int, d: int) -> Matrix:
        """A random loss for every row, (n,)."""
        return np.random.default_rng(self.seed).random(n)

    def step(self, problem: Problem, losses: Losses, state: Matrix) -> tuple[Matrix, Matrix]:
        """The exact weights of the random losses, the same at every call."""
        return heaviest(state, problem.prior, self.tau), state

    def explain(self, state: Matrix) -> dict[str, Any]:
        """What a reader must not overlook."""
        return {"summary": "The weights are random: a control, not a finding."}


@dataclass(frozen=True)
class InversePropensity:
    """``w_i = s_i / (K π_k)`` for a row of group k of K, where π_k is the group's prior share.

    The labelled yardstick of the paper's heterogeneous experiments: what could be gained if the
    groups were known.

    Examples
    --------
    >>> from dataclasses import replace
    >>> problem = replace(Problem.unconstrained(np.eye(4)), groups=np.array([0, 0, 0, 1]))
    >>> InversePropensity().step(problem, lambda: np.ones((4, 4)), None)[0].round(3)
    array([0.167, 0.167, 0.167, 0.5  ])
    """

    needs_groups = True

    @property
    def tau(self) -> float:
        """No bound in practice: the size of a group alone decides how much its rows count."""
        return 1e-9

    def init(self, n: int, d: int) -> None:
        """Nothing to remember."""

    def step(self, problem: Problem, losses: Losses, state: Any) -> tuple[Matrix, Any]:
        """The same weights at every step, and the shares of the groups."""
        if problem.groups is None:
            raise ValueError("Inverse-propensity weights need the groups of the rows: groups=...")
        share = np.bincount(problem.groups, problem.prior)
        return equal_groups(problem.prior, problem.groups), share

    def explain(self, state: Any) -> dict[str, Any]:
        """The groups' shares of the weight before and after."""
        if state is None:
            return {}
        K = len(state)
        return {"groups": K, "share_before": state.tolist(), "share_after": [1 / K] * K}


@dataclass(frozen=True)
class Exact:
    """The rows that fit worst get the ceiling 1/(τn), the others the floor τ/n.

    ``loss="nll"`` ranks rows by the Gaussian log-likelihood with one variance per variable,
    ``ℓ_i = Σ_j r_ij² / σ_j²``, where σ_j² is the residual variance under the prior weights;
    re-estimating it under the current weights would pull the effect back.  ``loss="raw"`` is the
    paper's literal ``Σ_j r_ij²``, which hardly sees rows whose noise differs in pattern, not size.

    Examples
    --------
    >>> import numpy as np
    >>> losses = np.array([[1.0, 0.01], [1.0, 0.01], [0.9, 0.09]])
    >>> three_rows = Problem.unconstrained(np.zeros((3, 2)))
    >>> Exact(tau=0.5, loss="nll").step(three_rows, lambda: losses, None)[0].round(2)
    array([0.17, 0.17, 0.67])
    >>> Exact(tau=0.5, loss="raw").step(three_rows, lambda: losses, None)[0].round(2)
    array([0.42, 0.42, 0.17])
    """

    tau: float = 0.5
    loss: str = "nll"

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0, at_most=1)
        check_choice("loss", self.loss, LOSSES)

    def init(self, n: int, d: int) -> None:
        """Nothing to remember: the answer depends on the current losses alone."""

    def step(self, problem: Problem, losses: Losses, state: None) -> tuple[Matrix, None]:
        """The maximiser of the weighted loss over C(τ)."""
        prior, L = problem.prior, losses()
        per_row = L.sum(axis=1) if self.loss == "raw" else likelihood_units(L, prior)
        return heaviest(per_row, prior, self.tau), None

    def explain(self, state: None) -> dict[str, Any]:
        """The rule has no more to say than its parameters do."""
        return {}
