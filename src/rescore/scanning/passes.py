"""Passes over a scan: a statistic of every block, added up in the order of the blocks.

Blocks are read by threads here or by the workers of a Dask cluster, in any order; their statistics
are added in one order only, so the sum is the same to the last bit.  A pass that was made before,
in this fit or in one that was interrupted, is not made again.
"""

import hashlib
import io
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from rescore.moments import GroupMoments, Matrix
from rescore.scanning.sources import Partition, Piece, Reader, Scan, with_frames
from rescore.staging import write_whole
from rescore.tables.table import LARGEST
from rescore.text import listing

LOG = logging.getLogger("rescore.passes")
AHEAD = 2  # pieces handed out for each worker, so that none waits
RETRIES = 3  # of a piece whose worker died
CHUNK = 2**12  # rows of a block at a time: what is computed from them stays in the cache


class Statistic(Protocol):
    """What a pass computes."""

    kind: type[Any]  # a NamedTuple of arrays

    def of(self, first: int, X: Matrix) -> Any:
        """Of a block whose first row has this number; X (n, d) may be changed."""

    def added(self, one: Any, other: Any) -> Any:
        """Of both, the other's rows being later."""


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
            parts = (*sums_around(near, F, P), P.T @ P, likelihood.sum(), P.T @ squares)
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


def sums_around(near: Matrix, X: Matrix, P: Matrix) -> Scatters:
    """Mass (K,), sums (K, p) and sums of products (K, p, p) of ``X - near`` in groups."""
    Z = X - near
    products = np.stack([(Z * p[:, None]).T @ Z for p in P.T] if P.shape[1] > 1 else [Z.T @ Z])
    return P.sum(axis=0), P.T @ Z, products


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
    return centred(near, *sums_around(near, X, P))


def joined(one: Any, other: Any) -> Scatters:
    """Of two sets of rows together."""
    (m, mean, S), (m2, mean2, S2) = one, other
    mass = m + m2
    apart, share = mean2 - mean, m2 / np.maximum(mass, 1e-300)
    between = np.einsum("k,ki,kj->kij", m * share, apart, apart)
    return mass, mean + apart * share[:, None], S + S2 + between


@dataclass(eq=False)
class Passes:
    """The passes of one fit over a scan, counted.

    Examples
    --------
    >>> from rescore.scanning.sources import scan
    >>> passes = Passes(scan(np.arange(6.0).reshape(3, 2)))
    >>> float(passes.made("all", Count()).mass[0]), passes.count
    (3.0, 1)
    """

    scan: Scan
    done: list[dict[str, Any]] = field(default_factory=list)
    _known: dict[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many there were, those kept from an interrupted fit among them."""
        return len(self.done)

    def made(self, name: str, statistic: Any) -> Any:
        """The statistic of all rows."""
        key = fingerprint([self.scan.identity(), type(statistic).__name__, statistic])
        if key not in self._known:
            begun = time.perf_counter()
            kept = self._kept(key, statistic.kind)
            found = self._computed(name, statistic) if kept is None else kept
            self._known[key] = found
            self._tell(name, key, found, kept is not None, time.perf_counter() - begun)
        return self._known[key]

    def _computed(self, name: str, statistic: Any) -> Any:
        total: Any = None
        try:
            for _, blocks in self.over(statistic, name):
                for block in blocks:
                    total = block if total is None else statistic.added(total, block)
        except UnusableError as bad:
            raise ValueError(bad.in_words(self.scan.where(bad.args[0]))) from None
        return total

    def over(self, statistic: Any, name: str) -> Iterator[tuple[Piece, list[Any]]]:
        """The statistics of all blocks, piece by piece in the order of the rows."""
        found = _here(self.scan, statistic)
        if any(isinstance(part, Partition) for part in self.scan.parts) or self.scan.client:
            from rescore.scanning.cluster import on_cluster

            found = on_cluster(self.scan, statistic)
        for piece, blocks in found:
            yield piece, blocks
            if self.scan.on_pass is not None:
                self.scan.on_pass(name, piece.stop / self.scan.rows)

    def _tell(self, name: str, key: str, found: Any, kept: bool, seconds: float) -> None:
        if not kept and self.scan.folder is not None:
            _write(self.scan.folder / f"pass-{key[:24]}.npz", found)
        self.done.append({"pass": name, "seconds": round(seconds, 3), "kept": kept})
        LOG.info(
            "pass %d, %s: %d rows in %.1f s%s",
            self.count, name, self.scan.rows, seconds, " (kept from before)" * kept,
        )  # fmt: skip

    def _kept(self, key: str, kind: type[Any]) -> Any:
        if self.scan.folder is None:
            return None
        path = self.scan.folder / f"pass-{key[:24]}.npz"
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
                return kind(**{name: arrays[name] for name in kind._fields})
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # not there, or damaged
            return None


def _write(path: Path, found: Any) -> None:
    content = io.BytesIO()
    np.savez(content, **found._asdict())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content.getvalue())


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


def fingerprint(what: Any) -> str:
    """The same for the same values: arrays, numbers, text, and whatever is made of them.

    Examples
    --------
    >>> fingerprint([1, np.zeros(2)]) == fingerprint([1, np.zeros(2)]) != fingerprint([1])
    True
    """
    sha = hashlib.sha256()
    _feed(sha, what)
    return sha.hexdigest()


def _feed(sha: Any, what: Any) -> None:
    sha.update(f"<{type(what).__name__}>".encode())
    if isinstance(what, np.ndarray):
        sha.update(f"{what.dtype.str}{what.shape}".encode() + np.ascontiguousarray(what).tobytes())
    elif isinstance(what, list | tuple):
        for each in what:
            _feed(sha, each)
    elif is_dataclass(what):
        for part in fields(what):
            _feed(sha, getattr(what, part.name))
    elif hasattr(what, "__self__"):  # a method: what it is bound to, and its name
        sha.update(what.__name__.encode())
        _feed(sha, what.__self__)
    else:
        sha.update(repr(what).encode())


def computed(piece: Piece, scan: Any, statistic: Any, frames: Any = ()) -> list[Any]:
    """The statistics of the blocks of a piece, wherever this runs.

    One thread for linear algebra, so that several pieces share the processors and sums do not
    depend on how many there are.
    """
    from threadpoolctl import threadpool_limits

    names, block = scan
    reader = Reader(with_frames(piece, frames), names, block, getattr(statistic, "keys", ()))
    with threadpool_limits(1):
        if getattr(statistic, "keys", ()):
            return [statistic.of(first, X, reader.seen) for first, X in reader.blocks()]
        return [statistic.of(first, X) for first, X in reader.blocks()]


def workers_here(scan: Scan) -> int:
    """Threads: as many as processors, if there is room for them."""
    wanted = scan.jobs or len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else "1")
    room = wanted if scan.memory is None else int(scan.memory / scan.need)
    return max(1, min(wanted, room))


def _here(scan: Scan, statistic: Any) -> Iterator[tuple[Piece, list[Any]]]:
    """By threads of this process, a few pieces ahead of what has been added."""
    workers = workers_here(scan)
    waiting: deque[tuple[Piece, Any]] = deque()
    about = scan.names, scan.block
    with ThreadPoolExecutor(workers) as pool:
        try:
            for piece in scan.pieces(workers):
                waiting.append((piece, pool.submit(computed, piece, about, statistic)))
                if len(waiting) > AHEAD * workers:
                    piece, future = waiting.popleft()
                    yield piece, future.result()
            while waiting:
                piece, future = waiting.popleft()
                yield piece, future.result()
        finally:
            for _, future in waiting:
                future.cancel()
