"""Graphs as GraphML text, for Gephi, yEd and networkx."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from rescore.graph import as_square
from rescore.graph.edges import (
    Matrix,
    check_text_names,
    edges_of,
    escape_name,
    matrix_of,
    unescape_name,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["from_graphml", "to_graphml"]

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"


def to_graphml(W: ArrayLike, names: Sequence[str]) -> str:
    r"""The graph in GraphML, with ``label`` on the nodes and ``weight`` on the edges.

    The nodes are n0, n1, ...; their labels are the names, escaped by `escape_name`, since some
    characters, such as NUL, are not allowed in XML in any spelling.

    Examples
    --------
    >>> text = to_graphml([[0, 0.25], [0, 0]], ["a", "b\0"])
    >>> print(text.splitlines()[9])
          <data key="label">b\u0000</data>
    """
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    W = as_square(W)
    root = Element("graphml", xmlns=_NAMESPACE)
    for key, owner, kind in (("label", "node", "string"), ("weight", "edge", "double")):
        about = {"id": key, "for": owner, "attr.name": key, "attr.type": kind}
        SubElement(root, "key", about)
    graph = SubElement(root, "graph", id="rescore", edgedefault="directed")
    for i, name in enumerate(check_text_names(names, len(W))):
        node = SubElement(graph, "node", id=f"n{i}")
        SubElement(node, "data", key="label").text = escape_name(name)
    for i, j, weight in edges_of(W, range(len(W))):
        edge = SubElement(graph, "edge", source=f"n{i}", target=f"n{j}")
        SubElement(edge, "data", key="weight").text = repr(weight)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


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
    root = _parsed(text)
    graph = _the_graph(root)
    escaped = graph.get("id") == "rescore"
    ids, names = [], []
    for node in graph.iterfind(_tag("node")):
        label = _data(root, node, "label", "")
        ids.append(node.get("id", ""))
        names.append((unescape_name(label) if escaped else label) or ids[-1])
    edges = [_edge(root, edge) for edge in graph.iterfind(_tag("edge"))]
    return matrix_of(ids, edges), check_text_names(names)


def _tag(name: str) -> str:
    return f"{{{_NAMESPACE}}}{name}"


def _parsed(text: str) -> "Element":
    """The root of the document; the parser calls ``doctype`` before it reads any entity."""
    from xml.etree.ElementTree import ParseError, TreeBuilder, XMLParser

    class NoDoctype(TreeBuilder):
        def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
            raise ValueError("The GraphML declares a document type (DOCTYPE); remove it first.")

    parser = XMLParser(target=NoDoctype())
    try:
        parser.feed(text)
        return parser.close()
    except ParseError as error:
        raise ValueError(f"The text is not well-formed XML: {error}.") from None


def _the_graph(root: "Element") -> "Element":
    graphs = list(root.iter(_tag("graph")))
    if root.tag != _tag("graphml") or len(graphs) != 1:
        raise ValueError(f"GraphML must hold one graph in the usual namespace; got {len(graphs)}.")
    undirected = any(edge.get("directed") == "false" for edge in graphs[0].iter(_tag("edge")))
    if graphs[0].get("edgedefault") != "directed" or undirected:
        raise ValueError("The GraphML graph has undirected edges; every edge must be directed.")
    return graphs[0]


def _edge(root: "Element", edge: "Element") -> tuple[str, str, str]:
    return edge.get("source", ""), edge.get("target", ""), _data(root, edge, "weight", "1")


def _data(root: "Element", owner: "Element", wanted: str, otherwise: str) -> str:
    """What the node or edge says under the key whose attr.name is ``wanted``."""
    for key in root.iterfind(_tag("key")):
        kind = key.get("for") in ("all", owner.tag.rpartition("}")[2])
        if kind and key.get("attr.name") == wanted:
            otherwise = key.findtext(_tag("default"), otherwise)
            for data in owner.iterfind(_tag("data")):
                if data.get("key") == key.get("id"):
                    return data.text or ""
    return otherwise
