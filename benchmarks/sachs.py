"""Every learner on the Sachs data, plain and reweighted, at its defaults.

    python benchmarks/sachs.py

SHD, SID and edges against the consensus graph of 17 edges; columns standardised, or logarithms of
them standardised.  Nothing is tuned.  Records in results/sachs.csv; a rerun does only what is
missing.
"""

import itertools
import warnings

import bench  # first: it pins the threads
import numpy as np
import pandas as pd

import rescore as rs

LEARNERS = {
    "Linear": rs.Linear(standardize=True),
    "Notears": rs.Notears(standardize=True),
    "Dagma": rs.Dagma(standardize=True),
    "Golem": rs.Golem(standardize=True),
    "Golem unequal": rs.Golem(standardize=True, variance="unequal"),
    "NotearsMLP": rs.NotearsMLP(standardize=True),
    "GranDAG": rs.GranDAG(standardize=True),
}
WEIGHTS = {
    "plain": lambda learner: learner,
    "tau=0.5": lambda learner: rs.ReScore(learner, tau=0.5),
    "balanced": lambda learner: rs.ReScore(learner, weighting="balanced"),
}
COLUMNS = ("scale", "learner", "weights"), ("shd", "sid", "edges", "cpu_seconds")


def run():
    data = rs.load_sachs()
    tables = {"standardised": data.X, "log": np.log(data.X)}
    records = bench.Records("sachs", *COLUMNS)
    for scale, name, weights in itertools.product(tables, LEARNERS, WEIGHTS):
        if records.missing(scale, name, weights):
            model = WEIGHTS[weights](LEARNERS[name])
            fitted, seconds = bench.cpu_seconds(lambda m=model, X=tables[scale]: m.fit(X))
            found = rs.evaluate(data.truth, fitted)
            edges = int((fitted.adjacency_matrix_.to_numpy() != 0).sum())
            records.add(scale, name, weights, found.shd, found.sid, edges, round(seconds, 2))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run()
    print(pd.read_csv(bench.RESULTS / "sachs.csv").to_string(index=False))
