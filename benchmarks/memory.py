"""The most memory that a fit of `NotearsMLP` holds on a large table, and its CPU seconds.

    python benchmarks/memory.py

10,000 rows of 100 variables, one thread.  Memory is what the process held at its peak, imports,
data and compilation included; `before` is its peak before the fit.  The record is in
results/memory.csv; a rerun measures nothing that is there.
"""

import resource
import warnings

import bench  # first: it pins the threads
import pandas as pd

import rescore as rs

ROWS, NODES = 10_000, 100
KEYS, VALUES = ("learner", "rows", "nodes"), ("cpu_seconds", "before_mb", "peak_mb")


def peak_megabytes():
    """The most resident memory of this process so far; Linux counts it in units of 1,024 bytes."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)


def run():
    records = bench.Records("memory", KEYS, VALUES)
    if records.missing("NotearsMLP", ROWS, NODES):
        X = rs.simulate("ER", 2, NODES, ROWS, "mlp", random_state=0).X.to_numpy()
        before = peak_megabytes()
        _, seconds = bench.cpu_seconds(lambda: rs.NotearsMLP().fit(X))
        records.add("NotearsMLP", ROWS, NODES, round(seconds, 1), before, peak_megabytes())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run()
    print(pd.read_csv(bench.RESULTS / "memory.csv").to_string(index=False))
