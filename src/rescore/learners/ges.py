"""GES: greedy equivalence search (Chickering 2002) on the Gaussian BIC, one step for all of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.fitting import BY_CLASS
from rescore.graph.dag import consistent_dag, cpdag
from rescore.learners.base import LinearLearner, Unpenalised
from rescore.learners.straight_lines import Regressed
from rescore.moments import Matrix, Moments
from rescore.protocols import Backbone, Mask, Problem
from rescore.validation import check_integer

ROWS_PER_PARENT = 10  # fewer of them, and likelihoods of large families mean nothing
DIGITS = 9  # to which two variances must agree to be called equal
Graph = NDArray[np.int8]  # (d, d), partially directed as in `rescore.graph`
NEGLIGIBLE = 1e-12  # share of a variance below which a column is a combination of others
RIDGE = 1e-10  # trace of noise added to correlations
LEAST_GAIN = 1e-6  # of the log-likelihood, below which a difference is rounding


@dataclass(eq=False, repr=False)
class GES(Unpenalised, LinearLearner):
    """Greedy equivalence search (Chickering 2002) on the Gaussian BIC.

    It searches among classes of DAGs that fit linear Gaussian data equally well, so the units do
    not matter, and which way an edge points is known only where ``cpdag_`` says so; elsewhere
    ``adjacency_matrix_`` points at the variable of larger variance, of equal ones at the earlier
    column, where the class allows it.
    The BIC is that of the weighted covariance and the effective number of rows.  Weights of cells
    count as the weights of their rows: a variable of its own weights would make the members of
    a class fit differently well, and a search among classes has no use for that.

    Parameters
    ----------
    max_parents : int, optional
        Of a variable, at most; None is one for every ten effective rows.
    standardize : bool
        Coefficients for columns of deviation one.  The class found is the same.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.  The search keeps
        to classes with a DAG that satisfies them.
    max_steps : int
        Searches at most, where row weights move between them.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain, tap = rng.normal(size=(2, 500))
    >>> grass = rain + tap + rng.normal(size=500)
    >>> mud = grass + rng.normal(size=500)
    >>> model = GES().fit(pd.DataFrame({"mud": mud, "rain": rain, "tap": tap, "grass": grass}))
    >>> model.cpdag_
           mud  rain  tap  grass
    mud      0     0    0      0
    rain     0     0    0      1
    tap      0     0    0      1
    grass    1     0    0      0
    """

    one_step = True
    directions = BY_CLASS

    max_parents: int | None = None

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return self._filled(GESBackbone)


@dataclass(frozen=True)
class GESBackbone(Regressed):
    """Greedy equivalence search on the Gaussian BIC of the weighted moments.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(2, 500))
    >>> problem = Problem.unconstrained(np.c_[x + y + rng.normal(size=500), x, y])
    >>> learner = GESBackbone()
    >>> state = learner.step(problem, problem.prior, learner.init(problem))
    >>> print(learner.adjacency(state).round(1))
    [[0. 0. 0.]
     [1. 0. 0.]
     [1. 0. 0.]]
    """

    max_parents: int | None = None

    def __post_init__(self) -> None:
        if self.max_parents is not None:
            check_integer("max_parents", self.max_parents, at_least=1)

    def graph(self, problem: Problem, w: Matrix, moments: Moments) -> Mask:
        """A DAG of the class found; the search knows no order of the columns but this one."""
        S, d = moments.covariance, len(moments.mean)
        order = _widest_first(S, problem)
        block = np.ix_(order, order)
        deviations = np.sqrt(np.diag(S)[order])
        A = np.zeros((d, d), dtype=bool)
        A[block] = equivalence_search(
            S[block] / np.outer(deviations, deviations),
            problem.effective_rows(w),
            problem.allowed[block],
            problem.required[block],
            self._most_parents(problem, w),
        )
        return A

    def objective(self, problem: Problem, w: Matrix, S: Matrix, W: Matrix) -> float:
        """Minus the BIC of the graph, from the weighted moments and the effective rows."""
        B = np.eye(len(S)) - W
        noise = np.einsum("ij,ij->j", B, S @ B)[np.diag(S) > 0]
        noise = np.maximum(noise, np.finfo(float).tiny)
        rows, parameters = problem.effective_rows(w), len(noise) + np.count_nonzero(W)
        return float(rows * (1 + np.log(noise)).sum() + parameters * np.log(rows)) / 2

    def _most_parents(self, problem: Problem, w: Matrix) -> int:
        if self.max_parents is not None:
            return self.max_parents
        return max(1, int(problem.effective_rows(w) / ROWS_PER_PARENT))


def _widest_first(S: Matrix, problem: Problem) -> NDArray[np.intp]:
    """Variables that may have an edge, the largest variance first; equals by their columns.

    The search takes the first possible sink, so undirected edges point at the wider end.
    """
    used = problem.allowed.any(axis=0) | problem.allowed.any(axis=1)
    columns = np.flatnonzero(used & (np.diag(S) > 0))
    return columns[np.argsort(-np.round(np.log(np.diag(S)[columns]), DIGITS), kind="stable")]


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
