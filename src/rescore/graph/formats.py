"""Named graphs as text in JSON, DOT and GraphML, and the checks that every format shares.

A writer is given the matrix of a DAG, and may be given the class it is a member of (``cpdag``):
then it says of every edge whether its direction is known or open.

Every reader and writer of graphs, those of CSV and DAGitty too, passes through `check_names`,
`edges_of` and `matrix_of`, so that duplicate names, NaN weights and the like are refused in one
place, whatever the format.
"""

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rescore.graph.dag import as_square, open_edges
from rescore.text import listing, printable

__all__ = [
    "Matrix",
    "NamedEdge",
    "attributed",
    "check_names",
    "check_text_names",
    "edges_of",
    "escape_name",
    "from_graphml",
    "from_json",
    "matrix_of",
    "number",
    "to_dot",
    "to_graphml",
    "to_json",
    "unescape_name",
]

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\\": "\\\\", '"': '\\"'}  # in a DOT label
_OURS = "rescore"  # the name of a GraphML graph whose labels are escaped

Matrix = NDArray[np.float64]
NamedEdge = tuple[Any, Any, float, bool]  # from, to, weight, and whether its direction is known


def to_json(W: ArrayLike, names: Sequence[str], cpdag: ArrayLike | None = None) -> str:
    """The graph as a JSON object: ``nodes``, and ``edges`` with from, to, weight and directed.

    Examples
    --------
    >>> to_json([[0, 0.5], [0, 0]], ["a", "b"], cpdag=[[0, 1], [1, 0]])
    '{"nodes": ["a", "b"], "edges": [{"from": "a", "to": "b", "weight": 0.5, "directed": false}]}'
    """
    names = check_text_names(names, len(as_square(W)))
    parts = ("from", "to", "weight", "directed")
    edges = [dict(zip(parts, edge, strict=True)) for edge in edges_of(W, names, cpdag)]
    return json.dumps({"nodes": names, "edges": edges})


def from_json(text: str) -> tuple[Matrix, list[str]]:
    """The matrix and the names of a graph in JSON, as `to_json` writes it; the DAG, not its class.

    Examples
    --------
    >>> from_json('{"nodes": ["a", "b"], "edges": [{"from": "a", "to": "b", "weight": 0.5}]}')
    (array([[0. , 0.5],
           [0. , 0. ]]), ['a', 'b'])
    """
    try:
        graph = json.loads(text)
        names = list(graph["nodes"])
        edges = [(edge["from"], edge["to"], edge.get("weight", 1)) for edge in graph["edges"]]
        for value in (*names, *(end for edge in edges for end in edge[:2])):
            hash(value)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(
            "A graph in JSON is {'nodes': [names], 'edges': [{'from': name, 'to': name, 'weight': "
            f"number}}]}}; this text is not ({type(error).__name__}: {error})."
        ) from None
    return matrix_of(check_text_names(names), edges), names


def to_dot(W: ArrayLike, names: Sequence[str], cpdag: ArrayLike | None = None) -> str:
    """The graph in DOT, with three digits of each weight drawn, and all in ``coefficient``.

    The nodes are n0, n1, ...; their labels are the names, escaped by `escape_name`.  The
    attribute ``weight`` is not used: Graphviz wants it whole and not negative.  An edge whose
    direction is open has ``dir=none`` and is drawn without a head.

    Examples
    --------
    >>> print(to_dot([[0, 0.25], [0, 0]], ["a", "b"]), end="")
    digraph rescore {
      n0 [label="a"];
      n1 [label="b"];
      n0 -> n1 [label="0.25", coefficient="0.25"];
    }
    """
    W = as_square(W)
    labels = [_quotable(escape_name(name)) for name in check_text_names(names, len(W))]
    nodes = [f'  n{i} [label="{label}"];' for i, label in enumerate(labels)]
    edges = [
        f'  n{i} -> n{j} [label="{weight:.3g}", coefficient="{weight!r}"'
        + ("];" if directed else ", dir=none];")
        for i, j, weight, directed in edges_of(W, range(len(W)), cpdag)
    ]
    return "\n".join(["digraph rescore {", *nodes, *edges, "}\n"])


