"""CD-NOD: causal-learn's tests and orientation rules, one step for all of it."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.algorithm import Record
from rescore.fitting import Fitted
from rescore.graph.dag import consistent_dag, cut_to_dag
from rescore.learners.base import GroupedLearner, InnerPlayer, Unpenalised
from rescore.learners.estimator import check_fitted
from rescore.learners.straight_lines import Found, Regressed, on_parents
from rescore.moments import Matrix, Weights, row_weights
from rescore.protocols import Backbone, Mask, Problem, State
from rescore.tables.findings import Finding
from rescore.text import listing
from rescore.validation import check_number
from rescore.weight_box import prior_weights

FEWEST_SPARE_ROWS = 3  # beyond variables, surrogate included: what Fisher's z takes away
SINGULAR = 1e-10  # eigenvalue of a correlation matrix below which columns depend on one another
KEEP_EARLIER_COLLIDERS = 2  # causal-learn's number for it
TINY = float(np.finfo(float).tiny)


@dataclass(eq=False, repr=False)
class CDNOD(Unpenalised, GroupedLearner):
    """CD-NOD (Huang and others 2020) by causal-learn: groups of rows tell causes from effects.

    The number of a row's group joins the variables as a cause that nothing else causes; Fisher-z
    tests remove edges, colliders and Meek's rules orient the others.  It needs causal-learn,
    ``pip install "rescore[causal-learn]"``.  Rows cannot have different weights.  The tests see
    straight lines only, also along the groups' numbers, which follow their first rows: put groups
    that differ by degrees in that order.

    What is found is in ``partial_graph_``.  Undirected edges, also listed in
    ``diagnostics_["undirected_edges"]``, are directed in ``adjacency_matrix_`` without adding a
    cycle or a collider; where no such DAG exists they point at the variable of larger variance,
    and edges that close a cycle are cut.

    Parameters
    ----------
    alpha : float
        Level of the tests.
    standardize : bool
        Coefficients for columns of deviation one.  The graph found is the same.
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Refused where they rule anything out: the tests know no such edges.
    max_steps : int
        Of no matter here: the tests are one step.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> place = np.repeat(["dry", "wet"], 250)
    >>> rain = rng.normal(size=500) + 3 * (place == "wet")
    >>> X = pd.DataFrame({"grass": rain + rng.normal(size=500), "rain": rain})
    >>> CDNOD().fit(X, groups=place).partial_graph_
           grass  rain
    grass      0     0
    rain       1     0
    """

    one_step = True
    weighs_rows = False

    alpha: float = 0.05

    @property
    def partial_graph_(self) -> pd.DataFrame:
        """What was found (d, d): 1 at [a, b] for a → b, at [b, a] too for a - b."""
        check_fitted(self)
        P = (self.adjacency_matrix_ != 0).astype(np.int8)
        for edge in self.diagnostics_["undirected_edges"]:
            P.loc[edge["to"], edge["from"]] = 1
        for edge in self.diagnostics_["removed_edges"]:
            P.loc[edge["from"], edge["to"]] = 1
        return P

    def _learn(
        self,
        X: Any,
        sample_weight: Any,
        player: InnerPlayer,
        on_step: Callable[[Record], Any] | None,
        groups: Any = None,
    ) -> Fitted:
        if sample_weight is not None:
            w = prior_weights(sample_weight, max(np.size(sample_weight), 1))
            if np.ptp(w[w > 0]) > 1e-9 * w.max():
                raise ValueError("CD-NOD cannot weigh rows: fit it without sample_weight.")
        return super()._learn(X, sample_weight, player, on_step, groups)

    def _store(self, X: Any, fitted: Fitted) -> Self:
        """Tell edges without direction from edges that were cut, as the algorithm does not."""
        result, names = fitted.result, fitted.table.names
        undirected = [(j, i) for i, j, _ in result.removed if result.W[j, i] != 0]
        cut = tuple((i, j, 0.0) for i, j, _ in result.removed if result.W[j, i] == 0)
        told = tuple(finding for finding in fitted.findings if finding.code != "cycle_cut")
        if cut:
            edges = listing([f"{names[i]} -> {names[j]}" for i, j, _ in cut])
            told += (Finding("cycle_cut", f"Cut because they closed a cycle: {edges}."),)
        try:
            return super()._store(
                X, replace(fitted, result=replace(result, removed=cut), findings=told)
            )
        finally:  # also where a warning is an error, or after Ctrl-C: what was reached is kept
            self.history_["edges"] = int((result.W != 0).sum())  # an undirected one counts once
            self.diagnostics_["undirected_edges"] = [
                {"from": names[i], "to": names[j]} for i, j in sorted(undirected)
            ]

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return self._filled(CDNODBackbone)


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

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """Test, orient, and choose a DAG."""
        w = row_weights(w)
        moments = problem.moments(w)
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
        X = np.column_stack([problem.rows.columns(used), _surrogate(problem)])[rows]
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
