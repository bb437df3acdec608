"""Graphs to and from networkx, CSV and files; the other text formats have modules of their own.

Every ``to_`` writer takes (W, names), every ``from_`` reader returns them.  What was written here
reads back the same, every name and every weight exactly, whatever the names contain; DOT, a
picture, is only written.  Those that can say that a direction is open take the class ``cpdag`` of
the DAG too; they still read back as the DAG, but for DAGitty, whose file is then the class.

In CSV a cell is data and nothing else: names are quoted, never altered, even if one reads
``=cmd()``.
"""

import csv
import io
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rescore.graph.dag import as_square
from rescore.graph.dagitty import from_dagitty, to_dagitty
from rescore.graph.formats import (
    Matrix,
    attributed,
    check_names,
    check_text_names,
    edges_of,
    from_graphml,
    from_json,
    matrix_of,
    number,
    to_dot,
    to_graphml,
    to_json,
)
from rescore.staging import write_whole
from rescore.text import from_cell, listing, to_cell
from rescore.validation import reads_as_number

if TYPE_CHECKING:
    from networkx import DiGraph

__all__ = [
    "from_adjacency",
    "from_dagitty",
    "from_edge_list",
    "from_graphml",
    "from_json",
    "from_networkx",
    "read_graph",
    "to_adjacency",
    "to_dagitty",
    "to_dot",
    "to_edge_list",
    "to_graphml",
    "to_json",
    "to_networkx",
    "write_adjacency",
]
READERS = {
    ".json": from_json,
    ".graphml": from_graphml,
    ".dagitty": from_dagitty,
    ".txt": from_dagitty,
}
CORNER = "from\\to"  # top left in our own matrices: the file itself says which way edges point
DIRECTIONS = ("from row to column", "from column to row")
Row = tuple[int, list[str]]  # the line where it ends, and its cells


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


def to_edge_list(W: ArrayLike, names: Sequence[str], delimiter: str = ",") -> str:
    """CSV text with the columns from, to, weight.

    If the edges alone would not give all names in their order, rows with nothing but a name
    under ``from`` come first.

    Examples
    --------
    >>> print(to_edge_list([[0, 0.5], [0, 0]], ["a", "b"]), end="")
    from,to,weight
    a,b,0.5
    """
    W = as_square(W)
    names = check_text_names(names, len(W))
    edges = [(source, target, repr(weight)) for source, target, weight, _ in edges_of(W, names)]
    mentioned = list(dict.fromkeys(end for edge in edges for end in edge[:2]))
    nodes = [] if mentioned == names else [(name, "", "") for name in names]
    return _csv([("from", "to", "weight"), *nodes, *edges], delimiter)


def from_edge_list(text: str, delimiter: str = ",") -> tuple[Matrix, list[str]]:
    r"""The matrix and the names of an edge list; without a column weight, every edge weighs 1.

    Examples
    --------
    >>> from_edge_list("from,to\na,b\nc,\n")
    (array([[0., 1., 0.],
           [0., 0., 0.],
           [0., 0., 0.]]), ['a', 'b', 'c'])
    """
    (_, header), *rows = _rows(text, delimiter)
    if not is_edge_list(header):
        raise ValueError(f"An edge list starts with 'from,to,weight'; got {listing(header)}.")
    edges, nodes = [], []
    for line, cells in rows:
        if len(cells) != len(header) or not cells[0]:
            raise ValueError(f"Line {line} must have {len(header)} fields, the first not empty.")
        nodes.append(cells[0])
        if any(cells[1:]):
            nodes.append(cells[1])
            edges.append((cells[0], cells[1], cells[2] if len(cells) == 3 else 1.0))
    names = check_text_names(dict.fromkeys(nodes))
    return matrix_of(names, edges), names


def to_adjacency(W: ArrayLike, names: Sequence[str], delimiter: str = ",") -> str:
    r"""CSV text of the whole matrix, with the names on both sides and ``from\to`` in the corner.

    Examples
    --------
    >>> print(to_adjacency([[0, 0.5], [0, 0]], ["a", "b"]), end="")
    from\to,a,b
    a,0,0.5
    b,0,0
    """
    W = as_square(W)
    names = check_text_names(names, len(W))
    cells = [[repr(float(w)) if w != 0 else "0" for w in row] for row in W.tolist()]
    rows = [[name, *row] for name, row in zip(names, cells, strict=True)]
    return _csv([[CORNER, *names], *rows], delimiter)


