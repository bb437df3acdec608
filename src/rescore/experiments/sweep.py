"""Running what is missing, here or on a cluster.  Every task writes its own record."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rescore.experiments.running import run_trial
from rescore.experiments.spec import Case, Trial
from rescore.experiments.store import Record, Store
from rescore.validation import check_choice

__all__ = ["ENGINES", "missing", "sweep"]

Progress = Callable[[Record], Any]
ENGINES = ("joblib", "dask")
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
    engine: str = "joblib",
    scheduler: str | None = None,
    on_record: Progress | None = None,
) -> None:
    """Run the trials; ``on_record`` hears of each as it ends.

    What is written stays written: after Ctrl-C, a kill or a lost cluster the next sweep runs what
    is then missing.
    """
    task = partial(run_and_write, folder=store.folder, limit=limit)
    if check_choice("engine", engine, ENGINES) == "dask":
        ended = _on_cluster(task, list(trials), scheduler)
    else:
        ended = _here(task, list(trials), jobs)
    for record in ended:
        if on_record is not None:
            on_record(record)


def run_and_write(trial: Trial, folder: Path, limit: float) -> Record:
    """Run a trial and keep its record; without what only figures need, it is handed back."""
    record = run_trial(trial, limit)
    Store(folder).write(record)
    return {name: record[name] for name in ("key", "status")}


def _here(task: Callable[[Trial], Record], trials: list[Trial], jobs: int) -> Iterator[Record]:
    if jobs == 1:
        yield from map(task, trials)
        return
    from joblib import Parallel, delayed, parallel_config

    # One thread per process: these matrices are small, and threads only fight over them.
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1), warnings.catch_warnings():
        # Compiled programs fill a process's memory; joblib replaces it, and says so every time.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        yield from Parallel(return_as="generator_unordered")(delayed(task)(t) for t in trials)


def _on_cluster(
    task: Callable[[Trial], Record], trials: list[Trial], scheduler: str | None
) -> Iterator[Record]:
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise ImportError('A cluster needs dask: pip install "rescore[dask]"') from None
    if scheduler is None:
        raise ValueError("Name the cluster with --scheduler, for example tcp://host:8786.")
    with Client(scheduler, timeout="10s") as client:
        futures = client.map(task, trials, pure=False, retries=3)
        for future in as_completed(futures):
            yield future.result()
