"""A sample that stands for all rows of a scan: what is asked of moments is asked of all of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rescore.moments import GroupMoments, Matrix, Moments, Rows
from rescore.scanning.passes import Passes
from rescore.scanning.statistics import Count, Rule, Sums, everyone

FOLLOWS = 1e-6  # largest part of a weight that may be rounding


@dataclass(frozen=True, eq=False)
class Digest(Rows):
    """Sampled rows (m, d), and behind them passes over all rows, which fall into groups by a rule.

    Moments are exact for weights that follow from the groups, as equal ones do: of the weights of
    the sampled rows only how much each group counts is read.

    Examples
    --------
    >>> from rescore.scanning.sources import scan
    >>> X = np.arange(8.0).reshape(8, 1)
    >>> rows = Digest(X[:2], Passes(scan(X)), Moments(X.mean(axis=0), np.cov(X.T, ddof=0)[None]))
    >>> rows.moments(np.full(2, 0.5)).mean
    array([3.5])
    """

    passes: Passes
    whole: Moments  # of all rows alike
    rule: Rule = everyone
    centre: Matrix | None = None  # (d,), and the units that rows are put into
    unit: Matrix | None = None
    expansion: Callable[[Matrix], Matrix] | None = None
    width: int | None = None
    prior: Matrix | None = None  # (m,), the callers' weights of the sampled rows; None is alike
    scale: float = 1.0  # rows that a weight of one stands for

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of sampled rows and of variables, or of features."""
        return len(self.matrix()), self.matrix().shape[1] if self.width is None else self.width

    def grouped(self, rule: Rule) -> "Digest":
        """The same rows in the groups of another rule."""
        return replace(self, rule=rule)

    def only(self, columns: Any) -> Rows:
        """These columns of the sample."""
        return Rows(self.columns(columns))

    def expanded(self, expansion: Callable[[Matrix], Matrix], width: int) -> "Digest":
        """The same rows with features of theirs in the place of their columns."""
        return replace(self, expansion=expansion, width=width)

    def sums(self) -> Sums:
        """Of all rows in groups; one pass, or none if it was made before."""
        name = "groups of rows" if self.expansion is None else "features"
        count = Count(self.rule, self.expansion, self.centre, self.unit)
        found: Sums = self.passes.made(name, count)
        return found.scaled(self.scale)

    def memberships(self) -> Matrix:
        """Of the sampled rows, (m, K)."""
        return self.rule(self.matrix())[0]

    def factors(self, w: Matrix) -> Matrix:
        """How much more each sampled row counts than the caller said, (m,)."""
        return w if self.prior is None else w / (self.prior * len(w))

    def moments(self, w: Matrix) -> Moments:
        """Of all rows, each group counting as much as it does under the weights of the sample."""
        w = self.factors(w)
        if self.expansion is None and np.ptp(w) <= FOLLOWS * np.abs(w).max():
            return self.whole
        P, sums = self.memberships(), self.sums()
        c = np.linalg.lstsq(P, w, rcond=None)[0]
        if np.abs(P @ c - w).max() > FOLLOWS * np.abs(w).max():
            raise ValueError("These weights of sampled rows do not follow from groups of rows.")
        mass, mean, S = sums.moments
        share = mass * c / (mass @ c)
        middle = share @ mean
        apart = mean - middle
        return Moments(
            middle, np.tensordot(share, S + apart[:, :, None] * apart[:, None, :], axes=1)
        )

    def group_moments(self, membership: Matrix) -> GroupMoments:
        """Of all rows in the groups of the rule, their masses in the unit of the memberships."""
        mass, mean, S = self.sums().moments
        if membership.shape[1] != len(mass):
            raise ValueError(
                f"{membership.shape[1]} groups of sampled rows are not those of all rows, "
                f"{len(mass)}."
            )
        return GroupMoments(mass / mass.sum() * membership.sum(), mean, S)
