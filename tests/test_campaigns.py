"""A few cases of every campaign; `make campaign` tries many."""

import itertools
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from campaigns.__main__ import names

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", names())
def test_the_first_cases_of_every_campaign_hold(name):
    campaign = import_module(f"campaigns.{name}")
    assert campaign.__doc__
    for case in itertools.islice(campaign.cases(0), campaign.TESTED):
        outcome = campaign.try_one(case)
        assert not outcome.startswith("BROKEN"), (case, outcome)


def test_a_campaign_goes_on_where_it_stopped_and_tells_what_is_broken(tmp_path):
    def run(count):
        words = ["files", "--count", str(count), "-o", str(tmp_path)]
        command = [sys.executable, "-m", "campaigns", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert run(5).returncode == 0
    path = tmp_path / "files-0.jsonl"
    broken = json.dumps({"outcome": "BROKEN: by hand"})
    path.write_text(broken + "\n" + path.read_text().split("\n", 1)[1] + '{"half')
    again = run(8)
    assert again.returncode == 1
    assert "8 of 8" in again.stdout
    assert "by hand" in again.stdout
    assert len(path.read_text().splitlines()) == 8
