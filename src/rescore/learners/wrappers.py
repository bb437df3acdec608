"""A learner fitted several times: again for new weights, or from several starting points."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rescore.equations import Equations
from rescore.moments import Matrix, Weights
from rescore.protocols import Backbone, Mask, Problem, State, Status
from rescore.validation import check_integer

SCOUTED = 2  # fits of the scout at most: of plain rows, and of the first groups


class _Fits(NamedTuple):
    by: Backbone  # the wrapped learner, or its scout
    current: State  # of that one
    w: Weights | None  # the weights it is fitted with
    steps: int  # of the current fit
    seen: tuple[Mask, ...]  # the graphs of all whole fits so far
    scouted: int = 0  # fits of the scout


@dataclass(frozen=True)
class Repeated:
    """Whole fits of a learner, each from scratch; done when weights or graph repeat.

    Between the steps of one fit the state is not settled, so that the weights stay.  A scout, if
    there is one, is a learner of one step that shows the weights what a plain fit leaves at a
    fraction of its cost; its graph is forgotten.

    Examples
    --------
    >>> from rescore.learners.linear import OrderBackbone
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(99, 2)))
    >>> learner = Repeated(OrderBackbone())
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> state.status.name, learner.step(problem, problem.prior, state).status.name
    ('RUNNING', 'CONVERGED')
    """

    backbone: Backbone
    max_steps: int = 100
    scout: Backbone | None = None

    @property
    def threshold(self) -> float:
        """That of the wrapped learner."""
        return self.backbone.threshold

    def init(self, problem: Problem) -> State:
        """Nothing fitted yet."""
        return State(_Fits(self.backbone, self.backbone.init(problem), None, 0, ()))

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """A step of the current fit; of a new one if that is done and the weights have changed."""
        fits: _Fits = state.params
        moved = fits.w is None or not np.array_equal(fits.w, w)
        if self.scout is not None and not fits.seen and moved and fits.scouted < SCOUTED:
            return self._scouted(self.scout, problem, w, fits)
        if fits.by is not self.backbone:
            fits = _Fits(self.backbone, self.backbone.init(problem), None, 0, (), SCOUTED)
        elif state.settled and fits.w is not None:
            if not moved:
                return replace(state, status=fits.current.status)
            fits = fits._replace(current=self.backbone.init(problem), steps=0)
        current = self.backbone.step(problem, w, fits.current)
        fits = fits._replace(current=current, w=w, steps=fits.steps + 1)
        if current.status is Status.RUNNING and fits.steps < self.max_steps:
            return State(fits, trace=current.trace, settled=False)
        return self._whole(fits)

    def _scouted(self, scout: Backbone, problem: Problem, w: Weights, fits: _Fits) -> State:
        current = scout.step(problem, w, scout.init(problem))
        return State(
            fits._replace(by=scout, current=current, w=w, scouted=fits.scouted + 1),
            trace=current.trace,
        )

    def _whole(self, fits: _Fits) -> State:
        """The end of a fit, and of them all if its graph was found before."""
        current = fits.current
        if current.status is Status.RUNNING:
            current = replace(current, status=Status.STEP_LIMIT)
        graph = np.abs(self.backbone.adjacency(current)) > self.threshold
        repeats = any((graph == earlier).all() for earlier in fits.seen)
        status = current.status if repeats else Status.RUNNING
        fits = fits._replace(current=current, seen=(*fits.seen, graph))
        return State(fits, status, current.trace)

    def losses(self, problem: Problem, state: State) -> Matrix:
        """Those of the current fit."""
        return state.params.by.losses(problem, state.params.current)

    def adjacency(self, state: State) -> Matrix:
        """That of the current fit."""
        return state.params.by.adjacency(state.params.current)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """Those of the current fit."""
        return state.params.by.equations(problem, state.params.current, W)


@dataclass(frozen=True)
class Starts:
    """Run a learner from its own start and from random ones; keep the least objective.

    The starts share one compiled program.  Running it on all of them in one `vmap` takes as
    long on a CPU as running it on one after the other (0.6 to 1.0 of it, 10 to 50 variables).

    Examples
    --------
    >>> from rescore.learners.dagma import DagmaBackbone
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

    def step(self, problem: Problem, w: Weights, state: State) -> State:
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
    >>> from rescore.learners.dagma import DagmaBackbone
    >>> from_several_starts(DagmaBackbone(), 1, seed=0)
    DagmaBackbone(...)
    """
    many = check_integer("n_starts", n_starts, at_least=1) > 1
    return Starts(backbone, n_starts, seed) if many else backbone
