"""Graphs as DAGitty text, ``dag { ... }``, which dagitty.net and the R package dagitty read."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rescore.graph import as_square, topological_order
from rescore.graph.dagitty_statements import STRING, read_statements, unquoted
from rescore.graph.edges import (
    Matrix,
    check_text_names,
    edges_of,
    escape_name,
    matrix_of,
    unescape_name,
)

__all__ = ["from_dagitty", "to_dagitty"]

_BAREWORD = re.compile(r"[0-9a-zA-Z_.]+")
_HEADER = re.compile(rf"\s*(?:strict\s+)?dag\s*(?:({STRING}|[0-9a-zA-Z_.]+)\s*)?{{", re.IGNORECASE)
_TAKEN = ("graph", "node")  # names that DAGitty keeps for itself, quoted or not
_OURS = "rescore"  # the name of a graph some of whose names had to be escaped


def to_dagitty(W: ArrayLike, names: Sequence[str], coefficients: bool = True) -> str:
    """The DAG in DAGitty's language; ``[beta=...]``, its path coefficients, only if they are such.

    ``beta`` is what `simulateSEM` of the R package reads, with ``standardized=FALSE`` for
    coefficients in the units of the data.  The names are written as they are, in quotes where
    DAGitty wants them.  What its quotes cannot hold (line breaks, backslashes, and the names graph
    and node) is escaped as in JSON, and the graph is then called rescore.

    Examples
    --------
    >>> print(to_dagitty([[0, 0.25], [0, 0]], ["rain", "wet grass"]), end="")
    dag {
    rain
    "wet grass"
    rain -> "wet grass" [beta=0.25]
    }
    """
    W = as_square(W)
    plain = check_text_names(names, len(W))
    topological_order(W, plain)  # DAGitty itself would not notice a cycle
    escaped = [_escaped(name) for name in plain]
    ids = [name if _BAREWORD.fullmatch(name) else _quoted(name) for name in escaped]
    edges = [
        f"{source} -> {target}" + (f" [beta={_positional(weight)}]" if coefficients else "")
        for source, target, weight in edges_of(W, ids)
    ]
    return "\n".join(["dag {" if escaped == plain else f"dag {_OURS} {{", *ids, *edges, "}\n"])


def from_dagitty(text: str) -> tuple[Matrix, list[str]]:
    """The matrix and the names of a DAG in DAGitty's language.

    Chains ``a -> b <- c``, groups ``{a b} -> c``, and attributes are read; of these only ``beta``
    counts, and an edge without one weighs 1.  Edges that are not one arrow (``<->``, ``--``, ``@``)
    and latent variables are refused, because a matrix of observed variables cannot hold them.

    Examples
    --------
    >>> from_dagitty("dag { a -> b <- c [beta=0.5] }")
    (array([[0. , 0.5, 0. ],
           [0. , 0. , 0. ],
           [0. , 0.5, 0. ]]), ['a', 'b', 'c'])
    """
    header = _HEADER.match(text)
    if header is None:
        raise ValueError("DAGitty text must begin with 'dag {'; other kinds of graph are not read.")
    nodes, edges = read_statements(text, header.end())
    ours = header[1] is not None and unquoted(header[1]) == _OURS
    names = [unescape_name(name) if ours else name for name in nodes]
    return matrix_of(nodes, edges), check_text_names(names)


def _escaped(name: str) -> str:
    """The name in what DAGitty's quotes can hold; there a backslash must not come last."""
    text = escape_name(name).replace("\\\\", "\\u005c")
    return f"\\u{ord(text[0]):04x}{text[1:]}" if text in _TAKEN else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def _positional(weight: float) -> str:
    """All digits and no exponent, whose sign DAGitty could not read outside quotes."""
    return np.format_float_positional(weight, unique=True, trim="0")
