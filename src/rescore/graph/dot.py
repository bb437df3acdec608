"""Graphs as DOT text, the language of Graphviz."""

import re
from collections.abc import Sequence

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
from rescore.text import printable

__all__ = ["from_dot", "to_dot"]

_ID = r'"(?:[^"\\]|\\.)*"|\w+|-?[\d.]+'
_ATTRIBUTE = re.compile(rf"\s*(\w+)\s*=\s*({_ID})\s*[,;]?\s*")
_STATEMENT = re.compile(rf"({_ID})(?:\s*->\s*({_ID}))?\s*(?:\[(.*)\])?\s*;?")
_SETTING = re.compile(r"(?:(?:graph|node|edge)\s*\[.*\]|\w+\s*=.*|//.*|#.*)?")
_HEADER = re.compile(rf"(?:strict\s+)?digraph\s*({_ID})?\s*{{")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\\": "\\\\", '"': '\\"'}


def to_dot(W: ArrayLike, names: Sequence[str]) -> str:
    """The graph in DOT, with three digits of each weight drawn, and all in ``coefficient``.

    The nodes are n0, n1, ...; their labels are the names, escaped by `escape_name`.  The
    attribute ``weight`` is not used: Graphviz wants it whole and not negative.

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
        f'  n{i} -> n{j} [label="{weight:.3g}", coefficient="{weight!r}"];'
        for i, j, weight in edges_of(W, range(len(W)))
    ]
    return "\n".join(["digraph rescore {", *nodes, *edges, "}\n"])


def from_dot(text: str) -> tuple[Matrix, list[str]]:
    r"""The matrix and the names of a simple DOT graph: what `to_dot` writes, and little more.

    One node, or one edge ``a -> b``, a line, with attributes or without.  A node's name is its
    label if it has one.  Settings and comments on lines of their own are passed over; chains of
    edges, ports, subgraphs and undirected graphs are refused.  Without a ``coefficient`` the
    weight is 1.

    Examples
    --------
    >>> from_dot("digraph {\n a -> b\n}")
    (array([[0., 1.],
           [0., 0.]]), ['a', 'b'])
    """
    first, *lines = text.strip().split("\n")
    header = _HEADER.fullmatch(first.strip())
    if header is None or not lines or lines.pop().strip() != "}":
        raise ValueError("DOT text must begin with a line 'digraph {' and end with a line '}'.")
    names: dict[str, str] = {}
    edges = []
    for position, line in enumerate(lines, start=2):
        if _SETTING.fullmatch(line.strip()):
            continue
        source, target, attributes = _statement(line, position)
        names.setdefault(source, source)
        if target is not None:
            names.setdefault(target, target)
            edges.append((source, target, _unquoted(attributes.get("coefficient", "1"))))
        elif "label" in attributes:
            names[source] = _name(attributes["label"], ours=header[1] == "rescore")
    return matrix_of(names, edges), check_text_names(names.values())


def _statement(line: str, position: int) -> tuple[str, str | None, dict[str, str]]:
    """One node (then the second is None) or edge, with its attributes, still quoted."""
    statement = _STATEMENT.fullmatch(line.strip())
    if statement is None:
        raise ValueError(
            f"Line {position} is not a node, an edge 'a -> b' or a setting alone, which is all the "
            f"DOT that is read here: '{printable(line.strip())}'."
        )
    source, target, rest = statement.groups()
    attributes, start = {}, 0
    while rest and start < len(rest):
        attribute = _ATTRIBUTE.match(rest, start)
        if attribute is None:
            raise ValueError(f"Line {position} has attributes that are not name=value.")
        attributes[attribute[1]], start = attribute[2], attribute.end()
    return _unquoted(source), None if target is None else _unquoted(target), attributes


def _quotable(text: str) -> str:
    """Text to stand between quotes in a label, where Graphviz also reads HTML entities."""
    return "".join(_ENTITIES.get(character, character) for character in text)


def _unquoted(text: str) -> str:
    return text[1:-1].replace('\\"', '"') if text.startswith('"') else text


def _name(label: str, ours: bool) -> str:
    """The name in a label; only labels that `to_dot` wrote are known to be escaped."""
    if not ours:
        return _unquoted(label)
    characters = {escaped: character for character, escaped in _ENTITIES.items()}
    found = re.compile(r'\\\\|\\"|&(?:amp|lt|gt);')
    return unescape_name(found.sub(lambda match: characters[match[0]], label[1:-1]))
