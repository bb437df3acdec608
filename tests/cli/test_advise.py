import shlex

import pandas as pd
import pytest

import rescore as rs
from rescore.exchange.saving import load


def test_the_path_the_point_and_the_next_command_are_told(cli, data):
    result = cli("advise", data, "--learner", "linear")
    assert result.exit_code == 0, result.output
    for words in ("Path", "threshold", "log-lik.", "stable", "No true graph was used", "Run next"):
        assert words in result.stdout
    assert f"rescore fit {data} --learner linear --threshold" in result.stdout
    assert sum(line.startswith("  *") for line in result.stdout.splitlines()) == 1
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if "rescore fit" not in line)
    assert "advising: 12 of 12" in result.stderr


def test_json_holds_what_advise_finds(cli_json, data, table):
    found = cli_json("advise", data, "--learner", "linear", "--thresholds", "0,0.3,9", "--seed", 4)
    expected = rs.advise(rs.ReScore(rs.Linear()), table, thresholds=[0, 0.3, 9], random_state=4)
    assert found["recommended"] == expected.recommended
    assert found["sentence"] == expected.sentence
    assert found["table"] == expected.table.to_dict("records")
    assert found["folder"] is None
    assert found["files"] == []


@pytest.mark.usefixtures("undrawn")
def test_the_next_command_fits_the_recommended_setting(cli, cli_json, data, tmp_path):
    found = cli_json(
        "advise", data, "--learner", "notears", "--lambdas", "0.01,0.2", "--thresholds", "0.4",
        "--folds", 2, "--subsamples", 2, "--standardize", "--forbid", "a,c", "--drop", "b",
    )  # fmt: skip
    words = shlex.split(found["command"])
    assert words[0] == "rescore"
    result = cli(*words[1:], "-o", tmp_path / "run", "--no-units")
    assert result.exit_code == 0, result.output
    saved = load(tmp_path / "run").estimator
    assert saved.standardize
    assert (saved.lambda1, saved.threshold) == tuple(found["recommended"].values())
    assert [list(edge) for edge in saved.forbidden] == [["a", "c"]]
    assert list(load(tmp_path / "run").adjacency_matrix_) == ["a", "c"]


def test_the_folder_holds_the_table_and_the_figure(cli_json, data, tmp_path):
    folder = tmp_path / "advice"
    found = cli_json("advise", data, "--learner", "linear", "-o", folder)
    assert found["files"] == ["advice.csv", "advice.png", "advice.svg"]
    assert sorted(path.name for path in folder.iterdir()) == found["files"]
    pd.testing.assert_frame_equal(pd.read_csv(folder / "advice.csv"), pd.DataFrame(found["table"]))
    assert (folder / "advice.png").read_bytes()[1:4] == b"PNG"
    assert "held-out log-likelihood" in (folder / "advice.svg").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--learner", "ges"], "GES has neither a threshold nor a lambda1"),
        (["--learner", "linear", "--lambdas", "0.1"], "Linear has no lambda1, only a threshold"),
        (["--thresholds", "0.1,much"], "--thresholds takes numbers separated by commas"),
        (["--learner", "guess"], "--learner must be one of"),
        (["--folds", "1"], "folds must be a whole number of at least 2"),
    ],
)
def test_what_makes_no_sense_is_refused(cli, data, words, said):
    result = cli("advise", data, *words)
    assert result.exit_code == 2
    assert said in result.stderr


def test_ctrl_c_ends_with_130_and_leaves_nothing_behind(cli, data, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rescore.studies.advise.advise", interrupted)
    result = cli("advise", data, "--learner", "linear", "-o", tmp_path / "advice")
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
    assert not (tmp_path / "advice").exists()
