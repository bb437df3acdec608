"""Causal graphs in any units: ours beside the peers, where neither variance nor order helps.

    make peers                                     # once, for DirectLiNGAM
    python benchmarks/any_units.py [--settings groups-2 ...] [--learners Linear ...] [--seeds N]
    python benchmarks/any_units.py --learners Linear --again     # once more, after a change
    python benchmarks/any_units.py --table                       # from the records, nothing is run

Ten data sets of each kind, from seed 5000 on; `any_units_data.py` says what they are and
`any_units_learners.py` who learns.  One thread, CPU seconds without one-off compilation.  What is
recorded of every fit, in results/any_units.csv:

    shd, sid        of the DAG, one of the class that GES and BOSS end with; SID up to 50 nodes
    cpdag_distance  pairs at which the classes of the truth and of the estimate differ
    edges           of the estimate; where the truth has none, all of them are false
    bic             Gaussian, a variance per variable, less that of the true graph: below zero is
                    a better score than the truth's
    targets         (group, variable) rightly named as a changed mechanism, of three
    false_targets   wrongly named ones
    error           of a fit that failed, by the exception's name

Each fit is a line as soon as it is there; a rerun does only what is missing.
"""

import argparse
import itertools
import logging
import warnings
from typing import NamedTuple

import any_units_table
import bench  # before numpy: it pins the threads
import numpy as np
import pandas as pd
from any_units_data import BASE, DATA
from any_units_learners import OURS, PEERS, fit

from rescore.metrics import cpdag_shd, shd, sid

NAME = "any_units"
FIRST_SEED = 5000
LARGEST_SID = 50  # nodes
KEYS = ("setting", "data", "learner", "seed")
METRICS = ("shd", "cpdag_distance", "sid", "edges", "bic", "targets", "false_targets")
VALUES = (*METRICS, "cpu_seconds", "error")


class Setting(NamedTuple):
    """Who learns, what the table shows, and on how many data sets."""

    learners: tuple[str, ...]
    shown: tuple[str, ...]
    datasets: int = 10


PAIR = ("Linear", "ReScore(Linear)")
LABELS = ("Linear, labels",)
CLASSES = ("Linear", "GES", "BOSS", "BOSS BIC")
PAPER = ("GES", "Notears", "Golem", "Dagma")
PAPER_PAIRS = tuple(f(name) for name in PAPER for f in (str, "ReScore({})".format))
DAGS = ("Linear", "DirectLiNGAM", "DirectLiNGAM > 0.05")
SETTINGS = {
    "groups-2": Setting(
        (*PAIR, *LABELS, *CLASSES[1:], *DAGS[1:]), ("shd", "cpdag_distance", "sid")
    ),
    "groups-3": Setting(
        (*PAIR, *LABELS, *CLASSES[1:], *DAGS[1:]), ("shd", "cpdag_distance", "sid")
    ),
    "flipped": Setting((*PAIR, *LABELS, *CLASSES[1:], *DAGS[1:]), ("shd", "cpdag_distance", "sid")),
    "equal": Setting(("Linear",), ("shd", "sid")),
    "unequal": Setting(CLASSES, ("cpdag_distance", "bic")),
    "weak": Setting(CLASSES, ("cpdag_distance", "bic")),
    "networks": Setting(
        (
            *PAIR,
            *CLASSES[1:3],
            "Notears",
            "ReScore(Notears)",
            "Golem",
            "ReScore(Golem)",
            *DAGS[1:2],
        ),
        ("shd", "cpdag_distance", "edges"),
    ),
    "shapes": Setting(DAGS, ("shd", "cpdag_distance", "edges")),
    "corrupted": Setting(PAIR, ("shd", "cpdag_distance")),
    "simpson": Setting(PAIR, ("edges",)),
    "targets": Setting(("ReScore(Linear)",), ("targets", "false_targets", "shd")),
    "learners": Setting(PAPER_PAIRS, ("shd", "cpdag_distance"), datasets=5),
    "sachs": Setting((*PAIR, "Additive", "ReScore(Additive)"), ("shd", "sid", "edges"), datasets=1),
    "cpu": Setting(PAIR, ("shd", "cpdag_distance")),
    "cpu-size": Setting(("Linear",), ("cpdag_distance", "bic")),
}


