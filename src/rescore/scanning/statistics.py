"""What passes compute of the blocks of a scan, and how two such results are one.

Sums of squares are kept around means, so that adding up many rows loses nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.moments import GroupMoments, Matrix
from rescore.tables.table import LARGEST
from rescore.text import listing

CHUNK = 2**12  # rows of a block at a time: what is computed from them stays in the cache


class Looked(NamedTuple):
    """What is seen of a table at first sight."""

    rows: NDArray[Any]  # (), how many
    mean: Matrix  # (d,)
    scatter: Matrix  # (d, d), sums of squares around the mean
    low: Matrix  # (d,)
    high: Matrix
    sample: Matrix  # (m, d), some of the rows


@dataclass(frozen=True, eq=False)
class Look:
    """The moments of all rows, their extremes, and the rows with these numbers.

    A cell that is not finite is an error that says where it is.

    Examples
    --------
    >>> look = Look(np.array([1]), ("a",))
    >>> look.of(0, np.array([[1.0], [3.0]])).sample
    array([[3.]])
    """

    chosen: NDArray[np.int64]  # rising
    names: tuple[Any, ...]
    kind = Looked

    def of(self, first: int, X: Matrix) -> Looked:
        """Of a block."""
        low, high = X.min(axis=0), X.max(axis=0)
        if not (low.min() >= -LARGEST and high.max() <= LARGEST):
            self._refuse(first, X)
        begin, end = np.searchsorted(self.chosen, [first, first + len(X)])
        some = X[self.chosen[begin:end] - first].copy()
        mean = X.mean(axis=0)
        Z = X - mean
        return Looked(np.array(len(X)), mean, Z.T @ Z, low, high, some)

    def added(self, one: Looked, other: Looked) -> Looked:
        """Of both."""
        rows = one.rows + other.rows
        apart = other.mean - one.mean
        share = other.rows / rows
        between = np.outer(apart, apart) * (one.rows * share)
        return Looked(
            rows,
            one.mean + apart * share,
            one.scatter + other.scatter + between,
            np.minimum(one.low, other.low),
            np.maximum(one.high, other.high),
            np.concatenate([one.sample, other.sample]),
        )

    def _refuse(self, first: int, X: Matrix) -> None:
        bad = ~(np.abs(X) <= LARGEST)
        i, j = (int(each) for each in np.argwhere(bad)[0])
        columns = [self.names[k] for k in np.flatnonzero(bad.any(axis=0))]
        what = "is NaN, missing or infinite" if not np.isfinite(X[i, j]) else f"is {X[i, j]:.3g}"
        raise UnusableError(
            first + i,
            f"A cell of column {listing([self.names[j]])} {what}",
            f"Near it {int(bad.sum())} cell(s) of {listing(columns)} cannot be used. Nothing is "
            "imputed silently: leave such rows out, or fill them in, before the scan.",
        )


class UnusableError(ValueError):
    """A row that cannot be used: its number, and what to say before and after where it is."""

    def in_words(self, where: str) -> str:
        """The whole of it."""
        _, before, after = self.args
        return f"{before}: {where}. {after}"


class Sums(NamedTuple):
    """Of K groups of rows and p features."""

    mass: Matrix  # (K,), in rows
    mean: Matrix  # (K, p)
    scatter: Matrix  # (K, p, p), sums of squares around the means
    overlap: Matrix  # (K, K), sums of products of memberships
    likelihood: Matrix  # (), of all rows
    squares: Matrix  # (K, d), sums of squared residuals, where the rule looks at them

    @property
    def moments(self) -> GroupMoments:
        """Mass in rows, means and covariances within."""
        size = np.maximum(self.mass, 1e-300)
        return GroupMoments(self.mass, self.mean, self.scatter / size[:, None, None])


# Of rows (n, d): memberships (n, K), log-likelihoods (n,), squared residuals (n, d) or (n, 0).
Rule = Callable[[Matrix], tuple[Matrix, Matrix, Matrix]]


def everyone(X: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """All rows in one group.

    Examples
    --------
    >>> everyone(np.zeros((2, 3)))[0]
    array([[1.],
           [1.]])
    """
    return np.ones((len(X), 1)), np.zeros(len(X)), np.empty((len(X), 0))


@dataclass(frozen=True, eq=False)
class Count:
    """The moments of groups of rows, whose memberships follow from the rows by a rule.

    Examples
    --------
    >>> Count().of(0, np.array([[1.0], [3.0]])).moments.covariance
    array([[[1.]]])
    """

    rule: Rule = everyone
    expansion: Callable[[Matrix], Matrix] | None = None  # features in the place of columns
    centre: Matrix | None = None  # (d,), and the units that the rows are put into first
    unit: Matrix | None = None
    kind = Sums

    def of(self, first: int, X: Matrix) -> Sums:
        """Of a block."""
        if self.unit is not None and self.centre is not None:
            X = (X - self.centre) / self.unit
        total: Any = None
        for start in range(0, len(X), CHUNK):
            some = X[start : start + CHUNK]
            P, likelihood, squares = self.rule(some)
            F = some if self.expansion is None else self.expansion(some)
            if total is None:  # near the mean, so that little is lost to rounding
                near = F.mean(axis=0)
            F -= near  # the rows are nobody else's
            parts = (*sums_of(F, P), P.T @ P, likelihood.sum(), P.T @ squares)
            total = parts if total is None else [a + b for a, b in zip(total, parts, strict=True)]
        mass, mean, scatter, overlap, likelihood, squares = total
        rest = overlap, np.array(likelihood), squares
        return Sums(*centred(near, mass, mean, scatter), *rest)

    def added(self, one: Sums, other: Sums) -> Sums:
        """Of both."""
        likelihood = np.array(one.likelihood + other.likelihood)
        squares = one.squares + other.squares
        overlap = one.overlap + other.overlap
        return Sums(*joined(one[:3], other[:3]), overlap, likelihood, squares)


Scatters = tuple[Matrix, Matrix, Matrix]


def sums_of(Z: Matrix, P: Matrix) -> Scatters:
    """Mass (K,), sums (K, p) and sums of products (K, p, p) of rows in groups."""
    if P.shape[1] == 1:  # where all rows are in it
        return P.sum(axis=0), P.T @ Z, (Z.T @ Z)[None]
    return P.sum(axis=0), P.T @ Z, np.stack([(Z * p[:, None]).T @ Z for p in P.T])


def centred(near: Matrix, mass: Matrix, total: Matrix, products: Matrix) -> Scatters:
    """Mass (K,), means (K, p) and sums of squares around them (K, p, p)."""
    away = total / np.maximum(mass, 1e-300)[:, None]
    products = products - mass[:, None, None] * away[:, :, None] * away[:, None, :]
    return mass, near + away, (products + products.transpose(0, 2, 1)) / 2


def scatters(X: Matrix, P: Matrix) -> Scatters:
    """Mass (K,), means (K, p) and sums of squares around them (K, p, p) of rows in groups.

    Examples
    --------
    >>> mass, mean, scatter = scatters(np.array([[1.0], [3.0]]), np.array([[1.0, 0], [1.0, 0]]))
    >>> mass, mean[0], scatter[0]
    (array([2., 0.]), array([2.]), array([[2.]]))
    """
    near = X.mean(axis=0)
    return centred(near, *sums_of(X - near, P))


def joined(one: Any, other: Any) -> Scatters:
    """Of two sets of rows together."""
    (m, mean, S), (m2, mean2, S2) = one, other
    mass = m + m2
    apart, share = mean2 - mean, m2 / np.maximum(mass, 1e-300)
    between = np.einsum("k,ki,kj->kij", m * share, apart, apart)
    return mass, mean + apart * share[:, None], S + S2 + between


class Stretched(NamedTuple):
    """`Sums` of U stretches of rows, one after another."""

    first: NDArray[np.int64]  # (U,), which stretch each is
    mass: Matrix  # (U, K)
    mean: Matrix
    scatter: Matrix
    overlap: Matrix
    likelihood: Matrix
    squares: Matrix

    def drawn(self, counts: NDArray[Any]) -> Sums:
        """Of the stretches, each taken ``counts`` (U,) times."""
        m = counts[:, None] * self.mass
        mass = m.sum(axis=0)
        mean = np.einsum("uk,ukp->kp", m, self.mean) / np.maximum(mass, 1e-300)[:, None]
        apart = self.mean - mean
        between = np.einsum("uk,ukp,ukq->kpq", m, apart, apart, optimize=True)
        rest = [np.tensordot(counts, part, axes=1) for part in self[3:]]
        return Sums(mass, mean, rest[0] + between, rest[1], np.asarray(rest[2]), rest[3])


@dataclass(frozen=True, eq=False)
class Stretches:
    """What `Count` counts, of every stretch of so many rows by itself.

    Examples
    --------
    >>> found = Stretches(Count(), 2).of(0, np.array([[1.0], [3.0], [5.0]]))
    >>> found.mass[:, 0], found.drawn(np.array([1, 1])).mean
    (array([2., 1.]), array([[3.]]))
    """

    count: Count
    rows: int
    kind = Stretched

    def of(self, first: int, X: Matrix) -> Stretched:
        """Of a block, cut where stretches begin."""
        cuts = np.arange(-(-first // self.rows) * self.rows, first + len(X), self.rows) - first
        edges = np.unique(np.concatenate([[0], cuts, [len(X)]]))
        each = [self.count.of(first + a, X[a:b]) for a, b in pairwise(edges.tolist())]
        which = (first + edges[:-1]) // self.rows
        return Stretched(which, *(np.stack(parts) for parts in zip(*each, strict=True)))

    def added(self, one: Stretched, other: Stretched) -> Stretched:
        """One after another; a stretch that goes on is one."""
        if one.first[-1] == other.first[0]:
            last, begun = (Sums(*(part[at] for part in s[1:])) for s, at in ((one, -1), (other, 0)))
            whole = self.count.added(last, begun)
            one = Stretched(one.first[:-1], *(part[:-1] for part in one[1:]))
            parts = (np.concatenate([[w], p[1:]]) for w, p in zip(whole, other[1:], strict=True))
            other = Stretched(other.first, *parts)
        return Stretched(*(np.concatenate(pair) for pair in zip(one, other, strict=True)))


class Weighed(NamedTuple):
    """Of a block: the weight of every row, the group it most likely is of, and its keys."""

    weight: Matrix
    group: NDArray[np.int16]
    keys: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Weigh:
    """The weights of rows by their groups, group k counting ``amount[k]`` a row.

    Examples
    --------
    >>> Weigh(np.array([0.5])).of(0, np.zeros((2, 1))).weight
    array([0.5, 0.5])
    """

    amount: Matrix  # (K,)
    rule: Rule = everyone
    centre: Matrix | None = None
    unit: Matrix | None = None
    keys: tuple[str, ...] = ()

    def memberships(self, X: Matrix) -> Matrix:
        """Of rows (n, d) in the groups, (n, K)."""
        if self.unit is not None and self.centre is not None:
            X = (X - self.centre) / self.unit
        return self.rule(X)[0]

    def of(self, first: int, X: Matrix, seen: Any = ()) -> Weighed:
        """Of a block."""
        P = self.memberships(X)
        keys = tuple(np.concatenate(pieces) for pieces in zip(*seen, strict=True))
        return Weighed(P @ self.amount, P.argmax(axis=1).astype(np.int16), keys)


@dataclass(frozen=True, eq=False)
class Listed:
    """The weights of rows that were all in memory."""

    weight: Matrix  # (n,)
    group: NDArray[np.int16]  # (n,)
    keys: tuple[str, ...] = ()

    def of(self, first: int, X: Matrix, seen: Any = ()) -> Weighed:
        """Of a block."""
        own = slice(first, first + len(X))
        keys = tuple(np.concatenate(pieces) for pieces in zip(*seen, strict=True))
        return Weighed(self.weight[own], self.group[own], keys)
