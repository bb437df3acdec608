"""How the cost of a fit grows with rows and variables.

    python benchmarks/scaling.py

`rs.Linear().fit`, one thread, each size in a process of its own: CPU seconds; the same in passes
over X, a pass being the time in which the weighted covariance is computed once; and the most memory
held during a fit, X included, in copies of X.  Records in results/scaling.csv; a rerun does only
what is missing.
"""

import subprocess
import sys
import tracemalloc
import warnings

import bench  # first: it pins the threads
import numpy as np
import pandas as pd

import rescore as rs
from rescore.moments import Rows

SIZES = [(n, 20) for n in (2_000, 20_000, 200_000, 2_000_000)]
SIZES += [(2_000, d) for d in (10, 50, 100, 200, 500, 1_000)]
LEARNER = "Linear"


def measure(n, d):
    """Print SHD, CPU seconds, passes over X and copies of X."""
    data = rs.simulate(nodes=d, degree=2, samples=n, random_state=0)
    X, truth = data.table.values, data.truth
    getattr(rs, LEARNER)().fit(X[:1000, :10])  # imports are not part of a fit
    model, seconds = bench.cpu_seconds(lambda: getattr(rs, LEARNER)().fit(X), repeats=3)
    one_pass = bench.cpu_seconds(lambda: Rows(X).moments(np.full(n, 1 / n)), repeats=3)[1]
    shd = rs.evaluate(truth.to_numpy(), model.adjacency_matrix_.to_numpy()).shd
    del model
    tracemalloc.start()
    getattr(rs, LEARNER)().fit(X)
    copies = 1 + tracemalloc.get_traced_memory()[1] / X.nbytes
    print(shd, round(seconds, 4), round(seconds / one_pass, 1), round(copies, 2))


def run():
    records = bench.Records(
        "scaling", ("learner", "n", "d"), ("shd", "cpu_seconds", "passes", "copies")
    )
    for n, d in SIZES:
        if records.missing(LEARNER, n, d):
            command = [sys.executable, __file__, str(n), str(d)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            records.add(LEARNER, n, d, *done.stdout.split())
            print(n, d, done.stdout.strip(), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) == 3:
        measure(int(sys.argv[1]), int(sys.argv[2]))
    else:
        run()
        print(pd.read_csv(bench.RESULTS / "scaling.csv").to_string(index=False))
