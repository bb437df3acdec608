"""Graphs as DAGitty text, which dagitty.net and the R package dagitty read.

A DAG is ``dag { ... }``; a class of DAGs, some of whose edges ``a -- b`` have no direction, is
``pdag { ... }``.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rescore.graph.dag import as_square, topological_order
from rescore.graph.formats import (
    Matrix,
    check_text_names,
    edges_of,
    escape_name,
    matrix_of,
    unescape_name,
)
from rescore.text import listing, printable

__all__ = ["from_dagitty", "to_dagitty"]

_STRING = r'"(?:\\"|[^"\\\x00-\x1f\x7f]|\\(?!"))*"'
_BAREWORD = re.compile(r"[0-9a-zA-Z_.]+")
_HEADER = re.compile(
    rf"\s*(?:strict\s+)?(p?dag)\s*(?:({_STRING}|[0-9a-zA-Z_.]+)\s*)?{{", re.IGNORECASE
)
_TOKENS = re.compile(
    rf"(?P<space>[\s;]+)|(?P<string>{_STRING})|(?P<arrow><->|->|<-@|<-|@->|--@|--|@-@|@--)"
    r"|(?P<word>-?[0-9a-zA-Z_.]+)|(?P<sign>[{}\[\]=,])"
)
_ARROWS = {"dag": ("->", "<-"), "pdag": ("->", "<-", "--")}  # that each kind of graph may have
_TAKEN = ("graph", "node")  # names that DAGitty keeps for itself, quoted or not
_HIDDEN = {"latent", "l", "unobserved", "u"}
_OURS = "rescore"  # the name of a graph some of whose names had to be escaped

Token = tuple[str, str, int]  # kind, text and line
Edge = tuple[str, str, str]  # cause, effect and weight, still text


def to_dagitty(
    W: ArrayLike,
    names: Sequence[str],
    coefficients: bool = True,
    cpdag: ArrayLike | None = None,
) -> str:
    """The DAG in DAGitty's language; ``[beta=...]``, its path coefficients, only if they are such.

    ``beta`` is what `simulateSEM` of the R package reads, with ``standardized=FALSE`` for
    coefficients in the units of the data.  The names are written as they are, in quotes where
    DAGitty wants them.  What its quotes cannot hold (line breaks, backslashes, and the names graph
    and node) is escaped as in JSON, and the graph is then called rescore.

    If its class ``cpdag`` leaves directions open, the text is that of the class: ``pdag``, with
    ``a -- b`` for these edges and without coefficients, which belong to one DAG of it only.

    Examples
    --------
    >>> print(to_dagitty([[0, 0.25], [0, 0]], ["rain", "wet grass"]), end="")
    dag {
    rain
    "wet grass"
    rain -> "wet grass" [beta=0.25]
    }
    >>> to_dagitty([[0, 0.25], [0, 0]], ["a", "b"], cpdag=[[0, 1], [1, 0]]).split()
    ['pdag', '{', 'a', 'b', 'a', '--', 'b', '}']
    """
    W = as_square(W)
    plain = check_text_names(names, len(W))
    topological_order(W, plain)  # DAGitty itself would not notice a cycle
    escaped = [_escaped(name) for name in plain]
    ids = [name if _BAREWORD.fullmatch(name) else _quoted(name) for name in escaped]
    edges = list(edges_of(W, ids, cpdag))
    kind = "dag" if all(directed for *_, directed in edges) else "pdag"
    weighted = coefficients and kind == "dag"
    lines = [
        f"{source} {'->' if directed else '--'} {target}"
        + (f" [beta={_positional(weight)}]" if weighted else "")
        for source, target, weight, directed in edges
    ]
    first = f"{kind} {{" if escaped == plain else f"{kind} {_OURS} {{"
    return "\n".join([first, *ids, *lines, "}\n"])


def from_dagitty(text: str) -> tuple[Matrix, list[str]]:
    """The matrix and the names of a DAG, or of a class of DAGs, in DAGitty's language.

    Chains ``a -> b <- c``, groups ``{a b} -> c``, and attributes are read; of these only ``beta``
    counts, and an edge without one weighs 1.  In a ``pdag`` the edge ``a -- b`` is in the matrix in
    both directions.  Other edges that are not one arrow (``<->``, ``@``) and latent variables are
    refused, because a matrix of observed variables cannot hold them.

    Examples
    --------
    >>> from_dagitty("dag { a -> b <- c [beta=0.5] }")
    (array([[0. , 0.5, 0. ],
           [0. , 0. , 0. ],
           [0. , 0.5, 0. ]]), ['a', 'b', 'c'])
    """
    header = _HEADER.match(text)
    if header is None:
        raise ValueError(
            "DAGitty text must begin with 'dag {' or 'pdag {'; other kinds of graph are not read."
        )
    nodes, edges = _read_statements(text, header.end(), _ARROWS[header[1].lower()])
    ours = header[2] is not None and _unquoted(header[2]) == _OURS
    names = [unescape_name(name) if ours else name for name in nodes]
    return matrix_of(nodes, edges), check_text_names(names)


def _escaped(name: str) -> str:
    """The name in what DAGitty's quotes can hold; there a backslash must not come last."""
    text = escape_name(name).replace("\\\\", "\\u005c")
    return f"\\u{ord(text[0]):04x}{text[1:]}" if text in _TAKEN else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def _unquoted(text: str) -> str:
    """A name or a value without its quotes; a backslash counts only before a quote."""
    return text[1:-1].replace('\\"', '"') if text.startswith('"') else text


