"""Kills of sweeps and runs, the main process or a worker: nothing finished is lost or changed.

A case is one folder and what happens to it: a sweep that is started, killed, started again and
killed again, and at last left to finish.  What counts is kills, each with a look at what is there.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

COUNT, SECONDS, TESTED = 200, 600, 0  # tests/experiments/test_sweep.py has its own
KILLS = 10  # of a case
CPU_SECONDS = 60
TRIALS = 80  # more than are done between so many kills
SWEEP = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from rescore.experiments import Trial
from rescore.experiments.store import Store
from rescore.experiments.sweep import sweep
data = {{"source": "simulate", "nodes": 5, "samples": 100}}
trials = [Trial(data, {{"learner": "Linear"}}, seed) for seed in range({TRIALS})]
store = Store(Path(sys.argv[1]))
store.pack()
there = store.read()
sweep([trial for trial in trials if trial.key not in there], store, jobs=2)
store.pack()
"""


class Kill(NamedTuple):
    """Whom, how, and when: after so many new records and milliseconds."""

    whom: str
    how: str
    records: int
    wait: int


Case = tuple[Kill, ...]


def cases(seed: int) -> Iterator[Case]:
    """Three of four cases are sweeps, the others writers of runs."""
    rng = random.Random(seed)
    while True:
        yield tuple(_runs(rng) if rng.random() < 0.25 else _sweeps(rng))


def _runs(rng: random.Random) -> Iterator[Kill]:
    for _ in range(KILLS):
        yield Kill("run", rng.choice(["SIGKILL", "SIGTERM", "SIGINT"]), 0, rng.randrange(400))


def _sweeps(rng: random.Random) -> Iterator[Kill]:
    """A worker is killed once in a sweep at most: a trial whose worker dies twice has failed."""
    may_be_worker = True
    for _ in range(KILLS):
        whom = rng.choice(["main", "worker", "group"][:: 1 if may_be_worker else 2])
        may_be_worker = whom != "worker"
        # A worker does not hear Ctrl-C.
        how = rng.choice(["SIGKILL", "SIGTERM", "SIGINT"][: 2 if whom == "worker" else 3])
        records = rng.randrange(6)
        yield Kill(whom, how, records, rng.randrange(200 if records else 1500))


class LossError(Exception):
    """Something is lost, changed, half there, or still running."""


def try_one(case: Case) -> list[str]:
    """An outcome for every kill that struck; one that came when all was done does not count."""
    with tempfile.TemporaryDirectory() as made:
        strike = _kill_runs if case[0].whom == "run" else _kill_sweeps
        return [f"{whom} killed" for whom in strike(Path(made, "here"), case)]


def _kill_sweeps(folder: Path, case: Case) -> Iterator[str]:
    """Each goes on where the one before was killed; the last is left alone."""
    before: dict[str, Any] = {}
    process = None
    for kill in case:
        process = process or _started(folder)
        _wait_for(kill, process, folder)
        struck = (_kill_worker if kill.whom == "worker" else _end)(process, kill)
        before = _kept(before, folder)
        if kill.whom != "worker":
            process = None
        if struck:
            yield kill.whom
    _finish(process or _started(folder))
    _finish(_started(folder))
    _compare(_kept(before, folder), _undisturbed())
    _check(len(list(folder.glob("[!.]*"))) == 1, "not all is packed")


