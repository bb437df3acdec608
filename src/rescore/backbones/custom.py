"""Learners of the user's own as backbones: an object that steps, or a function that fits."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rescore.backbones.resampling import systematic_counts, whole_where_near
from rescore.backbones.returned import returned_graph, returned_losses, returned_state
from rescore.checking import check_number
from rescore.equations import Equations, LinearEquations
from rescore.graph import cut_to_dag
from rescore.graph import threshold as without_weak_edges
from rescore.moments import Matrix, Moments
from rescore.ordered import steady_inverse
from rescore.protocols import Mask, Problem, State, Status

METHODS = ("init", "step", "losses", "adjacency")  # those that an object must have


class _Kept(NamedTuple):
    own: State  # the object's
    w: Matrix  # the weights it was made with
    d: int  # how many variables there are


@dataclass(frozen=True)
class Completed:
    """An object with init, step, losses and adjacency, and what it leaves out.

    Its ``equations`` are used if it has some; otherwise each variable is regressed on its parents
    in the final graph, with the final weights.

    Examples
    --------
    >>> from rescore.backbones.ordered import OrderedBackbone
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(99, 2)))
    >>> learner = Completed(OrderedBackbone())
    >>> learner.step(problem, problem.prior, learner.init(problem)).status.name
    'CONVERGED'
    """

    learner: Any
    threshold: float = 0.0

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold, at_least=0)

    def init(self, problem: Problem) -> State:
        """The object's own, with the prior weights."""
        own = returned_state(self.learner.init(problem), "init")
        return replace(own, params=_Kept(own, problem.prior, problem.rows.shape[1]))

    def step(self, problem: Problem, w: Matrix, state: State) -> State:
        """The object's own, with the weights it was made with."""
        own = returned_state(self.learner.step(problem, w, state.params.own), "step")
        return replace(own, params=_Kept(own, w, state.params.d))

    def losses(self, problem: Problem, state: State) -> Matrix:
        """The object's own, (n, d)."""
        return returned_losses(self.learner.losses(problem, state.params.own), problem.rows.shape)

    def adjacency(self, state: State) -> Matrix:
        """The object's own, (d, d)."""
        return returned_graph(self.learner.adjacency(state.params.own), state.params.d)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """The object's own, or weighted regressions on the final graph."""
        _refuse_ruled_out(W, problem.allowed)
        if hasattr(self.learner, "equations"):
            own: Equations = self.learner.equations(problem, state.params.own, W)
            return own
        return regressions(problem.rows.moments(state.params.w), W != 0)


class _Found(NamedTuple):
    W: Matrix  # (d, d), as returned
    equations: LinearEquations
    moments: Moments  # under the weights of the fit


@dataclass(frozen=True)
class Called:
    """A function that returns a graph, called anew for every new set of weights.

    It sees the columns that vary, in a copy of its own, and the weights in one of three ways.
    ``kind="sample_weight"``: ``function(X, sample_weight=c)``, c summing to the effective rows, so
    that equal weights are ones.  ``kind="covariance"``: the weighted covariance and the effective
    rows, under the two names in ``names``.  ``kind="rows"``: rows drawn by their weights, as many
    as are effective; equal weights give every row once, in order.

    The losses are squared residuals of weighted regressions on its graph.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(99, 2)))
    >>> learner = Called(lambda X: np.eye(2, k=1) * len(X), "rows")
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> print(learner.adjacency(state))
    [[ 0. 99.]
     [ 0.  0.]]
    """

    function: Callable[..., Any]
    kind: str
    names: tuple[str, str] = ("covariance", "n")
    threshold: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold, at_least=0)

    def init(self, problem: Problem) -> State:
        """No edges."""
        d = problem.rows.shape[1]
        return State(self._found(problem, problem.prior, np.zeros((d, d))))

    def step(self, problem: Problem, w: Matrix, state: State) -> State:
        """One whole fit; it does not depend on the last one."""
        used = np.flatnonzero(problem.allowed.any(axis=0))  # a constant column is an isolated node
        W = np.zeros(problem.allowed.shape)
        if len(used):
            W[np.ix_(used, used)] = returned_graph(self._call(problem, w, used), len(used))
        found = self._found(problem, w, W)
        loss = problem.rows.squared_residuals(found.equations.W, found.equations.mean)
        trace = {"objective": float(w @ loss.sum(axis=1) / 2), "h": 0.0}
        return State(found, Status.CONVERGED, trace)

    def losses(self, problem: Problem, state: State) -> Matrix:
        """Squared residuals of weighted regressions on the graph without its cycles, (n, d)."""
        fit = state.params.equations
        return problem.rows.squared_residuals(fit.W, fit.mean)

    def adjacency(self, state: State) -> Matrix:
        """What the function returned, (d, d); zero for columns it did not see."""
        return np.array(state.params.W)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """Weighted regressions on the final graph."""
        return regressions(state.params.moments, W != 0)

    def _call(self, problem: Problem, w: Matrix, used: Any) -> Any:
        rows = problem.effective_rows(w)
        if self.kind == "covariance":
            S = problem.rows.moments(w).covariance[np.ix_(used, used)]
            return self.function(**dict(zip(self.names, (S, round(rows)), strict=True)))
        X = problem.rows.values[:, used]  # a copy: some learners centre their rows in place
        if self.kind == "sample_weight":
            return self.function(X, sample_weight=whole_where_near(w * rows))
        offset = np.random.default_rng(self.seed).random()
        return self.function(np.repeat(X, systematic_counts(w, round(rows), offset), axis=0))

    def _found(self, problem: Problem, w: Matrix, W: Matrix) -> _Found:
        moments = problem.rows.moments(w)
        strong = without_weak_edges(W, self.threshold)
        return _Found(W, regressions(moments, cut_to_dag(strong)[0] != 0), moments)


def regressions(moments: Moments, edges: Mask) -> LinearEquations:
    """Each variable regressed on its parents in ``edges`` (d, d), from moments alone.

    Examples
    --------
    >>> moments = Moments(np.zeros(2), np.array([[1.0, 2.0], [2.0, 5.0]]))
    >>> regressions(moments, np.array([[False, True], [False, False]])).W.round(6)
    array([[0., 2.],
           [0., 0.]])
    """
    mean, S = moments
    B = np.zeros_like(S)
    for j in np.flatnonzero(edges.any(axis=0)):
        parents = np.flatnonzero(edges[:, j])
        B[parents, j] = steady_inverse(S[np.ix_(parents, parents)]) @ S[parents, j]
    return LinearEquations(B, mean)


def _refuse_ruled_out(W: Matrix, allowed: Mask) -> None:
    if (W != 0)[~allowed].any():
        i, j = np.argwhere((W != 0) & ~allowed)[0]
        raise ValueError(
            f"Your learner's graph has an edge from column {i} to column {j}, which is forbidden, "
            "or touches a constant column. Keep it out in step: problem.allowed is False there."
        )
