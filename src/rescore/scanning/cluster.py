"""Passes by the workers of a Dask cluster."""

from collections.abc import Iterable, Iterator
from typing import Any

from rescore.scanning.passes import RETRIES, computed
from rescore.scanning.reading import Partition, Piece
from rescore.scanning.sources import Scan

PATIENCE = 10  # seconds for a scheduler to answer
_CONNECTED: dict[str, Any] = {}  # clients by the address that was given
WINDOW = 64  # pieces in one graph where there is no cluster, only Dask's own threads


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

    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    _refuse_small(scan, workers)
    pieces = scan.pieces(max(len(workers), 1))
    try:
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
