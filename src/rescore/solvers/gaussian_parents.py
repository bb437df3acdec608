"""The parents of a variable among the inputs of its Gaussian process, by what they are worth.

An input must be worth so much evidence by itself, whatever stands in for it, and all of them so
much together.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from rescore.moments import Matrix
from rescore.protocols import Mask
from rescore.solvers.gaussian_covariance import Target
from rescore.solvers.relevance import Fit, Prior, cost, maximise

STEPS = 30  # of a fit, at most
CERTAIN = 4.0  # thresholds that an edge is worth, the others as they are: it needs no refit
PARTS = 4, 2  # every so manieth row is a part of them, where FEWEST are that many
FEWEST = 200


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


class Parents(NamedTuple):
    """A fit on inputs of which none can be spared, and what they are worth."""

    fit: Fit
    worth: Matrix  # (d,), log evidence, of each input
    together: float  # of all that are not required

    def number(self, required: Mask) -> int:
        """How many there are beside the required ones."""
        return int(((self.fit.relevance > 0) & ~required).sum())


def parents(target: Target, fit: Fit, required: Mask, least: float, prior: Prior) -> Parents:
    """Those inputs of a fit that are each worth ``least`` of log evidence.

    The least worthy goes first; what it is worth counts only after the others have had the
    chance to stand in for it.  Where all together are not worth that, none is.
    """
    alone = maximise(
        target, required, np.where(np.r_[required, True, True], fit.theta, 0.0), STEPS, prior
    )
    fit = maximise(target, fit.relevance > 0, fit.theta, STEPS, prior)
    if alone.cost - fit.cost < least:
        fit = alone
    kept = fit.relevance > 0
    worth = worths(target, fit, prior, CERTAIN * least)
    sure = required.copy()
    while (kept & ~sure).any():
        i = int(np.argmin(np.where(kept & ~sure, worth, np.inf)))
        if worth[i] > CERTAIN * least:
            break
        without = kept.copy()
        without[i] = False
        start = fit.theta.copy()
        start[i] = 0.0
        other = maximise(target, without, start, STEPS, prior, limit=fit.cost + least)
        if other.cost - fit.cost > least:
            sure[i], worth[i] = True, other.cost - fit.cost
            continue
        kept, fit = other.relevance > 0, other
        worth, sure = worths(target, fit, prior, CERTAIN * least), required.copy()
    return Parents(fit, np.where(kept, worth, 0.0), alone.cost - fit.cost)


def joint(
    target: Target,
    found: Parents,
    required: Mask,
    least: float,
    prior: Prior,
    among: int,
    odds: float = np.inf,
    one: float | None = None,
) -> Parents:
    """Parents that are also worth enough together; the least worthy go until they are.

    Of many inputs that mean nothing some fit the noise jointly, and then none can be spared, the
    others having nothing left to say: see `surcharge`.  Each of those left must be worth ``one``,
    by default ``least``.
    """
    one = least if one is None else one
    while not _pays(found, found.number(required), least, among, odds):
        chosen = (found.fit.relevance > 0) & ~required
        worst = np.argmin(np.where(chosen, found.worth, np.inf))
        theta = np.where(np.arange(len(found.fit.theta)) == worst, 0.0, found.fit.theta)
        found = parents(target, found.fit._replace(theta=theta), required, one, prior)
    return found


def causes(
    targets: dict[int, Target],
    fits: dict[int, Fit],
    required: Mask,
    among: NDArray[np.intp],
    pairs: int,
    false_edges: float,
    prior: Prior,
) -> dict[int, Parents]:
    """The parents of every variable, among so many (d,), at odds that the table itself tells.

    The odds against an edge are first those of parents that are certain at any odds; what is worth
    an even bet then counts too, until no more come in.
    """
    least = threshold(false_edges, pairs)

    def odds(found: dict[int, Parents], price: float) -> float:
        number = {j: one.number(required[:, j]) for j, one in found.items()}
        pay = {j for j, k in number.items() if _pays(found[j], k, least, int(among[j]), price)}
        edges = int(required.sum()) + sum(number[j] for j in pay)
        return odds_against(edges, pairs, false_edges)

    found = {j: parents(targets[j], fits[j], required[:, j], least, prior) for j in fits}
    now = odds(found, np.inf)
    one = asked_of_one(least, now, prior)
    for j in fits:
        if len(found[j].fit.inputs) < len(fits[j].inputs):
            found[j] = parents(targets[j], fits[j], required[:, j], one, prior)
    while (new := odds(found, now)) < now:
        now = new
    return {
        j: joint(targets[j], found[j], required[:, j], least, prior, int(among[j]), now, one)
        for j in fits
    }


def _pays(found: Parents, k: int, least: float, among: int, odds: float) -> bool:
    """Whether k inputs are worth enough together."""
    return k == 0 or found.together > least + surcharge(k, among, odds)


def surcharge(k: int, among: int, odds: float) -> float:
    """What k inputs must be worth together, beyond what one must be: the price of their choice.

    It is the logarithm of how many sets of k an input ``among`` so many is in, because one of
    these sets is sure to please; or, where that is less, the odds against an edge in this table
    for each further one: sets of many causes are no surprise where there are many edges.

    Examples
    --------
    >>> surcharge(1, among=5, odds=np.inf), round(np.exp(surcharge(3, among=5, odds=np.inf)))
    (0.0, 6)
    >>> surcharge(3, among=5, odds=0.5)
    1.0
    """
    if k < 2:
        return 0.0
    sets = float(gammaln(among) - gammaln(k) - gammaln(among - k + 1))
    return min(sets, (k - 1) * max(odds, 0.0))


def asked_of_one(least: float, odds: float, prior: Prior) -> float:
    """What an input must be worth beside others that are there: an even bet in this table.

    No more than ``least``, what chance exceeds as often as is asked for; and no less than that
    without what the prior takes from chance already.

    Examples
    --------
    >>> asked_of_one(4.7, odds=0.5, prior=Prior(level=3.0, spread=0.3))
    0.5
    >>> round(asked_of_one(4.7, odds=0.5, prior=Prior()), 1)  # that has learned nothing
    3.9
    """
    return min(least, max(odds, least - prior.entrance, 0.0))


def odds_against(edges: int, pairs: int, false_edges: float) -> float:
    """The logarithm of the odds that a pair of variables is no edge, where so many are.

    Examples
    --------
    >>> round(odds_against(edges=20, pairs=45, false_edges=0.2), 1)
    0.2
    """
    share = (edges + false_edges) / (pairs + 2 * false_edges)
    return float(np.log((1 - share) / share))


def worths(target: Target, fit: Fit, prior: Prior, enough: float = np.inf) -> Matrix:
    """What each input is worth with the others as they are, (d,): at least what it is after all.

    An input that is worth ``enough`` on a part of the rows is not asked for on more of them.
    """
    worth, unclear = np.zeros(len(fit.relevance)), fit.inputs
    for every in (*PARTS, 1) if enough < np.inf else (1,):
        if every > 1 and len(target.y) < every * FEWEST:
            continue
        part = target.part(slice(None, None, every))
        whole = cost(fit.theta, part, prior) if every > 1 and len(unclear) else fit.cost
        for i in unclear:
            theta = fit.theta.copy()
            theta[i] = 0.0
            worth[i] = cost(theta, part, prior) - whole
        unclear = unclear[worth[unclear] < enough]
    return worth
