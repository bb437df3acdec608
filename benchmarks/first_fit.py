"""What the first fit of a new process costs, imports included.

    python benchmarks/first_fit.py
    python benchmarks/first_fit.py --against ../another-checkout

A new process imports the package and fits `Linear` to 1,000 rows of 8 columns.  User and system CPU
seconds of the whole process, one thread; the least of several, each beside the other checkout's in
turn, so that what else the machine does meets both alike.
"""

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
FIRST_FIT = """
import numpy as np
import rescore as rs

rs.Linear().fit(np.random.default_rng(0).normal(size=(1000, 8)))
"""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def first_fit_seconds(checkout):
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(checkout / "src")}
    before = children_seconds()
    subprocess.run([sys.executable, "-c", FIRST_FIT], env=environment, check=True)
    return children_seconds() - before


def run(checkouts, rounds):
    for checkout in checkouts:
        first_fit_seconds(checkout)  # writes bytecode, and brings the files into memory
    spent = [[first_fit_seconds(checkout) for checkout in checkouts] for _ in range(rounds)]
    return [min(seconds) for seconds in zip(*spent, strict=True)]


def main():
    parser = argparse.ArgumentParser(description="CPU seconds of import and first fit.")
    parser.add_argument("--against", type=Path, help="another checkout of this project")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    checkouts = [HERE, *([asked.against.resolve()] if asked.against else [])]
    least = run(checkouts, asked.rounds)
    for name, seconds in zip(("here", "against"), least, strict=False):
        print(f"{name:<8}{seconds:6.2f} CPU seconds")
    if asked.against:
        print(f"{'ratio':<8}{least[0] / least[1]:6.2f}")


if __name__ == "__main__":
    main()
