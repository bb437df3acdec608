"""Graphs to and from networkx and files; the text formats come from modules of their own.

Every ``to_`` writer takes (W, names), every ``from_`` reader returns them.  What was written here
reads back the same, every name and every weight exactly, whatever the names contain; DOT, a
picture, is only written.  Those that can say that a direction is open take the class ``cpdag`` of
the DAG too; they still read back as the DAG, but for DAGitty, whose file is then the class.
"""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from numpy.typing import ArrayLike

from rescore.graph.csv import (
    DIRECTIONS,
    csv_header,
    from_adjacency,
    from_edge_list,
    is_edge_list,
    to_adjacency,
    to_edge_list,
)
from rescore.graph.dag import as_square
from rescore.graph.dagitty import from_dagitty, to_dagitty
from rescore.graph.formats import (
    Matrix,
    attributed,
    check_names,
    edges_of,
    from_graphml,
    from_json,
    matrix_of,
    to_dot,
    to_graphml,
    to_json,
)
from rescore.staging import write_whole
from rescore.text import listing

if TYPE_CHECKING:
    from networkx import DiGraph

__all__ = [
    "from_dagitty",
    "from_edge_list",
    "from_graphml",
    "from_json",
    "from_networkx",
    "read_graph",
    "to_dagitty",
    "to_dot",
    "to_edge_list",
    "to_graphml",
    "to_json",
    "to_networkx",
    "write_adjacency",
]


def to_networkx(
    W: ArrayLike, names: Sequence[Hashable], cpdag: ArrayLike | None = None
) -> "DiGraph":
    """The graph as networkx.DiGraph: all nodes in order, ``weight`` and ``directed`` on the edges.

    ``directed`` is false where the class ``cpdag`` leaves the direction open; the edge is there
    once, as W has it.

    Examples
    --------
    >>> to_networkx([[0, 0.5], [0, 0]], ["a", "b"]).edges(data="weight")
    OutEdgeDataView([('a', 'b', 0.5)])
    """
    from networkx import DiGraph

    G = DiGraph()
    G.add_nodes_from(check_names(names, len(as_square(W))))
    G.add_edges_from(attributed(edges_of(W, list(G), cpdag)))
    return G


def from_networkx(
    G: "DiGraph", names: Sequence[Hashable] | None = None
) -> tuple[Matrix, list[Any]]:
    """The matrix of a networkx.DiGraph, in the order of ``names`` or else of its nodes.

    An edge without a ``weight`` weighs 1.

    Examples
    --------
    >>> import networkx as nx
    >>> from_networkx(nx.DiGraph([("b", "a")]), names=["a", "b"])
    (array([[0., 0.],
           [1., 0.]]), ['a', 'b'])
    """
    if not G.is_directed() or G.is_multigraph():
        raise TypeError(f"A causal graph is a networkx.DiGraph; got {type(G).__name__}.")
    names = check_names(G if names is None else names)
    odd = set(names) ^ set(G)
    if odd:
        raise ValueError(f"{listing(odd)} must be both a node of the graph and among the names.")
    return matrix_of(names, G.edges(data="weight", default=1.0)), names


READERS = {
    ".json": from_json,
    ".graphml": from_graphml,
    ".dagitty": from_dagitty,
    ".txt": from_dagitty,
}


def read_graph(path: str | Path, edge_direction: str | None = None) -> pd.DataFrame:
    r"""The graph in a file, as a square table from row to column with the names on both sides.

    The suffix decides: .json, .graphml, .dagitty (or .txt, as dagitty.net saves it); in .csv and
    .tsv a header ``from,to[,weight]`` makes an edge list, any other an adjacency matrix.  For a
    matrix without ``from\to`` in its corner say ``edge_direction="from row to column"`` or
    ``"from column to row"``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "g.csv")
    ...     _ = path.write_text("from,to,weight\na,b,0.5\n")
    ...     read_graph(path)
         a    b
    a  0.0  0.5
    b  0.0  0.0
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (*READERS, ".csv", ".tsv"):
        raise ValueError(
            f"A graph file ends in .csv, .tsv, .json, .graphml or .dagitty; got {path}."
        )
    try:
        text = _text(path)
        if suffix in READERS:
            _refuse_contradiction(edge_direction)
            W, names = READERS[suffix](text)
        else:
            W, names = _from_csv(text, "\t" if suffix == ".tsv" else ",", edge_direction)
    except ValueError as error:
        raise ValueError(f"Cannot read {path.name}. {error}") from None
    return pd.DataFrame(W, index=names, columns=names)


def write_adjacency(path: str | Path, frame: pd.DataFrame) -> None:
    r"""Write a square table, from row to column, to CSV, or to TSV if the path ends in .tsv.

    The corner cell reads ``from\to``, so that `read_graph` needs no edge direction.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> frame = pd.DataFrame([[0, 1], [0, 0]], index=["a", "b"], columns=["a", "b"])
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "g.csv")
    ...     write_adjacency(path, frame)
    ...     path.read_text().splitlines()
    ['from\\to,a,b', 'a,0,1.0', 'b,0,0']
    """
    if list(frame.index) != list(frame.columns):
        raise ValueError("The rows and the columns of a graph must have the same names in order.")
    delimiter = "\t" if Path(path).suffix.lower() == ".tsv" else ","
    text = to_adjacency(frame.to_numpy(), list(frame.columns), delimiter)
    write_whole(Path(path), text.encode())


def _text(path: Path) -> str:
    """The file as text, its line ends as they are, because names may hold some."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"It is not UTF-8 text ({error.reason} at byte {error.start}).") from None


def _refuse_contradiction(edge_direction: str | None) -> None:
    if edge_direction not in (None, DIRECTIONS[0]):
        raise ValueError(
            f"The file names both ends of each edge; leave edge_direction out (got "
            f"{edge_direction!r})."
        )


def _from_csv(text: str, delimiter: str, edge_direction: str | None) -> tuple[Matrix, list[str]]:
    if is_edge_list(csv_header(text, delimiter)):
        _refuse_contradiction(edge_direction)
        return from_edge_list(text, delimiter)
    return from_adjacency(text, edge_direction, delimiter)
