"""The errors that no method can avoid on joint Gaussian-process data: a judge who knows the rest.

    python benchmarks/nonlinear_limit.py [--seeds N] [--nodes 10 20 50]

The judge knows the order, every other parent, the kernel (bandwidth and amplitude one) and each
cell's noise variance, and decides every edge by the marginal likelihood of a Gaussian process and
the share of pairs with an edge.  Heterogeneous rows (1,000 of them, 10 % with flipped scales) are
judged twice: with each cell's own noise, and with one variance per variable.

A learner has to find all parents of a variable at once.  So a second judge is asked about sets:
the edges into variables whose true parents, told to him with the kernel, are worth less beside
noise of any size than the odds against so many edges.  No learner can tell them from noise
without knowing units or the other parents.

Records in results/nonlinear_limit.csv beside those of the learners; a rerun does only what is
missing.
"""

import argparse
import itertools

import bench  # first: it pins the threads
import numpy as np
import pandas as pd
from scipy.linalg import lapack

import rescore as rs
from rescore.data.simulate import _groups, streams

SETTINGS = [(*rest, "alike") for rest in itertools.product(("ER", "SF"), (10, 20, 50), (2, 4))]
SETTINGS += [("ER", 20, 2, noise) for noise in ("cells", "pooled")]
COLUMNS = (("graph", "nodes", "degree", "noise", "seed"), ("missed", "false", "sets", "edges"))
LOW = 0.1  # noise deviation of the quiet half of the variables, where rows differ


def data(graph, nodes, degree, noise, seed):
    """Rows, the true graph and every cell's noise variance as the judge takes it."""
    if noise == "alike":
        drawn = rs.simulate(graph, degree, nodes, 2000, "gp", random_state=seed)
        return drawn.X.to_numpy(), drawn.truth.to_numpy(), np.ones((2000, nodes))
    shares = (0.9, 0.1)
    drawn = rs.simulate(
        graph, degree, nodes, 1000, "gp", groups=shares, noise_scale=LOW, random_state=seed
    )
    variance = _groups(shares, 1000, nodes, LOW, streams(seed).groups)[1] ** 2
    if noise == "pooled":
        variance = np.broadcast_to(variance.mean(axis=0), variance.shape)
    return drawn.X.to_numpy(), drawn.truth.to_numpy(), variance


def evidence(X, y, parents, noise):
    """Log marginal likelihood of y under the kernel of the simulator, up to a constant."""
    Z = X[:, parents]
    squares = np.square(Z).sum(axis=1)
    distance = np.maximum(squares[:, None] + squares - 2 * Z @ Z.T, 0)
    C = np.exp(-distance / 2) if len(parents) else np.zeros((len(y), len(y)))
    C[np.diag_indices(len(y))] += noise
    factor, _ = lapack.dpotrf(C, lower=1)
    solved, _ = lapack.dpotrs(factor, y, lower=1)
    return -y @ solved / 2 - np.log(np.diag(factor)).sum()


def evidence_of_noise(y, noise):
    """The same where nothing acts on y and its noise may be of any size."""
    size = np.mean(y**2 / noise)
    return -(len(y) * (1 + np.log(size)) + np.log(noise).sum()) / 2


def judged(X, truth, noise):
    """How many edges the data cannot show, how many pairs they show wrongly, and sets."""
    order = [int(v) for v in rs.graph.dag.topological_order(truth)]
    pairs = len(truth) * (len(truth) - 1) / 2
    odds = np.log(truth.sum() / (pairs - truth.sum())) if pairs > truth.sum() else np.inf
    missed = false = sets = 0
    for k, j in enumerate(order):
        parents = list(np.flatnonzero(truth[:, j]))
        whole = evidence(X, X[:, j], parents, noise[:, j])
        worth = whole - evidence_of_noise(X[:, j], noise[:, j])
        sets += len(parents) * (worth + odds * len(parents) <= 0)
        for i in order[:k]:
            others = [p for p in parents if p != i] if i in parents else [*parents, i]
            other = evidence(X, X[:, j], others, noise[:, j])
            if i in parents:
                missed += whole - other + odds <= 0
            else:
                false += other - whole + odds > 0
    return int(missed), int(false), int(sets)


def report():
    table = pd.read_csv(bench.RESULTS / "nonlinear_limit.csv")
    table["limit"] = table["missed"] + table["false"]
    keys = ["graph", "nodes", "degree", "noise"]
    print(
        table.groupby(keys)[["limit", "missed", "false", "sets", "edges"]]
        .mean()
        .round(1)
        .to_string()
    )
    ours = pd.read_csv(bench.RESULTS / "nonlinear_against_peers.csv")
    ours = ours[(ours["mechanism"] == "gp") & ~ours["learner"].str.contains("gcastle")]
    beside = ours.pivot_table("shd", keys[:3], "learner").round(1)
    alike = table[table["noise"] == "alike"]
    for judge in ("sets", "limit"):
        beside.insert(0, judge, alike.groupby(keys[:3])[judge].mean())
    print("\nMean SHD of the learners beside it\n" + beside.to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10, 20, 50])
    chosen = parser.parse_args()
    records = bench.Records("nonlinear_limit", *COLUMNS)
    for seed, setting in itertools.product(range(chosen.seeds), SETTINGS):
        if setting[1] in chosen.nodes and records.missing(*setting, seed):
            X, truth, noise = data(*setting, seed)
            records.add(*setting, seed, *judged(X, truth, noise), int(truth.sum()))
    report()
