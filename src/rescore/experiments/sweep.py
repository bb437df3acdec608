"""Running what is missing, here or on a cluster.  Every task writes its own record."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rescore.experiments.running import failed, run_trial
from rescore.experiments.spec import Case, Trial
from rescore.experiments.store import Record, Store
from rescore.experiments.workers import run_here
from rescore.text import printable
from rescore.validation import check_choice, check_integer, check_number

__all__ = ["ENGINES", "missing", "sweep"]

Progress = Callable[[Record], Any]
ENGINES = ("processes", "dask")
AGAIN = ("failed", "timed out")  # tried again if that is asked for


def missing(cases: Iterable[Case], store: Store, again: bool = False) -> list[Trial]:
    """The trials without a record, each once; with ``again`` also those that came to nothing.

    Examples
    --------
    >>> import tempfile
    >>> trial = Trial({"source": "simulate"}, {"learner": "Linear"}, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(missing([Case("one", trial), Case("same", trial)], Store(Path(folder))))
    1
    """
    done = store.read()
    wanted = {case.trial.key: case.trial for case in cases}
    return [
        trial
        for key, trial in wanted.items()
        if key not in done or (again and done[key]["status"] in AGAIN)
    ]


def sweep(
    trials: Iterable[Trial],
    store: Store,
    *,
    limit: float = 3600.0,
    jobs: int = 1,
    engine: str = "processes",
    scheduler: str | None = None,
    on_record: Progress | None = None,
) -> None:
    """Run the trials; ``on_record`` hears of each as it ends.

    What is written stays written: after Ctrl-C, a kill or a lost cluster the next sweep runs what
    is then missing.
    """
    check_number("limit", limit, above=0)
    check_integer("jobs", jobs, at_least=1)
    if check_choice("engine", engine, ENGINES) == "dask":
        ended = _on_cluster(list(trials), Store(store.folder.absolute()), limit, scheduler)
    else:
        ended = run_here(trials, store.folder, limit, jobs)
    for record in ended:
        if on_record is not None:
            on_record(record)


def run_and_write(trial: Trial, folder: Path, limit: float) -> Record:
    """Run a trial and keep its record, if the folder is known here; in any case hand it back."""
    record = run_trial(trial, limit)
    with suppress(OSError):  # who asked looks whether it is there
        Store(folder).write(record)
    return record


def _on_cluster(
    trials: list[Trial], store: Store, limit: float, scheduler: str | None
) -> Iterator[Record]:
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ImportError('A cluster needs dask: pip install "rescore[dask]"') from None
    if scheduler is None:
        raise ValueError("Name the cluster with --scheduler, for example tcp://host:8786.")
    task = partial(run_and_write, folder=store.folder, limit=limit)
    try:
        client = Client(scheduler, timeout="10s")
    except OSError as error:
        raise ConnectionError(_gone(scheduler, error)) from None
    try:
        with client:
            futures = client.map(task, trials, pure=False, retries=3)
            asked = dict(zip((future.key for future in futures), trials, strict=True))
            for future in as_completed(futures):
                yield _kept(_ended(future, asked[future.key]), store)
    except LostClusterError as error:
        raise ConnectionError(_gone(scheduler, error.__cause__ or error)) from None


class LostClusterError(Exception):
    """The scheduler no longer answers."""


def _ended(future: Any, trial: Trial) -> Record:
    """The record of a task; one that ended its workers again and again has failed."""
    from distributed import KilledWorker

    try:
        return dict(future.result())
    except KilledWorker:
        return failed(trial, "The workers that ran it died again and again.")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | GeneratorExit):
            raise
        raise LostClusterError from error


def _kept(record: Record, store: Store) -> Record:
    """Workers may have another disk, or another folder of that name: write what is not here."""
    path = store.folder / f"{record['key']}.json"
    try:
        there = json.loads(path.read_bytes()) == record
    except (OSError, ValueError):
        there = False
    if not there:
        store.write(record)
    return {name: record[name] for name in ("key", "status")}


def _gone(scheduler: str, error: BaseException) -> str:
    return (
        f"The cluster at {printable(scheduler, 100)} does not answer "
        f"({type(error).__name__}: {printable(error, 100)}). What has ended is recorded; the same "
        "command, with the --scheduler of a running cluster or with --engine processes, goes on."
    )
