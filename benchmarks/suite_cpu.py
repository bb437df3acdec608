"""CPU seconds of `make test` after set-up: pytest and its workers, the linters, all children.

``python benchmarks/suite_cpu.py`` is a cold run, as on a machine that has never compiled anything;
with ``--warm`` the programs of earlier runs are there.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(target: str, folder: str | None = None) -> int:
    """Make a target; with a folder, every compiled program is kept there alone."""
    places = ("TMPDIR", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    own = {} if folder is None else dict.fromkeys(places, folder)
    return subprocess.run(["make", target], cwd=ROOT, env={**os.environ, **own}).returncode


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warm", action="store_true")
    warm = parser.parse_args().warm
    run(".venv/.test")
    before = cpu_seconds()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        code = run("test", None if warm else folder)
    seconds = time.monotonic() - began
    used = cpu_seconds() - before
    print(f"{used:.0f} CPU seconds, {seconds // 60:.0f}:{seconds % 60:02.0f} minutes")
    sys.exit(code)
