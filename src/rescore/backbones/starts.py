"""Several starting points of one learner; the objective chooses between them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rescore.checking import check_integer
from rescore.equations import Equations
from rescore.moments import Matrix
from rescore.protocols import Backbone, Problem, State, Status

__all__ = ["Starts", "from_several_starts"]


@dataclass(frozen=True)
class Starts:
    """Run a learner from its own start and from random ones; keep the least objective.

    The starts share one compiled program.  Running it on all of them in one `vmap` takes as
    long on a CPU as running it on one after the other (0.6 to 1.0 of it, 10 to 50 variables).

    Examples
    --------
    >>> from rescore.backbones.dagma import DagmaBackbone
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(99, 2)))
    >>> learner = Starts(DagmaBackbone(), n_starts=3)
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> len(state.params), state.status.name
    (3, 'RUNNING')
    """

    backbone: Any
    n_starts: int
    seed: int = 0

    @property
    def threshold(self) -> float:
        """That of the learner."""
        return float(self.backbone.threshold)

    def init(self, problem: Problem) -> State:
        """The learner's own start, and random ones."""
        first: State = self.backbone.init(problem)
        rng = np.random.default_rng(self.seed)
        others = [self.backbone.restart(problem, rng) for _ in range(self.n_starts - 1)]
        return State((first, *others))

    def step(self, problem: Problem, w: Matrix, state: State) -> State:
        """One step from every start that is still on its way."""
        states = tuple(
            self.backbone.step(problem, w, s) if s.status is Status.RUNNING else s
            for s in state.params
        )
        running = any(s.status is Status.RUNNING for s in states)
        best = _best(states)
        return State(states, Status.RUNNING if running else best.status, best.trace)

    def losses(self, problem: Problem, state: State) -> Matrix:
        """Those of the best start."""
        return self._learner().losses(problem, _best(state.params))

    def adjacency(self, state: State) -> Matrix:
        """That of the best start."""
        return self._learner().adjacency(_best(state.params))

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """Those of the best start."""
        return self._learner().equations(problem, _best(state.params), W)

    def _learner(self) -> Backbone:
        return self.backbone


def _best(states: tuple[State, ...]) -> State:
    """The least objective; a start that has arrived before any that has not."""

    def rank(state: State) -> tuple[bool, float]:
        return state.status is not Status.CONVERGED, state.trace.get("objective", np.inf)

    return min(states, key=rank)


def from_several_starts(backbone: Any, n_starts: int, seed: int) -> Any:
    """The learner itself where one start is enough, else `Starts` around it.

    Examples
    --------
    >>> from rescore.backbones.dagma import DagmaBackbone
    >>> from_several_starts(DagmaBackbone(), 1, seed=0)
    DagmaBackbone(...)
    """
    many = check_integer("n_starts", n_starts, at_least=1) > 1
    return Starts(backbone, n_starts, seed) if many else backbone
