"""A learner fitted again and again, for weights that move between whole fits."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rescore.equations import Equations
from rescore.moments import Matrix
from rescore.protocols import Backbone, Mask, Problem, State, Status


class _Fits(NamedTuple):
    current: State  # of the wrapped learner
    w: Matrix | None  # the weights it is fitted with
    steps: int  # of the current fit
    seen: tuple[Mask, ...]  # the graphs of all whole fits so far


@dataclass(frozen=True)
class Repeated:
    """Whole fits of a learner, each from scratch; done when weights or graph repeat.

    Between the steps of one fit the state is not settled, so that the weights stay.

    Examples
    --------
    >>> from rescore.backbones.ordered import OrderedBackbone
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(99, 2)))
    >>> learner = Repeated(OrderedBackbone())
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> state.status.name, learner.step(problem, problem.prior, state).status.name
    ('RUNNING', 'CONVERGED')
    """

    backbone: Backbone
    max_steps: int = 100

    @property
    def threshold(self) -> float:
        """That of the wrapped learner."""
        return self.backbone.threshold

    def init(self, problem: Problem) -> State:
        """Nothing fitted yet."""
        return State(_Fits(self.backbone.init(problem), None, 0, ()))

    def step(self, problem: Problem, w: Matrix, state: State) -> State:
        """A step of the current fit; of a new one if that is done and the weights have changed."""
        fits: _Fits = state.params
        if state.settled and fits.w is not None:
            if np.array_equal(fits.w, w):
                return replace(state, status=fits.current.status)
            fits = fits._replace(current=self.backbone.init(problem), steps=0)
        current = self.backbone.step(problem, w, fits.current)
        fits = fits._replace(current=current, w=w, steps=fits.steps + 1)
        if current.status is Status.RUNNING and fits.steps < self.max_steps:
            return State(fits, trace=current.trace, settled=False)
        return self._whole(fits)

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
        return self.backbone.losses(problem, state.params.current)

    def adjacency(self, state: State) -> Matrix:
        """That of the current fit."""
        return self.backbone.adjacency(state.params.current)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """Those of the current fit."""
        return self.backbone.equations(problem, state.params.current, W)
