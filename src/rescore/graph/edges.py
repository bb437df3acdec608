"""A graph as a list of named edges, checked on the way in and on the way out.

Every reader and writer of graphs passes through here, so that duplicate names, NaN weights and
the like are refused in one place, whatever the format.
"""

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rescore.graph import as_square
from rescore.text import listing, printable

__all__ = [
    "check_names",
    "check_text_names",
    "edges_of",
    "escape_name",
    "matrix_of",
    "number",
    "unescape_name",
]

Matrix = NDArray[np.float64]


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


def edges_of(W: ArrayLike, names: Sequence[Any]) -> Iterator[tuple[Any, Any, float]]:
    """Each edge as (from, to, weight), row by row.

    Examples
    --------
    >>> list(edges_of([[0, 0.5], [0, 0]], ["a", "b"]))
    [('a', 'b', 0.5)]
    """
    W = as_square(W)
    for i, j in np.argwhere(W != 0).tolist():
        yield names[i], names[j], float(W[i, j])


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
