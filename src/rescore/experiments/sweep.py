"""Running what is missing, here or on a cluster.  Every task writes its own record.

Here trials run in processes, one at a time in each, that end with the process that started them.
A worker reads a trial a line from its standard input and answers a line.  Whatever happens to it,
a hang in compiled code or the memory killer, happens to one trial: its process is replaced.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from rescore.experiments import Case, Trial
from rescore.experiments.running import failed, out_of_time, run_trial
from rescore.experiments.store import Record, Store
from rescore.text import printable
from rescore.validation import check_choice, check_integer, check_number

__all__ = ["ENGINES", "missing", "run_here", "serve", "sweep"]

Progress = Callable[[Record], Any]
ENGINES = ("processes", "dask")
AGAIN = ("failed", "timed out")  # tried again if that is asked for
TRIES = 2  # of a trial whose process dies
GRACE = 2.0  # seconds more than its limit for a trial to notice by itself
START = 600.0  # seconds that a process may take to begin, also on a crowded machine
MOST_GROWTH = 1 << 21  # kilobytes; compiled programs fill a process's memory, then it is replaced
# Ctrl-C is for who starts a worker, who then hangs up; so it is while the worker starts.
CODE = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from rescore.experiments.sweep import serve; serve()"
)
OVERDUE = object()
Event = tuple[Any, bytes | None]  # a process and a line of it, or None at its end
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


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
        client = Client(scheduler, timeout="30s")
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


def run_here(
    trials: Iterable[Trial], folder: Path, limit: float, jobs: int = 1
) -> Iterator[Record]:
    """Run trials in so many processes; key and status of each as it ends, in any order."""
    waiting, events = deque(trials), Queue[Event]()
    crew = [_Worker(events, jobs > 1) for _ in range(min(jobs, len(waiting)))]
    asked = {"folder": str(folder.absolute()), "limit": limit}
    deaths: Counter[str] = Counter()
    try:
        while waiting or any(worker.trial for worker in crew):
            for worker in crew:
                if worker.trial is None and waiting:
                    worker.begin(waiting.popleft(), asked)
            for worker, line in _heard(events, crew):
                trial = worker.trial
                if line is OVERDUE and trial is not None:
                    worker.replace()
                    yield _written(out_of_time(trial, limit), folder)
                elif isinstance(line, bytes):
                    yield from worker.answer(line, limit + GRACE)
                elif trial is not None:
                    how = worker.replace()
                    deaths[trial.key] += 1
                    if deaths[trial.key] < TRIES:
                        waiting.append(trial)
                    else:
                        yield _written(_died(trial, how), folder)
    finally:
        for worker in crew:
            worker.stop()


def _heard(events: "Queue[Event]", crew: list["_Worker"]) -> Iterator[tuple["_Worker", Any]]:
    """The next line of a worker, or None where its output ended; those whose time is over."""
    now = time.monotonic()
    soonest = min(worker.until for worker in crew)
    try:
        process, line = events.get(timeout=max(0.0, min(soonest - now, threading.TIMEOUT_MAX)))
    except Empty:
        yield from ((w, OVERDUE) for w in crew if w.trial and w.until <= time.monotonic())
    else:
        yield from ((worker, line) for worker in crew if worker.process is process)


def _written(record: Record, folder: Path) -> Record:
    Store(folder).write(record)
    return {name: record[name] for name in ("key", "status")}


def _died(trial: Trial, how: str) -> Record:
    return failed(
        trial, f"The process that ran it died {TRIES} times ({how}); perhaps memory ran out."
    )


def serve() -> None:
    """The life of a worker: it ends when its standard input does, in the middle of a trial too."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints
    asked: deque[str] = deque()
    more, writing = threading.Semaphore(0), threading.Lock()
    threading.Thread(target=_listen, args=(asked, more, writing), daemon=True).start()
    _die_with_parent()
    before = _memory()
    while True:
        more.acquire()
        told = json.loads(asked.popleft())
        answers.write(json.dumps({"began": told["trial"]}) + "\n")
        record = run_trial(Trial(**told["trial"]), told["limit"])
        with writing:  # what has ended is written, even if nobody listens any more
            try:
                Store(Path(told["folder"])).write(record)
            except OSError as error:
                answers.write(json.dumps({"fault": f"{error}"}) + "\n")
                continue
        full = _memory() - before > MOST_GROWTH
        answer = {"key": record["key"], "status": record["status"], "last": full}
        answers.write(json.dumps(answer) + "\n")
        if full:
            return


def _listen(asked: deque[str], more: threading.Semaphore, writing: threading.Lock) -> None:
    for line in sys.stdin:
        asked.append(line)
        more.release()
    with writing:
        os._exit(0)


def _die_with_parent() -> None:
    """Where the system offers it, also in compiled code that keeps the interpreter to itself."""
    with suppress(Exception):
        import ctypes

        parent = os.getppid()
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(0)


def _memory() -> int:
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class _Worker:
    """A process, and the trial it is at."""

    def __init__(self, events: "Queue[Event]", several: bool) -> None:
        self.events = events
        self.env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.env |= ONE_THREAD if several else {}
        self._start()

    def _start(self) -> None:
        self.trial: Trial | None = None
        self.until = float("inf")
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env,
        )  # fmt: skip
        threading.Thread(target=_listen_to, args=(self.process, self.events), daemon=True).start()

    def begin(self, trial: Trial, asked: dict[str, Any]) -> None:
        """Ask for a trial."""
        self.trial, self.until = trial, time.monotonic() + START
        self._say(json.dumps(asked | {"trial": trial.content}))

    def _say(self, line: str) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # it has died, and the end of its output will tell
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()

    def answer(self, line: bytes, seconds: float) -> Iterator[Record]:
        """Its trial began and has so many seconds, or ended; nothing else stops a sweep."""
        told = json.loads(line)
        if "fault" in told:
            raise OSError(f"A record could not be written: {told['fault']}")
        if "began" in told:
            self.until = time.monotonic() + seconds
            return
        self.trial, self.until = None, float("inf")
        if told.pop("last"):
            self.replace()
        yield told

    def replace(self) -> str:
        """Another process in its place; how this one ended."""
        self.process.kill()
        self._hang_up()
        code = self.process.wait()
        self._start()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def stop(self) -> None:
        """Hang up: it ends once what it writes is written."""
        self._hang_up()
        try:
            self.process.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _hang_up(self) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()


def _listen_to(process: Any, events: "Queue[Event]") -> None:
    with process.stdout as output:
        for line in output:
            events.put((process, line))
    events.put((process, None))
