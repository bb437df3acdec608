"""What it brings to know which rows belong together, against weights that find it out.

    python benchmarks/grouped_rows.py

1,000 rows of ER2 with 20 nodes, 10 % of them from a minority with the scales 1 and 0.1 of the
noise flipped; linear on seeds 0 to 9, Gaussian processes on seeds 0 to 2.  The labels are seen by
inverse-propensity weights and by DICD alone.  Records in results/grouped_rows.csv; a rerun does
only what is missing.
"""

import itertools
import warnings

import bench  # first: it pins the threads
import pandas as pd

import rescore as rs

ROWS = {"nodes": 20, "degree": 2, "samples": 1000, "groups": (0.9, 0.1), "noise_scale": 0.1}
MECHANISMS = {"linear": range(10), "gp": range(3)}
KEYS = ("mechanism", "learner", "weights", "seed")
VALUES = ("shd", "tpr", "fdr", "cpu_seconds")


def models(mechanism):
    """Learner and weights by name, each a fresh model."""
    if mechanism == "linear":
        plain, invariant = {"Notears": rs.Notears()}, ("DICD", rs.DICD())
    else:
        plain = {"NotearsMLP paper": rs.NotearsMLP("paper"), "NotearsMLP": rs.NotearsMLP()}
        invariant = ("DICDMLP", rs.DICDMLP())
    for name, learner in plain.items():
        yield name, "plain", learner
        yield name, "inverse-propensity", rs.ReScore(learner, weighting="inverse-propensity")
        yield name, "auto", rs.ReScore(learner)
    yield invariant[0], "plain", invariant[1]


def run():
    records = bench.Records("grouped_rows", KEYS, VALUES)
    for mechanism, seeds in MECHANISMS.items():
        for seed, (name, weights, model) in itertools.product(seeds, models(mechanism)):
            if records.missing(mechanism, name, weights, seed):
                fit(records, (mechanism, name, weights, seed), model)


def fit(records, key, model):
    data = rs.simulate(mechanism=key[0], random_state=key[-1], **ROWS)
    known = {"groups": data.groups} if model.needs_groups else {}
    # The first fit of a shape compiles: linear fits are short, so that they are timed again.
    repeats = 2 if key[0] == "linear" else 1
    fitted, seconds = bench.cpu_seconds(lambda: model.fit(data.X, **known), repeats)
    found = rs.evaluate(data.truth, fitted)
    records.add(*key, found.shd, round(found.tpr, 3), round(found.fdr, 3), round(seconds, 3))


def report():
    table = pd.read_csv(bench.RESULTS / "grouped_rows.csv")
    groups = table.groupby(["mechanism", "learner", "weights"], sort=False)
    summary = groups[list(VALUES)].mean().round(2)
    summary.insert(1, "sem", groups["shd"].sem().round(2))
    print(summary.to_string())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run()
    report()
