"""The end of a linear search: a DAG, its objective minimised exactly, and a better order if any."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.graph.dag import cut_to_dag, precedence
from rescore.moments import Matrix
from rescore.protocols import Problem
from rescore.solvers.lasso import Column, Lasso, column, joined, lasso, own
from rescore.solvers.ordered_regression import least_variance_order

LEAST_GAIN = 1e-6  # of the objective, for which another graph is taken: not for rounding
MOST_SWAPS = 20  # for each pair; a search that ends of itself needs fewer than one
NEGLIGIBLE = 1e-12  # share of a variance below which a column is a combination of others
# The best regression of a variable (by number) on parents, from coefficients (d,).
Regression = Callable[[int, NDArray[np.intp], Matrix], Column]


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

    def regression(j: int, parents: NDArray[np.intp], start: Matrix) -> Column:
        return column(own(S, j), penalty, j, parents, start)

    found = polished(problem, S, dag, regression)
    return found if found.objective < best.objective * (1 - LEAST_GAIN) else best


def polished(problem: Problem, S: Matrix, dag: Matrix, regression: Regression) -> Lasso:
    """The best graph near ``dag``: the objective, and not the path's luck, chooses it.

    From the order of the DAG and from the order of least residual variance, neighbours change
    places as long as that lowers the sum of the regressions' objectives, each on all edges the
    order allows; the lesser of the two ends is returned.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(2))
    >>> S, against = np.array([[1.0, 2.0], [2.0, 5.0]]), np.array([[0, 0], [0.4, 0]])
    >>> def regression(j, parents, start):
    ...     return column(S, np.full((2, 2), 0.1), j, parents, start)
    >>> polished(problem, S, against, regression).W
    array([[0. , 1.9],
           [0. , 0. ]])
    """
    orders = (_order_of(dag, S), _order_by_variance(problem, S))
    ends = [_swap_neighbours(problem, regression, order, dag) for order in orders]
    return min(ends, key=lambda end: end.objective)


def _order_of(dag: Matrix, S: Matrix) -> list[int]:
    """Parents first; of several possible next ones the least variance, whatever the columns."""
    waiting, order = set(range(len(dag))), []
    while waiting:
        ready = [j for j in waiting if not any(dag[i, j] != 0 for i in waiting)]
        order.append(min(ready, key=lambda j: (own(S, j)[j, j], j)))
        waiting.remove(order[-1])
    return order


def _order_by_variance(problem: Problem, S: Matrix) -> list[int]:
    if S.ndim == 2:
        return least_variance_order(S[None], problem.allowed, problem.required)[0].tolist()
    return order_by_own_variance(problem, S)


def order_by_own_variance(problem: Problem, S: Matrix) -> list[int]:
    """Variables one by one, always that of least variance given its allowed causes before it.

    As `least_variance_order`, with a covariance for each variable: S is (d, d, d).

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(2))
    >>> order_by_own_variance(problem, np.array([[[5.0, 2.0], [2.0, 1.0]]] * 2))
    [1, 0]
    """
    d, every = len(S), np.arange(len(S))
    R = S.copy()  # R[j]: the covariance that counts for j, given the causes of j placed so far
    before = precedence(problem.allowed, problem.required)
    waiting, order = np.ones(d, dtype=bool), []
    for _ in range(d):
        ready = waiting & ~before[waiting].any(axis=0)
        j = int(np.argmin(np.where(ready, R[every, every, every], np.inf)))
        order.append(j)
        waiting[j] = False
        told = problem.allowed[j] & (R[:, j, j] > NEGLIGIBLE * S[:, j, j])
        share = np.where(told[:, None], R[:, j] / np.where(told, R[:, j, j], 1.0)[:, None], 0.0)
        R -= R[:, :, j, None] * share[:, None, :]
    return order


class _Swap(NamedTuple):
    """What a swap of two neighbours gains, and their regressions after it."""

    gain: float
    first: Column  # of the variable that came first
    second: Column


def _swap_neighbours(
    problem: Problem, regression: Regression, order: list[int], start: Matrix
) -> Lasso:
    """Change places of neighbours in the order, best gain first, until no change gains anything.

    A swap touches the regressions of the two variables alone, so only the gains of the places
    beside it have to be found anew.
    """

    def on_all(j: int, before: list[int]) -> Column:
        return regression(j, _before(problem, before, j), start[:, j])

    def swap(k: int) -> _Swap:
        a, b = order[k], order[k + 1]
        if problem.required[a, b]:
            return _Swap(-np.inf, found[a], found[b])
        second, first = on_all(b, order[:k]), on_all(a, [*order[:k], b])
        before = found[a].objective + found[b].objective
        return _Swap(before - first.objective - second.objective, first, second)

    order = list(order)
    found = {j: on_all(j, order[:k]) for k, j in enumerate(order)}
    swaps = [swap(k) for k in range(len(order) - 1)]
    least = LEAST_GAIN * abs(sum(f.objective for f in found.values()))
    for _ in range(MOST_SWAPS * len(swaps) ** 2):
        k = max(range(len(swaps)), key=lambda k: swaps[k].gain)
        if not swaps[k].gain > least:
            break
        found[order[k]], found[order[k + 1]] = swaps[k].first, swaps[k].second
        order[k : k + 2] = order[k + 1], order[k]
        for near in range(max(k - 1, 0), min(k + 2, len(swaps))):
            swaps[near] = swap(near)
    return joined([found[j] for j in range(len(order))])


class _Placed(NamedTuple):
    """An order, and the best regression of every variable on those before it."""

    order: tuple[int, ...]
    found: dict[int, Column]

    @property
    def value(self) -> float:
        return sum(column.objective for column in self.found.values())


def moved(problem: Problem, S: Matrix, dag: Matrix, regression: Regression) -> Lasso:
    """Variables put elsewhere in the order of ``dag``, one by one, while that lowers the objective.

    It leaves minima where every swap of neighbours costs something, for d times as many
    regressions in each round.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(2))
    >>> S, against = np.array([[1.0, 2.0], [2.0, 5.0]]), np.array([[0, 0], [0.4, 0]])
    >>> def regression(j, parents, start):
    ...     return column(S, np.full((2, 2), 0.1), j, parents, start)
    >>> moved(problem, S, against, regression).W
    array([[0. , 1.9],
           [0. , 0. ]])
    """
    order = tuple(_order_of(dag, S))
    before = {j: _before(problem, order[:k], j) for k, j in enumerate(order)}
    found = {j: regression(j, before[j], dag[:, j]) for j in order}
    now, last = _Placed(order, found), np.inf
    least = LEAST_GAIN * abs(now.value)
    for _ in range(MOST_SWAPS * len(order)):
        if not now.value < last - least:
            break
        last = now.value
        for v in now.order:
            elsewhere = _elsewhere(problem, regression, now, v)
            best = min(elsewhere, key=lambda placed: placed.value, default=now)
            now = best if best.value < now.value - least else now
    return joined([now.found[j] for j in range(len(order))])


def _elsewhere(
    problem: Problem, regression: Regression, placed: _Placed, v: int
) -> Iterator[_Placed]:
    """The variable v moved on by one place at a time, as far as required edges let it, and back."""
    for towards in (1, -1):
        now, at = placed, placed.order.index(v)
        while 0 <= at + towards < len(placed.order):
            first = min(at, at + towards)
            a, b = now.order[first : first + 2]
            if problem.required[a, b]:
                break
            ahead = now.order[:first]
            new = {
                b: regression(b, _before(problem, ahead, b), now.found[b].coefficients),
                a: regression(a, _before(problem, (*ahead, b), a), now.found[a].coefficients),
            }
            now = _Placed((*ahead, b, a, *now.order[first + 2 :]), now.found | new)
            at += towards
            yield now


def _before(problem: Problem, order: Sequence[int], j: int) -> NDArray[np.intp]:
    """Those of the order that may cause j, by number: rounding then depends on the set alone.

    Else two orders with the same sets could each seem better than the other.
    """
    return np.array(sorted(i for i in order if problem.allowed[i, j]), dtype=np.intp)
