"""Orders of the variables and their parents, by the evidence of Gaussian processes.

Every variable is explained by all that come before it, at once.  The cost of an order is the sum
over variables, and a variable's cost changes only if its predecessors change by one that matters:
so most of what a move costs is known already.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix
from rescore.protocols import Mask
from rescore.solvers.relevance import ENTRY, Fit, Target, cost, cost_alone, fresh, maximise

FRESH, WARM = 100, 12  # iterations of a fit from nothing, and of one from a neighbouring fit
HELPS = -0.5  # slope of the cost from which an input that was not there before is tried
MISSING = -5.0  # slope from which a settled fit must be made anew
WISH = -20.0  # slope from which a variable would like another one before it
CERTAIN = 4.0  # thresholds that an edge is worth, the others as they are: it needs no refit

Order = tuple[int, ...]
Fits = dict[int, Fit]


def threshold(false_edges: float, pairs: int) -> float:
    """The log evidence that an edge must be worth, for so many false ones among all pairs.

    Without an edge the relevance is at its bound half of the time, and otherwise twice the gain
    is about χ² with one degree of freedom (`benchmarks/relevance_by_chance.py`).

    Examples
    --------
    >>> round(threshold(0.5, pairs=190), 2)
    3.89
    """
    from scipy.stats import chi2

    share = min(false_edges / max(pairs, 1), 0.5)
    return float(chi2.isf(2 * share, 1)) / 2


@dataclass(frozen=True, eq=False)
class Costs:
    """Fits of every variable on sets of others, each made once."""

    X: NDArray[np.float32]  # (n, d), columns of deviation one
    noise: Matrix  # (n, d), relative size of every cell's noise variance
    allowed: Mask  # (d, d)
    known: dict[tuple[int, frozenset[int]], Fit] = field(default_factory=dict)

    def target(self, j: int) -> Target:
        """Variable j, to be explained."""
        return Target(self.X, self.X[:, j], self.noise[:, j])

    def fit(
        self, j: int, before: Iterable[int], near: Fit | None = None, start: Fit | None = None
    ) -> Fit:
        """Variable j on those of its predecessors that are allowed.

        From a fit on neighbouring predecessors, from one of the same on other rows, or from none.
        """
        candidates = self._candidates(j, before)
        key = j, frozenset(np.flatnonzero(candidates).tolist())
        if key not in self.known:
            if start is not None and len(start.inputs) > 0:
                self.known[key] = maximise(self.target(j), candidates, start.theta, WARM)
            elif near is None or len(near.inputs) == 0:
                self.known[key] = self._from_nothing(j, candidates)
            else:
                self.known[key] = self._nearby(j, candidates, near)
        return self.known[key]

    def settled(self, j: int, before: Iterable[int], fit: Fit) -> Fit | None:
        """A fit of other rows as it stands on these, if no input that is not in it would help."""
        value, gradient = cost(fit.theta, self.target(j))
        missing = self._candidates(j, before) & (fit.relevance == 0)
        if (gradient[:-2][missing] < MISSING).any():
            return None
        return Fit(float(value), fit.theta, gradient[:-2])

    def _candidates(self, j: int, before: Iterable[int]) -> Mask:
        candidates = np.zeros(len(self.allowed), dtype=bool)
        candidates[list(before)] = True
        return candidates & self.allowed[:, j]

    def _nearby(self, j: int, candidates: Mask, near: Fit) -> Fit:
        """Without what is lost, and with what is gained where the slope says that it helps."""
        lost = (near.relevance > 0) & ~candidates
        gained = (near.relevance == 0) & candidates & (near.slope < HELPS)
        if not (lost.any() or gained.any()):
            return near
        start = near.theta.copy()
        start[:-2][lost], start[:-2][gained] = 0.0, ENTRY
        return maximise(self.target(j), candidates, start, WARM)

    def _from_nothing(self, j: int, candidates: Mask) -> Fit:
        """A fresh fit, or none where it ends worse than without any input."""
        fit = maximise(self.target(j), candidates, fresh(candidates), FRESH)
        if len(fit.inputs) == 0:
            return fit
        empty = maximise(
            self.target(j), np.zeros_like(candidates), fresh(np.zeros_like(candidates)), FRESH
        )
        return min(fit, empty, key=lambda one: one.cost)

    def along(self, order: Order, start: Fits | None = None) -> Fits:
        """The fit of every variable on all before it, from fits of the same on other rows."""
        return {
            v: self.fit(v, order[:k], start=None if start is None else start[v])
            for k, v in enumerate(order)
        }


def total(fits: Fits) -> float:
    """The cost of an order."""
    return sum(fit.cost for fit in fits.values())


class Found(NamedTuple):
    """An order with its fits, and how many moves were taken to it."""

    order: Order
    fits: Fits
    moves: int = 0


def improved(few: Costs, some: Costs, found: Found, required: Mask, least: float) -> Found:
    """One round over pairs: cause and effect change places where that pays.

    Either the effect goes to before its cause, or the cause to after its effect, and all between
    are fitted to what is then before them.  A move must gain ``least`` on some rows, and is only
    tried there if it gains on few.
    """
    order, fits, moves = found.order, dict(found.fits), 0
    rough = few.along(order, fits)
    for i, j in _doubtful(order, fits, some.allowed):
        if order.index(i) > order.index(j):
            continue
        for mover, new in _reversals(order, i, j):
            guess, roughly = _moved(few, order, rough, new, mover, 0.0)
            if guess <= 0 or not _obeys(new, required):
                continue
            gain, changed = _moved(some, order, fits, new, mover, least, roughly)
            if gain > least:
                order, fits, rough = new, fits | changed, rough | roughly
                moves += 1
                break
    return Found(order, fits, moves)


def _doubtful(order: Order, fits: Fits, allowed: Mask) -> list[tuple[int, int]]:
    """Pairs with an edge, and those whose first would like the second to come before it."""
    pairs = [(i, j) for k, i in enumerate(order) for j in order[k + 1 :]]
    return [
        (i, j)
        for i, j in pairs
        if fits[j].relevance[i] > 0 or (allowed[j, i] and fits[i].slope[j] < WISH)
    ]


def _reversals(order: Order, i: int, j: int) -> list[tuple[int, Order]]:
    """I goes to right after j, or j to right before i: who moves, and the new order."""
    without_j, without_i = ([v for v in order if v != u] for u in (j, i))
    a, b = without_j.index(i), without_i.index(j) + 1
    later, earlier = (*without_i[:b], i, *without_i[b:]), (*without_j[:a], j, *without_j[a:])
    return [(i, later)] if earlier == later else [(i, later), (j, earlier)]


def _moved(
    costs: Costs,
    order: Order,
    fits: Fits,
    new: Order,
    mover: int,
    least: float,
    start: Fits | None = None,
) -> tuple[float, Fits]:
    """What a move gains, and the fits that it changes.

    Those that get more predecessors come first: where they gain too little, so does the move.  A
    variable that moves behind others is fitted from nothing: what it had may have been a makeshift.
    """
    before = {v: set(order[:k]) for k, v in enumerate(order)}
    after = {v: set(new[:k]) for k, v in enumerate(new)}
    differ = [v for v in order if before[v] != after[v]]
    changed: Fits = {}
    gain = 0.0
    for v in sorted(differ, key=lambda v: len(before[v]) - len(after[v])):
        more = len(after[v]) > len(before[v])
        if not more and gain <= least:
            return -np.inf, {}
        near = None if more and v == mover else fits[v]
        changed[v] = costs.fit(v, after[v], near, None if start is None else start.get(v))
        gain += fits[v].cost - changed[v].cost
    return gain, changed


def _obeys(order: Order, required: Mask) -> bool:
    place = np.argsort(order)
    causes, effects = np.nonzero(required)
    return bool((place[causes] < place[effects]).all())


def parents(target: Target, fit: Fit, required: Mask, least: float) -> tuple[Fit, Matrix]:
    """The fit on the inputs that are each worth ``least`` of log evidence, and their worth (d,).

    The least worthy input goes first; what it is worth counts only after the others have had
    the chance to stand in for it.
    """
    kept = fit.relevance > 0
    worth = worths(target, fit)
    sure = required.copy()
    while (kept & ~sure).any():
        i = int(np.argmin(np.where(kept & ~sure, worth, np.inf)))
        if worth[i] > CERTAIN * least:
            break
        without = kept.copy()
        without[i] = False
        start = fit.theta.copy()
        start[i] = 0.0
        other = maximise(target, without, start, WARM)
        if other.cost - fit.cost > least:
            sure[i], worth[i] = True, other.cost - fit.cost
            continue
        kept, fit = other.relevance > 0, other
        worth, sure = worths(target, fit), required.copy()
    return fit, np.where(kept, worth, 0.0)


def worths(target: Target, fit: Fit) -> Matrix:
    """What each input is worth with the others as they are, (d,): at least what it is after all."""
    worth = np.zeros(len(fit.relevance))
    for i in fit.inputs:
        theta = fit.theta.copy()
        theta[i] = 0.0
        worth[i] = cost_alone(theta, target) - fit.cost
    return worth


def spread_rows(n: int, most: int) -> NDArray[np.intp]:
    """So many of n rows at most, drawn at random, always the same, in their order.

    Examples
    --------
    >>> spread_rows(3, most=5)
    array([0, 1, 2])
    """
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def consistent(proposed: Sequence[int], required: Mask) -> Order:
    """The proposed order, each variable put off until its required causes are there.

    Examples
    --------
    >>> consistent([1, 0], np.array([[False, True], [False, False]]))
    (0, 1)
    """
    order: list[int] = []
    waiting = list(proposed)
    while waiting:
        v = next(v for v in waiting if not (set(np.flatnonzero(required[:, v])) - set(order)))
        order.append(int(v))
        waiting.remove(v)
    return tuple(order)
