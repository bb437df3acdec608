"""Every learner on the Sachs data, plain and reweighted, at its defaults.

    python benchmarks/sachs.py

SHD, SID and edges against the consensus graph of 17 edges; columns standardised, or logarithms of
them standardised.  Nothing is tuned.  Records in results/sachs.csv; a rerun does only what is
missing.

CD-NOD is told the nine conditions.  What it leaves undirected is scored twice: directed as in its
``adjacency_matrix_``, and as "CDNOD partial", where an undirected edge agrees with either
direction (the scoring of NOTEARS) and there is no SID.  SortNRegress by variance sees the columns,
or their logarithms, in their own units, for it has nothing else to go by.
"""

import itertools
import warnings

import bench  # first: it pins the threads
import numpy as np
import pandas as pd

import rescore as rs
from rescore.metrics import shd

LEARNERS = {
    "Linear": rs.Linear(standardize=True),
    "Notears": rs.Notears(standardize=True),
    "Dagma": rs.Dagma(standardize=True),
    "Golem": rs.Golem(standardize=True),
    "Golem unequal": rs.Golem(standardize=True, variance="unequal"),
    "NotearsMLP": rs.NotearsMLP(standardize=True),
    "GranDAG": rs.GranDAG(standardize=True),
    "GES": rs.GES(standardize=True),
}
UNWEIGHTED = {
    "SortNRegress": rs.SortNRegress(),
    "SortNRegress r2": rs.SortNRegress("r2", standardize=True),
    "Random": rs.Random(standardize=True),
    "Empty": rs.Empty(standardize=True),
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
    lines = [*itertools.product(LEARNERS, WEIGHTS), *((name, "plain") for name in UNWEIGHTED)]
    for scale, (name, weights) in itertools.product(tables, lines):
        if records.missing(scale, name, weights):
            model = WEIGHTS[weights]((LEARNERS | UNWEIGHTED)[name])
            fitted, seconds = bench.cpu_seconds(lambda m=model, X=tables[scale]: m.fit(X))
            found = rs.evaluate(data.truth, fitted)
            edges = int((fitted.adjacency_matrix_.to_numpy() != 0).sum())
            records.add(scale, name, weights, found.shd, found.sid, edges, round(seconds, 2))
    for scale, X in tables.items():
        if records.missing(scale, "CDNOD partial", "plain"):
            run_cd_nod(records, scale, X, data)


def run_cd_nod(records, scale, X, data):
    fitted, seconds = bench.cpu_seconds(lambda: rs.CDNOD().fit(X, groups=data.groups))
    directed, partial = fitted.adjacency_matrix_, fitted.partial_graph_
    found, edges = rs.evaluate(data.truth, directed), rs.evaluate(data.truth, partial).edges
    forgiving = shd(data.truth, partial, undirected_agrees=True)
    took = round(seconds, 2)
    records.add(scale, "CDNOD", "plain", found.shd, found.sid, found.edges, took)
    records.add(scale, "CDNOD partial", "plain", forgiving, "", edges, took)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run()
    print(pd.read_csv(bench.RESULTS / "sachs.csv").to_string(index=False))
