"""What passes compute of the blocks of a scan, and how two such results are one.

Sums of squares are kept around means, so that adding up many rows loses nothing.  Products are
`dot` and not ``@``, during which numpy lets no other thread work where the result is small.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.moments import GroupMoments, Matrix
from rescore.scanning import ALIKE, Beside
from rescore.tables.table import LARGEST
from rescore.text import listing

CHUNK = 2**13  # rows of a block at a time: what is computed from them stays in the cache


class Looked(NamedTuple):
    """What is seen of a table at first sight: of rows that count something."""

    rows: NDArray[Any]  # (), how many
    mass: NDArray[Any]  # (), their weights together
    mean: Matrix  # (d,)
    scatter: Matrix  # (d, d), sums of squares around the mean
    low: Matrix  # (d,)
    high: Matrix
    squares: NDArray[Any]  # (), of their weights
    whole: NDArray[Any]  # (), whether all weights are whole numbers
    gaps: NDArray[Any]  # (d,), missing cells
    left_out: NDArray[Any]  # (), rows that have some
    groups: NDArray[Any]  # (L,), all that are named, sorted
    sample: Matrix  # (m, d), some of the rows
    number: NDArray[np.int64]  # (m,), which they are
    weight: Matrix  # (m,)
    label: NDArray[Any]  # (m,), their groups, where these are named; else (0,)


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

    def of(self, first: int, X: Matrix, beside: Beside = ALIKE) -> Looked:
        """Of a block."""
        low, high = X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf)
        if len(X) and not (low.min() >= -LARGEST and high.max() <= LARGEST):
            self._refuse(first, X, beside)
        w, number = beside.weight, beside.number
        if w is not None and not (w < np.inf).all():
            self._refuse_weight(first, w, beside)
        mine, number = self._mine(first, len(X), number)
        mass, squares, whole = _amounts(np.ones(len(X)) if w is None else w)
        label = np.empty(0) if beside.label is None else beside.label
        gaps = np.zeros(X.shape[1], np.int64) if beside.gaps is None else beside.gaps
        return Looked(
            np.array(len(X)), mass, *around_mean(X, w), low, high, squares, whole,
            gaps, np.array(beside.left_out), np.unique(label), X[mine], number,
            np.ones(len(mine)) if w is None else w[mine], label[mine] if len(label) else label,
        )  # fmt: skip

    def added(self, one: Looked, other: Looked) -> Looked:
        """Of both."""
        sums = [a[None] for a in one[1:4]], [b[None] for b in other[1:4]]
        mass, mean, scatter = (part[0] for part in joined(*sums))
        low, high = np.minimum(one.low, other.low), np.maximum(one.high, other.high)
        gone = one.gaps + other.gaps, one.left_out + other.left_out
        rest = one.squares + other.squares, one.whole & other.whole, *gone
        groups = np.union1d(one.groups, other.groups)
        drawn = (np.concatenate(pair) for pair in zip(one[11:], other[11:], strict=True))
        return Looked(one.rows + other.rows, mass, mean, scatter, low, high, *rest, groups, *drawn)

    def _mine(self, first: int, n: int, number: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Where the chosen rows are in a block, and which they are."""
        if number is None:
            begin, end = np.searchsorted(self.chosen, [first, first + n])
            return self.chosen[begin:end] - first, self.chosen[begin:end]
        mine = np.flatnonzero(np.isin(number, self.chosen, assume_unique=True))
        return mine, number[mine]

    def _refuse(self, first: int, X: Matrix, beside: Beside) -> None:
        bad = ~(np.abs(X) <= LARGEST)
        i, j = (int(each) for each in np.argwhere(bad)[0])
        columns = [self.names[k] for k in np.flatnonzero(bad.any(axis=0))]
        what = "is NaN, missing or infinite" if not np.isfinite(X[i, j]) else f"is {X[i, j]:.3g}"
        raise UnusableError(
            beside.at(first, i),
            f"A cell of column {listing([self.names[j]])} {what}",
            f"Near it {int(bad.sum())} cell(s) of {listing(columns)} cannot be used. Nothing is "
            "imputed silently: leave rows with gaps out (missing='drop'), or fill them in before "
            "the scan.",
        )

    def _refuse_weight(self, first: int, w: Matrix, beside: Beside) -> None:
        i = int(np.flatnonzero(~(w < np.inf))[0])
        raise UnusableError(
            beside.at(first, i),
            f"A weight is {'negative or missing' if np.isnan(w[i]) else w[i]}",
            "Weights of rows must be finite and not negative.",
        )


