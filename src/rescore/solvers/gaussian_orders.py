"""Orders of the variables and their parents, by the evidence of Gaussian processes.

Every variable is explained by all that come before it, at once.  The cost of an order is the sum
over variables, and a variable's cost changes only if its predecessors change by one that matters:
so most of what a move costs is known already.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix, Weights
from rescore.protocols import Mask, Problem
from rescore.solvers.gaussian_covariance import Target
from rescore.solvers.gaussian_inputs import Inputs, memberships, relative_noise
from rescore.solvers.gaussian_parents import STEPS, worths
from rescore.solvers.gaussian_sets import Pairs, likely_set
from rescore.solvers.relevance import ENTRY, Fit, Prior, cost, fresh, maximise

ROUGH = 0.3  # log evidence: steps that promise less are not taken while inputs are looked for
SETTLED = 0.1  # and while orders are compared
HELPS = 2.0  # log evidence that an input promises, from which it is tried: an edge is worth more
IDLE = 0.2  # log evidence of an input below which a fit without it is not made anew
FEW = 500  # rows on which fits cost little, so that moves are followed further
HOPE = 30.0, 8.0  # log evidence a variable may lose on its way to a better place: on few rows, more
PAYS = 2.0  # log evidence that a move must gain
DOUBT = 5.0  # log evidence that a move may lose on fewer rows, to be tried on more
LITTLE = 5.0  # log evidence of an input, on average, below which a fit may be a makeshift
CLEAR = 5.0  # log evidence of an input on a part of the rows, from which all say the same

Order = tuple[int, ...]
Fits = dict[int, Fit]


@dataclass(frozen=True, eq=False)
class Costs:
    """Fits of every variable on sets of others, each made once."""

    X: NDArray[np.float32]  # (n, d), columns of deviation one
    noise: Matrix  # (n, d), relative size of every cell's noise variance
    allowed: Mask  # (d, d)
    prior: Prior = field(default_factory=Prior)
    thorough: bool = True  # fits are tried from more than one start
    groups: Matrix | None = None  # (n, K) memberships, where levels differ between groups
    known: dict[tuple[int, frozenset[int]], Fit] = field(default_factory=dict)
    trials: dict[tuple[int, bytes], dict[np.intp, float]] = field(default_factory=dict)
    refused: dict[tuple[int, bytes], Mask] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        problem: Problem,
        w: Weights,
        inputs: Inputs,
        rows: NDArray[np.intp] | slice,
        prior: Prior,
        thorough: bool = True,
    ) -> "Costs":
        """Of these among the distinct rows, each as much as it counts."""
        noise, groups = relative_noise(problem, w, inputs)[rows], memberships(w, inputs)
        groups = None if groups is None else groups[rows]
        return cls(inputs.X[rows], noise, inputs.inward(problem.allowed), prior, thorough, groups)

    def target(self, j: int) -> Target:
        """Variable j, to be explained."""
        return Target(self.X, self.X[:, j], self.noise[:, j], self.groups)

    def fit(
        self, j: int, before: Iterable[int], near: Fit | None = None, start: Fit | None = None
    ) -> Fit:
        """Variable j on those of its predecessors that are allowed.

        From a fit on neighbouring predecessors, from one on other rows, or from nothing, which
        is tried too where there is something new: what was found without it may be a makeshift.
        """
        candidates = self.candidates(j, before)
        key = j, frozenset(np.flatnonzero(candidates).tolist())
        if key not in self.known:
            self.known[key] = self._fit(j, candidates, near, start)
        return self.known[key]

    def _fit(self, j: int, candidates: Mask, near: Fit | None, start: Fit | None) -> Fit:
        if near is not None and (len(near.inputs) > 0 or start is not None):
            if self._same(j, candidates, near):
                return _without(near, ~candidates)
            starts = [near] if start is None else [near, start]
            if not self.thorough:
                starts = [min(starts, key=lambda one: self._at_once(j, candidates, one))]
        else:
            starts = [] if start is None else [start]
        tried = [self._again(j, candidates, one) for one in starts]
        if not tried or self._anew(j, candidates, near, start, tried[-1]):
            tried.append(self._from_nothing(j, candidates))
        return min(tried, key=lambda one: one.cost)

    def _anew(
        self, j: int, candidates: Mask, near: Fit | None, start: Fit | None, found: Fit
    ) -> bool:
        """Whether a fresh fit is worth its time."""
        if near is None:  # where fewer rows showed little, more of them may show much at once
            return self.makeshift(j, found)
        new = self._promising(j, candidates, near).any()
        return self.thorough and bool(new) and start is None and self.makeshift(j, found)

    def makeshift(self, j: int, fit: Fit) -> bool:
        """Whether the inputs show so little that others may show more."""
        return self.fit(j, ()).cost - fit.cost < LITTLE * max(len(fit.inputs), 1)

    def _at_once(self, j: int, candidates: Mask, start: Fit) -> float:
        """The cost of a fit as it stands, but for inputs that are no candidates."""
        return cost(_without(start, ~candidates).theta, self.target(j), self.prior)

    def _promising(self, j: int, candidates: Mask, fit: Fit) -> Mask:
        """Those that would help a little at once, or as much as inputs do; none tried in vain."""
        out = candidates & (fit.relevance == 0) & ~self._in_vain(j, fit)
        promising = out & (fit.stake > HELPS)
        if not self.thorough:
            return promising
        key = j, fit.theta.tobytes()
        tried = self.trials.setdefault(key, {})
        for i in np.flatnonzero(out & ~promising) if self.makeshift(j, fit) else ():
            if i not in tried:
                theta = fit.theta.copy()
                theta[i] = self.prior.relevance
                tried[i] = fit.cost - cost(theta, self.target(j), self.prior)
            promising[i] = tried[i] > 0
        return promising

    def _in_vain(self, j: int, fit: Fit) -> Mask:
        """Those that were tried beside the inputs of this fit, and went."""
        there = fit.relevance > 0
        return self.refused.setdefault((j, there.tobytes()), np.zeros(len(there), dtype=bool))

    def _same(self, j: int, candidates: Mask, near: Fit) -> bool:
        """Whether neither what is lost nor what is gained matters."""
        lost = (near.relevance > 0) & ~candidates
        if (near.stake[lost] > IDLE).any():
            return False
        return not self._promising(j, candidates, near).any()

    def candidates(self, j: int, before: Iterable[int]) -> Mask:
        """The allowed ones among its predecessors, (d,)."""
        candidates = np.zeros(len(self.allowed), dtype=bool)
        candidates[list(before)] = True
        return candidates & self.allowed[:, j]

    def _again(self, j: int, candidates: Mask, start: Fit) -> Fit:
        """From a fit on other rows: its inputs first, then the others that still promise much."""
        fit = self._settled(j, _without(start, ~candidates))
        return fit if self._same(j, candidates, fit) else self._nearby(j, candidates, fit)

    def _nearby(self, j: int, candidates: Mask, near: Fit) -> Fit:
        """Without what is lost, and with what promises to help: at once, or after that."""
        fit = near
        for _ in range(2):
            left, promising = _without(fit, ~candidates), self._promising(j, candidates, fit)
            left.theta[:-2][promising] = ENTRY
            if promising.any():
                left = self._relaxed(j, left.relevance > 0, left.theta)
            fit = self._settled(j, left)
            self._in_vain(j, fit)[promising & (fit.relevance == 0)] = True
            if self._same(j, candidates, fit):
                break
        return fit

    def _from_nothing(self, j: int, candidates: Mask) -> Fit:
        """A fresh fit, or none where it ends worse than without any input."""
        fit = self._settled(j, self._relaxed(j, candidates, fresh(candidates, self.prior)))
        if len(fit.inputs) == 0:
            return fit
        return min(fit, self.fit(j, ()), key=lambda one: one.cost)

    def _relaxed(self, j: int, candidates: Mask, start: Matrix) -> Fit:
        """Inputs can leave, and come back."""
        prior = self.prior._replace(relaxed=True)
        return maximise(self.target(j), candidates, start, STEPS, prior, ROUGH)

    def _settled(self, j: int, start: Fit) -> Fit:
        """With those inputs of the start that are worth having, each as relevant as inputs are."""
        target, fit = self.target(j), _without(start, start.stake < IDLE)
        while True:
            fit = maximise(target, fit.relevance > 0, fit.theta, STEPS, self.prior, SETTLED)
            worth = worths(target, fit, self.prior, enough=CLEAR)
            lost = np.flatnonzero((fit.relevance > 0) & (worth < 0))
            if len(lost) == 0:
                return fit
            worst = lost[np.argsort(worth[lost])][: (len(lost) + 1) // 2]
            fit = _without(fit, np.isin(np.arange(len(worth)), worst))

    def along(self, order: Order, start: Fits | None = None) -> Fits:
        """The fit of every variable on all before it, from fits of the same on other rows."""
        return {
            v: self.fit(v, order[:k], start=None if start is None else start[v])
            for k, v in enumerate(order)
        }

    def acting_together(self, j: int, chosen: Mask) -> Fit:
        """A fit on a set of inputs, however little each of them shows."""
        start = fresh(chosen, self.prior)
        start[:-2][chosen] = self.prior.relevance
        stake = np.where(chosen, np.inf, 0.0)
        return self._settled(j, self.fit(j, ())._replace(theta=start, stake=stake))

    def completed(self, j: int, before: Order, fit: Fit) -> Fit:
        """With inputs that gain as soon as they are a little relevant, whatever the slope at zero.

        The evidence can rise by much more than its slope and information there promise.
        """
        out = self.candidates(j, before) & (fit.relevance == 0)
        if len(fit.inputs) == 0 or not out.any():
            return fit
        theta, target = fit.theta.copy(), self.target(j)
        for i in np.flatnonzero(out):
            trial = np.where(np.arange(len(theta)) == i, ENTRY, fit.theta)
            if fit.cost - cost(trial, target, self.prior) > IDLE:
                theta[i] = ENTRY
        if (theta == fit.theta).all():
            return fit
        more = self._settled(j, self._relaxed(j, theta[:-2] > 0, theta))
        self.remember(j, before, min(fit, more, key=lambda one: one.cost))
        return self.fit(j, before)

    def remember(self, j: int, before: Iterable[int], fit: Fit) -> None:
        """A fit on these predecessors found in another way, if none is known to cost less."""
        key = j, frozenset(np.flatnonzero(self.candidates(j, before)).tolist())
        self.known[key] = min(fit, self.known.get(key, fit), key=lambda one: one.cost)


def _without(fit: Fit, lost: Mask) -> Fit:
    """The fit as it stands, with these inputs (d,) of no relevance."""
    return fit._replace(theta=np.where(np.r_[lost, False, False], 0.0, fit.theta))


def total(fits: Fits) -> float:
    """The cost of an order."""
    return sum(fit.cost for fit in fits.values())


class Found(NamedTuple):
    """An order with its fits, and how many moves were taken to it."""

    order: Order
    fits: Fits
    moves: int = 0


def improved(costs: Costs, found: Found, required: Mask, fewer: Costs | None = None) -> Found:
    """One round: every variable goes to the place where the order costs least, if that gains.

    Alone; where no variable gains alone, on the fewest rows together with what it leads to.  With
    ``fewer`` rows given, a move is tried only where it is not hopeless there.
    """
    alone = _round(_slid, costs, found, required, fewer)
    if alone.moves or fewer is not None:
        return alone
    return _round(_put_off, costs, found, required, fewer)


def _round(
    proposed: "_Proposed", costs: Costs, found: Found, required: Mask, fewer: Costs | None
) -> Found:
    order, fits, moves = found.order, dict(found.fits), 0
    rough = fits if fewer is None else fewer.along(order, fits)
    for v in found.order:
        tried = proposed(fewer or costs, order, rough, v)
        if fewer is not None:
            now, hopeful = Found(order, fits), [move for move in tried if move.gain > -DOUBT]
            tried = [_confirmed(costs, now, move) for move in hopeful]
        pays = [move for move in tried if move.gain > PAYS and _obeys(move.order, required)]
        if pays:
            order, _, changed = max(pays, key=lambda move: move.gain)
            fits = fits | changed
            rough = fits if fewer is None else fewer.along(order, rough)
            moves += 1
    return Found(order, fits, moves)


class _Move(NamedTuple):
    """A new order, what it gains, and the fits that it changes."""

    order: Order
    gain: float
    fits: Fits


_Proposed = Callable[[Costs, Order, Fits, int], list[_Move]]


def _slid(costs: Costs, order: Order, fits: Fits, v: int) -> list[_Move]:
    """Variable v moved past one neighbour after the other, either way, while there is hope."""
    moves = []
    hope = HOPE[len(costs.X) > FEW]
    for earlier in (True, False):
        move = _Move(order, 0.0, {})
        while move.gain > -hope:
            k = move.order.index(v) - earlier
            if not 0 <= k < len(order) - 1:
                break
            move = _swapped(costs, move, fits, k)
            moves.append(move)
    return moves


def _swapped(costs: Costs, move: _Move, fits: Fits, k: int) -> _Move:
    """The variables at places k and k + 1 change places; all others see what they saw."""
    first, second = move.order[k : k + 2]
    before, known = move.order[:k], fits | move.fits
    new = {
        second: costs.fit(second, before, known[second]),
        first: costs.fit(first, (*before, second), known[first]),
    }
    gain = sum(known[u].cost - fit.cost for u, fit in new.items())
    order = (*before, second, first, *move.order[k + 2 :])
    return _Move(order, move.gain + gain, move.fits | new)


def _put_off(costs: Costs, order: Order, fits: Fits, v: int) -> list[_Move]:
    """Variable v put behind each of its effects, and behind all, together with what it leads to.

    Causes that act only together explain their effect once all of them come before it, and where
    it has effects of its own it cannot go there alone.
    """
    k = order.index(v)
    before, after = order[:k], order[k + 1 :]
    company, passed, new = [v], list[int](), list[Order]()
    for place, u in enumerate(after):
        causes = (fits[u].relevance > 0) & (fits[u].stake > IDLE)
        if not causes[company].any():
            passed.append(u)
            continue
        if len(company) > 1:  # alone it goes there anyway
            new.append((*before, *passed, u, *company, *after[place + 1 :]))
        company.append(u)
    if len(company) > 1:
        new.append((*before, *passed, *company))
    return [_reordered(costs, order, fits, one) for one in new if one != order]


def _reordered(costs: Costs, order: Order, fits: Fits, new: Order) -> _Move:
    """A new order; only variables with other predecessors are asked again."""
    changed = {u: costs.fit(u, before, fits[u]) for u, before in _others(order, new).items()}
    return _Move(new, sum(fits[u].cost - fit.cost for u, fit in changed.items()), changed)


def _confirmed(costs: Costs, found: Found, guess: _Move) -> _Move:
    """A move of fewer rows, on more of them.

    Those that get more predecessors come first: where they gain too little, so does the move.
    """
    old, new = (_predecessors(order) for order in (found.order, guess.order))
    changed: Fits = {}
    gain = 0.0
    for u in sorted(guess.fits, key=lambda u: len(old[u]) - len(new[u])):
        if gain <= PAYS and len(new[u]) < len(old[u]):
            return _Move(guess.order, -np.inf, {})
        changed[u] = costs.fit(u, new[u], found.fits[u], guess.fits[u])
        gain += found.fits[u].cost - changed[u].cost
    return _Move(guess.order, gain, changed)


def completed(costs: Costs, found: Found) -> Found:
    """The same order, where every variable has been asked for inputs that it still lacks."""
    before = _predecessors(found.order)
    fits = {v: costs.completed(v, before[v], fit) for v, fit in found.fits.items()}
    return found._replace(fits=fits)


def gathered(costs: Costs, found: Found, required: Mask) -> Found:
    """One round: every variable whose inputs show little is asked for a set that acts together.

    Among all others, wherever the order has them, and if that has some that it leads to, also among
    those it does not; it goes behind them, alone or with what it leads to.
    """
    order, fits, moves = found.order, dict(found.fits), 0
    pairs = Pairs.of(costs.X, costs.prior)
    for v in found.order:
        if not costs.makeshift(v, fits[v]):
            continue
        moved = (_behind(costs, order, fits, *one) for one in _sets(costs, order, fits, v, pairs))
        pays = [move for move in moved if move.gain > PAYS and _obeys(move.order, required)]
        if pays:
            order, _, changed = max(pays, key=lambda move: move.gain)
            fits, moves = fits | changed, moves + 1
    return Found(order, fits, moves)


def _sets(
    costs: Costs, order: Order, fits: Fits, v: int, pairs: Pairs
) -> Iterator[tuple[Order, Mask]]:
    """Sets of inputs that promise v more than it has, each with what goes behind it."""
    with_all, has = _led_to(v, order, fits), costs.fit(v, ()).cost - fits[v].cost
    for company in dict.fromkeys([(v,), with_all]):
        candidates = costs.candidates(v, [u for u in order if u not in company])
        chosen, promised = likely_set(costs.target(v), candidates, pairs, costs.prior)
        apart = not chosen[list(with_all)].any()
        if promised > has - DOUBT:
            yield with_all if apart else company, chosen
        if apart:  # of the set that was found among all none is led to
            return


def _behind(costs: Costs, order: Order, fits: Fits, company: Order, chosen: Mask) -> _Move:
    """The first of a company behind the inputs that act on it together, the company too."""
    v, k = company[0], order.index(company[0])
    others = [u for u in order if u not in company]
    fit = costs.acting_together(v, chosen)
    place = max(k, *(others.index(i) + 1 for i in fit.inputs), 0)
    lost = sum(fits[u].stake[v] for u in others[k:place] if fits[u].relevance[v] > 0)
    gain = fits[v].cost - fit.cost
    if gain <= PAYS or gain - lost < -DOUBT:
        return _Move(order, -np.inf, {})
    new = (*others[:place], *company, *others[place:])
    costs.remember(v, others[:place], fit)
    changed = {u: fits[u] for u in _others(order, new)} | {v: fit}
    return _confirmed(costs, Found(order, fits), _Move(new, gain, changed))


def _led_to(v: int, order: Order, fits: Fits) -> Order:
    """Variable v and all that it leads to, in their order."""
    company = [v]
    for u in order[order.index(v) + 1 :]:
        if ((fits[u].relevance > 0) & (fits[u].stake > IDLE))[company].any():
            company.append(u)
    return tuple(company)


def _others(order: Order, new: Order) -> dict[int, Order]:
    """The predecessors of those that have other ones in a new order."""
    old = _predecessors(order)
    return {u: before for u, before in _predecessors(new).items() if set(before) != set(old[u])}


def _predecessors(order: Order) -> dict[int, Order]:
    return {v: order[:k] for k, v in enumerate(order)}


def _obeys(order: Order, required: Mask) -> bool:
    place = np.argsort(order)
    causes, effects = np.nonzero(required)
    return bool((place[causes] < place[effects]).all())


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
