import json

import numpy as np
import pytest

import rescore as rs


def test_clean_data_exit_with_zero_and_show_notes(cli, data):
    result = cli("check", data)
    assert result.exit_code == 0
    assert "2 notes." in result.stdout
    assert "sortable" in result.stdout


def test_the_command_finds_what_the_function_finds(cli_json, data, table):
    told = cli_json("check", data)
    assert told["ok"]
    assert [one["code"] for one in told["findings"]] == rs.check(table).table["code"].tolist()
    assert set(told["findings"][0]) == {"code", "severity", "columns", "seen", "remedy"}
    assert told["command"] == f"rescore fit {data} -o run"


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 1)])
def test_warnings_fail_only_where_asked(cli, table, tmp_path, strict, code):
    table.assign(d=1.0).to_csv(tmp_path / "t.csv", index=False)
    result = cli("check", tmp_path / "t.csv", "--json", *strict)
    assert result.exit_code == code
    told = json.loads(result.stdout)
    assert told["ok"]
    assert told["findings"][0] | {"code": "constant", "columns": ["d"]} == told["findings"][0]


def test_notes_never_fail(cli, data):
    assert cli("check", data, "--strict").exit_code == 0


@pytest.mark.parametrize(
    "text", ["", "a,b\n", "a,b\n1,x\n2,3\n", "a,b\n1,\n2,3\n", "a,b\n1,2,3\n", "a,a\n1,2\n3,4\n"]
)
def test_what_reading_refuses_is_an_error_finding(cli, tmp_path, text):
    (tmp_path / "bad.csv").write_text(text)
    result = cli("check", tmp_path / "bad.csv", "--json")
    assert result.exit_code == 2
    told = json.loads(result.stdout)
    assert not told["ok"]
    assert told["findings"][0]["severity"] == "error"
    assert told["findings"][0]["seen"]
    assert cli("check", tmp_path / "bad.csv").exit_code == 2


def test_a_missing_file_is_an_error_finding(cli, tmp_path):
    result = cli("check", tmp_path / "none.csv")
    assert result.exit_code == 2
    assert "unreadable" in result.stdout


def test_the_options_of_fit_are_understood(cli, table, tmp_path):
    rng = np.random.default_rng(0)
    mixed = table.assign(w=1.0, g=rng.permutation(["u", "v"] * 75), t=7)
    mixed.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    words = ("--weights", "w", "--groups", "g", "--drop", "t", "--delimiter", ";", "--decimal", ",")
    result = cli("check", tmp_path / "t.csv", *words, "--json", "--strict")
    assert result.exit_code == 0, result.output
    assert [one["code"] for one in json.loads(result.stdout)["findings"]] == [
        "sortable",
        "relations",
    ]
    table.to_csv(tmp_path / "bare.csv", index=False, header=False)
    assert cli("check", tmp_path / "bare.csv", "--no-header").exit_code == 0


def test_names_cannot_reach_the_terminal(cli, tmp_path):
    (tmp_path / "t.csv").write_text("a,\x1b[31mb\n" + "".join(f"{i % 7},5\n" for i in range(30)))
    result = cli("check", tmp_path / "t.csv")
    assert "\x1b" not in result.stdout


def test_fit_reads_knowledge_and_prints_the_receipt(cli, cli_json, data, tmp_path):
    rs.Knowledge(tiers=[["c"], ["b"], ["a"]]).write(tmp_path / "k.txt")
    words = ("fit", data, "--learner", "linear", "--knowledge", tmp_path / "k.txt")
    told = cli_json(*words, "--require", "c,b")
    constraints = [one["constraint"] for one in told["knowledge"]]
    assert set(constraints) == {
        "b -> c forbidden", "a -> c forbidden", "a -> b forbidden", "c -> b required"
    }  # fmt: skip
    assert all(one["holds"] for one in told["knowledge"])
    assert {"c", "b"} == {told["edges"][0]["from"], told["edges"][0]["to"]}
    assert "Knowledge: 3 constraint(s), all hold" in cli(*words).stdout
    shown = cli(*words, "--verbose").stdout
    assert "Knowledge: 3 constraint(s), all hold" in shown
    assert "a -> b forbidden" in shown


def test_options_that_contradict_the_file_are_refused(cli, data, tmp_path):
    rs.Knowledge(tiers=[["a"], ["b"]]).write(tmp_path / "k.json")
    result = cli("fit", data, "--knowledge", tmp_path / "k.json", "--require", "b,a")
    assert result.exit_code == 2
    assert "'b -> a'" in result.stderr
    assert cli("fit", data, "--knowledge", tmp_path / "none.json").exit_code == 2
