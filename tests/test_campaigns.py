"""A few cases of every campaign; `make campaign` tries many."""

import itertools
import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from campaigns import kills
from campaigns.__main__ import main, names, outcomes, record

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", names())
def test_the_first_cases_of_every_campaign_hold(name):
    campaign = import_module(f"campaigns.{name}")
    assert campaign.__doc__
    for case in itertools.islice(campaign.cases(0), campaign.TESTED):
        outcome = campaign.try_one(case)
        assert not outcome.startswith("BROKEN"), (case, outcome)


def test_a_campaign_goes_on_where_it_stopped_and_tells_what_is_broken(
    tmp_path, monkeypatch, capsys
):
    def run(count):  # whose cases are in a process of their own
        words = ["files", "--count", str(count), "-o", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", ["campaigns", *words])
        return main()

    monkeypatch.chdir(ROOT)
    assert run(5) == 0
    path = tmp_path / "files-0.jsonl"
    broken = json.dumps({"outcome": "BROKEN: by hand"})
    path.write_text(broken + "\n" + path.read_text().split("\n", 1)[1] + '{"half')
    assert run(8) == 1
    told = capsys.readouterr().out
    assert "8 of 8" in told
    assert "by hand" in told
    assert len(path.read_text().splitlines()) == 8


def test_a_case_of_several_faults_counts_each_of_them(tmp_path):
    path = tmp_path / "kills-0.jsonl"
    record(path, ["main killed", "worker killed"])
    record(path, "BROKEN: lost", case="this")
    record(path, [])
    assert outcomes(path) == ["main killed", "worker killed", "BROKEN: lost"]
    lines = path.read_text().splitlines()
    assert [json.loads(line).get("case") for line in lines] == [None, "this", None]


def test_kills_of_runs_hold_and_workers_are_killed_once_in_a_sweep_at_most():
    first = list(itertools.islice(kills.cases(0), 40))
    run = next(case for case in first if case[0].whom == "run")
    assert kills.try_one(run[:3]) == ["run killed"] * 3
    whom = [[kill.whom for kill in case] for case in first]
    assert not any(pair == ("worker", "worker") for w in whom for pair in itertools.pairwise(w))
    assert {name for w in whom for name in w} == {"run", "main", "worker", "group"}


def test_what_a_kill_must_not_do_is_seen(tmp_path):
    whole = {"key": "a", "status": "ok", "result": {"shd": 1, "cpu_seconds": 2.0}}
    (tmp_path / "a.json").write_text(json.dumps(whole))
    assert kills._kept({"a": whole}, tmp_path) == {"a": whole}
    (tmp_path / "b.json").write_text('{"key": "b", "sta')
    with pytest.raises(kills.LossError, match="half a record"):
        kills._kept({"a": whole}, tmp_path)
    faster = whole | {"result": {"shd": 1, "cpu_seconds": 1.0}}
    assert kills._timeless(whole) == kills._timeless(faster)
    assert kills._timeless(whole) != kills._timeless(whole | {"status": "not converged"})
