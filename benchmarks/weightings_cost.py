"""What row weights cost, and how near the network comes to the exact weights.

    python benchmarks/weightings_cost.py

Linear ER2 data, 20 nodes, 2,000 rows, seeds 0 to 2; Notears and Linear, plain and with each kind of
weights; one thread, CPU seconds without compilation, least of five rounds.  "to exact" is the
weighted loss of the network's weights at the last outer step, relative to that of the exact weights
for the same losses; "share" is how far it went from the uniform weights' loss to that.  Records in
results/weightings_cost.csv; a rerun does only what is missing.
"""

import itertools
import warnings

import bench  # first: it pins the threads
import pandas as pd

import rescore as rs
from rescore.weightings import Exact, Uniform
from rescore.weightings.neural import Neural

LEARNERS, SEEDS, ROUNDS = ("Notears", "Linear"), range(3), 5
WEIGHTS = {
    "plain": None,
    "uniform": Uniform(),
    "exact": Exact(tau=0.5),
    "neural": Neural(tau=0.5),
    "neural, two hidden layers": Neural(tau=0.5, hidden=(10, 10)),
    "neural, noise": Neural(tau=0.5, noise=True),
    "exact, tau=0.9": Exact(tau=0.9),
    "neural, tau=0.9": Neural(tau=0.9),
    "exact, tau=0.1": Exact(tau=0.1),
    "neural, tau=0.1": Neural(tau=0.1),
}
KEYS, VALUES = ("learner", "weights", "seed"), ("shd", "cpu_seconds", "to_exact", "share")


def model_with(learner, weights):
    estimator = getattr(rs, learner)()
    weighting = WEIGHTS[weights]
    return estimator if weighting is None else rs.ReScore(estimator, weighting=weighting)


def run():
    records = bench.Records("weightings_cost", KEYS, VALUES)
    for learner, seed in itertools.product(LEARNERS, SEEDS):
        todo = [weights for weights in WEIGHTS if records.missing(learner, weights, seed)]
        if todo:
            fit_all(records, learner, seed, todo)


def fit_all(records, learner, seed, todo):
    """In turn, several times: what else the machine does then meets all of them alike."""
    data = rs.simulate("ER", degree=2, nodes=20, samples=2000, random_state=seed)
    models = {weights: model_with(learner, weights).fit(data.X) for weights in todo}  # compiles
    seconds = dict.fromkeys(todo, float("inf"))
    for _ in range(ROUNDS):
        for weights, model in models.items():
            spent = bench.cpu_seconds(lambda model=model: model.fit(data.X))[1]
            seconds[weights] = min(seconds[weights], spent)
    for weights, model in models.items():
        shd, told = rs.evaluate(data.truth, model).shd, model.diagnostics_["weighting"]
        records.add(learner, weights, seed, shd, round(seconds[weights], 4), *nearness(told))
    print(learner, seed, seconds, flush=True)


def nearness(told):
    """The network's loss relative to exact, and its share of the way; nothing for the others."""
    if "neural" not in told:
        return "", ""
    return round(told["neural"] / told["exact"], 5), round(told["share"], 4)


def report():
    table = pd.read_csv(bench.RESULTS / "weightings_cost.csv")
    for learner, ours in table.groupby("learner", sort=False):
        cell = ours.pivot_table(list(VALUES), "weights", sort=False)
        cell["ratio"] = cell["cpu_seconds"] / cell.loc["plain", "cpu_seconds"]
        print(f"\n{learner}, means over seeds\n{cell.round(4).to_string()}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run()
    report()
