"""What the benchmarks share: one thread, CPU seconds, and records that survive an interruption.

Import this before numpy, jax or torch: they read the thread counts once.
"""

import csv
import os
import time
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

RESULTS = Path(__file__).parent / "results"


def cpu_seconds(run: Callable[[], Any], repeats: int = 1) -> tuple[Any, float]:
    """The result of ``run`` and its least CPU time over a few repeats."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        result = run()
        best = min(best, time.process_time() - start)
    return result, best


class Records:
    """A CSV file with one line per measurement; a rerun skips what is already there."""

    def __init__(self, name: str, keys: Iterable[str], values: Iterable[str]) -> None:
        self.path = RESULTS / f"{name}.csv"
        self.keys, self.columns = list(keys), [*keys, *values]
        self.path.parent.mkdir(exist_ok=True)
        if not self.path.exists():
            self.path.write_text(",".join(self.columns) + "\n")
        with self.path.open(newline="") as file:
            self.done = {tuple(row[key] for key in self.keys) for row in csv.DictReader(file)}

    def missing(self, *key: Hashable) -> bool:
        """Whether this measurement is still to be made."""
        return tuple(map(str, key)) not in self.done

    def add(self, *row: Any) -> None:
        """Write one measurement, keys first."""
        with self.path.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(row)
        self.done.add(tuple(map(str, row[: len(self.keys)])))
