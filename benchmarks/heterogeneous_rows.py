"""What row weights bring where rows differ, and cost where they do not.

    python benchmarks/heterogeneous_rows.py [Linear Notears NotearsMLP ...] [--data PART]
        [--weights plain auto ...]

ER2 with 20 nodes unless said, linear, or Gaussian processes for nonlinear learners (for the
additive one also additive ones); seeds 1000 to
1009, not looked at in developing the weights.
The labels are seen by "labelled" alone: weights inversely proportional to the group's size,
corrupted rows left out.  Records in results/heterogeneous_rows.csv; a rerun does only what is
missing.
"""

import argparse
import itertools
import warnings

import bench  # first: it pins the threads
import numpy as np
import pandas as pd

import rescore as rs

HALF = {"samples": 1000, "groups": (0.9, 0.1), "noise_scale": 0.1}
ALIKE = {"samples": 1000}
DATA = {
    "10 % minority, scales 1 / 0.1": HALF,
    "5 % minority": HALF | {"groups": (0.95, 0.05)},
    "30 % minority": HALF | {"groups": (0.7, 0.3)},
    "scales 1 / 0.316": HALF | {"noise_scale": 0.316},
    "three groups 80/10/10": HALF | {"groups": (0.8, 0.1, 0.1)},
    "500 rows": HALF | {"samples": 500},
    "5,000 rows": HALF | {"samples": 5000},
    "homogeneous ER2": ALIKE,
    "homogeneous ER4": ALIKE | {"degree": 4},
    "homogeneous + 2 % corrupted": ALIKE | {"corrupt": 0.02},
    "homogeneous + 5 % corrupted": ALIKE | {"corrupt": 0.05},
    "10 % minority + 2 % corrupted": HALF | {"corrupt": 0.02},
    "10 % minority + 5 % corrupted": HALF | {"corrupt": 0.05},
    "t5 noise": None,
    "unequal variances": {"samples": 1000, "noise_scale": 0.1},
}
GP = {"mechanism": "gp"}
NONLINEAR = {
    "gp, 10 % minority, scales 1 / 0.1": GP | HALF,
    "gp, 10 % minority, variances 1 / 0.1": GP | HALF | {"scale_is": "variance"},
    "gp, homogeneous": GP | ALIKE,
    "gp, 2,000 rows + 5 % corrupted": GP | {"corrupt": 0.05, "samples": 2000},
    "gp, 2,000 rows + 10 % corrupted": GP | {"corrupt": 0.1, "samples": 2000},
}
GP_ADD = {"mechanism": "gp-add"}
LEVELS = {
    "gp-add, 30 % of the rows with other levels": "gp-add",
    "gp, 30 % of the rows with other levels": "gp",
}
ADDITIVE = LEVELS | {
    "gp-add, 10 % minority, scales 1 / 0.1": GP_ADD | HALF,
    "gp-add, homogeneous": GP_ADD | ALIKE,
    "gp-add, 2,000 rows + 5 % corrupted": GP_ADD | {"corrupt": 0.05, "samples": 2000},
}
SEEDS = range(1000, 1010)
SLOW = {"GaussianProcess", ("Additive", "auto")}  # beside which what is compiled once is little
KEYS, VALUES = ("data", "learner", "weights", "seed"), ("shd", "cpu_seconds", "effective_rows")


def dataset(name, seed):
    if name in LEVELS:
        return levels_differ(LEVELS[name], seed)
    if name != "t5 noise":
        settings = (DATA | NONLINEAR | ADDITIVE)[name]
        return rs.simulate(**({"nodes": 20, "degree": 2} | settings), random_state=seed)
    from rescore.data.mechanisms import propagate
    from rescore.data.simulate import erdos_renyi, streams

    rng = streams(seed)
    graph = erdos_renyi(20, 2, rng.graph)
    X = propagate(graph, rng.noise.standard_t(5, size=(1000, 20)), "linear", rng.mechanism)
    return rs.Dataset.from_arrays(X, truth=graph)


