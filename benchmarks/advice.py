"""What the advice on λ and threshold is worth: SHD at the recommended point and at the default.

    python benchmarks/advice.py

Linear data, ER2 and ER4 with 10 and 20 nodes and 2,000 rows, in their own units and standardised.
`advise` sees the rows alone; the true graph only counts errors afterwards.  The oracle is the
point of the same path with the least SHD, which nobody could choose without the truth.  The rule
was settled on seeds 100 and 101, which are left out of the means.  Halves of the rows are two
instead of six, for the sake of time.  Records in results/advice.csv, small tables first; a rerun
does only what is missing.
"""

import itertools
import warnings

import bench  # first: it pins the threads
import numpy as np
import pandas as pd

import rescore as rs
from rescore.metrics import shd

KEYS = ("nodes", "degree", "units", "seed")
VALUES = ("default", "recommended", "oracle", "lambda1", "threshold", "edges", "true_edges", "cpu")
SEEDS = range(100, 120)
LAST_SEEN = 101  # while the rule was being chosen
SETTINGS = tuple(itertools.product((10, 20), (2, 4), ("own", "standardised")))


def errors(learner, path, data):
    """The SHD at every point of a path; each λ is fitted once."""
    found = {
        lambda1: rs.Notears(lambda1, threshold=0, standardize=learner.standardize)
        .fit(data.X)
        .adjacency_matrix_.to_numpy()
        for lambda1 in path["lambda1"].unique()
    }
    points = zip(path["lambda1"], path["threshold"], strict=True)
    graphs = ((found[lambda1] != 0) & (np.abs(found[lambda1]) >= at) for lambda1, at in points)
    return [shd(data.truth.to_numpy(), graph) for graph in graphs]


def measure(nodes, degree, units, seed):
    data = rs.simulate(nodes=nodes, degree=degree, samples=2000, random_state=seed)
    learner = rs.Notears(standardize=units == "standardised")
    advice, seconds = bench.cpu_seconds(lambda: rs.advise(learner, data.X, subsamples=2))
    path = advice.table.assign(shd=errors(learner, advice.table, data))
    default = path[(path["lambda1"] == learner.lambda1) & (path["threshold"] == learner.threshold)]
    chosen = path[path["recommended"]].iloc[0]
    return (
        default["shd"].iloc[0], chosen["shd"], path["shd"].min(), chosen["lambda1"],
        chosen["threshold"], chosen["edges"], int((data.truth.to_numpy() != 0).sum()),
        round(seconds, 1),
    )  # fmt: skip


def run():
    records = bench.Records("advice", KEYS, VALUES)
    trials = itertools.product(SEEDS, SETTINGS)
    for seed, setting in sorted(trials, key=lambda trial: trial[1][0]):
        if records.missing(*setting, seed):
            records.add(*setting, seed, *measure(*setting, seed))


def report():
    records = pd.read_csv(bench.RESULTS / "advice.csv")
    table = records[records["seed"] > LAST_SEEN].groupby(list(KEYS[:3]))
    shown = table[["default", "recommended", "oracle", "cpu"]].mean().round(1)
    shown.insert(0, "data sets", table.size())
    print(shown.to_string())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run()
    report()