def from_adjacency(
    text: str, edge_direction: str | None = None, delimiter: str = ","
) -> tuple[Matrix, list[str]]:
    r"""The matrix, from row to column, and the names of an adjacency matrix with a header.

    The rows may start with their name.  Without ``from\to`` in the corner nobody can see which
    way the edges point, and ``edge_direction`` has to say it.

    Examples
    --------
    >>> from_adjacency("a,b\n0,1\n0,0\n", edge_direction="from column to row")
    (array([[0., 0.],
           [1., 0.]]), ['a', 'b'])
    """
    (_, header), *rows = _rows(text, delimiter)
    flip = _points_to_row(header, edge_direction)
    header, row_names, cells = _parts(header, rows)
    names = check_text_names(header)
    W = np.array(cells, dtype=float).reshape(len(names), len(names))
    if row_names is not None:
        W = W[_order(check_text_names(row_names), names)]
    return W.T if flip else W, names


def is_edge_list(header: Sequence[str]) -> bool:
    """Whether a CSV header is that of an edge list.

    Examples
    --------
    >>> is_edge_list(["from", "to", "weight"]), is_edge_list(["a", "b"])
    (True, False)
    """
    return list(header) in (["from", "to"], ["from", "to", "weight"])


def csv_header(text: str, delimiter: str = ",") -> list[str]:
    r"""The cells of the first line.

    Examples
    --------
    >>> csv_header("a,b\n0,1\n")
    ['a', 'b']
    """
    return _rows(text, delimiter)[0][1]


def _csv(rows: Iterable[Sequence[str]], delimiter: str) -> str:
    """The line ends are CR LF while quoting, so that a name holding either is quoted."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter, lineterminator="\r\n").writerows(
        [to_cell(cell) for cell in row] for row in rows
    )
    return buffer.getvalue()


def _rows(text: str, delimiter: str) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = [(reader.line_num, list(map(from_cell, cells))) for cells in reader if cells]
    except csv.Error as error:
        raise ValueError(f"Line {reader.line_num} is not CSV: {error}.") from None
    if not rows:
        raise ValueError("The file is empty; a graph file starts with a header of names.")
    return rows


def _points_to_row(header: list[str], edge_direction: str | None) -> bool:
    """Whether the matrix has to be transposed."""
    stated = header[0] == CORNER
    direction = DIRECTIONS[0] if stated and edge_direction is None else edge_direction
    if direction not in DIRECTIONS or (stated and direction != DIRECTIONS[0]):
        raise ValueError(
            f"The file {'says' if stated else 'does not say'} which way its edges point; "
            f"edge_direction is {edge_direction!r} but must be '{DIRECTIONS[0]}'"
            + ("." if stated else f" (W[i, j] is i -> j) or '{DIRECTIONS[1]}'.")
        )
    return direction == DIRECTIONS[1]


def _parts(
    header: list[str], rows: list[Row]
) -> tuple[list[str], list[str] | None, list[list[float]]]:
    """The column names, the row names if there are any, and the numbers."""
    stated = header[0] == CORNER
    d, width = len(rows), len(rows[0][1]) if rows else len(header) if stated else 0
    named = width == d + 1 and len(header) in (d, d + 1)
    if not named and (stated or not width == d == len(header)):
        raise ValueError(_not_square(header, d, width))
    if all(reads_as_number(name) for name in header):
        raise ValueError("The first line holds only numbers; put the names of the nodes there.")
    for line, cells in rows:
        if len(cells) != width:
            raise ValueError(f"Line {line} has {len(cells)} fields where others have {width}.")
    numbers = [
        [number(cell, f"field {k} on line {line}") for k, cell in enumerate(cells[named:], 1)]
        for line, cells in rows
    ]
    return header[len(header) - d :], [cells[0] for _, cells in rows] if named else None, numbers


def _not_square(header: list[str], d: int, width: int) -> str:
    guess = next((mark for mark in ";\t|," if len(header) == 1 and mark in header[0]), None)
    return (
        f"An adjacency matrix has as many rows as columns under a header of names; got {d} row(s) "
        f"of {width} field(s) under {len(header)} name(s)."
        + (
            f" Is {guess!r} the delimiter? Only commas in .csv and tabs in .tsv are."
            if guess
            else ""
        )
    )


def _order(row_names: list[str], names: list[str]) -> list[int]:
    """For each column the row of the same name."""
    strangers = [name for name in row_names if name not in set(names)]
    if strangers:
        raise ValueError(
            f"The rows {listing(strangers)} have no column of the same name; the columns are "
            f"{listing(names)}."
        )
    position = {name: i for i, name in enumerate(row_names)}
    return [position[name] for name in names]
