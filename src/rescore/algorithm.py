"""ReScore: learn the graph on weighted rows, weigh up the rows that fit worst, and again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rescore.equations import Equations
from rescore.graph.dag import cut_to_dag, threshold
from rescore.moments import Matrix, Weights, row_weights
from rescore.protocols import (
    OUT_OF_RANGE,
    Backbone,
    Losses,
    Problem,
    State,
    Status,
    Weighting,
)
from rescore.weight_box import ceiling_share

Record = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Result:
    """What was learned: a DAG, the weights it was learned with, and how it went."""

    W: Matrix  # (d, d), always a DAG
    sample_weight: Matrix  # (n,), sums to one
    weights: Weights  # (n,) the same, or (n, d) where variables count rows in their own way
    effective_rows: float  # as many rows of equal weight would be as informative
    losses: Matrix  # (n, d), squared residuals before the threshold
    history: tuple[Record, ...]  # one record per outer step
    status: Status
    removed: tuple[tuple[int, int, float], ...]  # edges cut because they closed a cycle
    weighting: Mapping[str, Any]  # what the weighting decided and why
    equations: Equations  # of the graph W, in the units of the problem's rows


def rescore(
    problem: Problem,
    backbone: Backbone,
    weighting: Weighting,
    *,
    warmup: int = 1,
    max_steps: int = 100,
    on_step: Callable[[Record], Any] | None = None,
) -> Result:
    """Algorithm 1 of the paper.  ``warmup`` is its K_reweight: outer steps before weights move.

    Ctrl-C ends it early, with what the last settled step had reached; so does a step whose numbers
    are no longer finite.

    Examples
    --------
    >>> from rescore.learners.notears import NotearsBackbone
    >>> from rescore.weightings import Exact
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> problem = Problem.unconstrained(np.c_[x, 2 * x + rng.normal(size=500)])
    >>> found = rescore(problem, NotearsBackbone(), Exact(tau=0.5))
    >>> found.W.round(1), found.status.name
    (array([[0. , 1.9],
           [0. , 0. ]]), 'CONVERGED')
    """
    w: Weights = problem.prior
    memory = weighting.init(*problem.rows.shape)
    state = backbone.init(problem)
    history: list[Record] = []
    reached = None  # the last settled state, the weights it was learned with and why they are so
    try:
        while state.status is Status.RUNNING and len(history) < max_steps:
            if len(history) >= warmup and state.settled:
                # The graph is fixed: weigh up the rows that fit worst.
                w, memory = weighting.step(problem, Losses(problem, backbone, state), memory)
            state = backbone.step(problem, w, state)  # the weights are fixed: improve the graph
            if not np.isfinite(backbone.adjacency(state)).all():
                w, memory, state = _step_back(reached)
                break
            if state.settled:
                reached = w, memory, state
            history.append(_record(len(history) + 1, problem, backbone, weighting, w, state))
            if on_step is not None:
                on_step(history[-1])
    except KeyboardInterrupt:
        if not history:
            raise
        w, memory, state = reached or (w, memory, state)
        state = replace(state, status=Status.INTERRUPTED)
    return _result(problem, backbone, w, state, history, weighting.explain(memory))


def _step_back(reached: tuple[Weights, Any, State] | None) -> tuple[Weights, Any, State]:
    """Where the last step began, if there was one, with the status that says so."""
    if reached is None:
        raise ValueError(OUT_OF_RANGE)
    w, memory, state = reached
    return w, memory, replace(state, status=Status.DIVERGED)


def _record(
    step: int, problem: Problem, backbone: Backbone, weighting: Weighting, w: Weights, state: State
) -> Record:
    strong = np.abs(backbone.adjacency(state)) >= max(backbone.threshold, np.finfo(float).tiny)
    return {
        "step": step,
        **state.trace,
        "edges": int(strong.sum()),
        "effective_rows": problem.effective_rows(w),
        "ceiling_share": ceiling_share(row_weights(w), problem.prior, weighting.tau),
    }


def _result(
    problem: Problem,
    backbone: Backbone,
    w: Weights,
    state: State,
    history: list[Record],
    decided: Mapping[str, Any],
) -> Result:
    """Threshold, make sure of a DAG, and say how it ended."""
    W = threshold(backbone.adjacency(state), backbone.threshold, keep=problem.required)
    W, removed = cut_to_dag(W, keep=problem.required)
    # A required edge is there even if its fitted weight is exactly zero.
    W = np.where(problem.required & (W == 0), np.finfo(float).tiny, W)
    status = Status.STEP_LIMIT if state.status is Status.RUNNING else state.status
    losses = Losses(problem, backbone, state)()
    rows = problem.effective_rows(w)
    equations = backbone.equations(problem, state, W.copy())
    return Result(
        W,
        row_weights(w),
        w,
        rows,
        losses,
        tuple(history),
        status,
        tuple(removed),
        decided,
        equations,
    )
