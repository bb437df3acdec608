"""A learner of the user's own as an estimator."""

import inspect
from collections.abc import Callable
from typing import Any

from rescore.backbones.custom import METHODS, Called, Completed
from rescore.checking import check_flag, check_integer
from rescore.constraints import Edges
from rescore.estimators.base import StructureLearner
from rescore.estimators.learner import GraphLearner
from rescore.protocols import Backbone

COVARIANCE, COUNT = ("covariance", "cov"), ("n", "n_rows")  # the names that are understood


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
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name; for objects alone, because a function has no way to obey.
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

    def __init__(
        self,
        learner: Any,
        *,
        threshold: float | None = None,
        is_linear: bool | None = None,
        standardize: bool = False,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        max_steps: int = 100,
        random_state: int | None = None,
    ) -> None:
        self.learner = learner
        self.threshold = threshold
        self.is_linear = is_linear
        self.standardize = standardize
        self.forbidden = forbidden
        self.required = required
        self.max_steps = max_steps
        self.random_state = random_state

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

    def _backbone(self) -> Backbone:
        threshold = self.threshold
        if _steps(self.learner):
            own = getattr(self.learner, "threshold", 0.0)
            return Completed(self.learner, own if threshold is None else threshold)
        kind, names = _kind(self.learner)
        if self.forbidden is not None or self.required is not None:
            raise ValueError(
                "A function has no way to obey forbidden or required edges. Leave them out, or "
                "give an object with init, step, losses and adjacency that reads problem.allowed."
            )
        seed = 0 if self.random_state is None else self.random_state
        check_integer("random_state", seed, at_least=0)
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
