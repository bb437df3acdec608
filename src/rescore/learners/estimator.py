"""What every estimator is but for its fit: parameters, how its graph is shown, what it answers.

What scikit-learn asks of an estimator is here without importing it, because that alone takes half
a second.  Its `clone`, its searches over parameters and its `check_estimator` ask for these
methods, and not for a base class.
"""

import base64
import inspect
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rescore.equations import Equations, draw, log_likelihoods, partial_dependence
from rescore.graph.drawing import draw_graph, natural_size, svg
from rescore.graph.io import to_networkx
from rescore.tables.opening import number_of, numbered
from rescore.tables.table import Table, TableLike, rows_like
from rescore.text import listing, printable
from rescore.validation import check_integer, check_number
from rescore.verdicts import edges, trust
from rescore.weight_box import prior_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from networkx import DiGraph

__all__ = ["Answers", "Parametrised", "Shown", "check_fitted"]
ATTRIBUTES = "    Attributes\n    ----------\n"
MOST_EDGES = 15  # of the table in a notebook
LARGEST = 12.0  # inches, of a picture in a notebook


class Parametrised:
    """An estimator that keeps the parameters of its constructor under their own names.

    Examples
    --------
    >>> from rescore import Linear, ReScore
    >>> ReScore(Linear()).set_params(tau=0.5, estimator__threshold=0.1)
    ReScore(estimator=Linear(threshold=0.1), tau=0.5)
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; ``deep``: also those of an estimator inside, as outer__inner."""
        own = {name: getattr(self, name) for name in self._get_param_names()}
        parts = {name: part for name, part in own.items() if deep and _has_parameters(part)}
        return own | {
            f"{name}__{inner}": value
            for name, part in parts.items()
            for inner, value in part.get_params().items()
        }

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; ``outer__inner`` sets one of an estimator inside."""
        inside: dict[str, dict[str, Any]] = defaultdict(dict)
        known = self._get_param_names()
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}."
                )
            if inner:
                inside[name][inner] = value
            else:
                setattr(self, name, value)
        for name, values in inside.items():
            getattr(self, name).set_params(**values)
        return self

    def __repr__(self) -> str:
        """The call that makes it, without the parameters that are at their defaults."""
        usual = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(usual[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))


def _has_parameters(part: Any) -> bool:
    return hasattr(part, "get_params") and not isinstance(part, type)


def check_fitted(model: Any) -> None:
    """Raise scikit-learn's `NotFittedError` unless the model has been fitted.

    Examples
    --------
    >>> from rescore import Linear
    >>> check_fitted(Linear())
    Traceback (most recent call last):
        ...
    sklearn.exceptions.NotFittedError: This Linear instance is not fitted yet...
    """
    if not hasattr(model, "adjacency_matrix_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model, "adjacency_matrix_")


class Shown(Parametrised):
    """An estimator whose graph can be looked at."""

    adjacency_matrix_: pd.DataFrame
    cpdag_: pd.DataFrame
    sample_weight_: pd.Series
    _cell_weight: Any

    def __init_subclass__(cls, **options: Any) -> None:
        """What is learned is described once, and shown in the help of every estimator."""
        super().__init_subclass__(**options)
        shared = (base.__doc__ for base in cls.__mro__[1:] if ATTRIBUTES in (base.__doc__ or ""))
        cls.__doc__ = _with_attributes(cls.__doc__, next(shared, None))

    @cached_property
    def causal_graph_(self) -> "DiGraph":
        """The graph as a networkx.DiGraph, always acyclic; made when it is first read.

        Its edges have a ``weight``, and ``directed``, which is false where ``cpdag_`` leaves the
        direction open.
        """
        check_fitted(self)
        W = self.adjacency_matrix_
        return to_networkx(W.to_numpy(), list(W.columns), self.cpdag_.to_numpy())

    @property
    def cell_weight_(self) -> pd.DataFrame:
        """How much every row counts in the regression of every variable, (n, d); sums to d.

        Where all variables count a row alike, each column is ``sample_weight_``.

        Examples
        --------
        >>> from rescore import Linear, simulate
        >>> Linear().fit(simulate(nodes=3, degree=1, random_state=100).X).cell_weight_.shape
        (2000, 3)
        """
        check_fitted(self)
        w, names = self.sample_weight_, self.adjacency_matrix_.columns
        cells = self._cell_weight
        if cells is None:
            cells = np.repeat(w.to_numpy()[:, None], len(names), axis=1)
        return pd.DataFrame(np.asarray(cells), w.index, names)

    @property
    def edges_(self) -> pd.DataFrame:
        """The edges with what the fit says of each, as `edges` describes.

        Examples
        --------
        >>> from rescore import Linear, simulate
        >>> model = Linear().fit(simulate(nodes=3, degree=1, random_state=100).X)
        >>> model.edges_[["cause", "effect", "verdict"]].shape
        (3, 3)
        """
        check_fitted(self)
        return edges(self)  # type: ignore[arg-type]

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the graph with matplotlib, into ``ax`` or a new figure, and return its axes.

        An edge whose direction is open has no arrow head.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from rescore import Linear, simulate
        >>> model = Linear().fit(simulate(nodes=3, degree=1, random_state=100).X)
        >>> axes = model.plot(Figure().add_subplot())
        >>> [text.get_text() for text in axes.texts][:3]
        ['x0', 'x1', 'x2']
        """
        check_fitted(self)
        W, names, class_ = self._graph()
        if ax is None:
            from matplotlib import pyplot

            width, height = natural_size(W, names)
            shrunk = min(1.0, LARGEST / max(width, height))
            figure = pyplot.figure(figsize=(width * shrunk, height * shrunk))
            ax = figure.add_axes((0, 0, 1, 1))
        draw_graph(W, names, class_, ax)
        return ax

    def _repr_html_(self) -> str:
        """Before a fit what scikit-learn shows; then the graph, how far to trust it, its edges."""
        if not hasattr(self, "adjacency_matrix_"):
            return super()._repr_html_()
        picture = base64.b64encode(svg(draw_graph(*self._graph())).encode()).decode()
        table = self.edges_
        return (
            f"<div><p><code>{escape(repr(self))}</code></p><p>{escape(trust(table))}</p>"
            f'<img alt="The learned graph" style="max-width: 100%" '
            f'src="data:image/svg+xml;base64,{picture}">{_as_html(table)}</div>'
        )

    def _graph(self) -> tuple[Any, list[str], Any]:
        W = self.adjacency_matrix_
        return W.to_numpy(), [str(name) for name in W.columns], self.cpdag_.to_numpy()