def to_graphml(W: ArrayLike, names: Sequence[str], cpdag: ArrayLike | None = None) -> str:
    r"""The graph in GraphML, for Gephi, yEd and networkx: labelled nodes, and edges with a weight.

    The nodes are n0, n1, ...; their labels are the names, escaped by `escape_name`, since some
    characters, such as NUL, are not allowed in XML in any spelling.  Whether the direction of an
    edge is known is its data ``directed``; the graph itself is the DAG, because few programs read
    directed and undirected edges in one file.

    Examples
    --------
    >>> "<data key=\"label\">b\\u0000</data>" in to_graphml([[0, 0.25], [0, 0]], ["a", "b\0"])
    True
    """
    from networkx import DiGraph, generate_graphml

    W = as_square(W)
    labels = [escape_name(name) for name in check_text_names(names, len(W))]
    G = DiGraph(name=_OURS)
    G.add_nodes_from((f"n{i}", {"label": label}) for i, label in enumerate(labels))
    G.add_edges_from(attributed(edges_of(W, list(G), cpdag)))
    return "\n".join(generate_graphml(G, named_key_ids=True)) + "\n"


def from_graphml(text: str) -> tuple[Matrix, list[str]]:
    """The matrix and the names of one directed graph in GraphML.

    A node's name is its label if it has one, else its id; an edge without a weight weighs 1.  A
    document type, and so any entity, is refused: a file from elsewhere is data.

    Examples
    --------
    >>> from_graphml(to_graphml([[0, 0.25], [0, 0]], ["a", "b"]))
    (array([[0.  , 0.25],
           [0.  , 0.  ]]), ['a', 'b'])
    """
    from networkx import NetworkXError, parse_graphml

    ids = _declared_nodes(text)
    try:
        G = parse_graphml(text)
    except (NetworkXError, KeyError, ValueError) as error:
        raise ValueError(f"networkx cannot read the GraphML: {printable(error, 200)}") from None
    if not G.is_directed():
        raise ValueError("The GraphML graph has undirected edges; every edge must be directed.")
    labels = [str(G.nodes[node].get("label") or node) for node in ids]
    names = [unescape_name(label) for label in labels] if G.graph.get("name") == _OURS else labels
    return matrix_of(ids, G.edges(data="weight", default=1.0)), check_text_names(names)


def check_names(names: Iterable[Hashable], d: int | None = None) -> list[Any]:
    """The names as a list, after checking that they differ and that there are ``d`` of them.

    Examples
    --------
    >>> check_names(["a", "a"])
    Traceback (most recent call last):
    ValueError: Node names must differ, but 'a' occur(s) more than once. Rename the duplicates.
    """
    every = list(names)
    if d is not None and len(every) != d:
        raise ValueError(f"A graph of {d} node(s) needs as many names; got {len(every)}.")
    twice = [name for name, count in Counter(every).items() if count > 1]
    if twice:
        raise ValueError(
            f"Node names must differ, but {listing(twice)} occur(s) more than once. "
            "Rename the duplicates."
        )
    return every


def check_text_names(names: Iterable[Hashable], d: int | None = None) -> list[str]:
    """The same for a text format, where a name must also be text that can be encoded.

    Examples
    --------
    >>> check_text_names(["a", ""])
    Traceback (most recent call last):
    ValueError: Node 1 has an empty name; give every node one.
    """
    every = check_names(names, d)
    for position, name in enumerate(every):
        if not isinstance(name, str):
            raise TypeError(f"In a file a node's name is text; node {position} has {name!r:.60}.")
        if not name:
            raise ValueError(f"Node {position} has an empty name; give every node one.")
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise ValueError(
                f"The name '{printable(name)}' holds half of a surrogate pair, which no file can; "
                "rename the node."
            )
    return every


def edges_of(
    W: ArrayLike, names: Sequence[Any], cpdag: ArrayLike | None = None
) -> Iterator[NamedEdge]:
    """Each edge as (from, to, weight, directed), row by row.

    ``directed`` is false where the class ``cpdag`` leaves the direction open; without a class
    every edge points as W says.

    Examples
    --------
    >>> list(edges_of([[0, 0.5], [0, 0]], ["a", "b"]))
    [('a', 'b', 0.5, True)]
    """
    W = as_square(W)
    left_open = open_edges(W, cpdag)
    for i, j in np.argwhere(W != 0).tolist():
        yield names[i], names[j], float(W[i, j]), not left_open[i, j]


