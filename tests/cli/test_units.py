import json
from types import SimpleNamespace

import rescore as rs


def test_a_linear_fit_says_which_edges_hang_on_the_units(cli, data):
    result = cli("fit", data, "--learner", "linear")
    assert result.exit_code == 0, result.output
    for words in ("columns in their own units", "Units: 0 of 2 edges survive", "made by the units"):
        assert words in result.stdout
    assert result.stderr == ""


def test_a_standardised_fit_says_so(cli, data):
    result = cli("fit", data, "--learner", "linear", "--standardize")
    assert "columns standardised" in result.stdout
    assert "other units give this graph by construction" in " ".join(result.stdout.split())
    for words in ("survive", "hang on the units"):
        assert words not in result.stdout


def test_the_report_of_a_standardised_fit_tells_it_too(cli, data, tmp_path):
    words = ("fit", data, "--learner", "linear", "--standardize", "-o", tmp_path / "run")
    assert cli(*words).exit_code == 0
    first = (tmp_path / "run" / "report.html").read_text()
    assert "by construction" in first
    assert "was fitted again" not in first
    (tmp_path / "run" / "report.html").unlink()
    assert cli("report", tmp_path / "run").exit_code == 0
    assert (tmp_path / "run" / "report.html").read_text() == first


def test_json_holds_what_units_finds(cli_json, data, table):
    found = cli_json("fit", data, "--learner", "linear", "--seed", 4)
    expected = rs.units(rs.ReScore(rs.Linear()), table, random_state=4)
    assert found["columns"] == "columns in their own units"
    assert found["units"]["sentence"] == expected.sentence
    assert found["units"]["table"] == expected.table.to_dict("records")
    assert list(found["units"]["factors"]) == list(expected.factors.index)


def test_other_units_are_tried_where_wanted(cli_json, data):
    assert "units" not in cli_json("fit", data, "--learner", "linear", "--no-units")
    assert "units" in cli_json("fit", data, "--learner", "ges", "--units")


def test_by_default_only_linear_learners_are_fitted_again(monkeypatch):
    from rescore.cli import after_fit

    monkeypatch.setattr(after_fit, "_in_other_units", lambda *_: "refitted")
    few = SimpleNamespace(X=SimpleNamespace(names=("a", "b")))
    assert after_fit.units_of(rs.ReScore(rs.Notears()), few, None, 0) == ("refitted", False)
    assert after_fit.units_of(rs.NotearsMLP(), few, None, 0) == (None, False)
    assert after_fit.units_of(rs.NotearsMLP(), few, True, 0) == ("refitted", False)
    assert after_fit.units_of(rs.Linear(), few, False, 0) == (None, False)


def test_the_report_tells_it_and_tells_it_again_and_refuses_a_spoilt_run(cli, data, tmp_path):
    assert cli("fit", data, "--learner", "linear", "-o", tmp_path / "run").exit_code == 0
    first = (tmp_path / "run" / "report.html").read_text()
    for words in ("Other units</h3>", "made by", "left open: ", ", columns in their own units."):
        assert words in first
    (tmp_path / "run" / "report.html").unlink()
    assert cli("report", tmp_path / "run").exit_code == 0
    assert (tmp_path / "run" / "report.html").read_text() == first
    about = json.loads((tmp_path / "run" / "run.json").read_text())
    for broken in ({"table": 3}, {"table": [{"cause": "a"}]}, [1]):
        (tmp_path / "run" / "run.json").write_text(json.dumps(about | {"units": broken}))
        result = cli("report", tmp_path / "run")
        assert result.exit_code == 2
        assert "cannot be used" in result.stderr


def test_a_run_written_before_there_were_units_is_still_read(cli, data, tmp_path):
    assert (
        cli("fit", data, "--learner", "linear", "-o", tmp_path / "run", "--no-units").exit_code == 0
    )
    about = json.loads((tmp_path / "run" / "run.json").read_text())
    del about["units"]
    (tmp_path / "run" / "run.json").write_text(json.dumps(about))
    assert cli("report", tmp_path / "run").exit_code == 0
    assert "<h2>Units</h2>" not in (tmp_path / "run" / "report.html").read_text()


def test_ctrl_c_during_the_refits_keeps_the_fit(cli, data, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rescore.studies.units.units", interrupted)
    result = cli("fit", data, "--learner", "linear", "-o", tmp_path / "run")
    assert result.exit_code == 130
    assert (tmp_path / "run" / "model.json").exists()
    assert "2 edges" in result.stdout
