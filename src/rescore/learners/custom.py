"""Learners of the user's own: an object that steps, or a function that fits."""

import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.equations import Equations, LinearEquations
from rescore.graph.dag import cut_to_dag
from rescore.graph.dag import threshold as without_weak_edges
from rescore.learners.base import GraphLearner, StructureLearner
from rescore.learners.custom_answers import returned_graph, returned_losses, returned_state
from rescore.learners.straight_lines import on_parents
from rescore.moments import Matrix, Moments, Weights, row_weights
from rescore.protocols import Backbone, Mask, Problem, State, Status
from rescore.validation import check_flag, check_number, check_seed

COVARIANCE, COUNT = ("covariance", "cov"), ("n", "n_rows")  # the names that are understood
METHODS = ("init", "step", "losses", "adjacency")  # those that an object must have
ROUNDING = 1e-9  # a sum of weights this close to a whole number is one


@dataclass(eq=False, repr=False)
class Custom(GraphLearner):
    """A learner of your own, with names, losses, `predict`, `score` and row weights around it.

    ``Custom(f).fit(X)`` is your learner as it is, ``ReScore(f).fit(X)`` the same with adaptive
    row weights.  Whatever returns a graph returns an array (d, d), a DataFrame, or a
    networkx.DiGraph over the columns numbered from zero, where [i, j] is i → j; cycles and
    undirected edges are cut at their weakest.

    Parameters
    ----------
    learner : callable, or an object with init, step, losses and adjacency
        How weights reach a callable is told by the names of its parameters.
        ``f(X, sample_weight)``: weights that sum to the effective number of rows, ones if all are
        equal.  ``f(cov, n)``, or ``covariance`` and ``n_rows``: the weighted covariance and the
        effective number of rows.  Any other ``f(X)``: rows drawn by their weights, as many as are
        effective; with equal weights every row once, in order.  It is given numpy arrays of its
        own, without constant columns, and is scored by weighted regressions on its graph.
        An object is called as `rescore.protocols.Backbone` says, ``equations`` being optional,
        and sees forbidden edges and constant columns in ``problem.allowed``.
    threshold : float, optional
        Weaker edges are dropped at the end; if None, the object's own ``threshold``, or 0.
    is_linear : bool, optional
        Whether its relations are straight lines; then automatic weights are found before it is
        called, otherwise in its residuals after a first fit.  If None, True for functions of
        weights or of a covariance, False for others, and the object's own ``linear``, or False.
    standardize : bool
        Hand over columns of deviation one.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; for objects alone, because a function has no
        way to obey.
    max_steps : int
        Steps of an object at most; fits of a function, where row weights move between fits.
    random_state : int, optional
        Seed of the rows drawn for ``f(X)``; None is 0.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"rain": rain, "grass": 2 * rain + rng.normal(size=500)})
    >>> def by_variance(cov, n):  # whatever varies less comes first
    ...     order = np.argsort(np.diag(cov))
    ...     return np.triu(np.ones((2, 2)), 1)[np.ix_(order.argsort(), order.argsort())]
    >>> model = Custom(by_variance).fit(X)
    >>> list(model.causal_graph_.edges), model.equations_.W.round(1)[0, 1]
    ([('rain', 'grass')], np.float64(2.0))
    """

    learner: Any
    _: KW_ONLY
    threshold: float | None = None
    is_linear: bool | None = None
    random_state: int | None = None

    @property
    def one_step(self) -> bool:  # type: ignore[override]
        """Whether its first step is its whole fit, as of any function."""
        return not _steps(self.learner) or bool(getattr(self.learner, "one_step", False))

    @property
    def linear(self) -> bool:  # type: ignore[override]
        """Whether its graph is one of straight lines."""
        if self.is_linear is not None:
            return check_flag("is_linear", self.is_linear)
        if _steps(self.learner):
            return bool(getattr(self.learner, "linear", False))
        return _kind(self.learner)[0] != "rows"

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        threshold = self.threshold
        if _steps(self.learner):
            own = getattr(self.learner, "threshold", 0.0)
            return Completed(self.learner, own if threshold is None else threshold)
        kind, names = _kind(self.learner)
        if any(known is not None for known in (self.forbidden, self.required, self.knowledge)):
            raise ValueError(
                "A function has no way to obey forbidden or required edges. Leave them out, or "
                "give an object with init, step, losses and adjacency that reads problem.allowed."
            )
        seed = check_seed(self.random_state)
        return Called(self.learner, kind, names, 0.0 if threshold is None else threshold, seed)


def as_learner(learner: Any) -> GraphLearner:
    """The learner itself if it is one of ours, otherwise `Custom` around it.

    Examples
    --------
    >>> as_learner(lambda X: X.T @ X).one_step
    True
    >>> as_learner("notears")
    Traceback (most recent call last):
        ...
    TypeError: A learner such as Notears(), a function of X that returns a graph, or an object ...
    """
    if isinstance(learner, GraphLearner):
        return learner
    custom = Custom(learner)
    if not _steps(learner):
        _kind(learner)
    return custom


