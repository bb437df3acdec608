"""Linear learners beside DAGMA and gcastle's GOLEM on the paper's twelve settings.

    python benchmarks/linear_against_peers.py [learner ...]

ER and SF graphs, 10, 20 and 50 nodes, degree 2 and 4, 2,000 rows, seeds 0 to 9; default settings of
every learner, one thread, CPU seconds without compilation.  Each fit is one line of
results/linear_against_peers.csv as soon as it is there; a rerun does only what is missing.
"""

import itertools
import logging
import sys
import warnings

import bench  # first: it pins the threads
import numpy as np
import pandas as pd

import rescore as rs

SETTINGS = list(itertools.product(("ER", "SF"), (10, 20, 50), (2, 4)))
GOLEM_SETTINGS = [("ER", 10, 2), ("ER", 20, 2)]  # minutes a fit
SEEDS = range(10)
COLUMNS = (("graph", "nodes", "degree", "seed", "learner"), ("shd", "cpu_seconds"))


def dagma(X):
    from dagma.linear import DagmaLinear

    return DagmaLinear(loss_type="l2").fit(X.copy(), lambda1=0.02)


def gcastle_golem(X):
    from castle.algorithms import GOLEM

    learner = GOLEM(device_type="cpu", seed=0)
    learner.learn(X)
    return np.asarray(learner.causal_matrix, dtype=float)


PEERS = {"DAGMA 1.1.1": dagma, "gcastle GOLEM": gcastle_golem}


def fit(name, X):
    """Adjacency and CPU seconds; ours is run twice, so that compilation is not counted."""
    if name in PEERS:
        return bench.cpu_seconds(lambda: PEERS[name](X))
    learner = getattr(rs, name)()
    model, seconds = bench.cpu_seconds(lambda: learner.fit(X), repeats=3)
    return model.adjacency_matrix_.to_numpy(), seconds


def run(learners):
    records = bench.Records("linear_against_peers", *COLUMNS)
    for name, setting, seed in itertools.product(learners, SETTINGS, SEEDS):
        graph, nodes, degree = setting
        if "golem" in name.lower() and setting not in GOLEM_SETTINGS:
            continue
        if records.missing(*setting, seed, name):
            data = rs.simulate(graph, degree=degree, nodes=nodes, samples=2000, random_state=seed)
            W, seconds = fit(name, data.X.to_numpy())
            shd = rs.evaluate(data.truth.to_numpy(), W).shd
            records.add(*setting, seed, name, shd, round(seconds, 4))
            print(*setting, seed, name, "SHD", shd, f"{seconds:.3f} s", flush=True)


def report():
    table = pd.read_csv(bench.RESULTS / "linear_against_peers.csv")
    cell = table.pivot_table(["shd", "cpu_seconds"], ["graph", "nodes", "degree"], "learner")
    print(cell.round(3).to_string())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    run(sys.argv[1:] or ["Linear", "Golem", *PEERS])
    report()
