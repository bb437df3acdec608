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
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np

from rescore.moments import Matrix
from rescore.scanning import Beside, Layout, Partition, Piece, Reader, with_frames
from rescore.scanning.sources import Scan, scan
from rescore.scanning.statistics import UnusableError
from rescore.staging import write_whole
from rescore.text import printable

LOG = logging.getLogger("rescore.passes")
AHEAD = 2  # pieces handed out for each worker, so that none waits
RETRIES = 3  # of a piece whose worker died
PATIENCE = 10  # seconds for a scheduler to answer
_CONNECTED: dict[str, Any] = {}  # clients by the address that was given
WINDOW = 64  # pieces in one graph where there is no cluster, only Dask's own threads


class Statistic(Protocol):
    """What a pass computes."""

    kind: type[Any]  # a NamedTuple of arrays

    def of(self, first: int, X: Matrix, beside: Beside) -> Any:
        """Of a block whose first row has this number."""

    def added(self, one: Any, other: Any) -> Any:
        """Of both, the other's rows being later."""


@dataclass(eq=False)
class Passes:
    """The passes of one fit over a scan, counted.

    Examples
    --------
    >>> from rescore.scanning.sources import scan
    >>> from rescore.scanning.statistics import Count
    >>> passes = Passes(scan(np.arange(6.0).reshape(3, 2)))
    >>> float(passes.made("all", Count()).mass[0]), passes.count
    (3.0, 1)
    """

    scan: Scan
    done: list[dict[str, Any]] = field(default_factory=list)
    asked: dict[str, Any] = field(default_factory=dict)  # the last statistic of every name
    _known: dict[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many there were, those kept from an interrupted fit among them."""
        return len(self.done)

    def made(self, name: str, statistic: Any) -> Any:
        """The statistic of all rows."""
        self.asked[name] = statistic
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
            found = on_cluster(self.scan, statistic)
        for piece, blocks in found:
            yield piece, blocks
            if self.scan.on_pass is not None:
                self.scan.on_pass(name, piece.stop / self.scan.rows)

    def _tell(self, name: str, key: str, found: Any, kept: bool, seconds: float) -> None:
        if not kept and self.scan.folder is not None:
            self._keep(self.scan.folder / f"pass-{key[:24]}.npz", found)
        self.done.append({"pass": name, "seconds": round(seconds, 3), "kept": kept})
        LOG.info(
            "pass %d, %s: %d rows in %.1f s%s",
            self.count, name, self.scan.rows, seconds, " (kept from before)" * kept,
        )  # fmt: skip

    def _keep(self, path: Path, found: Any) -> None:
        """A pass that cannot be kept is no reason to lose the fit."""
        try:
            _write(path, found)
        except OSError as error:
            warnings.warn(
                f"A finished pass could not be kept ({error}): an interrupted fit would make it "
                "again. Make room in its folder.",
                RuntimeWarning,
                stacklevel=2,
            )

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


def computed(piece: Piece, layout: Layout, statistic: Any, frames: Any = ()) -> list[Any]:
    """The statistics of the blocks of a piece, wherever this runs.

    One thread for linear algebra, so that several pieces share the processors and sums do not
    depend on how many there are.
    """
    from threadpoolctl import threadpool_limits

    reader = Reader(with_frames(piece, frames), layout, getattr(statistic, "keys", ()))
    with threadpool_limits(1):
        return [statistic.of(*block) for block in reader.blocks()]


def workers_here(scan: Scan) -> int:
    """Threads: as many as processors, if there is room for them."""
    wanted = scan.jobs or len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else "1")
    room = wanted if scan.memory is None else int(scan.memory / scan.need)
    return max(1, min(wanted, room))


def _here(scan: Scan, statistic: Any) -> Iterator[tuple[Piece, list[Any]]]:
    """By threads of this process, a few pieces ahead of what has been added."""
    workers = workers_here(scan)
    waiting: deque[tuple[Piece, Any]] = deque()
    about = scan.layout
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


def write_weights(model: Any, source: Any, path: Any) -> int:
    """Write the weights of all rows of a scan to a Parquet file, beside their keys; how many.

    A line for each row, in their order: its keys, or its number if the scan has none; its
    ``weight``, which sum to one; and the ``group`` of rows that it most likely belongs to.

    Parameters
    ----------
    model : estimator
        Fitted on this scan.
    source : Scan
        As `scan` made it.
    path : path
        Of the file, which is there when it is whole.

    Examples
    --------
    >>> import os, tempfile, numpy as np, rescore as rs
    >>> table = rs.scan(np.random.default_rng(0).normal(size=(30_000, 2)))
    >>> model = rs.ReScore().fit(table)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rs.write_weights(model, table, os.path.join(folder, "weights.parquet"))
    30000
    """
    weigh = getattr(model, "_weigh", None)
    if weigh is None:
        raise ValueError("This model was not fitted on a scan: its weights are sample_weight_.")
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = getattr(model, "plain", model)
    passes = Passes(replace(scan(source), gaps=getattr(plain, "missing", "") == "drop"))
    target = Path(path)
    keys, unfinished = passes.scan.keys, target.with_name(f".{target.name}.unfinished")
    writer, at = None, 0
    try:
        for _, blocks in passes.over(replace(weigh, keys=keys), "weights"):
            for block in blocks:
                n = len(block.weight)
                named = dict(zip(keys, block.keys, strict=True)) or {"row": np.arange(at, at + n)}
                lines = pa.table({**named, "weight": block.weight, "group": block.group})
                writer = writer or pq.ParquetWriter(unfinished, lines.schema)
                writer.write_table(lines)
                at += n
        if writer is not None:
            writer.close()
        unfinished.replace(target)
    except OSError as error:
        raise OSError(
            f"'{printable(target, 200)}' could not be written ({error}). Make room, and do the "
            "same again."
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return at


def on_cluster(scan: Scan, statistic: Any) -> Iterator[tuple[Piece, list[Any]]]:
    """The statistics of all blocks, piece by piece in the order of the rows.

    A worker that dies has its pieces made by another; if the scheduler is lost, that is said.
    """
    client = _client(scan)
    if client is None:
        yield from _by_threads(scan, statistic)
        return
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    try:
        # Not `client.scheduler_info`, which a timer of Dask's fills without workers now and then.
        workers = client.sync(client.scheduler.identity)["workers"].values()
        _refuse_small(scan, workers)
        pieces = scan.pieces(max(len(workers), 1))
        futures = client.compute([_task(scan, piece, statistic) for piece in pieces],
                                 retries=RETRIES)  # fmt: skip
        for at, piece in enumerate(pieces):
            blocks = futures[at].result()
            futures[at] = None  # its memory on the cluster is free
            yield piece, blocks
    except (CancelledError, CommClosedError, KilledWorker, TimeoutError, OSError) as error:
        raise ConnectionError(_lost(scan, error)) from error


def _refuse_small(scan: Scan, workers: Iterable[Any]) -> None:
    """Raise if a worker has less memory for each of its threads than a task takes.

    It would pause, or be restarted again and again, and never say why.
    """
    rooms = [each["memory_limit"] / each["nthreads"] for each in workers if each["memory_limit"]]
    if rooms and min(rooms) < scan.need:
        raise ValueError(
            f"One block of {len(scan.names)} columns needs about {scan.need / 1e6:.0f} MB, and a "
            f"worker of the cluster has {min(rooms) / 1e6:.0f} MB for each of its threads. Give "
            "workers more memory, or fewer threads."
        )


def _task(scan: Scan, piece: Piece, statistic: Any) -> Any:
    """A piece as a task, which waits for the partitions that it is made of."""
    from dask import delayed

    frames = [part.graph for part in piece.parts if isinstance(part, Partition)]
    bare = [
        Partition(None, part.rows, part.label) if isinstance(part, Partition) else part
        for part in piece.parts
    ]
    piece = piece._replace(parts=tuple(bare))
    about = scan.layout
    return delayed(_run, pure=False)(_Sealed((piece, about, statistic)), frames)


class _Sealed:
    """What Dask is not to look into for tasks."""

    def __init__(self, content: Any) -> None:
        self.content = content


def _run(sealed: _Sealed, frames: Any) -> list[Any]:
    piece, about, statistic = sealed.content
    return computed(piece, about, statistic, frames)


def _by_threads(scan: Scan, statistic: Any) -> Iterator[tuple[Piece, list[Any]]]:
    import dask

    pieces = scan.pieces(4)
    for start in range(0, len(pieces), WINDOW):
        some = pieces[start : start + WINDOW]
        made = dask.compute(*(_task(scan, piece, statistic) for piece in some), scheduler="threads")
        yield from zip(some, made, strict=True)


def _client(scan: Scan) -> Any:
    """The client given, one at the address given, or the one that is in use; None without."""
    try:
        from distributed import Client, get_client
    except ImportError as error:
        if scan.client is not None:
            raise ImportError('A cluster needs Dask: pip install "rescore[dask]"') from error
        return None
    if scan.client is None:
        try:
            return get_client()
        except ValueError:
            return None
    if not isinstance(scan.client, str):
        return scan.client
    known = _CONNECTED.get(scan.client)  # of an earlier pass
    if known is not None and known.status == "running":
        return known
    try:
        # Nobody else's Dask is to run there from now on.
        made = Client(scan.client, timeout=PATIENCE, set_as_default=False)
        _CONNECTED[scan.client] = made
        return made
    except OSError as error:
        raise ConnectionError(
            f"There is no Dask scheduler at {scan.client}. Start one (`dask scheduler`) and "
            "workers (`dask worker ADDRESS`), or leave the cluster out."
        ) from error


def _lost(scan: Scan, error: BaseException) -> str:
    kept = (
        "The passes done are kept: start a scheduler and do the same again."
        if scan.folder is not None
        else "Nothing of it is kept; with keep='FOLDER' the passes done would be."
    )
    return f"The cluster was lost in the middle of a pass ({type(error).__name__}). {kept}"
