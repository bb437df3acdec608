"""Nonlinear learners beside gcastle's on the paper's settings and on other mechanisms.

    python benchmarks/nonlinear_against_peers.py [learner ...] [--nodes 10 20] [--kinds "gp ER"]

2,000 rows; default settings of every learner, one thread, CPU seconds without compilation (with
it for GaussianProcess, whose fits take minutes).  Joint
Gaussian processes on ER and SF graphs of 10, 20 (seeds 0 to 9) and 50 nodes (seeds 0 to 4), degree
2 and 4; gp-add, mlp and mim on ER graphs of 10 and 20 nodes, gp-add also of 50.  gcastle's learners
take minutes, so they see as many seeds as --seeds says, and no graph of 50 nodes.  Each fit is one
line of results/nonlinear_against_peers.csv as soon as it is there; a rerun does only what is
missing.
"""

import argparse
import itertools
import logging
import warnings

import bench  # first: it pins the threads
import numpy as np
import pandas as pd

import rescore as rs

SETTINGS = [("gp", *rest) for rest in itertools.product(("ER", "SF"), (10, 20, 50), (2, 4))]
SETTINGS += list(itertools.product(("gp-add", "mlp", "mim"), ("ER",), (10, 20), (2, 4)))
SETTINGS += list(itertools.product(("gp-add",), ("ER",), (50,), (2, 4)))
KEYS = ("mechanism", "graph", "nodes", "degree", "seed", "learner")
COLUMNS = (KEYS, ("shd", "edges", "cpu_seconds"))

OURS = {
    "Additive": rs.Additive(),
    "GaussianProcess": rs.GaussianProcess(),
    "GaussianProcess standardised": rs.GaussianProcess(standardize=True),
    "NotearsMLP": rs.NotearsMLP(),
    "NotearsMLP 2 starts": rs.NotearsMLP(n_starts=2),
    "NotearsMLP paper": rs.NotearsMLP(scheme="paper"),
    "GranDAG": rs.GranDAG(),
    "GranDAG cam": rs.GranDAG(prune="cam"),
    "GranDAG unpruned": rs.GranDAG(prune=None),
}


def gcastle_notears_mlp(X):
    from castle.algorithms import NotearsNonlinear

    return NotearsNonlinear(device_type="cpu")


def gcastle_gran_dag(X):
    from castle.algorithms import GraNDAG

    return GraNDAG(input_dim=X.shape[1], device_type="cpu")


PEERS = {"gcastle NOTEARS-MLP": gcastle_notears_mlp, "gcastle GraN-DAG": gcastle_gran_dag}


def peer_graph(name, X):
    learner = PEERS[name](X)
    learner.learn(X)
    return np.asarray(learner.causal_matrix, dtype=float)


def fit(name, X):
    """Adjacency and CPU seconds; ours is fitted once before, so that compilation is not counted."""
    if name in PEERS:
        return bench.cpu_seconds(lambda: peer_graph(name, X))
    learner = OURS[name]
    if "GaussianProcess" not in name and X.shape not in fit.compiled.setdefault(name, set()):
        learner.fit(X)
        fit.compiled[name].add(X.shape)
    model, seconds = bench.cpu_seconds(lambda: learner.fit(X))
    return model.adjacency_matrix_.to_numpy(), seconds


fit.compiled = {}


def wanted(name, setting, seed, seeds):
    nodes = setting[2]
    if name in PEERS:
        return nodes < 50 and seed < seeds
    return seed < (5 if nodes == 50 else 10)


def run(learners, seeds, sizes, kinds):
    records = bench.Records("nonlinear_against_peers", *COLUMNS)
    settings = [each for each in SETTINGS if each[2] in sizes and " ".join(each[:2]) in kinds]
    for seed, setting in itertools.product(range(10), settings):
        mechanism, graph, nodes, degree = setting
        names = [
            name
            for name in learners
            if wanted(name, setting, seed, seeds) and records.missing(*setting, seed, name)
        ]
        if not names:
            continue
        data = rs.simulate(graph, degree, nodes, 2000, mechanism, random_state=seed)
        for name in names:
            W, seconds = fit(name, data.X.to_numpy())
            shd = rs.evaluate(data.truth.to_numpy(), W).shd
            records.add(*setting, seed, name, shd, int((W != 0).sum()), round(seconds, 3))
            print(*setting, seed, name, "SHD", shd, f"{seconds:.2f} s", flush=True)


def report():
    table = pd.read_csv(bench.RESULTS / "nonlinear_against_peers.csv")
    cell = table.pivot_table(["shd", "cpu_seconds"], list(KEYS[:4]), "learner")
    print(cell.round(2).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("learners", nargs="*", default=[*OURS, *PEERS])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10, 20, 50])
    kinds = sorted({" ".join(each[:2]) for each in SETTINGS})
    parser.add_argument("--kinds", nargs="*", choices=kinds, default=kinds)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    run(chosen.learners, chosen.seeds, chosen.nodes, chosen.kinds)
    report()
