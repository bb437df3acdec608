"""Parents of a variable among those before it: grown and shrunk by score, and remembered.

The compiled inner loops of the order search.  A variable's score is

    ½ Σ_k n_kj log v_kj(b) + penalty·|b|,      v_kj(b) the variance that b leaves in group k,

with b profiled out: one group is ordinary least squares, several are a few rounds in which every
group counts inversely to the noise it is left with.  A group whose mechanism for the variable is
its own has coefficients of its own on the same parents.  Which parents growing finds depends only
on which candidates come before, so that all orders share one tree for each variable: a node is a
set of parents, its branches are the candidates that would improve it, the best first (Andrews et
al., 2023, 'Fast scalable and accurate discovery of DAGs using the best order score search').
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from rescore.solvers.compilation import compiled
from rescore.solvers.regression import (
    NEGLIGIBLE,
    Floats,
    Ints,
    gains,
    orthogonal_row,
    profiled,
    swept,
    swept_on,
)

# Of the penalty, what a candidate must gain while parents are grown: two that cancel gain
# little alone and much together.  Shrinking asks for the whole of it.
LENIENT = 0.5
LEAST_GAIN = 1e-6  # in log-likelihood: less is rounding


class Scores(NamedTuple):
    """What the score of every variable is made from."""

    S: Floats  # (K, d, d) covariances of the groups, correlations when pooled
    n: Floats  # (K, d) rows that share each variable's coefficients
    alone: Floats  # (K, d) rows that have coefficients of their own
    price: Floats  # (K,) of one such coefficient
    allowed: NDArray[np.bool_]  # (d, d) which edges may be
    required: NDArray[np.bool_]  # (d, d) and must be
    penalty: float  # of one edge
    rarity: Floats  # (d,) price of so many parents beyond that of the edges
    most_parents: int


class Forest(NamedTuple):
    """One tree of parent sets for each variable; the first d nodes are the roots."""

    added: Ints  # the variable that a node has beyond the node above it
    above: Ints
    final: Floats  # the score after shrinking; nan before that is done
    first: Ints  # where its branches start; -1 before they are known
    branches: Ints  # how many it has
    candidate: Ints  # the variable of a branch
    below: Ints  # the node it leads to; -1 before that is made
    used: Ints  # (2,) nodes and branches in use
    matters: NDArray[np.bool_]  # (d, d), [j, i] whether i is on a branch of the tree of j so far
    path: Ints  # (depth + 1,) the nodes looked at last, from a root on; -1 beyond the last
    basis: Floats  # (depth, d) the rows of their parents (`regression.orthogonal_row`)


def empty_forest(d: int, nodes: int, branches: int, depth: int) -> Forest:
    """Room for so many nodes and branches; nothing known yet but the roots.

    Examples
    --------
    >>> empty_forest(3, 10, 20, depth=2).used
    array([3, 0])
    """
    return Forest(
        np.full(nodes, -1),
        np.full(nodes, -1),
        np.full(nodes, np.nan),
        np.full(nodes, -1),
        np.zeros(nodes, dtype=np.int64),
        np.zeros(branches, dtype=np.int64),
        np.full(branches, -1),
        np.array([d, 0]),
        np.zeros((d, d), dtype=np.bool_),
        np.full(depth + 1, -1),
        np.zeros((depth, d)),
    )


@compiled()
def valued(scores: Any, j: int, P: Any, k: int, b: Any, v: Any) -> float:
    """What variable j costs with the first k of P as parents, but for the penalty on these."""
    value = profiled(scores.S, scores.n, j, P, k, b, v)
    for g in range(scores.S.shape[0]):
        if scores.alone[g, j] > 0:
            own, left = np.zeros(k), np.empty(1)
            group, rows = scores.S[g : g + 1], scores.alone[g : g + 1]
            value += profiled(group, rows, j, P, k, own, left) + scores.price[g] * k
    return value


@compiled()
def _parents(scores: Any, forest: Any, j: int, node: int, P: Any) -> int:
    """The parents at a node into ``P``, required ones first, then as grown; returns how many."""
    k = 0
    for i in range(scores.required.shape[0]):
        if scores.required[i, j]:
            P[k] = i
            k += 1
    k += _depth(forest, node)
    at = k
    while forest.above[node] >= 0:
        at -= 1
        P[at] = forest.added[node]
        node = forest.above[node]
    return k


@compiled()
def _depth(forest: Any, node: int) -> int:
    """How many nodes are above this one."""
    depth = 0
    while forest.above[node] >= 0:
        depth, node = depth + 1, forest.above[node]
    return depth


def _expand(scores: Any, forest: Any, j: int, node: int) -> bool:
    """Find the branches of a node, the best first; false if there is no more room."""
    S, n = scores.S, scores.n
    K, d = S.shape[0], S.shape[1]
    P, v, gain = np.empty(d + 1, dtype=np.int64), np.empty(K), np.empty(d)
    k = _parents(scores, forest, j, node, P)
    if k >= scores.most_parents:
        forest.first[node], forest.branches[node] = forest.used[1], 0
        return True
    rows, known, weight = 0.0, 0, np.ones(K)
    if K == 1:  # noise of any size gives the same rows, which nodes above have made already
        known = _known_rows(forest, node, k)
    else:
        profiled(S, n, j, P, k, np.zeros(k + 1), v)
    for g in range(K):
        rows += n[g, j]
        if K > 1:
            weight[g] = n[g, j] / v[g]
    for m in range(known, k):
        orthogonal_row(S, weight, P[m], forest.basis, m)
    gains(S, weight, j, rows, forest.basis, k, gain)
    for m in range(k):
        gain[P[m]] = 0.0
    for i in range(d):
        if not scores.allowed[i, j]:
            gain[i] = 0.0
    return branch(forest, node, gain, np.zeros(d, dtype=np.int64), LENIENT * scores.penalty)


@compiled()
def _known_rows(forest: Any, node: int, k: int) -> int:
    """How many rows of the basis are those of this node's k parents already.

    They are those of the path that was looked at last, which from here on is the path to here.
    """
    depth, known = _depth(forest, node), k
    required = k - depth  # parents at the root
    for t in range(depth, -1, -1):
        if forest.path[t] != node:
            forest.path[t] = node
            known = required + t - 1 if t > 0 else 0
        node = forest.above[node]
    return known


@compiled()
def branch(forest: Any, node: int, gain: Any, kind: Any, least: float) -> bool:
    """Give a node its branches, candidates that gain more than ``least``, the best first.

    Candidate i is written as ``i + d·kind[i]``.  False if there is no more room.
    """
    d, many = len(gain), 0
    for i in range(d):
        many += gain[i] > least
    if forest.used[1] + many > forest.candidate.shape[0]:
        return False
    forest.first[node], forest.branches[node] = forest.used[1], many
    root = node
    while forest.above[root] >= 0:
        root = forest.above[root]
    for i in range(d):
        forest.matters[root, i] |= gain[i] > least
        if gain[i] > least:  # inserted among those found so far; equals stay in their order
            at = forest.used[1]
            while at > forest.first[node] and gain[forest.candidate[at - 1] % d] < gain[i]:
                forest.candidate[at] = forest.candidate[at - 1]
                at -= 1
            forest.candidate[at] = i + d * kind[i]
            forest.below[forest.used[1]] = -1
            forest.used[1] += 1
    return True


def _shrunk(scores: Any, j: int, P: Any, k: int) -> tuple[float, int]:
    """Take out parents while that lowers the score; P keeps the others, first those required."""
    fixed = np.int64(0)  # a bare 0 is a type of its own, for which all below is compiled again
    for i in range(scores.required.shape[0]):
        fixed += scores.required[i, j]
    if scores.S.shape[0] == 1:
        value, k = _swept_out(scores, j, P, k, fixed)
    else:
        value, k = _fitted_without(scores, j, P, k, fixed)
    return value + scores.penalty * k + scores.rarity[k], k


@compiled()
def _swept_out(scores: Any, j: int, P: Any, k: int, fixed: int) -> tuple[float, int]:
    """The same of one group of rows, of which one regression tells what all others leave."""
    M, rows = swept_on(scores.S[0], j, P, k), scores.n[0, j]
    there = np.arange(k)  # where the parents are in M
    while k > fixed:
        left = M[-1, -1]
        saved = scores.penalty + scores.rarity[k] - scores.rarity[k - 1]
        worst, least = -1, np.inf
        for m in range(fixed, k):
            p = there[m]
            more = M[p, -1] * M[p, -1] / M[p, p]
            if more < least:
                least, worst = more, m
        lost = 0.5 * rows * np.log(max(left + least, NEGLIGIBLE) / max(left, NEGLIGIBLE))
        if worst < 0 or lost >= saved - LEAST_GAIN:
            break
        swept(M, there[worst])
        for m in range(worst, k - 1):
            P[m], there[m] = P[m + 1], there[m + 1]
        k -= 1
    v, b = np.empty(1), np.zeros(k)
    return profiled(scores.S, scores.n, j, P, k, b, v), k


@compiled()
def _fitted_without(scores: Any, j: int, P: Any, k: int, fixed: int) -> tuple[float, int]:
    """The same of several groups, each parent in turn left out of a regression."""
    v, b = np.empty(scores.S.shape[0]), np.zeros(k)
    value = valued(scores, j, P, k, b, v)
    fewer, start = np.empty(k, dtype=np.int64), np.empty(k)
    while k > fixed:
        saved = scores.penalty + scores.rarity[k] - scores.rarity[k - 1]
        least, worst = value + saved - LEAST_GAIN, -1
        for out in range(fixed, k):
            at = 0
            for m in range(k):
                if m != out:
                    fewer[at], start[at] = P[m], b[m]
                    at += 1
            without = valued(scores, j, fewer, k - 1, start, v)
            if without < least:
                least, worst = without, out
        if worst < 0:
            break
        for m in range(worst, k - 1):
            P[m], b[m] = P[m + 1], b[m + 1]
        k -= 1
        value = valued(scores, j, P, k, b, v)
    return value, k


def parents_at(scores: Any, forest: Any, j: int, node: int, P: Any) -> int:
    """The parents at a node, into ``P``; returns how many.  By the type of the scores."""
    raise NotImplementedError  # compiled only


def expand(scores: Any, forest: Any, j: int, node: int) -> bool:
    """Find the branches of a node, the best first; false if there is no more room."""
    raise NotImplementedError


def shrunk(scores: Any, j: int, P: Any, k: int) -> tuple[float, int]:
    """Take out parents while that lowers the score, which it returns, and how many stay."""
    raise NotImplementedError


@overload(parents_at, strict=False)
def _parents_at_columns(scores: Any, forest: Any, j: Any, node: Any, P: Any) -> Any:
    if scores.instance_class is Scores:
        return _parents.py_func
    return None


@overload(expand, strict=False)
def _expand_columns(scores: Any, forest: Any, j: Any, node: Any) -> Any:
    if scores.instance_class is Scores:
        return _expand
    return None


@overload(shrunk, strict=False)
def _shrunk_columns(scores: Any, j: Any, P: Any, k: Any) -> Any:
    if scores.instance_class is Scores:
        return _shrunk
    return None


@compiled()
def _grown(scores: Any, forest: Any, j: int, before: Any) -> int:
    """The node that growing ends at; -1 if there is no more room."""
    node, d = j, len(before)
    while True:
        if forest.first[node] < 0 and not expand(scores, forest, j, node):
            return -1
        taken = -1
        for at in range(forest.first[node], forest.first[node] + forest.branches[node]):
            if before[forest.candidate[at] % d]:
                taken = at
                break
        if taken < 0:
            return node
        if forest.below[taken] < 0:
            new = forest.used[0]
            if new >= forest.added.shape[0]:
                return -1
            forest.used[0] += 1
            forest.added[new], forest.above[new] = forest.candidate[taken], node
            forest.below[taken] = new
        node = forest.below[taken]


@compiled()
def least_score(scores: Any, forest: Any, j: int, before: Any) -> float:
    """The score of j with parents among those ``before`` (d,); nan if there is no more room."""
    node = _grown(scores, forest, j, before)
    if node < 0:
        return np.nan
    if np.isnan(forest.final[node]):
        P = np.empty(len(before), dtype=np.int64)
        k = parents_at(scores, forest, j, node, P)
        value = shrunk(scores, j, P, k)[0]
        # Where no number comes out, as of a group of one row, the parents are as bad as can be:
        # nan would ask for more room for ever.
        forest.final[node] = np.inf if np.isnan(value) else value
    return forest.final[node]


@compiled()
def _totals(scores: Any, forest: Any, v: int, rest: Any, must: Any, current: Any) -> Any:
    """The score of everything with v put before each of ``rest`` (d - 1,) in turn, or last.

    Infinite where v would come before what ``must`` (d, d) precede it; nan without room.  A
    variable in whose tree v is on no branch has its ``current`` score wherever v is, and v scores
    differently behind u only if u is on a branch of its own: with many variables few matter.
    """
    d = len(rest) + 1
    before = np.zeros(d, dtype=np.bool_)
    own, ahead, behind = np.empty(d), np.zeros(d), np.zeros(d)
    waits = 0  # how many of those that must precede v are still to come
    for u in rest:
        waits += must[u, v]
    here, changed = np.inf, True
    for p in range(d):
        if waits == 0 and changed:
            here, changed = least_score(scores, forest, v, before), False
        own[p] = here
        if p == d - 1:
            break
        u = rest[p]
        without = behind[p] = current[u]
        if forest.matters[u, v]:
            without = least_score(scores, forest, u, before)
            before[v] = True
            behind[p] = least_score(scores, forest, u, before)
            before[v] = False
        ahead[p + 1] = ahead[p] + without
        before[u] = True
        changed |= forest.matters[v, u]
        waits -= must[u, v]
        if must[v, u]:  # from here on v would come too late
            ahead[p + 1] = np.inf
    for p in range(d - 1, -1, -1):
        if p < d - 1:
            behind[p] += behind[p + 1]
        own[p] += ahead[p] + behind[p]
    return own


@compiled()
def _rescored(scores: Any, forest: Any, order: Any, v: int, current: Any) -> bool:
    """The ``current`` scores of v and of those to whom it matters, in this order; of all for -1.

    False if there was no more room.
    """
    before = np.zeros(len(order), dtype=np.bool_)
    for u in order:
        if v < 0 or u == v or forest.matters[u, v]:
            current[u] = least_score(scores, forest, u, before)
            if np.isnan(current[u]):
                return False
        before[u] = True
    return True


@compiled()
def improve(scores: Any, forest: Any, order: Any, must: Any) -> bool:
    """Move one variable at a time to its best place in ``order`` (d,), until none gains.

    False if there was no more room; ``order`` is then as far as it came.
    """
    d = len(order)
    turns, rest = np.empty(d, dtype=np.int64), np.empty(d - 1, dtype=np.int64)
    current = np.empty(d)
    # A bare -1 is a type of its own, for which everything below would be compiled again.
    moved = _rescored(scores, forest, order, np.int64(-1), current)
    if not moved:
        return False
    while moved:
        moved = False
        for turn in range(d):
            turns[turn] = order[turn]
        for v in turns:
            at, here = 0, 0
            for p in range(d):
                if order[p] == v:
                    here = p
                else:
                    rest[at] = order[p]
                    at += 1
            totals = _totals(scores, forest, int(v), rest, must, current)
            best = here
            for p in range(d):
                if np.isnan(totals[p]):
                    return False
                if totals[p] < totals[best] - LEAST_GAIN:  # equals stay where they are
                    best = p
            if best != here:
                for p in range(d):
                    order[p] = rest[p] if p < best else v if p == best else rest[p - 1]
                moved = True
                if not _rescored(scores, forest, order, int(v), current):
                    return False
    return True


@compiled()
def chosen(scores: Any, forest: Any, order: Any, A: Any) -> Any:
    """The parents of every variable in this order, into ``A`` (d, d), and the scores (d,).

    Nan where there was no more room.
    """
    d = len(order)
    before, values = np.zeros(d, dtype=np.bool_), np.full(d, np.nan)
    for j in order:
        node = _grown(scores, forest, j, before)
        if node < 0:
            return values
        P = np.empty(d, dtype=np.int64)
        values[j], k = shrunk(scores, j, P, parents_at(scores, forest, j, node, P))
        for m in range(k):
            A[P[m] % d, j] = True
        before[j] = True
    return values


@compiled()
def chosen_of(scores: Any, forest: Any, j: int, before: Any, parents: Any) -> bool:
    """The parents of one variable among those ``before`` (d,), into a mask; false without room."""
    node = _grown(scores, forest, j, before)
    if node < 0:
        return False
    P = np.empty(len(before), dtype=np.int64)
    _, k = shrunk(scores, j, P, parents_at(scores, forest, j, node, P))
    for m in range(k):
        parents[P[m] % len(before)] = True
    return True
