"""The statements of DAGitty's language, between the braces of ``dag { ... }``."""

import re
from collections.abc import Iterator

from rescore.text import listing, printable

__all__ = ["STRING", "read_statements", "unquoted"]

STRING = r'"(?:\\"|[^"\\\x00-\x1f\x7f]|\\(?!"))*"'
_TOKENS = re.compile(
    rf"(?P<space>[\s;]+)|(?P<string>{STRING})|(?P<arrow><->|->|<-@|<-|@->|--@|--|@-@|@--)"
    r"|(?P<word>-?[0-9a-zA-Z_.]+)|(?P<sign>[{}\[\]=,])"
)
_HIDDEN = {"latent", "l", "unobserved", "u"}

Token = tuple[str, str, int]  # kind, text and line
Edge = tuple[str, str, str]  # cause, effect and weight, still text


def read_statements(text: str, start: int) -> tuple[list[str], list[Edge]]:
    """The nodes and the edges of what follows the opening brace, up to the end of the text.

    Examples
    --------
    >>> read_statements('dag { a -> "b c" }', 5)
    (['a', 'b c'], [('a', 'b c', '1')])
    """
    reader = _Reader(list(_tokens(text, start)))
    try:
        reader.statements()
    except RecursionError:
        raise ValueError("The text has too many braces inside each other.") from None
    if reader.kind() != "end":
        raise ValueError(f"Line {reader.line()} goes on after the '}}' that ends the graph.")
    return list(reader.nodes), reader.edges


def unquoted(text: str) -> str:
    r"""A name or a value without its quotes; a backslash counts only before a quote.

    Examples
    --------
    >>> unquoted(r'"a \"b\" \c"')
    'a "b" \\c'
    """
    return text[1:-1].replace('\\"', '"') if text.startswith('"') else text


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

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at = tokens, 0
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
            causes, effects = (left, right) if arrow == "->" else (right, left)
            beta = attributes.get("beta", "1")
            self.edges += [(cause, effect, beta) for cause in causes for effect in effects]
        return [name for end in ends for name in end]

    def end(self) -> list[str]:
        """One end of an edge: a name, or the names in braces."""
        if self.kind() == "{":
            self.at += 1
            return self.statements()
        name = unquoted(self.take("name", "{"))
        self.nodes.setdefault(name)
        return [name]

    def arrow(self) -> str:
        arrow = self.take("arrow")
        if arrow not in ("->", "<-"):
            raise ValueError(f"Line {self.line()} has {arrow}; every edge must be -> or <-.")
        return arrow

    def attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.kind() == "[":
            self.at += 1
            while self.kind() != "]":
                key, value = unquoted(self.take("name", "]")), ""
                if self.kind() == "=":
                    self.at += 1
                    value = unquoted(self.take("name"))
                found[key] = value
                if self.kind() == ",":
                    self.at += 1
            self.at += 1
        return found
