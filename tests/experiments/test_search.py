"""Searching settings: the study is rebuilt from the records, and the protocol decides by what."""

import itertools

import pytest

from rescore.experiments import Experiment
from rescore.experiments.running import run_trial, search
from rescore.experiments.store import Store

pytest.importorskip("optuna")


def experiment(protocol="honest", **data):
    where = {"source": "simulate", "nodes": 5, "samples": 200, **data}
    method = {
        "name": "Linear",
        "learner": "Linear",
        "search": {"parameters.threshold": {"low": 0.1, "high": 3.0}},
    }
    return Experiment("mine", "Mine", (where,), (method,), seeds=2, protocol=protocol)


class Counted:
    """Runs what is missing, and counts it."""

    def __init__(self, store):
        self.store, self.count = store, 0

    def __call__(self, trials):
        there = self.store.read()
        new = [trial for trial in trials if trial.key not in there]
        self.count += len(new)
        for trial in new:  # here: what processes do to trials is seen in test_sweep
            self.store.write(run_trial(trial))


def test_a_search_goes_on_from_its_records(tmp_path):
    store = Store(tmp_path)
    first, second = Counted(store), Counted(store)
    search(experiment(hold=0.25), store, 2, first)
    found = search(experiment(hold=0.25), store, 3, second)
    assert (first.count, second.count) == (4, 2)
    assert 0.1 <= found["Linear"]["parameters.threshold"] <= 3.0


def test_the_best_is_the_best_of_the_records(tmp_path):
    store = Store(tmp_path)
    found = search(experiment(hold=0.25), store, 4, Counted(store))["Linear"]
    by_setting = {}
    for record in store.read().values():
        value = record["trial"]["method"]["parameters"]["threshold"]
        by_setting.setdefault(value, []).append(-record["result"]["held_out"])
    means = {value: sum(losses) / len(losses) for value, losses in by_setting.items()}
    assert found["value"] == pytest.approx(min(means.values()))
    assert means[found["parameters.threshold"]] == min(means.values())  # of several, any


def test_the_oracle_looks_at_the_truth_and_the_honest_search_must_not(tmp_path):
    store = Store(tmp_path)
    found = search(experiment("oracle"), store, 2, Counted(store))["Linear"]
    shds = [record["result"]["shd"] for record in store.read().values()]
    pairs = [sum(pair) / 2 for pair in itertools.combinations(shds, 2)]
    assert min(pairs) <= found["value"] <= max(pairs)
    with pytest.raises(ValueError, match=r"hold = 0\.2"):
        search(experiment(), Store(tmp_path / "other"), 1, Counted(Store(tmp_path / "other")))