def bic(X, graph):
    """``Σ_j n log(unexplained share of the variance of x_j) + log n · edges``, in any units."""
    R = np.corrcoef(X, rowvar=False)
    score = np.log(len(X)) * np.count_nonzero(graph)
    for j, parents in enumerate(np.asarray(graph).T != 0):
        b = np.linalg.solve(R[np.ix_(parents, parents)], R[parents, j])
        score += len(X) * np.log(1 - R[parents, j] @ b)
    return score


def named_targets(model, groups):
    """Rightly and wrongly named changes of a mechanism; a found group is where its rows are from.

    The true label of a changed group is the name of its variable.
    """
    told = model.diagnostics_["weighting"]
    member = np.asarray(told["membership"])  # (n,)
    origin = groups.groupby(member).agg(lambda labels: labels.mode()[0])
    named = {(origin[found["group"]], found["variable"]) for found in told["interventions"]}
    true = {(label, label) for label in set(groups) - {BASE}}
    return len(named & true), len(named - true)


def record_of(setting, learner, data):
    """The values of one fit, in the order of VALUES."""
    found = fit(learner, data)
    truth, X = data.truth.to_numpy(), data.X.to_numpy()
    scores = {
        "shd": shd(truth, found.graph),
        "cpdag_distance": cpdag_shd(truth, found.graph),
        "edges": int(np.count_nonzero(found.graph)),
        "bic": round(float(bic(X, found.graph) - bic(X, truth)), 2),
        "cpu_seconds": round(found.cpu_seconds, 4),
    }
    if data.d <= LARGEST_SID:
        scores["sid"] = sid(truth, found.graph)
    if "targets" in SETTINGS[setting].shown:
        scores["targets"], scores["false_targets"] = named_targets(found.model, data.groups)
    return scores


def run(settings, learners, seeds, part):
    records = bench.Records(NAME, KEYS, VALUES)
    for seed, setting in itertools.product(range(seeds), settings):
        wanted = [name for name in SETTINGS[setting].learners if name in learners]
        if seed < SETTINGS[setting].datasets:
            for name in [name for name in DATA[setting] if part in name]:
                fit_all(records, (setting, name), wanted, FIRST_SEED + seed)


def fit_all(records, where, learners, seed):
    setting, name = where
    todo = [learner for learner in learners if records.missing(*where, learner, seed)]
    data = DATA[setting][name](seed=seed) if todo else None
    for learner in todo:
        try:
            scores = record_of(setting, learner, data)
        except Exception as error:  # a failure is a result too, and the next fit may not fail
            scores = {"error": type(error).__name__}
        records.add(*where, learner, seed, *(scores.get(value, "") for value in VALUES))
        print(*where, learner, seed, scores, flush=True)


def forget(settings, learners, seeds, part):
    """Take the records of these fits out of the file, so that they are made again."""
    path = bench.RESULTS / f"{NAME}.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    again = table["setting"].isin(settings) & table["learner"].isin(learners)
    again &= table["data"].str.contains(part, regex=False)
    again &= table["seed"].astype(int) < FIRST_SEED + seeds
    table[~again].to_csv(path, index=False, lineterminator="\n")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--learners", nargs="+", choices=[*OURS, *PEERS], default=[*OURS, *PEERS])
    parser.add_argument("--seeds", type=int, default=10, help="data sets of each kind")
    parser.add_argument("--data", default="", help='a part of their name, such as "20 nodes"')
    parser.add_argument("--again", action="store_true", help="also what is already recorded")
    parser.add_argument("--table", action="store_true", help="only print what is recorded")
    return parser.parse_args()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    chosen = arguments()
    asked = chosen.settings, chosen.learners, chosen.seeds, chosen.data
    if chosen.again:
        forget(*asked)
    if not chosen.table:
        run(*asked)
    any_units_table.report(NAME, {name: SETTINGS[name] for name in chosen.settings})
