"""Whether a graph hangs on rounding errors.

    python benchmarks/rounding.py

ER4 with 20 nodes and 2,000 rows, seeds 0 to 3: every learner is fitted to X and to X multiplied
by 1 - 1e-9 and by 1 + 1e-9, which changes nothing but the last digits.  A graph counts as changed
if its edges are not those found in X.  Records in results/rounding.csv; a rerun does only what is
missing.
"""

import itertools
import warnings

import bench  # first: it pins the threads
import pandas as pd

import rescore as rs

LEARNERS = {
    "Linear()": rs.Linear(),
    "Notears()": rs.Notears(),
    "Notears(polish=False)": rs.Notears(polish=False),
    "Dagma()": rs.Dagma(),
    "Dagma(polish=False)": rs.Dagma(polish=False),
    "Dagma(n_starts=4)": rs.Dagma(n_starts=4),
    "Golem()": rs.Golem(),
    "Golem(polish=False)": rs.Golem(polish=False),
}
SCALES = (1 - 1e-9, 1 + 1e-9)
SEEDS = range(4)
KEYS, VALUES = ("learner", "seed"), ("shd", "scaled", "changed")


def edges(learner, X):
    return learner.fit(X).adjacency_matrix_.to_numpy() != 0


def run():
    records = bench.Records("rounding", KEYS, VALUES)
    for seed, name in itertools.product(SEEDS, LEARNERS):
        if records.missing(name, seed):
            data = rs.simulate(nodes=20, degree=4, samples=2000, random_state=seed)
            found = edges(LEARNERS[name], data.X)
            changed = [(edges(LEARNERS[name], data.X * scale) != found).any() for scale in SCALES]
            shd = rs.evaluate(data.truth.to_numpy(), found.astype(float)).shd
            records.add(name, seed, shd, len(changed), sum(changed))


def report():
    table = pd.read_csv(bench.RESULTS / "rounding.csv").groupby("learner", sort=False)
    print(table.agg({"shd": "mean", "scaled": "sum", "changed": "sum"}).round(1).to_string())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run()
    report()
