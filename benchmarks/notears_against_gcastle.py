"""Notears beside gcastle's on the same data: SHD, score and CPU seconds; and what ReScore adds.

    make bench            # or: python benchmarks/notears_against_gcastle.py

Ten data sets, linear ER2, 20 nodes, 2,000 rows; λ = 0.1, threshold 0.3; one thread.  Seconds are
CPU seconds, without the one-off compilation, which is stated apart.  Each data set's record is
written to results/ as soon as it is there; a rerun does only what is missing.
"""

import logging
import warnings

import bench  # first: it pins the threads
import numpy as np
import pandas as pd

import rescore as rs

SEEDS = range(10)
LAMBDA, THRESHOLD = 0.1, 0.3
PEER = "gcastle Notears"
OURS = rs.Notears(LAMBDA, threshold=THRESHOLD)
LEARNERS = {
    "Notears": OURS,
    "Notears, no polish": rs.Notears(LAMBDA, threshold=THRESHOLD, polish=False),
    "Notears, polynomial h, no polish": rs.Notears(
        LAMBDA, threshold=THRESHOLD, constraint="polynomial", polish=False
    ),
    "ReScore(Notears) tau=0.5": rs.ReScore(OURS, tau=0.5),
    "ReScore(Notears) auto": rs.ReScore(OURS),
}


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


def record_of(name, data):
    """SHD, CPU seconds and score of one learner on one data set."""
    X, truth = data.X.to_numpy(), data.truth.to_numpy()
    if name == PEER:
        W, seconds = bench.cpu_seconds(lambda: gcastle(X))
        shd = rs.evaluate(truth, np.where(np.abs(W) > THRESHOLD, W, 0)).shd
        return shd, seconds, score(X, W)
    model, seconds = bench.cpu_seconds(lambda: LEARNERS[name].fit(X), repeats=3)
    objective = model.history_["objective"].iloc[-1]  # before the threshold, as the peer's
    return rs.evaluate(truth, model.adjacency_matrix_.to_numpy()).shd, seconds, objective


def compile_seconds():
    """CPU seconds of the first fit at this size less those of the second."""
    X = rs.simulate(nodes=20, samples=100, random_state=99).X
    first = bench.cpu_seconds(lambda: rs.Notears(max_steps=1).fit(X))[1]
    return first - bench.cpu_seconds(lambda: rs.Notears(max_steps=1).fit(X))[1]


def run():
    columns = ("seed", "learner"), ("shd", "cpu_seconds", "score")
    records = bench.Records("notears_against_gcastle", *columns)
    for seed in SEEDS:
        data = rs.simulate(graph="ER", degree=2, nodes=20, samples=2000, random_state=seed)
        for name in (PEER, *LEARNERS):
            if records.missing(seed, name):
                records.add(seed, name, *record_of(name, data))
                print(f"seed {seed}: {name}", flush=True)


def report():
    table = pd.read_csv(bench.RESULTS / "notears_against_gcastle.csv")
    mean = table.groupby("learner", sort=False)[["shd", "cpu_seconds", "score"]].mean()
    seconds = table.pivot_table("cpu_seconds", "seed", "learner")
    mean["times faster"] = [(seconds[PEER] / seconds[name]).median() for name in mean.index]
    mean["of plain"] = [(seconds[name] / seconds["Notears"]).median() for name in mean.index]
    print(mean.round(3).to_string())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    print(f"one-off compile: {compile_seconds():.1f} CPU seconds", flush=True)
    run()
    report()
