"""A table that is read in passes: rows in files, on a cluster or in memory, in one fixed order.

Whatever the rows are stored in, they are handed out in blocks that begin at fixed row numbers.  So
what is computed from the blocks, and added up in their order, does not depend on how the table is
cut into files, row groups or partitions, nor on who reads them.
"""

import shutil
import weakref
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from rescore.scanning import Held, Layout, Partition, Piece
from rescore.scanning.files import is_remote, parts_of, text_parts
from rescore.tables.table import Table, as_table
from rescore.text import listing, printable
from rescore.validation import check_integer

SAMPLE = 2**14  # rows that a fit looks at one by one; where there are more, a sample of them
CELLS = 2**20  # of a block, 8 MB at most: its rows are a power of two
SPAN = 2**19  # rows that one task reads at least
ROW_GROUPS = 4  # that it reads at least, because those at its ends may be read by two tasks
UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "B": 1.0}
COPIES = 2  # of a block that are in memory at a time, about
READ = 2**27  # bytes that are read ahead, decoded and on their way, at most


@dataclass(frozen=True, eq=False)
class Scan:
    """A table to be read in passes, as `scan` makes it; `Linear`, `Additive` and `ReScore` fit it.

    Examples
    --------
    >>> import numpy as np
    >>> table = scan(np.zeros((5, 2)))
    >>> table.rows, table.names
    (5, ('x0', 'x1'))
    """

    names: tuple[Any, ...]
    parts: tuple[Any, ...]  # with rows and label each, in order
    keys: tuple[str, ...] = ()
    client: Any = None  # a Dask client, or its address
    folder: Path | None = None  # where finished passes are kept
    jobs: int | None = None
    memory: float | None = None  # bytes
    on_pass: Callable[[str, float], Any] | None = None
    weights: str | None = None  # columns that are not learned from
    groups: str | None = None
    gaps: bool = False  # whether rows with gaps are left out

    @cached_property
    def ends(self) -> list[int]:
        """The row number after the last of each part."""
        return list(accumulate(part.rows for part in self.parts))

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.ends[-1] if self.parts else 0

    @property
    def columns(self) -> tuple[Any, ...]:
        """The names, as a table in memory has them."""
        return self.names

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        return self.rows, len(self.names)

    @property
    def block(self) -> int:
        """Rows of a block."""
        return 2 ** max(int(np.log2(CELLS / len(self.names))), 8)

    def identity(self) -> list[Any]:
        """What tells this table from others, for passes that are kept."""
        stamps = [getattr(part, "stamp", None) for part in self.parts]
        besides = [self.weights, self.groups, self.gaps]
        return [list(map(str, self.names)), self.ends, stamps, besides]

    @property
    def layout(self) -> Layout:
        """What must be known to read its rows."""
        return Layout(self.names, self.block, self.weights, self.groups, self.gaps)

    def where(self, row: int) -> str:
        """In words where a row is: file and row group, and its number there.

        Examples
        --------
        >>> scan(np.zeros((5, 2))).where(3)
        'the table in memory, row 3 (counted from 0)'
        """
        at = bisect_right(self.ends, row)
        first = self.ends[at - 1] if at else 0
        return f"{self.parts[at].label}, row {row - first} (counted from 0)"

    def pieces(self, workers: int = 1) -> list[Piece]:
        """What to hand out, whole blocks each, so that several workers have enough to do."""
        largest = max((part.rows for part in self.parts), default=0)
        wanted = max(SPAN, ROW_GROUPS * largest)
        unit = self.block
        wanted = max(min(wanted, -(-self.rows // (4 * workers))), unit)
        step = unit * -(-wanted // unit)
        starts = range(0, self.rows, step)
        return [self._piece(start, min(start + step, self.rows)) for start in starts]

    def _piece(self, start: int, stop: int) -> Piece:
        first = bisect_right(self.ends, start)
        last = bisect_right(self.ends, stop - 1)
        return Piece(
            start, stop, self.ends[first - 1] if first else 0, self.parts[first : last + 1]
        )

    @property
    def need(self) -> float:
        """Bytes that one task has in memory at a time, about."""
        d = len(self.names)
        largest = max((part.rows for part in self.parts), default=0)
        return float(8 * d * COPIES * self.block + min(READ, 16 * d * largest))


def scan(
    source: Any,
    *,
    drop: Sequence[str] = (),
    keys: Sequence[str] = (),
    weights: str | None = None,
    groups: str | None = None,
    client: Any = None,
    keep: Any = None,
    memory: str | float | None = None,
    jobs: int | None = None,
    on_pass: Callable[[str, float], Any] | None = None,
) -> Scan:
    """A table that is read in passes and never held in memory whole.

    Every file's columns are looked at before anything is read: a part with other columns or other
    types is an error that names it.  Columns are matched by name.

    Parameters
    ----------
    source : path, list of paths, pyarrow dataset, Dask DataFrame, or table in memory
        A Parquet file, a folder of them, a glob such as ``"data/*.parquet"``, an address that
        fsspec knows (``s3://...``), or a text file, which is read once in chunks.
    drop : list of names
        Columns to leave out.
    keys : list of names
        Columns that tell rows from each other: not used in the fit, written beside the weights.
    weights : str, optional
        The column that says how often each row counts, as ``sample_weight`` does in memory.
    groups : str, optional
        The column that names the group of each row, for ``weighting="inverse-propensity"``.
    client : distributed.Client or str, optional
        A Dask cluster, or the address of one, whose workers read the files.
    keep : path, optional
        A folder for finished passes: the same fit goes on from there if it is interrupted.
    memory : str or float, optional
        Such as ``"2GB"``: as many threads are used as have room in it.
    jobs : int, optional
        Threads; as many as processors by default.
    on_pass : callable, optional
        Called with the name of a pass and the share of it that is done, as it goes.

    Examples
    --------
    >>> import numpy as np, rescore as rs
    >>> rain, noise = np.random.default_rng(0).normal(size=(2, 30_000))
    >>> table = rs.scan(np.c_[rain, rain + noise])
    >>> model = rs.Linear().fit(table)
    >>> model.diagnostics_["passes"]["rows"], list(model.causal_graph_.edges)
    (30000, [('x0', 'x1')])
    """
    if isinstance(source, Scan):
        return source
    for word, given in (("drop", drop), ("keys", keys)):
        if isinstance(given, str):
            raise TypeError(f"{word} must be a list of names; write {word}=['{printable(given)}'].")
    left_out, kept = tuple(drop), tuple(keys)
    folder = None if keep is None else Path(keep)
    limit = None if memory is None else bytes_of(memory)
    if jobs is not None:
        check_integer("jobs", jobs, at_least=1)
    besides = tuple(name for name in (weights, groups) if name is not None)
    names, parts, made = _opened(source, left_out, (*besides, *kept), folder)
    if not names:
        raise ValueError("The scan has no column to learn from: all are dropped or keys.")
    found = Scan(names, parts, kept, client, folder, jobs, limit, on_pass, weights, groups)
    if made is not None:  # rows that were copied live as long as the scan
        weakref.finalize(found, shutil.rmtree, made, ignore_errors=True)
    if found.rows < 2:
        raise ValueError(f"The scan has {found.rows} row(s); a graph needs two at least.")
    if limit is not None and limit < found.need:
        raise ValueError(
            f"One block of {len(names)} columns needs about {found.need / 1e6:.0f} MB, and memory "
            f"is {limit / 1e6:.0f} MB. Allow more."
        )
    return found


def rows_of(X: Any) -> int:
    """How many rows a table in memory has.

    Examples
    --------
    >>> rows_of(np.zeros((3, 1))), rows_of(as_table([[1.0], [2.0]])), rows_of(1.0)
    (3, 2, 0)
    """
    try:
        return len(X.values if isinstance(X, Table) else X)
    except TypeError:  # as of a scalar, which is refused elsewhere
        return 0


def has_many_rows(X: Any) -> bool:
    """Whether a table in memory has more rows than a fit looks at one by one.

    Examples
    --------
    >>> has_many_rows(np.zeros((3, 1))), has_many_rows(as_table(np.zeros((100_000, 1))))
    (False, True)
    """
    return rows_of(X) > SAMPLE


def is_scannable(X: Any) -> bool:
    """Whether X is a scan, or something that only a scan can read.

    Examples
    --------
    >>> is_scannable(scan(np.zeros((3, 1)))), is_scannable(np.zeros((3, 1)))
    (True, False)
    """
    return isinstance(X, Scan) or _is_dask(X) or _is_dataset(X)


def _opened(
    source: Any, drop: tuple[str, ...], keys: tuple[str, ...], folder: Path | None
) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
    """Names of columns, the parts of the table, and a folder that was made for them."""
    if _is_dask(source):
        return (*_dask_parts(source, drop, keys), None)
    if isinstance(source, str | Path) or _is_paths(source) or _is_dataset(source):
        if isinstance(source, str | Path) and not is_remote(source) and _is_text(source):
            return text_parts(Path(source), drop, keys, folder)
        return (*parts_of(source, drop, keys), None)
    if keys:
        raise ValueError(
            "keys, weights and groups name columns of files and of Dask tables. Rows in memory "
            "have an index, and fit takes their sample_weight and groups."
        )
    table = as_table(source, copy=False)
    unknown = [name for name in drop if name not in table.names]
    if unknown:
        raise ValueError(f"There is no column {listing(unknown)} to drop.")
    if drop:
        table = table.part([j for j, name in enumerate(table.names) if name not in drop])
    return table.names, (Held(table.values),), None


def _is_text(source: Any) -> bool:
    return str(source).lower().endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz"))


def _is_paths(source: Any) -> bool:
    listed = isinstance(source, list | tuple) and len(source) > 0
    return listed and all(isinstance(each, str | Path) for each in source)


def _is_dataset(X: Any) -> bool:
    return type(X).__module__.startswith("pyarrow") and hasattr(X, "get_fragments")


def _is_dask(X: Any) -> bool:
    return type(X).__module__.startswith("dask") and hasattr(X, "to_delayed")


def _dask_parts(frame: Any, drop: Sequence[str], keys: Sequence[str]) -> tuple[Any, Any]:
    """The partitions of a Dask DataFrame, which are counted once."""
    unknown = [name for name in (*drop, *keys) if name not in frame.columns]
    if unknown:
        raise ValueError(f"There is no column {listing(unknown)} among {listing(frame.columns)}.")
    names = tuple(name for name in frame.columns if name not in {*drop, *keys})
    wrong = [name for name in names if frame.dtypes[name].kind not in "biuf"]
    if wrong:
        raise ValueError(
            f"Column(s) {listing(wrong)} hold no numbers ({frame.dtypes[wrong[0]]}). Leave them "
            "out with drop=[...]."
        )
    lengths = frame.map_partitions(len).compute().tolist()
    graphs = frame[[*names, *keys]].to_delayed()
    parts = [
        Partition(graph, rows, f"partition {k}")
        for k, (graph, rows) in enumerate(zip(graphs, lengths, strict=True))
    ]
    return names, tuple(part for part in parts if part.rows)


def bytes_of(memory: str | float) -> float:
    """A size such as "2GB" in bytes.

    Examples
    --------
    >>> bytes_of("2GB"), bytes_of("500 mb"), bytes_of(1e6)
    (2000000000.0, 500000000.0, 1000000.0)
    """
    text = str(memory).strip().upper()
    unit = next((unit for unit in UNITS if text.endswith(unit)), "")
    try:
        size = float(text.removesuffix(unit)) * UNITS.get(unit, 1.0)
    except ValueError:
        size = 0.0
    if not 0 < size < np.inf:
        raise ValueError(f"memory must be a size such as '2GB', got {memory!r}.")
    return size
