"""CD-NOD as a backbone: causal-learn's tests and orientation rules, one step for all of it."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rescore.backbones.regressed import Found, Regressed, on_parents
from rescore.checking import check_number
from rescore.graph import cut_to_dag
from rescore.graph.equivalence import consistent_dag
from rescore.moments import Matrix
from rescore.protocols import Mask, Problem, State

FEWEST_SPARE_ROWS = 3  # beyond variables, surrogate included: what Fisher's z takes away
SINGULAR = 1e-10  # eigenvalue of a correlation matrix below which columns depend on one another
KEEP_EARLIER_COLLIDERS = 2  # causal-learn's number for it
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class CDNODBackbone(Regressed):
    """Constraint-based search with the group of a row as one more variable, a cause of others.

    Fisher-z tests at the level ``alpha`` remove edges, then unshielded colliders and Meek's rules
    orient what they can.  What they leave open is in the adjacency in both directions, the one
    that was not chosen with a strength next to nothing.

    Examples
    --------
    >>> from dataclasses import replace
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat([0, 1], 250)
    >>> x = rng.normal(size=500) + 3 * groups
    >>> problem = Problem.unconstrained(np.c_[x + rng.normal(size=500), x])
    >>> learner = CDNODBackbone()
    >>> state = learner.step(replace(problem, groups=groups), problem.prior, learner.init(problem))
    >>> print(learner.adjacency(state).round(1))
    [[0. 0.]
     [1. 0.]]
    """

    alpha: float = 0.05

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, above=0, below=1)

    def step(self, problem: Problem, w: Matrix, state: State) -> State:
        """Test, orient, and choose a DAG."""
        moments = problem.rows.moments(w)
        P = self._partial_graph(problem, w)
        A = _dag(P, moments.covariance)
        W = on_parents(moments.covariance, A)
        W[A & (W == 0)] = TINY
        return self._found(problem, w, moments, Found(W, moments.mean, P & ~A))

    def adjacency(self, state: State) -> Matrix:
        """The coefficients, and next to nothing where another direction is left open, (d, d)."""
        W, _, undecided = state.params
        return np.array(W) if undecided is None else np.where(undecided, TINY, W)

    def _partial_graph(self, problem: Problem, w: Matrix) -> Mask:
        """What causal-learn finds (d, d), [i, j] and [j, i] both for an edge without direction."""
        used = _tested_columns(problem)
        rows = _repeated_rows(problem, w)
        X = np.column_stack([problem.rows.values[:, used], _surrogate(problem)])[rows]
        _refuse_untestable(X)
        ends = _search(X.astype(np.float64), self.alpha)[:-1, :-1]
        points_back = (ends == 1) & (ends.T == -1)
        P = np.zeros((len(problem.allowed),) * 2, dtype=bool)
        P[np.ix_(used, used)] = (ends != 0) & ~points_back
        return P


def _search(X: Matrix, alpha: float) -> NDArray[Any]:
    """causal-learn's graph: [i, j] is the mark at i of the edge i, j; -1 a tail, 1 an arrowhead.

    The steps of its ``cdnod``, which has a progress bar that cannot be turned off.
    """
    cit, skeletons, colliders, meek = _causal_learn()
    found = skeletons.skeleton_discovery(X, alpha, cit.CIT(X, cit.fisherz), show_progress=False)
    surrogate = found.G.nodes[-1]
    for node in found.G.get_adjacent_nodes(surrogate):
        found.G.add_directed_edge(surrogate, node)
    found = colliders.uc_sepset(found, KEEP_EARLIER_COLLIDERS)
    return np.array(meek.meek(found).G.graph)


def _causal_learn() -> tuple[Any, ...]:
    with warnings.catch_warnings():  # importing it changes the caller's warning filters
        warnings.simplefilter("ignore")
        try:
            from causallearn.utils import cit
            from causallearn.utils.PCUtils import Meek, SkeletonDiscovery, UCSepset
        except ImportError as error:
            raise ImportError(
                'CD-NOD needs causal-learn, which is missing: pip install "rescore[causal-learn]".'
            ) from error
    return cit, SkeletonDiscovery, UCSepset, Meek


def _dag(P: Mask, S: Matrix) -> Mask:
    """A DAG with the skeleton, directed edges and v-structures of P, if there is one.

    If there is none, undirected edges point at the wider variable unless that closes a cycle, and
    of directed edges that close one the last is left out.  Wider variables come first.
    """
    order = np.argsort(-np.diag(S), kind="stable")
    P = P[np.ix_(order, order)]
    try:
        A = consistent_dag(P) != 0
    except ValueError:
        to_wider = np.tri(len(P), k=-1, dtype=bool)
        strength = np.where(P & ~P.T, 3, np.where(to_wider, 2, 1)) * P
        A = cut_to_dag(strength)[0] != 0
    back = np.argsort(order)
    return A[np.ix_(back, back)]


def _tested_columns(problem: Problem) -> NDArray[np.intp]:
    """The columns that vary; others have no edge.  Knowledge about edges has no place here."""
    used = np.asarray(problem.allowed.any(axis=0))
    free = np.outer(used, used)
    np.fill_diagonal(free, False)
    if problem.required.any() or (problem.allowed != free).any():
        raise ValueError(
            "CD-NOD cannot honour forbidden or required edges; leave them out, or use a learner "
            "such as Linear or GES."
        )
    return np.flatnonzero(used)


def _surrogate(problem: Problem) -> NDArray[np.intp]:
    if problem.groups is None or problem.groups.max() < 1:
        raise ValueError("CD-NOD learns from differences between groups: name two groups or more.")
    return problem.groups


def _repeated_rows(problem: Problem, w: Matrix) -> NDArray[np.intp]:
    """Each row as often as it was there before equal ones were merged."""
    n = len(w)
    counts = problem.prior * (n if problem.count is None else problem.count)
    if not np.array_equal(w, problem.prior) or np.abs(counts - np.round(counts)).max() > 1e-6:
        raise ValueError(
            "CD-NOD cannot weigh rows: fit it without sample_weight, and not with the row weights "
            "of ReScore."
        )
    return np.repeat(np.arange(n), np.round(counts).astype(int))


def _refuse_untestable(X: Matrix) -> None:
    n, columns = X.shape
    if n < columns + FEWEST_SPARE_ROWS:
        raise ValueError(
            f"CD-NOD's tests need at least {columns + FEWEST_SPARE_ROWS} rows for {columns - 1} "
            f"variables, got {n}."
        )
    R = np.atleast_2d(np.corrcoef(X, rowvar=False))
    if np.linalg.eigvalsh(R).min() < SINGULAR:
        raise ValueError(
            "CD-NOD's tests need columns of which none, nor the number of the group, is a linear "
            "combination of others. Drop such columns."
        )