def _amounts(w: Matrix) -> tuple[Any, Any, Any]:
    """Together, their squares, and whether they are whole."""
    return np.array(w.sum()), np.array(w.dot(w)), np.array(bool((w == np.round(w)).all()))


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
    squares: Matrix  # (K, 2 d), sums of squared residuals, and of residuals, if a rule looks there

    def scaled(self, by: float) -> "Sums":
        """As if every row weighed so many times as much."""
        if by == 1:
            return self
        mass, mean, *rest = self
        return Sums(mass * by, mean, *(part * by for part in rest))

    @property
    def moments(self) -> GroupMoments:
        """Mass in rows, means and covariances within."""
        size = np.maximum(self.mass, 1e-300)
        return GroupMoments(self.mass, self.mean, self.scatter / size[:, None, None])


# Of rows (n, d), and room to compute in: memberships (n, K), log-likelihoods (n,), and squared
# residuals (n, d) or (n, 0).
Rule = Callable[..., tuple[Matrix, Matrix, Matrix]]


def everyone(X: Matrix, room: Any = None) -> tuple[Matrix, Matrix, Matrix]:
    """All rows in one group.

    Examples
    --------
    >>> everyone(np.zeros((2, 3)))[0]
    array([[1.],
           [1.]])
    """
    return np.ones((len(X), 1)), np.zeros(len(X)), np.empty((len(X), 0))


@dataclass(frozen=True, eq=False)
class ByLabel:
    """Rows in the groups that a column names.

    Examples
    --------
    >>> ByLabel(np.array(["u", "v"]), np.array(["v"])).of_labels(np.array(["u", "v"]))[0]
    array([[1., 0.],
           [0., 1.]])
    """

    labels: NDArray[Any]  # (K,), sorted
    sampled: NDArray[Any]  # (m,), of the rows of the sample

    def __call__(self, X: Matrix, room: Any = None) -> tuple[Matrix, Matrix, Matrix]:
        """Of the rows of the sample."""
        return self.of_labels(self.sampled)

    def of_labels(self, label: NDArray[Any]) -> tuple[Matrix, Matrix, Matrix]:
        """Of any rows with these labels."""
        n = len(label)
        return (label[:, None] == self.labels).astype(float), np.zeros(n), np.empty((n, 0))


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

    def of(self, first: int, X: Matrix, beside: Beside = ALIKE) -> Sums:
        """Of a block."""
        if self.rule is everyone and self.expansion is None and self.unit is None:
            return _of_all(X, beside.weight)
        total: Any = None
        room = room_for(len(X), X.shape[1])
        for start in range(0, max(len(X), 1), CHUNK):
            own = slice(start, start + CHUNK)
            some, w = in_units(X[own], self.centre, self.unit), beside.of(own).weight
            P, likelihood, squares = ruled(self.rule, some, beside.of(own), room)
            F = some if self.expansion is None else self.expansion(some)
            if total is None:  # near the mean, so that little is lost to rounding
                near = F.mean(axis=0) if len(F) else np.zeros(F.shape[1])
                room = room if self.expansion is None else room_for(len(X), F.shape[1])
            Q = P if w is None else P * w[:, None]
            likely = likelihood.sum() if w is None else w.dot(likelihood)
            parts = (*sums_of(F, near, Q, room), Q.T.dot(P), likely, Q.T.dot(squares))
            total = parts if total is None else [a + b for a, b in zip(total, parts, strict=True)]
        mass, mean, scatter, overlap, likely, squares = total
        return Sums(*centred(near, mass, mean, scatter), overlap, np.array(likely), squares)

    def added(self, one: Sums, other: Sums) -> Sums:
        """Of both."""
        likelihood = np.array(one.likelihood + other.likelihood)
        squares = one.squares + other.squares
        overlap = one.overlap + other.overlap
        return Sums(*joined(one[:3], other[:3]), overlap, likelihood, squares)


Scatters = tuple[Matrix, Matrix, Matrix]


def room_for(n: int, d: int) -> Matrix:
    """Memory for two chunks of rows.

    Used over and over: where memory goes back to the system at once, as in Dask's workers, that
    is most of what a pass would take.
    """
    return np.empty((2, min(n, CHUNK) * d))


