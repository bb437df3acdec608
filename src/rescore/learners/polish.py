"""The end of a linear search: a DAG, its objective minimised exactly, and a better order if any."""

from typing import NamedTuple

import numpy as np

from rescore.graph.dag import cut_to_dag
from rescore.moments import Matrix
from rescore.protocols import Problem
from rescore.solvers.lasso import Column, Lasso, column, joined, lasso
from rescore.solvers.ordered_regression import least_variance_order

LEAST_GAIN = 1e-6  # of the objective, for which another graph is taken: not for rounding


def closing_lasso(problem: Problem, S: Matrix, W: Matrix, penalty: Matrix, polish: bool) -> Lasso:
    """W made a DAG, and the objective minimised on it exactly; with ``polish``, on others too.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(2))
    >>> S, against = np.array([[1.0, 2.0], [2.0, 5.0]]), np.array([[0, 0], [0.4, 0]])
    >>> closing_lasso(problem, S, against, np.full((2, 2), 0.1), polish=True).W
    array([[0. , 1.9],
           [0. , 0. ]])
    """
    dag, _ = cut_to_dag(W, keep=problem.required)
    best = lasso(S, dag, penalty)
    if not polish:
        return best
    found = polished(problem, S, dag, penalty, np.ones(len(S)))
    return found if found.objective < best.objective * (1 - LEAST_GAIN) else best


def polished(problem: Problem, S: Matrix, dag: Matrix, penalty: Matrix, noise: Matrix) -> Lasso:
    """The best graph near ``dag``: the objective, and not the path's luck, chooses it.

    From the order of the DAG and from the order of least residual variance, neighbours change
    places as long as that lowers ``Σ_j (½ r_j² + Σ_i penalty·|W_ij|) / noise_j`` on all edges the
    order allows; the lesser of the two ends is returned.  ``noise`` is (d,).

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(2))
    >>> S, against = np.array([[1.0, 2.0], [2.0, 5.0]]), np.array([[0, 0], [0.4, 0]])
    >>> polished(problem, S, against, np.full((2, 2), 0.1), np.ones(2)).W
    array([[0. , 1.9],
           [0. , 0. ]])
    """
    by_variance = least_variance_order(S[None], problem.allowed, problem.required)[0].tolist()
    orders = (_order_of(dag, S), by_variance)
    ends = [_swap_neighbours(problem, S, penalty, noise, order, dag) for order in orders]
    return min(ends, key=lambda end: end.objective)


def _order_of(dag: Matrix, S: Matrix) -> list[int]:
    """Parents first; of several possible next ones the least variance, whatever the columns."""
    waiting, order = set(range(len(dag))), []
    while waiting:
        ready = [j for j in waiting if not any(dag[i, j] != 0 for i in waiting)]
        order.append(min(ready, key=lambda j: (S[j, j], j)))
        waiting.remove(order[-1])
    return order


class _Swap(NamedTuple):
    """What a swap of two neighbours gains, and their regressions after it."""

    gain: float
    first: Column  # of the variable that came first
    second: Column


def _swap_neighbours(
    problem: Problem, S: Matrix, penalty: Matrix, noise: Matrix, order: list[int], start: Matrix
) -> Lasso:
    """Change places of neighbours in the order, best gain first, until no change gains anything.

    A swap touches the regressions of the two variables alone, so only the gains of the places
    beside it have to be found anew.
    """

    def regression(j: int, before: list[int]) -> Column:
        parents = np.array([i for i in before if problem.allowed[i, j]], dtype=np.intp)
        found = column(S, penalty, j, parents, start[:, j])
        return found._replace(objective=found.objective / noise[j])

    def swap(k: int) -> _Swap:
        a, b = order[k], order[k + 1]
        if problem.required[a, b]:
            return _Swap(-np.inf, found[a], found[b])
        second, first = regression(b, order[:k]), regression(a, [*order[:k], b])
        before = found[a].objective + found[b].objective
        return _Swap(before - first.objective - second.objective, first, second)

    order = list(order)
    found = {j: regression(j, order[:k]) for k, j in enumerate(order)}
    swaps = [swap(k) for k in range(len(order) - 1)]
    least = LEAST_GAIN * sum(f.objective for f in found.values())
    while swaps:
        k = max(range(len(swaps)), key=lambda k: swaps[k].gain)
        if swaps[k].gain <= least:
            break
        found[order[k]], found[order[k + 1]] = swaps[k].first, swaps[k].second
        order[k : k + 2] = order[k + 1], order[k]
        for near in range(max(k - 1, 0), min(k + 2, len(swaps))):
            swaps[near] = swap(near)
    return joined([found[j] for j in range(len(order))])
