"""Kills of sweeps and fits, the main process or a worker: nothing finished is lost or changed."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

COUNT, SECONDS, TESTED = 200, 900, 0  # tests/experiments/test_sweep.py has its own
CPU_SECONDS = 60
TRIALS = 24
SWEEP = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from rescore.experiments.spec import Trial
from rescore.experiments.store import Store
from rescore.experiments.sweep import sweep
data = {{"source": "simulate", "nodes": 5, "samples": 100}}
trials = [Trial(data, {{"learner": "Linear"}}, seed) for seed in range({TRIALS})]
store = Store(Path(sys.argv[1]))
there = store.read()
sweep([trial for trial in trials if trial.key not in there], store, jobs=int(sys.argv[2]))
store.pack()
"""
FIT = """
import sys
from campaigns._writers import WRITERS
from pathlib import Path
while True:
    for state in "abc":
        WRITERS["run"].write(Path(sys.argv[1]), state)
"""

Case = tuple[str, str, int]


def cases(seed: int) -> Iterator[Case]:
    """Whom to kill, how, and after how many milliseconds of work."""
    rng = random.Random(seed)
    while True:
        yield (
            rng.choice(["main", "worker", "group", "fit"]),
            rng.choice(["SIGKILL", "SIGTERM", "SIGINT"]),
            rng.randrange(400),
        )


def try_one(case: Case) -> str:
    """Start, kill, look; then run to the end and look again."""
    whom, how, wait = case
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, "here")
        return _fit(folder, how, wait) if whom == "fit" else _sweep(folder, whom, how, wait)


def _sweep(folder: Path, whom: str, how: str, wait: int) -> str:
    from rescore.experiments.store import Store

    command = [sys.executable, "-c", SWEEP, str(folder), "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    _until(lambda: any(folder.glob("*.json*")) or process.poll() is not None)
    time.sleep(wait / 1000)
    workers = _children(process.pid)
    if whom == "worker":
        for worker in workers[:1]:
            _kill(worker, signal.SIGKILL)
    elif whom == "main":
        _kill(process.pid, signal.Signals[how])
    else:
        _kill(-process.pid, signal.Signals[how])
    _, told = process.communicate(timeout=300)
    if "_shutdown" in told:
        return f"BROKEN: {told[-200:]}"
    if not _until(lambda: not any(Path("/proc", str(w)).exists() for w in workers), 30):
        return "BROKEN: a worker has stayed"
    before = Store(folder).read()
    if Store(folder).passed_over():
        return f"BROKEN: half a record {Store(folder).passed_over()}"
    subprocess.run(command, check=True, timeout=300)
    after = Store(folder).read()
    if len(after) != TRIALS or any(after[key] != record for key, record in before.items()):
        return f"BROKEN: {len(before)} records, then {len(after)}, or others"
    return f"{whom} killed"


def _fit(folder: Path, how: str, wait: int) -> str:
    from campaigns._writers import WRITERS

    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", FIT, str(folder)], stderr=subprocess.DEVNULL, text=True
    )
    _until(lambda: (folder / "model.json").exists())
    time.sleep(wait / 1000)
    _kill(process.pid, signal.Signals[how])
    process.wait(timeout=60)
    found = WRITERS["run"].read(folder)
    WRITERS["run"].write(folder, "a")
    return "fit killed" if found in "abc" and WRITERS["run"].read(folder) == "a" else "BROKEN"


def _children(pid: int) -> list[int]:
    try:
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _kill(pid: int, how: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(-pid, how) if pid < 0 else os.kill(pid, how)


def _until(true: Callable[[], object], seconds: float = 120) -> bool:
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
