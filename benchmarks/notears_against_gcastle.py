"""Notears beside gcastle's on the same data: SHD, score and CPU seconds; and what ReScore adds.

    make bench            # or: python benchmarks/notears_against_gcastle.py

Ten data sets, linear ER2, 20 nodes, 2,000 rows; λ = 0.1, threshold 0.3; one thread.  Seconds are
CPU seconds, without the one-off compilation, which is stated apart.  Each data set's record is
written to results/ as soon as it is there; a rerun does only what is missing.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy and torch are loaded: they read it once
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import csv
import logging
import time
from pathlib import Path

import numpy as np
import pandas as pd

import rescore as rs

RECORDS = Path(__file__).parent / "results" / "notears_against_gcastle.csv"
SEEDS = range(10)
LAMBDA, THRESHOLD = 0.1, 0.3
LEARNERS = {
    "Notears": rs.Notears(LAMBDA, threshold=THRESHOLD),
    "Notears polynomial h": rs.Notears(LAMBDA, threshold=THRESHOLD, constraint="polynomial"),
    "ReScore(Notears) tau=0.5": rs.ReScore(rs.Notears(LAMBDA, threshold=THRESHOLD), tau=0.5),
}


def cpu_seconds(run, repeats=1):
    """The result of ``run`` and its least CPU time over a few repeats."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        result = run()
        best = min(best, time.process_time() - start)
    return result, best


def score(X, W):
    """``½/n |X − XW|² + λ|W|₁`` on centred data: what both implementations minimise."""
    R = (X - X.mean(axis=0)) @ (np.eye(len(W)) - W)
    return np.square(R).sum() / 2 / len(X) + LAMBDA * np.abs(W).sum()


def gcastle(X):
    """The peer's graph before its threshold."""
    from castle.algorithms import Notears

    learner = Notears(lambda1=LAMBDA, w_threshold=THRESHOLD)
    learner.learn(X)
    return np.asarray(learner.weight_causal_matrix, dtype=float)


def thresholded(W):
    return np.where(np.abs(W) > THRESHOLD, W, 0)


def records_of(seed):
    """One record per learner on one data set."""
    data = rs.simulate(graph="ER", degree=2, nodes=20, samples=2000, random_state=seed)
    X, truth = data.X.to_numpy(), data.truth.to_numpy()
    W, seconds = cpu_seconds(lambda: gcastle(X))
    yield seed, "gcastle Notears", rs.evaluate(truth, thresholded(W)).shd, seconds, score(X, W)
    for name, learner in LEARNERS.items():
        model, seconds = cpu_seconds(lambda learner=learner: learner.fit(X), repeats=3)
        unthresholded = model.history_["objective"].iloc[-1]
        shd = rs.evaluate(truth, model.adjacency_matrix_.to_numpy()).shd
        yield seed, name, shd, seconds, unthresholded


def compile_seconds():
    """CPU seconds of the first fit at this size less those of the second."""
    X = rs.simulate(nodes=20, samples=100, random_state=99).X
    first = cpu_seconds(lambda: rs.Notears(max_steps=1).fit(X))[1]
    return first - cpu_seconds(lambda: rs.Notears(max_steps=1).fit(X))[1]


def run():
    RECORDS.parent.mkdir(exist_ok=True)
    done = set(pd.read_csv(RECORDS)["seed"]) if RECORDS.exists() else set()
    with RECORDS.open("a", newline="") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(["seed", "learner", "shd", "cpu_seconds", "score"])
        for seed in SEEDS:
            if seed not in done:
                writer.writerows(list(records_of(seed)))
                file.flush()
                print(f"seed {seed} done", flush=True)


def report():
    table = pd.read_csv(RECORDS)
    mean = table.groupby("learner", sort=False)[["shd", "cpu_seconds", "score"]].mean()
    seconds = table.pivot(index="seed", columns="learner", values="cpu_seconds")
    peer, plain = seconds["gcastle Notears"], seconds["Notears"]
    mean["times faster"] = [(peer / seconds[name]).median() for name in mean.index]
    print(mean.round(3).to_string())
    ratio = (seconds["ReScore(Notears) tau=0.5"] / plain).median()
    total = seconds["ReScore(Notears) tau=0.5"].sum() / plain.sum()
    print(f"ReScore in total / plain: median {ratio:.2f}, of the sums {total:.2f}")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    print(f"one-off compile: {compile_seconds():.1f} CPU seconds", flush=True)
    run()
    report()
