"""Greedy equivalence search (Chickering 2002) on the Gaussian BIC of a correlation matrix.

States are CPDAGs; sets of nodes are as in `node_sets`.  A move joins or parts i and j, and
gains what it adds to the BIC, ``−n/2·log(1 − ρ²) − ½ log n`` with ρ the correlation of i and j
given the other parents of j.  First moves that join, then moves that part, the best one each time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.backbones.node_sets import as_sets, cliques, is_clique, members
from rescore.graph import cpdag
from rescore.graph.equivalence import consistent_dag
from rescore.moments import Matrix
from rescore.protocols import Mask

Graph = NDArray[np.int8]  # (d, d), partially directed as in `rescore.graph`
NEGLIGIBLE = 1e-12  # share of a variance below which a column is a combination of others
RIDGE = 1e-10  # trace of noise added to correlations
LEAST_GAIN = 1e-6  # of the log-likelihood, below which a difference is rounding


@dataclass(frozen=True, eq=False)
class Gains:
    """By how much an edge raises the BIC, remembered.  At most ``most_parents`` of a node.

    Examples
    --------
    >>> gains = Gains(np.array([[1.0, 0.5], [0.5, 1.0]]), rows=100.0, most_parents=1)
    >>> round(gains.given(1, 0)[0], 3)  # of 0 → 1, node 1 without other parents
    12.082
    """

    R: Matrix  # (d, d) correlations
    rows: float
    most_parents: int
    known: dict[tuple[int, int], list[float]] = field(default_factory=dict)

    def given(self, j: int, others: int) -> list[float]:
        """The gain of i → j for every i, where the other parents of j are ``others``."""
        if (j, others) not in self.known:
            self.known[j, others] = self._computed(j, members(others)).tolist()
        return self.known[j, others]

    def _computed(self, j: int, others: list[int]) -> Matrix:
        R = self.R
        among = R[np.ix_(others, others)] + RIDGE * np.eye(len(others))
        explained = np.linalg.solve(among, R[others])  # (k, d)
        with_j = R[j] - R[others, j] @ explained
        left = np.maximum(1 - np.einsum("kd,kd->d", R[others], explained), NEGLIGIBLE)
        unexplained = np.maximum(1 - np.square(with_j) / (left * left[j]), NEGLIGIBLE)
        return -(self.rows * np.log(unexplained) + np.log(self.rows)) / 2


class Links(NamedTuple):
    """For every node of a CPDAG, sets of other nodes."""

    neighbours: list[int]  # joined to it by an undirected edge
    parents: list[int]
    adjacent: list[int]
    onward: list[int]  # where an edge leads that does not point back


class Move(NamedTuple):
    """Join or part i and j, with the edges of j to ``turned`` directed by it."""

    gain: float
    i: int
    j: int
    turned: int
    kept: int  # parents that j has, in the DAG where this is a single edge i → j


Moves = Callable[[Links, Gains, list[int]], Iterator[Move]]


def equivalence_search(
    R: Matrix, rows: float, allowed: Mask, required: Mask, most_parents: int
) -> Mask:
    """A DAG (d, d) of the best class found, of those with a DAG that the two masks (d, d) admit.

    Of several DAGs in the class, the first node that can be a sink is one, and so on.

    Examples
    --------
    >>> R = np.array([[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]])  # x0 and x2 are apart
    >>> free, nothing = ~np.eye(3, dtype=bool), np.zeros((3, 3), dtype=bool)
    >>> equivalence_search(R, 100.0, free, nothing, most_parents=2).astype(int)
    array([[0, 1, 0],
           [0, 0, 0],
           [0, 1, 0]])
    """
    gains = Gains(R, rows, most_parents)
    joinable = as_sets(allowed | allowed.T)
    P, dag = cpdag(required), required
    for moves, applied in ((_insertions, _joined), (_deletions, _parted)):
        while (found := _best(P, gains, joinable, moves, applied, allowed, required)) is not None:
            P, dag = found
    return dag


def _best(
    P: Graph,
    gains: Gains,
    joinable: list[int],
    moves: Moves,
    applied: Callable[[Graph, Move], Graph],
    allowed: Mask,
    required: Mask,
) -> tuple[Graph, Mask] | None:
    """The class after the best valid move with a DAG that the masks admit, and that DAG."""
    links = _links(P)
    worthwhile = (move for move in moves(links, gains, joinable) if move.gain > LEAST_GAIN)
    # Rounded, so that the order of equals is that of the nodes, not of rounding.
    for move in sorted(worthwhile, key=lambda m: (-round(m.gain / LEAST_GAIN), m[1:])):
        if moves is _insertions and _leads(links.onward, move):
            continue
        better = cpdag(consistent_dag(applied(P, move)))
        dag = _admitted(better, allowed, required)
        if dag is not None:
            return better, dag
    return None


def _insertions(links: Links, gains: Gains, joinable: list[int]) -> Iterator[Move]:
    """Edges i → j between nodes apart, with any neighbours of j turned into further parents."""
    for j in range(len(joinable)):
        around = links.neighbours[j]
        for i in members(joinable[j] & ~links.adjacent[j]):
            common = around & links.adjacent[i]
            if not is_clique(common, links.adjacent):
                continue
            candidates = around & ~links.adjacent[i]
            for k in members(common):
                candidates &= links.adjacent[k]
            for turned in cliques(candidates, links.adjacent):
                kept = common | turned | links.parents[j]
                if kept.bit_count() < gains.most_parents:
                    yield Move(gains.given(j, kept)[i], i, j, turned, kept)


def _deletions(links: Links, gains: Gains, joinable: list[int]) -> Iterator[Move]:
    """Edges i → j and i - j to take out, with any common neighbours turned into their effects."""
    for j in range(len(joinable)):
        for i in members(links.neighbours[j] | links.parents[j]):
            common = links.neighbours[j] & links.adjacent[i]
            for clique in cliques(common, links.adjacent):
                kept = (clique | links.parents[j]) & ~(1 << i)
                yield Move(-gains.given(j, kept)[i], i, j, common ^ clique, kept)


def _joined(P: Graph, move: Move) -> Graph:
    P = P.copy()
    P[move.i, move.j] = 1
    P[move.j, members(move.turned)] = 0
    return P


def _parted(P: Graph, move: Move) -> Graph:
    P = P.copy()
    P[move.i, move.j] = P[move.j, move.i] = 0
    P[members(move.turned), move.j] = P[members(move.turned), move.i] = 0
    return P


def _admitted(P: Graph, allowed: Mask, required: Mask) -> Mask | None:
    """A DAG of the class ``P`` with allowed edges only and all required ones, if there is any."""
    if (required & (P == 0)).any():
        return None
    try:
        dag = consistent_dag(P * (allowed & ~required.T))
    except ValueError:
        return None
    return dag != 0 if np.array_equal(cpdag(dag), P) else None


def _leads(onward: list[int], move: Move) -> bool:
    """Whether a path leads from j to i around the nodes kept: the new edge could close a cycle."""
    reached = frontier = 1 << move.j
    while frontier:
        beyond = 0
        for node in members(frontier):
            beyond |= onward[node]
        frontier = beyond & ~reached & ~move.kept
        reached |= frontier
    return bool(reached >> move.i & 1)


def _links(P: Graph) -> Links:
    A = P != 0
    return Links(as_sets(A & A.T), as_sets((A & ~A.T).T), as_sets(A | A.T), as_sets(A))
