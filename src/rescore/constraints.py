"""What the user knows about edges, as the masks every learner honours."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from rescore.graph import topological_order
from rescore.graph.paths import reachability
from rescore.moments import Matrix
from rescore.protocols import Mask
from rescore.text import listing, printable

Edges = Iterable[tuple[Hashable, Hashable]]


def edge_masks(
    names: Sequence[Hashable], forbidden: Edges | None = None, required: Edges | None = None
) -> tuple[Mask, Mask]:
    """``(allowed, required)``, each (d, d) with ``[i, j]`` for i → j, from pairs of names.

    Edges that would close a cycle with the required ones are not allowed either, so that a
    learner never has to choose between them.

    Examples
    --------
    >>> allowed, required = edge_masks(["a", "b"], required=[("a", "b")])
    >>> allowed
    array([[False,  True],
           [False, False]])
    """
    must = _mask(names, required, "required")
    must_not = _mask(names, forbidden, "forbidden")
    _refuse_contradictions(names, must, must_not)
    topological_order(must, list(names))  # raises for required edges that form a cycle
    closes_a_cycle = reachability(must).T
    return ~(must_not | closes_a_cycle | np.eye(len(names), dtype=bool)), must


def _mask(names: Sequence[Hashable], edges: Edges | None, word: str) -> Mask:
    position = {name: i for i, name in enumerate(names)}
    mask = np.zeros((len(names), len(names)), dtype=bool)
    for edge in edges if edges is not None else ():
        cause, effect = name_pair(edge, word)
        unknown = [name for name in (cause, effect) if name not in position]
        if unknown:
            raise ValueError(
                f"The {word} edges name {listing(unknown)}, which the data do not have; "
                f"the columns are {listing(names)}."
            )
        mask[position[cause], position[effect]] = True
    return mask


def receipts(
    names: Sequence[Hashable],
    W: Matrix,
    forbidden: Edges | None = None,
    required: Edges | None = None,
) -> list[dict[str, Any]]:
    """Each forbidden and required edge, and whether the graph ``W`` (d, d) obeys it.

    Examples
    --------
    >>> receipts(["a", "b"], np.array([[0, 2], [0, 0]]), forbidden=[("b", "a")])
    [{'constraint': 'b -> a forbidden', 'holds': True}]
    """
    position = {name: i for i, name in enumerate(names)}
    rules = [(edge, False, "forbidden") for edge in forbidden or ()]
    rules += [(edge, True, "required") for edge in required or ()]
    return [
        {
            "constraint": f"{cause} -> {effect} {word}",
            "holds": bool((W[position[cause], position[effect]] != 0) == there),
        }
        for (cause, effect), there, word in rules
    ]


def name_pair(edge: Any, word: str) -> tuple[Hashable, Hashable]:
    """``edge`` as (cause, effect); ``word`` says in the error which edges are meant.

    Examples
    --------
    >>> name_pair(["a", "b"], "forbidden")
    ('a', 'b')
    """
    if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
        raise TypeError(
            f"Each of the {word} edges must be a pair (cause, effect) of column names, "
            f"got {printable(repr(edge))}."
        )
    return edge[0], edge[1]


def _refuse_contradictions(names: Sequence[Hashable], must: Mask, must_not: Mask) -> None:
    both = [f"{names[i]} -> {names[j]}" for i, j in np.argwhere(must & must_not)]
    if both:
        raise ValueError(
            f"{listing(both)} is both required and forbidden. Remove it from one of the two."
        )