def levels_differ(mechanism, seed):
    """Of half of the variables the noise is centred three deviations away in three rows of ten."""
    from rescore.data.mechanisms import propagate
    from rescore.data.simulate import erdos_renyi, streams

    rng = streams(seed)
    graph = erdos_renyi(20, 2, rng.graph)
    other = rng.noise.random(1000) < 0.3
    away = 3.0 * rng.noise.choice([-1, 0, 0, 1], size=20)
    E = rng.noise.standard_normal((1000, 20)) + np.outer(other, away)
    X = propagate(graph, E, mechanism, rng.mechanism)
    return rs.Dataset.from_arrays(X, truth=graph, groups=np.where(other, "other", "base"))


def labelled(data):
    """Every group the same mass, corrupted rows none."""
    if data.groups is None:
        return None
    size = data.groups.map(data.groups.value_counts())
    return np.where(data.groups == "corrupted", 0.0, 1.0 / size)


def models(learner):
    yield "plain", learner
    yield "labelled", learner
    yield "exact raw tau=0.5", rs.ReScore(learner, tau=0.5, loss="raw")
    yield "exact nll tau=0.2", rs.ReScore(learner, tau=0.2)
    if isinstance(learner, rs.NotearsMLP | rs.GranDAG):  # weights of rows beside those of cells
        yield "balanced", rs.ReScore(learner, weighting="balanced")
    yield "auto", rs.ReScore(learner)


def run(learners, part, weights):
    records = bench.Records("heterogeneous_rows", KEYS, VALUES)
    for learner, seed in itertools.product(learners, SEEDS):
        kinds = DATA if getattr(rs, learner)().linear else NONLINEAR
        kinds = kinds | ADDITIVE if learner == "Additive" else kinds
        for name in [name for name in kinds if part in name]:
            fit_all(records, learner, name, seed, weights)


def fit_all(records, learner, name, seed, weights):
    there = [w for w, _ in models(getattr(rs, learner)()) if w in weights or not weights]
    todo = [w for w in there if records.missing(name, learner, w, seed)]
    if todo:
        data = dataset(name, seed)
        for weighting, model in models(getattr(rs, learner)()):
            if weighting not in todo:
                continue
            slow = learner in SLOW or (learner, weighting) in SLOW
            prior = labelled(data) if weighting == "labelled" else None
            fit = lambda model=model, X=data.X, prior=prior: model.fit(X, sample_weight=prior)  # noqa: E731
            fitted, seconds = bench.cpu_seconds(fit, repeats=1 if slow else 2)
            shd = rs.evaluate(data.truth, fitted).shd
            rows = fitted.diagnostics_["effective_rows"]
            records.add(name, learner, weighting, seed, shd, round(seconds, 4), round(rows))


def report(learners):
    table = pd.read_csv(bench.RESULTS / "heterogeneous_rows.csv")
    for learner in learners:
        ours = table[table["learner"] == learner]
        if not {"plain", "auto"} <= set(ours["weights"]):
            print(
                f"\n{learner}:\n{ours.groupby(['data', 'weights'])['shd'].agg(['mean', 'count'])}"
            )
            continue
        shd = ours.pivot_table("shd", "data", "weights", sort=False).round(1)
        seconds = ours.pivot_table("cpu_seconds", "data", "weights", sort=False)
        shd["CPU s plain"], shd["CPU s auto"] = seconds["plain"].round(3), seconds["auto"].round(3)
        shd["auto / plain"] = (seconds["auto"] / seconds["plain"]).round(2)
        print(f"\n{learner}: mean SHD, mean CPU seconds and their ratio")
        print(shd.to_string())
        paired = ours.pivot_table("shd", ["data", "seed"], "weights")
        gain = (paired["plain"] - paired["auto"]).groupby("data", sort=False).agg(["mean", "sem"])
        print("plain - auto, mean and standard error of the paired differences (95 %: 2.3 of it):")
        print(gain.round(2).to_string())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("learners", nargs="*", default=["Linear", "Notears", "NotearsMLP"])
    parser.add_argument("--data", default="", help='a part of their name, such as "minority"')
    parser.add_argument("--weights", nargs="+", default=[], help="some of them, not all")
    asked = parser.parse_args()
    run(asked.learners, asked.data, asked.weights)
    report(asked.learners)