def _started(folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", SWEEP, str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def _wait_for(kill: Kill, process: "subprocess.Popen[str]", folder: Path) -> None:
    there = set(folder.glob("*.json"))

    def is_time() -> bool:
        many = len(set(folder.glob("*.json")) - there) >= kill.records
        return many or process.poll() is not None

    _until(is_time)
    time.sleep(kill.wait / 1000)


def _kill_worker(process: "subprocess.Popen[str]", kill: Kill) -> bool:
    """The sweep goes on without it, which is seen at its end."""
    worker = next((pid for pid in _group(process.pid) if pid != process.pid), None)
    if worker is None:
        return False
    _send(worker, kill)
    _check(_until(lambda: worker not in _group(process.pid), 30), "a worker lives on")
    return True


def _end(process: "subprocess.Popen[str]", kill: Kill) -> bool:
    """The main process alone, or all: either way nobody stays, and no thread complains."""
    if process.poll() is None:
        _send(process.pid if kill.whom == "main" else -process.pid, kill)
    _, told = process.communicate(timeout=300)
    interrupted = kill.how == "SIGINT" and "KeyboardInterrupt" in told
    ways = (0, -signal.Signals[kill.how], *([1] if interrupted else []))
    _check(process.returncode in ways, f"a sweep ended with {process.returncode}: {told[-300:]}")
    _check("_shutdown" not in told, told[-300:])
    _check(_until(lambda: not _group(process.pid), 30), "a worker has stayed")
    return process.returncode != 0


def _finish(process: "subprocess.Popen[str]") -> None:
    _, told = process.communicate(timeout=300)
    _check(process.returncode == 0, f"a sweep ended with {process.returncode}: {told[-300:]}")
    _check(_until(lambda: not _group(process.pid), 30), "a worker has stayed")


def _kept(before: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What is there now, which is all that was there and whole.

    A sweep that goes on may pack its records while they are read: then they are read again.
    """
    kept = _until(lambda: before.items() <= _read(folder).items(), 5)
    now = _read(folder)
    _check(kept, f"{len(before)} records, then {len(now)}, or others")
    half = _store(folder).passed_over()
    _check(not half, f"half a record: {half}")
    return now


def _compare(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Key by key the same but for the seconds it took."""
    _check(len(expected) == TRIALS, f"{len(expected)} records without any kill")
    _check(found.keys() == expected.keys(), f"{len(found)} records")
    for key, record in expected.items():
        _check(_timeless(found[key]) == _timeless(record), f"{found[key]} for {record}")


def _timeless(record: dict[str, Any]) -> dict[str, Any]:
    result = {n: v for n, v in record.get("result", {}).items() if n != "cpu_seconds"}
    return record | {"result": result}


@cache
def _undisturbed() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        _finish(_started(Path(folder)))
        return _read(Path(folder))


def _store(folder: Path) -> Any:
    from rescore.experiments.store import Store

    return Store(folder)


def _read(folder: Path) -> dict[str, Any]:
    return dict(_store(folder).read())


def _kill_runs(folder: Path, case: Case) -> Iterator[str]:
    """A process that writes run after run over the same folder; what is found there is whole."""
    from campaigns._writers import WRITERS, in_a_child

    write, read = WRITERS["run"].write, WRITERS["run"].read
    for state in "abc":
        write(folder, state)

    def for_ever() -> None:
        while True:
            for state in "abc":
                write(folder, state)

    for kill in case:
        code, words = in_a_child(for_ever, lambda kill=kill: _later(kill))
        ended = code == -signal.Signals[kill.how] or words.startswith("KeyboardInterrupt")
        _check(ended, f"a writer ended with {code}: {words}")
        _check(read(folder) in "abc", "another run than was written")
        yield kill.whom
    write(folder, "a")
    _check(read(folder) == "a", "another run than was written")


def _later(kill: Kill) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_insist, args=(kill,), daemon=True).start()


def _insist(kill: Kill) -> None:
    """Again every second: a Ctrl-C that strikes while Python collects garbage is lost, and said."""
    time.sleep(kill.wait / 1000)
    while True:
        _send(os.getpid(), kill)
        time.sleep(1.0)


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise LossError(otherwise)


def _group(leader: int) -> list[int]:
    """The processes of a group that live; one that nobody waits for has ended all the same."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, group = path.read_text().rpartition(")")[2].split()[:3]
            if int(group) == leader and state != "Z":
                found.append(int(path.parent.name))
    return sorted(found)


def _send(pid: int, kill: Kill) -> None:
    with contextlib.suppress(ProcessLookupError):
        how = signal.Signals[kill.how]
        os.killpg(-pid, how) if pid < 0 else os.kill(pid, how)


def _until(true: Callable[[], object], seconds: float = 120) -> bool:
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
