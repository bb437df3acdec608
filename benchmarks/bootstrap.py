"""What a hundred bootstrap fits cost, beside single fits one by one.

    python benchmarks/bootstrap.py

Linear ER2 data, 20 nodes, 2,000 rows, seeds 0 to 2; one thread, one process, CPU seconds without
compilation, least of a few rounds in which both are timed in turn.  "singles" are ordinary fits of
all rows, per fit; "bootstrap" is `rs.bootstrap`, per resample; "ratio" is a hundred resamples over
twenty single fits.  Records in results/bootstrap.csv; a rerun does only what is missing.
"""

import warnings

import bench  # first: it pins the threads
import pandas as pd

import rescore as rs

# Learner: resamples, single fits, rounds.  Notears is too slow for as many as are asked about.
PLANS = {"Linear": (100, 20, 5), "Notears": (10, 10, 2)}
SEEDS = range(3)
KEYS, VALUES = ("learner", "seed"), ("single_seconds", "resample_seconds", "ratio")


def measure(learner, seed):
    """CPU seconds of one single fit and of one resample, the least of a few rounds each."""
    resamples, singles, rounds = PLANS[learner]
    X = rs.simulate("ER", degree=2, nodes=20, samples=2000, random_state=seed).X
    model = getattr(rs, learner)().fit(X)  # compiles
    rs.bootstrap(model, X, resamples=2)
    one = many = float("inf")
    for _ in range(rounds):
        one = min(one, bench.cpu_seconds(lambda: [model.fit(X) for _ in range(singles)])[1])
        many = min(many, bench.cpu_seconds(lambda: rs.bootstrap(model, X, resamples=resamples))[1])
    return one / singles, many / resamples


def run():
    records = bench.Records("bootstrap", KEYS, VALUES)
    for learner in PLANS:
        for seed in SEEDS:
            if records.missing(learner, seed):
                single, resample = measure(learner, seed)
                ratio = round(100 * resample / (20 * single), 3)
                records.add(learner, seed, round(single, 5), round(resample, 5), ratio)
                print(learner, seed, ratio, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run()
    table = pd.read_csv(bench.RESULTS / "bootstrap.csv")
    print(table.to_string(index=False))
    print("\nworst ratio\n" + table.groupby("learner", sort=False)["ratio"].max().to_string())
