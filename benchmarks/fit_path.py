"""CPU seconds of whole fits in this tree and in another checkout, in turn, and what they found.

    python benchmarks/fit_path.py --against ../other-checkout

Every fit is a process of its own with one thread; both trees see the same rows.  Printed are the
least CPU seconds of each tree and their ratio, below one if this tree is faster.  It fails if the
graphs differ, or coefficients by more than 1e-12 of the largest.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import bench  # first: it pins the threads
import numpy as np

HERE = Path(__file__).resolve().parents[1]
CASES = {  # learner, rows, columns, fits in one process
    "Linear, 400,000 × 12": ("Linear()", 400_000, 12, 3),
    "ReScore(Linear), 100,000 × 12": ("ReScore(Linear())", 100_000, 12, 1),
    "Notears, 100,000 × 12": ("Notears()", 100_000, 12, 2),
    "Linear, 1,000 × 8": ("Linear()", 1_000, 8, 30),
    "ReScore(Linear), 1,000 × 8": ("ReScore(Linear())", 1_000, 8, 10),
}
CLOSE = 1e-12  # relative difference of coefficients that is rounding


def rows(n, d):
    """A linear graph with unit noise, ancestors first."""
    rng = np.random.default_rng(0)
    W = np.triu(rng.uniform(0.5, 1.5, (d, d)) * (rng.random((d, d)) < 3 / d), k=1)
    return rng.normal(size=(n, d)) @ np.linalg.inv(np.eye(d) - W)


def measure(learner, n, d, repeats):
    """Printed by the process of one tree: the least CPU seconds, and the coefficients."""
    import rescore as rs

    model = eval(learner, {name: getattr(rs, name) for name in ("Linear", "Notears", "ReScore")})
    X = rows(n, d)
    model.fit(X[:500])  # imports and compilation are not what is measured
    fitted, seconds = bench.cpu_seconds(lambda: model.fit(X), repeats)
    print(json.dumps([seconds, fitted.adjacency_matrix_.to_numpy().tolist()]))


def measured(tree, case):
    """The same from a process that imports the package from ``tree``."""
    environment = {**os.environ, "PYTHONPATH": str(Path(tree, "src"))}
    command = [sys.executable, __file__, "--case", case]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds, W = json.loads(done.stdout)
    return seconds, np.array(W)


def compared(case, other, rounds):
    """The least CPU seconds here and there, taken in turn; the coefficients must agree."""
    times = {HERE: [], other: []}
    for _ in range(rounds):
        found = {tree: measured(tree, case) for tree in times}
        for tree, (seconds, _) in found.items():
            times[tree].append(seconds)
    (_, here), (_, there) = found.values()
    if ((here != 0) != (there != 0)).any():
        raise SystemExit(f"{case}: the graphs differ.")
    difference = np.abs(here - there).max() / np.abs(there).max()
    if difference > CLOSE:
        raise SystemExit(f"{case}: coefficients differ by {difference:.1e} of the largest.")
    ours, theirs = (min(seconds) for seconds in times.values())
    print(f"{case:32}{ours:10.4f}{theirs:10.4f}{ours / theirs:8.2f}{difference:12.1e}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="PATH", help="the other checkout")
    parser.add_argument("--case", choices=CASES, help="only this one")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each tree")
    given = parser.parse_args()
    if given.against is None:
        measure(*CASES[given.case])
    else:
        print(f"{'CPU seconds':32}{'here':>10}{'there':>10}{'ratio':>8}{'difference':>12}")
        for case in [given.case] if given.case else CASES:
            compared(case, Path(given.against).resolve(), given.rounds)
