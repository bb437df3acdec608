"""A backbone whose one step is a whole fit of another, for weights that move between fits."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rescore.equations import Equations
from rescore.moments import Matrix
from rescore.protocols import Backbone, Mask, Problem, State, Status


class _Fits(NamedTuple):
    last: State  # of the wrapped learner
    w: Matrix | None  # the weights it was fitted with
    seen: tuple[Mask, ...]  # the graphs of all fits so far


@dataclass(frozen=True)
class Repeated:
    """Fit the learner from scratch at every step; done when weights or graph repeat.

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
        return State(_Fits(self.backbone.init(problem), None, ()))

    def step(self, problem: Problem, w: Matrix, state: State) -> State:
        """A whole fit with the weights fixed, unless it was just done with the very same ones."""
        fits: _Fits = state.params
        if fits.w is not None and np.array_equal(fits.w, w):
            return replace(state, status=fits.last.status)
        last = self.backbone.init(problem)
        for _ in range(self.max_steps):
            last = self.backbone.step(problem, w, last)
            if last.status is not Status.RUNNING:
                break
        graph = np.abs(self.backbone.adjacency(last)) > self.threshold
        repeats = any((graph == earlier).all() for earlier in fits.seen)
        status = last.status if repeats else Status.RUNNING
        return State(_Fits(last, w, (*fits.seen, graph)), status, last.trace)

    def losses(self, problem: Problem, state: State) -> Matrix:
        """Those of the last fit."""
        return self.backbone.losses(problem, state.params.last)

    def adjacency(self, state: State) -> Matrix:
        """That of the last fit."""
        return self.backbone.adjacency(state.params.last)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """Those of the last fit."""
        return self.backbone.equations(problem, state.params.last, W)
