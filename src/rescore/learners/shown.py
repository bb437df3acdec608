"""How a fitted estimator shows itself: graph, edges and weights, a picture, HTML, and its help."""

import base64
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rescore.graph.drawing import draw_graph, natural_size, svg
from rescore.graph.io import to_networkx
from rescore.learners.parameters import Parametrised, check_fitted
from rescore.text import printable
from rescore.verdicts import edges, trust

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from networkx import DiGraph

ATTRIBUTES = "    Attributes\n    ----------\n"
MOST_EDGES = 15  # of the table in a notebook
LARGEST = 12.0  # inches, of a picture in a notebook


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
