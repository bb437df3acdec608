"""What the user knows about edges, as the masks every learner honours."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from rescore.graph import topological_order
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
    closes_a_cycle = _reachability(must).T
    return ~(must_not | closes_a_cycle | np.eye(len(names), dtype=bool)), must


def _mask(names: Sequence[Hashable], edges: Edges | None, word: str) -> Mask:
    position = {name: i for i, name in enumerate(names)}
    mask = np.zeros((len(names), len(names)), dtype=bool)
    for edge in edges if edges is not None else ():
        cause, effect = _pair(edge, word)
        unknown = [name for name in (cause, effect) if name not in position]
        if unknown:
            raise ValueError(
                f"The {word} edges name {listing(unknown)}, which the data do not have; "
                f"the columns are {listing(names)}."
            )
        mask[position[cause], position[effect]] = True
    return mask


def _pair(edge: Any, word: str) -> tuple[Hashable, Hashable]:
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


def _reachability(A: Mask) -> Mask:
    """``[i, j]`` where a directed path leads from i to j, by repeated squaring."""
    reach = A.copy()
    while True:
        further = reach | (reach.astype(float) @ reach.astype(float) > 0)
        if (further == reach).all():
            return reach
        reach = further