def attributed(edges: Iterable[NamedEdge]) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """The edges as networkx takes them, with ``weight`` and ``directed`` as their attributes.

    Examples
    --------
    >>> list(attributed([("a", "b", 0.5, True)]))
    [('a', 'b', {'weight': 0.5, 'directed': True})]
    """
    for source, target, weight, directed in edges:
        yield source, target, {"weight": weight, "directed": directed}


def matrix_of(names: Iterable[Hashable], edges: Iterable[tuple[Any, Any, Any]]) -> Matrix:
    """The matrix of these edges, from row to column.

    Examples
    --------
    >>> matrix_of(["a", "b"], [("b", "a", 2)])
    array([[0., 0.],
           [2., 0.]])
    """
    position = {name: i for i, name in enumerate(check_names(names))}
    W = np.zeros((len(position), len(position)))
    for source, target, weight in edges:
        where = f"the edge '{printable(source)}' -> '{printable(target)}'"
        if source not in position or target not in position:
            raise ValueError(f"There is {where}, but not both of its ends are among the nodes.")
        i, j = position[source], position[target]
        if W[i, j] != 0:
            raise ValueError(f"The file or graph holds {where} twice; keep one of them.")
        W[i, j] = number(weight, where)
        if W[i, j] == 0:
            raise ValueError(f"The weight of {where} is 0, which means no edge; leave it out.")
    return W


def number(value: Any, where: str) -> float:
    """A finite float from a number or its text; ``where`` it stands goes into the error.

    Examples
    --------
    >>> number("1e-3", "row 1")
    0.001
    >>> number("0,5", "line 2")
    Traceback (most recent call last):
    ValueError: The weight of line 2 must be a finite number such as 0.5; got '0,5'.
    """
    try:
        if isinstance(value, bool | np.bool_) or "_" in str(value):  # float() would take 1_0
            raise ValueError
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        result = float("nan")
    if not isfinite(result):
        raise ValueError(
            f"The weight of {where} must be a finite number such as 0.5; got '{printable(value)}'."
        )
    return result


def escape_name(name: str) -> str:
    r"""The name in visible characters only, in a way that `unescape_name` can undo.

    A backslash is doubled; control characters, line breaks, direction marks and whatever else
    cannot be seen, or is not legal in XML, are written as JSON does.

    Examples
    --------
    >>> print(escape_name("a\nb\\c\N{RIGHT-TO-LEFT OVERRIDE}"))
    a\u000ab\\c\u202e
    """
    return "".join(c if c.isprintable() and c != "\\" else _escape(c) for c in name)


def unescape_name(text: str) -> str:
    r"""The name that `escape_name` was given.

    Examples
    --------
    >>> unescape_name(r"a\u000ab\\u0000")
    'a\nb\\u0000'
    """
    escapes = r"\\\\|(?:\\u[0-9a-f]{4})+"  # a run, since JSON writes some characters as a pair
    return re.sub(escapes, lambda match: json.loads(f'"{match[0]}"'), text)


def _escape(character: str) -> str:
    pair = character.encode("utf-16-be").hex()
    halves = (pair[i : i + 4] for i in range(0, len(pair), 4))
    return "\\\\" if character == "\\" else "".join(f"\\u{half}" for half in halves)


def _quotable(text: str) -> str:
    """Text to stand between quotes in a label, where Graphviz also reads HTML entities."""
    return "".join(_ENTITIES.get(character, character) for character in text)


def _declared_nodes(text: str) -> list[str]:
    """The ids of the nodes in their order.

    What networkx would pass over is refused: a second graph, a node declared twice, and before
    anything is parsed a document type, whose entities could grow without end.
    """
    from xml.etree.ElementTree import ParseError, fromstring

    if "<!DOCTYPE" in text:
        raise ValueError("The GraphML declares a document type (DOCTYPE); remove it first.")
    try:
        tags = [(element.tag.rpartition("}")[2], element) for element in fromstring(text).iter()]
    except ParseError as error:
        raise ValueError(f"The text is not well-formed XML: {error}.") from None
    graphs = sum(tag == "graph" for tag, _ in tags)
    if graphs != 1:
        raise ValueError(f"GraphML must hold one graph; got {graphs}.")
    return check_text_names(element.get("id", "") for tag, element in tags if tag == "node")
