import json

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.reports.run import read_run
from rescore.studies import bootstrap
from rescore.studies.bootstrap import resample


def test_json_and_files_hold_what_bootstrap_finds(cli_json, data, table, tmp_path):
    folder = tmp_path / "run"
    result = cli_json(
        "fit", data, "-o", folder, "--learner", "linear", "--tau", 0.5, "--bootstrap", 4,
        "--seed", 3,
    )  # fmt: skip
    model = rs.ReScore(rs.Linear(), tau=0.5)
    expected = rs.bootstrap(model, table, resamples=4, random_state=3)
    found = result["stability"]
    assert (found["resamples"], found["statuses"]) == (4, {"CONVERGED": 4})
    assert found["summary"] == expected.summary
    ends = {"cause": "from", "effect": "to"}
    assert found["edges"] == expected.table.rename(columns=ends).to_dict("records")
    pd.testing.assert_frame_equal(pd.read_csv(folder / "stability.csv"), expected.table)
    rows = pd.read_csv(folder / "row_stability.csv", index_col="row")
    pd.testing.assert_frame_equal(rows, expected.row_weights, check_names=False)
    assert sorted(result["files"]) == sorted(path.name for path in folder.iterdir())
    np.testing.assert_array_equal(read_run(folder).stability, expected.edges)


def test_the_terminal_and_the_report_tell_how_sure_each_edge_is(cli, data, tmp_path):
    result = cli("fit", data, "-o", tmp_path / "run", "--learner", "linear", "--bootstrap", 20)
    assert result.exit_code == 0, result.output
    for words in ("90 % interval", "resamples", "verdict", " %", "20 bootstrap resamples"):
        assert words in result.stdout
    table = result.stdout[result.stdout.index("Edges, strongest") :]
    assert all(len(line) <= 80 for line in table.splitlines() if "Written" not in line)
    page = (tmp_path / "run/report.html").read_text()
    assert ">resamples</th>" in page
    assert 'id="stability"' in page


@pytest.mark.usefixtures("undrawn")
def test_plain_rows_leave_no_table_of_rows(cli_json, data, tmp_path):
    options = ("--learner", "linear", "--weighting", "uniform", "--bootstrap", 3)
    files = cli_json("fit", data, "-o", tmp_path / "run", *options)["files"]
    assert "stability.csv" in files
    assert "row_stability.csv" not in files


def test_groups_and_weights_reach_the_resamples(cli_json, table, tmp_path):
    s = np.arange(150) % 3
    labelled = table.assign(s=s, place=np.where(np.arange(150) < 50, "u", "v"))
    labelled.to_csv(tmp_path / "labelled.csv", index=False)
    found = cli_json(
        "fit", tmp_path / "labelled.csv", "--learner", "linear", "--weights", "s", "--groups",
        "place", "--weighting", "inverse-propensity", "--bootstrap", 3,
    )["stability"]  # fmt: skip
    model = rs.ReScore(rs.Linear(), weighting="inverse-propensity")
    expected = rs.bootstrap(
        model, table, resamples=3, sample_weight=s, groups=labelled["place"].to_numpy()
    )
    ends = {"cause": "from", "effect": "to"}
    assert found["edges"] == expected.table.rename(columns=ends).to_dict("records")
    unseen = cli_json(
        "fit", tmp_path / "labelled.csv", "--learner", "linear", "--drop", "s", "--groups",
        "place", "--bootstrap", 3,
    )  # fmt: skip
    assert unseen["stability"]["resamples"] == 3


def test_without_the_option_nothing_is_resampled(cli_json, data):
    assert "stability" not in cli_json("fit", data, "--learner", "linear")


def test_no_resamples_are_refused_before_the_fit(cli, data):
    result = cli("fit", data, "--bootstrap", 0)
    assert result.exit_code == 2
    assert "bootstrap" in result.stderr


@pytest.fixture
def third_fit_is_stopped(monkeypatch):
    done = []

    def stopped(study, seed):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(seed)
        return resample(study, seed)

    monkeypatch.setattr(bootstrap, "resample", stopped)


@pytest.mark.usefixtures("third_fit_is_stopped")
def test_ctrl_c_writes_and_tells_the_resamples_done_by_then(cli, data, tmp_path):
    options = ("--learner", "linear", "--tau", 0.5, "--bootstrap", 5, "--compare")
    result = cli("fit", data, "-o", tmp_path / "run", *options, "--json")
    assert result.exit_code == 130
    found = json.loads(result.stdout)
    assert (found["stability"]["resamples"], found["stability"]["interrupted"]) == (2, True)
    assert "comparison" not in found
    assert "after 2 of 5 resamples" in result.stderr
    assert "2 bootstrap resamples" in (tmp_path / "run/report.html").read_text()


@pytest.mark.usefixtures("undrawn")
def test_ctrl_c_in_the_first_resample_leaves_the_fit(cli, data, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(bootstrap, "resample", stop)
    options = ("--learner", "linear", "--tau", 0.5, "--bootstrap", 5)
    result = cli("fit", data, "-o", tmp_path / "run", *options)
    assert result.exit_code == 130
    assert "effective of" in result.stdout
    assert read_run(tmp_path / "run").stability is None
    assert not (tmp_path / "run/stability.csv").exists()