def _with_attributes(own: str | None, shared: str | None) -> str | None:
    """A docstring with the section of attributes of another, before its examples."""
    if not own or not shared or ATTRIBUTES in own:
        return own
    section = shared[shared.index(ATTRIBUTES) :].rstrip()
    head, mark, examples = own.partition("    Examples\n")
    return f"{head.rstrip()}\n\n{section}\n\n{mark}{examples}"


def _as_html(table: pd.DataFrame) -> str:
    """The strongest edges; names are escaped, whatever they hold."""
    if table.empty:
        return ""
    lines = [
        f"<tr><td>{escape(printable(line.cause))} {'→' if line.directed else '—'} "
        f"{escape(printable(line.effect))}</td><td>{line.coefficient:.3g}</td>"
        f"<td>{escape(str(line.verdict))}</td></tr>"
        for line in table.head(MOST_EDGES).itertuples()
    ]
    more = len(table) - MOST_EDGES
    note = f"<p>and {more} more, all in <code>edges_</code></p>" if more > 0 else ""
    head = "<tr><th>edge</th><th>coefficient</th><th>verdict</th></tr>"
    return f"<table>{head}{''.join(lines)}</table>{note}"


class Answers(Shown):
    """What can be asked of an estimator once it is fitted."""

    adjacency_matrix_: pd.DataFrame
    categories_: dict[Any, tuple[Any, ...]]
    equations_: Equations
    noise_variance_: pd.Series

    def predict(self, X: "TableLike") -> pd.DataFrame:
        """Each variable of each row of X, from its parents there; one without parents, its mean.

        Examples
        --------
        >>> from rescore import Linear, simulate
        >>> X = simulate(nodes=3, degree=1, random_state=100).X
        >>> Linear().fit(X).predict(X.head(2)).shape
        (2, 3)
        """
        table = self._rows(X)
        names = self.adjacency_matrix_.columns
        return pd.DataFrame(self.equations_.predict(table.values), table.index, names)

    def score(
        self, X: "TableLike", y: object = None, sample_weight: "ArrayLike | None" = None
    ) -> float:
        """The mean over rows of ``Σ_j log N(x_j; x̂_j, σ_j²)``, best on rows not seen by the fit.

        ``x̂`` is what `predict` says and σ² is ``noise_variance_``; y is ignored, and so are
        columns that were constant in the fit.

        Examples
        --------
        >>> from rescore import Linear, simulate
        >>> X = simulate(nodes=3, degree=1, random_state=100).X
        >>> print(f"{Linear().fit(X[:1000]).score(X[1000:]):.0f}")
        -4
        """
        table = self._rows(X)
        w = prior_weights(sample_weight, len(table.values))
        noise = np.asarray(self.noise_variance_, dtype=np.float64)
        rows = log_likelihoods(self.equations_, noise, table.values)
        return float(w[w > 0] @ rows[w > 0])

    def effect(self, X: "TableLike", cause: Any, effect: Any, *, points: int = 50) -> pd.Series:
        """How ``effect`` depends on ``cause`` along their edge (partial dependence).

        The mean of what `predict` says of ``effect`` over the rows of X, with ``cause`` set to
        each of so many values between its least and its largest.  Without an edge it is constant.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from rescore import Linear
        >>> rain = np.random.default_rng(0).normal(size=500)
        >>> X = pd.DataFrame({"rain": rain, "grass": 2 * rain + rain[::-1]})
        >>> curve = Linear().fit(X).effect(X, "rain", "grass", points=3)
        >>> bool(np.allclose(np.diff(curve) / np.diff(curve.index), 2, atol=0.2))
        True
        """
        table = self._rows(X)
        i, j = (self._position(name) for name in (cause, effect))
        least, largest = table.values[:, i].min(), table.values[:, i].max()
        values = np.linspace(least, largest, check_integer("points", points, at_least=2))
        levels = self.categories_.get(cause)
        if levels is not None:
            values = np.arange(len(levels), dtype=np.float64)
        curve = partial_dependence(self.equations_, table.values, i, j, values)
        return pd.Series(curve, pd.Index(levels or values, name=cause), name=effect)

    def sample(self, n: int, *, random_state: int = 0) -> pd.DataFrame:
        """So many new rows from the fitted equations with Gaussian noise of ``noise_variance_``.

        Examples
        --------
        >>> from rescore import Linear, simulate
        >>> model = Linear().fit(simulate(nodes=3, degree=1, random_state=100).X)
        >>> model.sample(5).shape
        (5, 3)
        """
        return self.intervene({}, n, random_state=random_state)

    def intervene(
        self, do: Mapping[Any, float], n: int = 1000, *, random_state: int = 0
    ) -> pd.DataFrame:
        """New rows as `sample` gives them, with the variables in ``do`` set to their values.

        The same ``random_state`` gives the same individuals whatever is done to them.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from rescore import Linear
        >>> rain = np.random.default_rng(0).normal(size=500)
        >>> X = pd.DataFrame({"rain": rain, "grass": 2 * rain + rain[::-1]})
        >>> model = Linear().fit(X)
        >>> dry, wet = (model.intervene({"rain": value})["grass"].mean() for value in (0, 1))
        >>> bool(1.8 < wet - dry < 2.2), bool(model.intervene({"grass": 9})["rain"].mean() < 1)
        (True, True)
        """
        check_fitted(self)
        open_ = [name for name in self.categories_ if name not in do]
        if open_:
            raise ValueError(
                f"New rows need a level of the categories {listing(open_)}, which the model does "
                f"not draw: intervene({{{open_[0]!r}: {self.categories_[open_[0]][0]!r}}}, ...)."
            )
        fixed = {self._position(name): self._set(name, value) for name, value in do.items()}
        rng = np.random.default_rng(check_integer("random_state", random_state, at_least=0))
        W = self.adjacency_matrix_
        variance = np.asarray(self.noise_variance_, dtype=np.float64)
        count = check_integer("n", n, at_least=1)
        X = pd.DataFrame(
            draw(self.equations_, W.to_numpy(), variance, count, rng, fixed), columns=W.columns
        )
        for name in self.categories_:
            X[name] = do[name]
        return X

    def _rows(self, X: Any) -> Table:
        check_fitted(self)
        coded = numbered(X, self.categories_) if self.categories_ else X
        return rows_like(coded, tuple(self.adjacency_matrix_.columns), type(self).__name__)

    def _set(self, name: Any, value: Any) -> float:
        """The value of a variable as a number: of a category, which of its levels it is."""
        levels = self.categories_.get(name)
        if levels is None:
            return check_number(f"do[{name!r}]", value)
        return number_of(name, value, levels)

    def _position(self, name: Any) -> int:
        names = list(self.adjacency_matrix_.columns)
        if name not in names:
            raise ValueError(
                f"{listing([name])} is not among the variables of the fit: {listing(names)}."
            )
        return names.index(name)