def sums_of(X: Matrix, near: Matrix, P: Matrix, room: Matrix) -> Scatters:
    """Mass (K,), sums (K, p) and sums of products (K, p, p) of rows in groups, from ``near`` on."""
    shape = X.shape[::-1]
    Z, weighted = (part[: X.size].reshape(shape) for part in room)
    np.subtract(X.T, near[:, None], out=Z)
    products = [np.multiply(Z, p, out=weighted).dot(Z.T) for p in P.T]
    return P.sum(axis=0), P.T.dot(Z.T), np.stack(products)


def around_mean(X: Matrix, w: Matrix | None = None) -> tuple[Matrix, Matrix]:
    """The mean (d,) of weighted rows, and sums of squares around it (d, d).

    Examples
    --------
    >>> around_mean(np.array([[1.0], [3.0]]))
    (array([2.]), array([[2.]]))
    """
    n, d = X.shape
    near = X[:CHUNK].mean(axis=0) if n else np.zeros(d)
    Z, products = np.ones((d + 1, min(n, CHUNK))), np.zeros((d + 1, d + 1))
    for start in range(0, n, CHUNK):  # the row of ones makes sums one of the products
        some = X[start : start + CHUNK].T
        Z = Z[:, : some.shape[1]]
        np.subtract(some, near[:, None], out=Z[:d])
        products += (Z if w is None else Z * w[start : start + CHUNK]).dot(Z.T)
    parts = products[d:, d], products[d:, :d], products[None, :d, :d]
    _, mean, scatter = centred(near, *parts)
    return mean[0], scatter[0]


def _of_all(X: Matrix, w: Matrix | None) -> Sums:
    """All rows in one group."""
    mean, scatter = around_mean(X, w)
    mass = np.array([float(len(X)) if w is None else w.sum()])
    return Sums(mass, mean[None], scatter[None], mass[None], np.zeros(()), np.empty((1, 0)))


def in_units(X: Matrix, centre: Matrix | None, unit: Matrix | None) -> Matrix:
    """Rows from a centre on, in units of their own; as they are without."""
    return X if centre is None or unit is None else (X - centre) / unit


def ruled(rule: Rule, X: Matrix, beside: Beside, room: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """What a rule says of rows, where it goes by their labels or by the rows themselves."""
    labelled = getattr(rule, "of_labels", None)
    return rule(X, room) if labelled is None else labelled(beside.label)


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
    return centred(near, *sums_of(X, near, P, np.empty((2, X.size))))


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

    def of(self, first: int, X: Matrix, beside: Beside = ALIKE) -> Stretched:
        """Of a block, cut where stretches begin."""
        rows = np.arange(len(X)) + first if beside.number is None else beside.number
        begins = np.flatnonzero(np.diff(rows // self.rows)) + 1
        edges = np.concatenate([[0], begins, [len(X)]])
        each = [
            self.count.of(first, X[a:b], beside.of(slice(a, b)))
            for a, b in pairwise(edges.tolist())
        ]
        which = rows[edges[:-1]] // self.rows if len(X) else np.array([first // self.rows])
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

    def memberships(self, X: Matrix, beside: Beside = ALIKE) -> Matrix:
        """Of rows (n, d) in the groups, (n, K)."""
        room = room_for(len(X), X.shape[1])
        parts = [
            ruled(self.rule, in_units(X[own], self.centre, self.unit), beside.of(own), room)[0]
            for own in (slice(k, k + CHUNK) for k in range(0, max(len(X), 1), CHUNK))
        ]
        return np.concatenate(parts)

    def of(self, first: int, X: Matrix, beside: Beside = ALIKE) -> Weighed:
        """Of a block; a row that is left out counts nothing and is of no group."""
        P = self.memberships(X, beside)
        w, group = P.dot(self.amount), P.argmax(axis=1).astype(np.int16)
        if beside.weight is not None:
            w = w * beside.weight
        if beside.number is None:
            return Weighed(w, group, beside.keys)
        at, n = beside.number - first, beside.rows
        weight, groups = np.zeros(n), np.full(n, -1, dtype=np.int16)
        weight[at], groups[at] = w, group
        return Weighed(weight, groups, beside.keys)


@dataclass(frozen=True, eq=False)
class Listed:
    """The weights of rows that were all in memory."""

    weight: Matrix  # (n,)
    group: NDArray[np.int16]  # (n,)
    keys: tuple[str, ...] = ()

    def of(self, first: int, X: Matrix, beside: Beside = ALIKE) -> Weighed:
        """Of a block."""
        own = slice(first, first + (len(X) if beside.number is None else beside.rows))
        return Weighed(self.weight[own], self.group[own], beside.keys)
