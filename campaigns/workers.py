"""Workers and schedulers of a Dask cluster, killed in the middle of a pass: the answer is the same.

A case is one fit of the same files by a cluster of its own.  Workers are killed at chosen moments
of its passes, each replaced by a new one, or stand still for a while; or the scheduler is killed,
and the fit that says so is made again on a new cluster, with the passes that were done.  Every
other cluster has workers that are restarted if they take more than little memory.  What counts is
kills.
"""

import atexit
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

COUNT, SECONDS, TESTED = 30, 480, 0  # tests/scanning/test_cluster.py has its own
CPU_SECONDS = 280
ROWS, COLUMNS = 1_500_000, 5
SAMPLE = 3_000
MEMORY = "500MB"  # of which imports are more than half
STILL = 3.0  # seconds


class Case(NamedTuple):
    """Whom to kill, and after how many pieces of rows."""

    whom: str  # "worker", "scheduler", or "slow": a worker that stands still
    after: tuple[int, ...]
    memory: str = "0"  # that a worker may take; 0 is any


def cases(seed: int) -> Iterator[Case]:
    """Four workers of every fit and one that stands still, then the scheduler, in turn."""
    rng = random.Random(seed)
    while True:
        yield Case("worker", tuple(sorted(rng.sample(range(1, 16), 4))))
        yield Case("slow", (rng.randint(1, 16),), MEMORY)
        yield Case("scheduler", (rng.randint(1, 16),))


class Cluster:
    """A scheduler and two workers as processes of their own."""

    def __init__(self, folder: Path, memory: str = "0") -> None:
        self.memory = memory
        self.file = folder / "scheduler.json"
        self.file.unlink(missing_ok=True)
        place = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"]
        place += ["--idle-timeout", "60 seconds"]  # should nobody be left to stop it
        self.scheduler = self._start("scheduler", *place, "--scheduler-file", str(self.file))
        while not self.file.exists() or not self.file.read_text():
            time.sleep(0.1)
        self.address = json.loads(self.file.read_text())["address"]
        self.workers = [self.worker(), self.worker()]

    def worker(self) -> subprocess.Popen[bytes]:
        """One more."""
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        options += ["--memory-limit", self.memory]
        return self._start("worker", self.address, *options)

    def kill(self, whom: str) -> None:
        """With no time to say anything; a worker is replaced, unless it only stands still."""
        if whom == "scheduler":
            self.scheduler.kill()
        elif whom == "slow":
            one = self.workers[0]
            one.send_signal(signal.SIGSTOP)
            threading.Timer(STILL, one.send_signal, [signal.SIGCONT]).start()
        else:
            self.workers.append(self.worker())
            gone = self.workers.pop(0)
            gone.kill()
            gone.wait(timeout=30)

    def stop(self) -> None:
        """All of it."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait(timeout=30)

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        command = [sys.executable, "-m", "dask", *words]
        return subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=self.file.parent)


@cache
def files() -> Path:
    """Parquet files with two latent groups of rows; they live as long as the process."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, folder = np.random.default_rng(0), tempfile.mkdtemp(prefix="rescore-campaign-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for k in range(3):
        n = ROWS // 3
        scale = np.where(rng.random((n, 1)) < 0.2, [0.3, 2, 1, 0.4, 1], [1, 0.5, 0.4, 2, 1])
        X = rng.normal(size=(n, COLUMNS)) * scale
        for j in range(1, COLUMNS):
            X[:, j] += X[:, j - 1]
        part = pa.table({f"x{j}": X[:, j] for j in range(COLUMNS)})
        pq.write_table(part, Path(folder, f"{k}.parquet"), row_group_size=50_000)
    return Path(folder)


def answer(**options: Any) -> tuple[bytes, bytes, bytes]:
    """Graph, coefficients, noise and weights of a fit, to the last bit."""
    import rescore as rs
    from rescore import out_of_core

    out_of_core.SAMPLE = SAMPLE
    model = rs.ReScore().fit(rs.scan(files(), **options))
    found = model.adjacency_matrix_, model.noise_variance_, model.sample_weight_
    return tuple(each.to_numpy().tobytes() for each in found)


undisturbed = cache(answer)


def try_one(case: Case) -> list[str] | str:
    """A fit with its kills: what happened to each, or what is broken."""
    expected = undisturbed()
    with tempfile.TemporaryDirectory() as place:
        folder, killed, seen = Path(place), 0, 0
        cluster = Cluster(folder, case.memory)

        def on_pass(name: str, share: float) -> None:
            nonlocal killed, seen
            seen += 1
            if killed < len(case.after) and seen >= case.after[killed]:
                cluster.kill(case.whom)
                killed += 1

        options = {"keep": folder / "kept", "on_pass": on_pass}
        try:
            for _ in range(4):
                try:
                    found = answer(client=cluster.address, **options)
                    break
                except ConnectionError as error:
                    if case.whom != "scheduler" or "passes done are kept" not in str(error):
                        return f"BROKEN: {error}"
                    cluster.stop()
                    cluster = Cluster(folder)
            else:
                return "BROKEN: the fit did not end"
        finally:
            cluster.stop()
    if found != expected:
        return "BROKEN: another answer"
    what = "a worker stood still" if case.whom == "slow" else f"{case.whom} killed"
    return [f"{what}, the same answer"] * killed
