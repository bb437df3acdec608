"""Sets of nodes as the bits of whole numbers: node k is in a set if its bit k is one."""

from collections.abc import Iterator

import numpy as np

from rescore.protocols import Mask


def as_sets(M: Mask) -> list[int]:
    """Each row of a matrix (d, d) as a set.

    Examples
    --------
    >>> as_sets(np.array([[False, True], [True, True]]))
    [2, 3]
    """
    packed = np.packbits(M, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def members(nodes: int) -> list[int]:
    """The nodes of a set, in order.

    Examples
    --------
    >>> members(0b1101)
    [0, 2, 3]
    """
    found = []
    while nodes:
        lowest = nodes & -nodes
        found.append(lowest.bit_length() - 1)
        nodes ^= lowest
    return found


def is_clique(nodes: int, adjacent: list[int]) -> bool:
    """Whether all nodes are adjacent to one another, given the nodes adjacent to each.

    Examples
    --------
    >>> path = [0b010, 0b101, 0b010]
    >>> is_clique(0b011, path), is_clique(0b101, path)
    (True, False)
    """
    return all(nodes & ~adjacent[k] == 1 << k for k in members(nodes))


def cliques(candidates: int, adjacent: list[int]) -> Iterator[int]:
    """Every set of candidates that are adjacent to one another, first the empty one.

    Examples
    --------
    >>> [members(clique) for clique in cliques(0b111, [0b010, 0b101, 0b010])]
    [[], [0], [0, 1], [1], [1, 2], [2]]
    """
    yield 0
    while candidates:
        lowest = candidates & -candidates
        candidates ^= lowest
        for rest in cliques(candidates & adjacent[lowest.bit_length() - 1], adjacent):
            yield lowest | rest
