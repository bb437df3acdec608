"""Rows that may be anywhere: scans of tables too large for memory, and passes over them.

Here is what all of it speaks of: rows block by block, and what is known of them besides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.text import listing, printable

PADDING = 64  # rows, so that columns do not fall on the same lines of the cache

Block = NDArray[np.float64]  # (n, d), each column in one piece of memory


class Beside(NamedTuple):
    """What is known of the rows of a block besides the columns to learn from."""

    weight: Any = None  # (n,), of the caller, above zero; None is one each
    label: Any = None  # (n,), their groups, if a column names them
    keys: tuple[Any, ...] = ()  # of all rows, also of those that are left out
    number: Any = None  # (n,), of the rows that are not left out; None if none is
    rows: int = 0  # how many there are with those
    gaps: Any = None  # (d,), missing cells, where rows that have some are left out
    left_out: int = 0  # how many these are

    def of(self, own: Any) -> "Beside":
        """Of some of the rows."""
        parts = (self.weight, self.label, self.number)
        weight, label, number = (None if part is None else part[own] for part in parts)
        return Beside(weight, label, self.keys, number)

    def at(self, first: int, i: int) -> int:
        """The number of a row in the table."""
        return first + i if self.number is None else int(self.number[i])


ALIKE = Beside()


class Layout(NamedTuple):
    """What must be known of a scan to read its rows."""

    names: tuple[Any, ...]
    block: int
    weights: str | None = None
    groups: str | None = None
    gaps: bool = False  # whether rows with gaps are left out

    @property
    def beside(self) -> list[str]:
        """Columns that are read besides."""
        return [name for name in (self.weights, self.groups) if name is not None]


class Piece(NamedTuple):
    """Rows that one task reads: from ``start`` up to ``stop``, and the parts that hold them."""

    start: int
    stop: int
    first: int  # the row number at which the parts begin
    parts: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Held:
    """Rows in memory."""

    values: Any  # (n, d)
    label: str = "the table in memory"
    beside: tuple[Any, ...] = ()  # further columns

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.values)

    def columns(self, names: Sequence[str], keys: Sequence[str] = ()) -> Iterator[list[Any]]:
        """All columns at once."""
        if isinstance(self.values, pd.DataFrame):  # a partition, whose columns are found by name
            _refuse_other_columns(self.values, names, self.label)
            yield [self.values[name].to_numpy() for name in (*names, *keys)]
        else:
            yield [*self.values.T, *self.beside]


@dataclass(frozen=True, eq=False)
class Partition:
    """Rows that a Dask graph will make, where the task runs that reads them."""

    graph: Any  # dask's Delayed
    rows: int
    label: str

    def held(self, frame: Any) -> Held:
        """The rows, now that they are there."""
        if len(frame) != self.rows:
            raise ValueError(
                f"{self.label} had {self.rows} rows when it was first looked at and has "
                f"{len(frame)} now. What makes it must give the same rows every time."
            )
        return Held(frame, self.label)


@dataclass(eq=False)
class Reader:
    """The blocks of a piece, one after another in the same memory."""

    piece: Piece
    layout: Layout
    keys: tuple[str, ...] = ()

    def blocks(self) -> Iterator[tuple[int, Block, Beside]]:
        """The number of the first row of each, its rows (n, d), and what is known of them.

        Columns are copied in long pieces, because threads wait for each other whenever one of
        them returns from numpy to Python.
        """
        at, stop, d = self.piece.start, self.piece.stop, len(self.layout.names)
        memory, filled = np.empty((d, min(self.layout.block, stop - at) + PADDING)), 0
        further: list[Any] = []
        for columns in self._clipped():
            start, length = 0, len(columns[0])
            while start < length:
                size = min(self.layout.block, stop - at)
                take = min(length - start, size - filled)
                for row, column in zip(memory, columns, strict=False):
                    row[filled : filled + take] = column[start : start + take]
                further.append([column[start : start + take] for column in columns[d:]])
                filled, start = filled + take, start + take
                if filled == size:
                    yield self._with_beside(at, memory[:, :size].T, further)
                    at, filled = at + size, 0
                    further.clear()

    def _with_beside(self, at: int, X: Block, further: list[Any]) -> tuple[int, Block, Beside]:
        """A block without the rows that count nothing, and what is known of the others."""
        columns = [np.concatenate(pieces) for pieces in zip(*further, strict=True)]
        known = iter(columns)
        named = self.layout.weights
        weight = None if named is None else _amounts(next(known), named)
        label = None if self.layout.groups is None else _labels(next(known))
        beside = Beside(weight, label, tuple(known), rows=len(X))
        used = np.full(len(X), True) if weight is None else ~(weight == 0)
        if self.layout.gaps:
            missing = np.isnan(X) & used[:, None]
            bad = missing.any(axis=1)
            beside = beside._replace(gaps=missing.sum(axis=0), left_out=int(bad.sum()))
            used &= ~bad
        if used.all():
            return at, X, beside
        cut = beside.of(used)
        left = {"number": at + np.flatnonzero(used), "weight": cut.weight, "label": cut.label}
        return at, np.asfortranarray(X[used]), beside._replace(**left)

    def _clipped(self) -> Iterator[list[Any]]:
        """Columns as they come, without the rows before the piece and after it."""
        first = self.piece.first
        for part in self.piece.parts:
            for columns in part.columns(self.layout.names, (*self.layout.beside, *self.keys)):
                low, high = self.piece.start - first, self.piece.stop - first
                first += len(columns[0])
                if high <= 0:
                    return
                if low > 0 or high < len(columns[0]):
                    columns = [column[max(low, 0) : high] for column in columns]
                if len(columns[0]):
                    yield columns


def _amounts(column: Any, name: str) -> NDArray[np.float64]:
    """Weights; those that are none are refused where all rows are looked at."""
    if column.dtype.kind not in "biuf":
        raise ValueError(
            f"Column '{printable(name)}' is to weigh the rows, so it must hold numbers, got the "
            f"type {column.dtype}."
        )
    w: NDArray[np.float64] = column.astype(np.float64)
    w[w < 0] = np.nan
    return w


def _labels(column: Any) -> NDArray[Any]:
    """Words as numpy knows them; numbers as they are."""
    return column.astype(str) if column.dtype == object else column


def with_frames(piece: Piece, frames: Sequence[Any]) -> Piece:
    """The piece with the partitions that Dask has made for it in their places."""
    waiting = iter(frames)
    parts = [
        part.held(next(waiting)) if isinstance(part, Partition) else part for part in piece.parts
    ]
    return piece._replace(parts=tuple(parts))


def _refuse_other_columns(frame: pd.DataFrame, names: Sequence[Any], label: str) -> None:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(f"{label} has no column {listing(missing)}, only {listing(frame.columns)}")
