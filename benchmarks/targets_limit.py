"""How many changed mechanisms could be named at all: a judge who knows the graph and the labels.

    python benchmarks/targets_limit.py [--seeds 10]

The data sets of the setting "targets" (any_units.py): one mechanism is redrawn in each of three
groups, and a redrawn coefficient may be much like the old one.  A change is worth naming if graph
and groups together are described in fewer words with it than without it.  The judge starts from the
true graph and the true groups; `ReScore(Linear())` has to find both.
"""

import argparse

import bench  # first: it pins the threads
import numpy as np
from any_units import FIRST_SEED, NAME
from any_units_data import BASE, DATA

from rescore.protocols import Problem
from rescore.weightings.regimes import description_length, sharpened


def judged(data):
    """Of how many changes the description is shorter with them, the others known."""
    problem = Problem.unconstrained(data.X.to_numpy())
    changed = sorted(set(data.groups) - {BASE})
    cost = {left_out: length(problem, data, changed, left_out) for left_out in (None, *changed)}
    return sum(cost[name] > cost[None] for name in changed)


def length(problem, data, changed, left_out):
    """Of the true graph and groups, but for one group, whose rows count as the base's."""
    known = [name for name in changed if name != left_out]
    edges = data.truth.to_numpy() != 0
    base = ~data.groups.isin(known)
    members = np.column_stack([base, *(data.groups == name for name in known)]).astype(float)
    own = np.zeros((len(known) + 1, data.d), dtype=bool)
    own[np.arange(1, len(own)), [data.X.columns.get_loc(name) for name in known]] = True
    aside = np.zeros(len(own), dtype=bool)
    members = sharpened(problem, edges, members, aside, own)
    return description_length(problem, edges, members, aside, own)


def named():
    """What `ReScore(Linear())` named of the same, by its records: (data, seed) to a count."""
    import pandas as pd

    table = pd.read_csv(bench.RESULTS / f"{NAME}.csv")
    table = table[(table["setting"] == "targets") & (table["learner"] == "ReScore(Linear)")]
    return table.set_index(["data", "seed"])["targets"].astype(int)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    seeds = range(FIRST_SEED, FIRST_SEED + parser.parse_args().seeds)
    found = named()
    for name, make in DATA["targets"].items():
        limit = sum(judged(make(seed)) for seed in seeds)
        ours = sum(found[name, seed] for seed in seeds)
        print(f"{name}: the judge {limit}, ReScore(Linear) {ours} of {3 * len(seeds)}", flush=True)