def _positional(weight: float) -> str:
    """All digits and no exponent, whose sign DAGitty could not read outside quotes."""
    return np.format_float_positional(weight, unique=True, trim="0")


def _read_statements(
    text: str, start: int, arrows: tuple[str, ...]
) -> tuple[list[str], list[Edge]]:
    """The nodes and the edges of what follows the opening brace, up to the end of the text."""
    reader = _Reader(list(_tokens(text, start)), arrows)
    try:
        reader.statements()
    except RecursionError:
        raise ValueError("The text has too many braces inside each other.") from None
    if reader.kind() != "end":
        raise ValueError(f"Line {reader.line()} goes on after the '}}' that ends the graph.")
    return list(reader.nodes), reader.edges


def _tokens(text: str, start: int) -> Iterator[Token]:
    line = 1 + text.count("\n", 0, start)
    while start < len(text):
        token = _TOKENS.match(text, start)
        if token is None:
            raise ValueError(
                f"Line {line} has '{printable(text[start : start + 20])}', which is no part of "
                "DAGitty's language."
            )
        if token.lastgroup != "space":
            yield str(token.lastgroup), token[0], line
        line, start = line + token[0].count("\n"), token.end()
    yield "end", "", line


class _Reader:
    """Statements one after the other, by recursive descent; the nodes and edges found so far."""

    def __init__(self, tokens: list[Token], arrows: tuple[str, ...]) -> None:
        self.tokens, self.at = tokens, 0
        self.arrows = arrows  # that may stand between nodes
        self.nodes: dict[str, None] = {}  # in the order of their first occurrence
        self.edges: list[Edge] = []

    def kind(self, ahead: int = 0) -> str:
        """The kind of a token; a sign is its own kind, and words and strings are both names."""
        kind, text, _ = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        return text if kind == "sign" else "name" if kind in ("word", "string") else kind

    def line(self) -> int:
        return self.tokens[min(self.at, len(self.tokens) - 1)][2]

    def take(self, *kinds: str) -> str:
        """The text of the next token, which must be of one of these kinds."""
        if self.kind() not in kinds:
            text = self.tokens[self.at][1] or "the end"
            raise ValueError(
                f"Line {self.line()} has '{printable(text)}' where {' or '.join(kinds)} should be."
            )
        self.at += 1
        return self.tokens[self.at - 1][1]

    def statements(self) -> list[str]:
        """All statements up to the closing brace, and the nodes that occur in them."""
        found: list[str] = []
        while self.kind() != "}":
            if self.kind() == "name" and self.kind(1) == "=":  # a setting, such as bb="0,0,1,1"
                self.at += 2
                self.take("name")
            else:
                found += self.statement()
        self.take("}")
        return list(dict.fromkeys(found))

    def statement(self) -> list[str]:
        """A node or a group, or a chain of edges between such."""
        line, ends, arrows = self.line(), [self.end()], []
        while self.kind() == "arrow":
            arrows.append(self.arrow())
            ends.append(self.end())
        attributes = self.attributes()
        if not arrows and _HIDDEN & attributes.keys():
            raise ValueError(
                f"Line {line} says that {listing(ends[0])} is not observed; only graphs of "
                "observed variables are read here."
            )
        if "beta" in attributes and any(len(end) != 1 for end in ends):
            raise ValueError(f"Line {line} has one beta for a group; write edge by edge.")
        for arrow, left, right in zip(arrows, ends, ends[1:], strict=False):
            beta = attributes.get("beta", "1")
            if arrow != "<-":
                self.edges += [(cause, effect, beta) for cause in left for effect in right]
            if arrow != "->":
                self.edges += [(cause, effect, beta) for cause in right for effect in left]
        return [name for end in ends for name in end]

    def end(self) -> list[str]:
        """One end of an edge: a name, or the names in braces."""
        if self.kind() == "{":
            self.at += 1
            return self.statements()
        name = _unquoted(self.take("name", "{"))
        self.nodes.setdefault(name)
        return [name]

    def arrow(self) -> str:
        arrow = self.take("arrow")
        if arrow not in self.arrows:
            allowed = " or ".join(self.arrows)
            raise ValueError(f"Line {self.line()} has {arrow}; every edge must be {allowed} here.")
        return arrow

    def attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.kind() == "[":
            self.at += 1
            while self.kind() != "]":
                key, value = _unquoted(self.take("name", "]")), ""
                if self.kind() == "=":
                    self.at += 1
                    value = _unquoted(self.take("name"))
                found[key] = value
                if self.kind() == ",":
                    self.at += 1
            self.at += 1
        return found