def _steps(learner: Any) -> bool:
    return not isinstance(learner, type) and all(hasattr(learner, name) for name in METHODS)


def _kind(learner: Any) -> tuple[str, tuple[str, str]]:
    """How a function wants its weights, and the names of its parameters; or why it is refused."""
    if isinstance(learner, type) or hasattr(learner, "fit"):
        raise TypeError(_about_fit(learner))
    if not callable(learner):
        missing = [name for name in METHODS if not hasattr(learner, name)]
        lacking = "" if len(missing) == len(METHODS) else f", which lacks {', '.join(missing)}"
        raise TypeError(
            "A learner such as Notears(), a function of X that returns a graph, or an object with "
            f"init, step, losses and adjacency is needed; got {learner!r}{lacking}."
        )
    return _wanted(learner)


def _wanted(function: Callable[..., Any]) -> tuple[str, tuple[str, str]]:
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):  # built-in functions may have none that can be read
        return "rows", ("", "")
    if "sample_weight" in parameters:
        return "sample_weight", ("", "")
    covariance = next((name for name in COVARIANCE if name in parameters), None)
    if covariance is None:
        return "rows", ("", "")
    count = next((name for name in COUNT if name in parameters), None)
    if count is None:
        raise TypeError(
            f"The function takes {covariance}, but not the number of rows behind it. Add a second "
            f"parameter: f({covariance}, n)."
        )
    return "covariance", (covariance, count)


def _about_fit(learner: Any) -> str:
    if isinstance(learner, type):
        return f"{learner.__name__} is a class; give an object of it, {learner.__name__}()."
    name = type(learner).__name__
    if isinstance(learner, StructureLearner):
        return f"{name} cannot be wrapped in another estimator here; use it as it is."
    return (
        f"{name} has a fit of its own, and packages differ in whether rows or columns are the "
        "causes. Give a function whose result has [i, j] for i -> j, such as "
        f"lambda X: {name}().fit(X).adjacency_matrix_.T (with .T where columns are the causes)."
    )


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
    >>> from rescore.learners.linear import OrderBackbone
    >>> problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(99, 2)))
    >>> learner = Completed(OrderBackbone())
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

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """The object's own, with the weights it was made with."""
        w = row_weights(w)
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
        return regressions(problem.moments(state.params.w), W != 0)


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

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """One whole fit; it does not depend on the last one."""
        w = row_weights(w)
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
            S = problem.moments(w).covariance[np.ix_(used, used)]
            return self.function(**dict(zip(self.names, (S, round(rows)), strict=True)))
        X = problem.rows.columns(used)  # a copy: some learners centre theirs in place
        if self.kind == "sample_weight":
            return self.function(X, sample_weight=whole_where_near(w * rows))
        offset = np.random.default_rng(self.seed).random()
        return self.function(np.repeat(X, systematic_counts(w, round(rows), offset), axis=0))

    def _found(self, problem: Problem, w: Matrix, W: Matrix) -> _Found:
        moments = problem.moments(w)
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
    return LinearEquations(on_parents(moments.covariance, edges), moments.mean)


def _refuse_ruled_out(W: Matrix, allowed: Mask) -> None:
    if (W != 0)[~allowed].any():
        i, j = np.argwhere((W != 0) & ~allowed)[0]
        raise ValueError(
            f"Your learner's graph has an edge from column {i} to column {j}, which is forbidden, "
            "or touches a constant column. Keep it out in step: problem.allowed is False there."
        )


def systematic_counts(w: Matrix, draws: int, offset: float) -> NDArray[np.intp]:
    """How often each row is drawn: ``draws·w_i`` rounded up or down, ``draws`` in all.

    Systematic resampling: equally spaced marks, the first at ``offset`` in [0, 1), on a line along
    which row i occupies the length ``draws·w_i``.  Over all offsets the mean count is that length;
    where the lengths are whole numbers, as with equal weights, so are the counts whatever the
    offset.

    Examples
    --------
    >>> systematic_counts(np.full(4, 1 / 4), 4, offset=0.3)
    array([1, 1, 1, 1])
    >>> systematic_counts(np.array([0.5, 0.125, 0.125, 0.25]), 4, offset=0.3)
    array([2, 1, 0, 1])
    """
    ends = whole_where_near(draws * np.cumsum(w))
    ends[-1] = draws  # the weights sum to one
    whole = np.floor(ends)
    marks_before = whole + (ends - whole > offset)  # mark k is at k + offset
    return np.diff(marks_before, prepend=0.0).astype(np.intp)


def whole_where_near(values: Matrix) -> Matrix:
    """The values with those that are whole numbers but for rounding made whole.

    Examples
    --------
    >>> whole_where_near(np.array([49 * (1 / 49), 0.5]))
    array([1. , 0.5])
    """
    nearest = np.rint(values)
    return np.where(np.abs(values - nearest) <= ROUNDING * np.maximum(nearest, 1), nearest, values)
