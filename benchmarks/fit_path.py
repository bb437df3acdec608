"""CPU seconds of whole fits in this tree and in another checkout, in turn, and what they found.

    python benchmarks/fit_path.py --against ../other-checkout [--same]

Every fit is a process of its own with one thread; both trees see the same rows.  Printed are the
least CPU seconds of each tree and their ratio, below one if this tree is faster; by how much the
coefficients differ, as a share of the largest; and how many edges are wrong or missed in each.

It fails if this tree's graph is further from the truth than the other's.  Where the mathematics is
that of every commit, coefficients must also agree to 1e-12; `Linear` and the weights around it have
become others, so that only ``--same``, for two trees that share them, asks it of those too.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import bench  # first: it pins the threads
import numpy as np

HERE = Path(__file__).resolve().parents[1]
CLOSE = 1e-12  # relative difference of coefficients that is rounding


class Case(NamedTuple):
    """What is fitted to a table of what size."""

    learner: str
    rows: int
    columns: int
    fits: int  # in one process
    unchanged: bool = False  # the mathematics, in all commits


CASES = {
    "Linear, 400,000 × 12": Case("Linear()", 400_000, 12, 3),
    "ReScore(Linear), 100,000 × 12": Case("ReScore(Linear())", 100_000, 12, 1),
    "Notears, 100,000 × 12": Case("Notears()", 100_000, 12, 2, unchanged=True),
    "Linear, 1,000 × 8": Case("Linear()", 1_000, 8, 30),
    "ReScore(Linear), 1,000 × 8": Case("ReScore(Linear())", 1_000, 8, 10),
}


def coefficients(d):
    """Of a linear graph, ancestors first, and the generator that drew it."""
    rng = np.random.default_rng(0)
    return np.triu(rng.uniform(0.5, 1.5, (d, d)) * (rng.random((d, d)) < 3 / d), k=1), rng


def rows(n, d):
    """That graph with unit noise."""
    W, rng = coefficients(d)
    return rng.normal(size=(n, d)) @ np.linalg.inv(np.eye(d) - W)


def measure(case):
    """Printed by the process of one tree: the least CPU seconds, and the coefficients."""
    import rescore as rs

    model = eval(
        case.learner, {name: getattr(rs, name) for name in ("Linear", "Notears", "ReScore")}
    )
    X = rows(case.rows, case.columns)
    model.fit(X[:500])  # imports and compilation are not what is measured
    fitted, seconds = bench.cpu_seconds(lambda: model.fit(X), case.fits)
    print(json.dumps([seconds, fitted.adjacency_matrix_.to_numpy().tolist()]))


def measured(tree, case):
    """The same from a process that imports the package from ``tree``."""
    environment = {**os.environ, "PYTHONPATH": str(Path(tree, "src"))}
    command = [sys.executable, __file__, "--case", case]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds, W = json.loads(done.stdout)
    return seconds, np.array(W)


def compared(case, other, rounds, same):
    """The least CPU seconds here and there, taken in turn, and what was found; what is wrong."""
    times = {HERE: [], other: []}
    for _ in range(rounds):
        found = {tree: measured(tree, case) for tree in times}
        for tree, (seconds, _) in found.items():
            times[tree].append(seconds)
    graphs = [W for _, W in found.values()]
    truth = coefficients(CASES[case].columns)[0] != 0
    wrong = [int(((W != 0) != truth).sum()) for W in graphs]
    difference = np.abs(graphs[0] - graphs[1]).max() / np.abs(graphs[1]).max()
    ours, theirs = (min(seconds) for seconds in times.values())
    line = f"{case:32}{ours:10.4f}{theirs:10.4f}{ours / theirs:8.2f}{difference:12.1e}"
    print(f"{line}{wrong[0]:8}{wrong[1]:8}", flush=True)
    if wrong[0] > wrong[1]:
        return f"{case}: {wrong[0]} edges are wrong here and {wrong[1]} there."
    if (same or CASES[case].unchanged) and difference > CLOSE:
        return f"{case}: coefficients differ by {difference:.1e} of the largest."
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="PATH", help="the other checkout")
    parser.add_argument("--case", choices=CASES, help="only this one")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each tree")
    parser.add_argument("--same", action="store_true", help="both trees have the same learners")
    given = parser.parse_args()
    if given.against is None:
        measure(CASES[given.case])
    else:
        print(f"{'':60}{'difference':>12}{'wrong edges':>16}".rstrip())
        print(
            f"{'CPU seconds':32}{'here':>10}{'there':>10}{'ratio':>8}{'':12}{'here':>8}{'there':>8}"
        )
        other = Path(given.against).resolve()
        cases = [given.case] if given.case else CASES
        wrong = [compared(case, other, given.rounds, given.same) for case in cases]
        if any(wrong):
            raise SystemExit("\n".join(filter(None, wrong)))
