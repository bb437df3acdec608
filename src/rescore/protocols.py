"""The contract between the two players of ReScore, and what passes between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rescore.equations import Equations
from rescore.graph.dag import cut_to_dag, threshold
from rescore.moments import Matrix, Moments, Rows, Weights, row_weights

Mask = NDArray[np.bool_]
Codes = NDArray[np.intp]


OUT_OF_RANGE = (
    "The learner's numbers left the range of floating point before it had a graph. Look for cells "
    "far from all others, try standardize=True, or another learner."
)


class Status(Enum):
    """How far a learner has come, as a sentence."""

    RUNNING = "Still running."
    CONVERGED = "Converged: the acyclicity constraint fell to its tolerance."
    PENALTY_CAP = (
        "Not converged: the penalty on cycles reached its cap before the constraint fell to its "
        "tolerance; the weakest edges on cycles were cut. Try standardize=True or a larger penalty."
    )
    STEP_LIMIT = (
        "Not converged: the limit of outer steps was reached; the weakest edges on cycles were "
        "cut. Raise max_steps."
    )
    DIVERGED = (
        "Not converged: numbers left the range of floating point; the graph is the last one before "
        "that. Look for cells far from all others, and try standardize=True."
    )
    INTERRUPTED = "Stopped by Ctrl-C: the graph is the best one reached by then."


@dataclass(frozen=True, eq=False)
class Problem:
    """All that a learner may see: rows, prior row weights, which edges may and must be there.

    ``prior`` (n,) sums to one; ``count`` is how many rows the table stands for, if other than n.
    ``allowed`` and ``required`` are (d, d), ``[i, j]`` for i → j;
    required edges are allowed, acyclic, and exempt from penalty and threshold.  ``groups`` (n,),
    numbered from zero, are there only for a method that needs them.  A true graph has no place
    here.
    """

    rows: Rows
    prior: Matrix
    allowed: Mask
    required: Mask
    count: float | None = None
    groups: Codes | None = None

    def moments(self, w: Weights) -> Moments:
        """Those of the rows weighted by ``w``; under the prior itself, computed only once.

        Of weights per cell, a row counts what its cells have together.

        Examples
        --------
        >>> problem = Problem.unconstrained(np.array([[0.0], [2.0]]))
        >>> problem.moments(problem.prior).mean
        array([1.])
        """
        return self._prior_moments if w is self.prior else self.rows.moments(row_weights(w))

    @cached_property
    def _prior_moments(self) -> Moments:
        return self.rows.moments(self.prior)

    def effective_rows(self, w: Weights) -> float:
        """``N / Σ w_i²/s_i``: how many rows of equal weight would be as informative as ``w``.

        With equal prior weights this is ``1/Σ w_i²``; a row repeated k times is k rows.

        Examples
        --------
        >>> Problem.unconstrained(np.eye(4)).effective_rows(np.array([0.5, 0.5, 0.0, 0.0]))
        2.0
        """
        N, w = self.rows.shape[0] if self.count is None else self.count, row_weights(w)
        return float(N / np.sum(w * (w / self.prior)))

    def row_counts(self) -> Matrix:
        """How many rows of the table each row stands for, (n,): its share of the effective ones.

        Examples
        --------
        >>> Problem.unconstrained(np.eye(3)).row_counts()
        array([1., 1., 1.])
        """
        return self.prior * self.effective_rows(self.prior)

    @classmethod
    def unconstrained(cls, X: Matrix) -> "Problem":
        """Every row alike, every edge but self-loops allowed.

        Examples
        --------
        >>> Problem.unconstrained(np.eye(3)).allowed.sum()
        np.int64(6)
        """
        n, d = X.shape
        allowed = ~np.eye(d, dtype=bool)
        return cls(Rows(X), np.full(n, 1 / n), allowed, np.zeros((d, d), dtype=bool))


@dataclass(frozen=True, eq=False)
class State:
    """Where a learner stands: its own parameters, its status, and numbers worth recording.

    While it is not ``settled`` the weights stay as they are, because its losses mean nothing yet.
    """

    params: Any
    status: Status = Status.RUNNING
    trace: Mapping[str, float] = field(default_factory=dict)
    settled: bool = True


class Backbone(Protocol):
    """The player that lowers the weighted score by changing the graph.

    A frozen dataclass of hyper-parameters; all that evolves is in the state.  Rows with equal
    weights must give the plain learner, and a row repeated k times must act like weight k.
    """

    @property
    def threshold(self) -> float:
        """Edges weaker than this are dropped from the final graph."""

    def init(self, problem: Problem) -> State:
        """The state before the first step."""

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """One outer iteration with the weights of rows (n,) or of cells (n, d) fixed."""

    def losses(self, problem: Problem, state: State) -> Matrix:
        """The squared residual of every row and variable, (n, d)."""

    def adjacency(self, state: State) -> Matrix:
        """Edge strengths (d, d), ``[i, j]`` for i → j, before any threshold."""

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """Every variable as a function of its parents in the final graph ``W`` (d, d).

        In the units of the problem's rows; whatever else the learner used is frozen at its mean.
        """


@dataclass(frozen=True, eq=False)
class Losses:
    """What a weighting sees of the learner; computed when asked, because not every one looks.

    Examples
    --------
    >>> from rescore.learners.baselines import EmptyBackbone
    >>> problem = Problem.unconstrained(np.array([[1.0, 2.0], [3.0, 2.0]]))
    >>> losses = Losses(problem, EmptyBackbone(), EmptyBackbone().init(problem))
    >>> losses(), losses.edges().any()
    (array([[1., 0.],
           [1., 0.]]), np.False_)
    """

    problem: Problem
    backbone: Backbone
    state: State

    def __call__(self) -> Matrix:
        """The squared residual of every row and variable, (n, d); or a sentence, if not finite."""
        losses = self.backbone.losses(self.problem, self.state)
        if not np.isfinite(losses).all():
            raise ValueError(OUT_OF_RANGE)
        return losses

    def edges(self) -> Mask:
        """The DAG (d, d) that the learner would return now."""
        keep = self.problem.required
        W = threshold(self.backbone.adjacency(self.state), self.backbone.threshold, keep=keep)
        return (cut_to_dag(W, keep=keep)[0] != 0) | keep


class Weighting(Protocol):
    """The player that raises the weighted score by changing the row weights inside a box."""

    @property
    def tau(self) -> float:
        """The size of the box C(τ); 1 leaves the weights where they are."""

    def init(self, n: int, d: int) -> Any:
        """The state before the first step."""

    def step(self, problem: Problem, losses: Losses, state: Any) -> tuple[Weights, Any]:
        """New weights from ``losses()`` (n, d) of the current graph, or from its edges.

        A probability vector (n,), or weights of cells (n, d) that sum to d.
        """

    def explain(self, state: Any) -> Mapping[str, Any]:
        """What was decided and why, as plain data for the diagnostics; may be empty."""
