"""Files as people have them, each from file to report by the command that `check` suggests."""

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import rescore as rs
from rescore.cli import app
from rescore.tables.convert import DataWarning

FOLDER = Path(__file__).parent / "messy"
# For each file: what the check must find, and the columns that the graph must have in the end.
FILES = {
    "clinic.csv": (
        {"dates", "labels", "categories", "thousands", "bad_cells", "missing"},
        ["age (years)", "sex", "site", "income, total (EUR)", "pressure", 'chol "LDL"'],
    ),
    "export.csv": (
        {"encoding", "delimiter", "decimal", "thousands"},
        ["Größe (cm)", "Gewicht (kg)", "Umsatz (EUR)"],
    ),
    "sales.csv": (
        {"dates", "categories", "thousands"},
        ["region", "advertising", "visits", "sales"],
    ),
    "genes.csv": ({"few_rows"}, None),
    "twelve.csv": ({"small_sample"}, list("abcdef")),
    "bom.csv": (set(), ["Temperatur °C", "Feuchte %", "Ertrag"]),
    "tabs.csv": (set(), list("xyz")),
    "index.csv": ({"unnamed", "constant"}, ["flow", "level", "rain"]),
    "units.csv": (
        {"units", "constant_words"},
        ["flow, mean (m³/s)", "temp [°C]", 'it\'s "pH"'],
    ),
    "sensor.tsv": ({"dates", "bad_cells", "missing"}, ["p1", "p2", "p3", "p4"]),
    "bare.csv": ({"no_header"}, ["x0", "x1", "x2"]),
    "survey.csv": (
        {"row_numbers", "categories", "constant_words", "duplicated"},
        ["smokes", "score 1", "score 2", "score 3"],
    ),
    "sheet.xlsx": ({"categories", "missing"}, ["dose", "response", "arm"]),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the files, and those that are made here; the folder that commands run in."""
    for file in FOLDER.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    rng = np.random.default_rng(0)
    dose = rng.normal(size=60)
    sheet = pd.DataFrame({"dose": dose, "response": 2 * dose + rng.normal(size=60)})
    sheet["arm"] = rng.choice(["placebo", "drug"], 60)
    sheet.loc[:9, "response"] = np.nan
    sheet.to_excel(tmp_path / "sheet.xlsx", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RESCORE_CACHE", "off")
    return tmp_path


def run(words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize("name", FILES)
def test_the_suggested_command_leads_from_the_file_to_the_report(folder, name):
    expected, columns = FILES[name]
    if name == "genes.csv":
        genes = rs.simulate(nodes=200, degree=1, samples=150, random_state=3).X
        genes.to_csv(folder / name, index=False)
    shown = run(["check", name])
    told = json.loads(run(["check", name, "--json"]).stdout)
    assert expected <= {one["code"] for one in told["findings"]}
    for one in told["findings"]:
        assert one["severity"] == "note" or one["remedy"], one
    command = shown.stdout.split("Run next:\n  ")[1].strip().replace("\n", "")
    assert command == told["command"]
    program, *words = shlex.split(command)
    assert program == "rescore"
    result = run(words)
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) <= 40
    model = rs.load(folder / "run")
    assert (folder / "run/report.html").is_file()
    if columns is not None:
        assert list(model.adjacency_matrix_) == columns
    assert len(model.causal_graph_.edges) > 0


@pytest.mark.parametrize("learner", [rs.Linear(), rs.ReScore()])
def test_python_warns_of_few_rows_where_fit_was_called(learner):
    X = pd.read_csv(FOLDER / "twelve.csv")
    with pytest.warns(DataWarning, match="12 rows for 6 variables") as told:
        learner.fit(X)
    assert {one.filename for one in told} == {__file__}
    assert "small_sample" in {one.code for one in rs.check(X).findings}


def test_nothing_is_wrong_once_the_suggestion_is_followed(folder):
    told = json.loads(run(["check", "clinic.csv", "--json"]).stdout)
    words = shlex.split(told["command"])[2:-2]  # without `rescore fit` and `-o run`
    again = json.loads(run(["check", *words, "--json"]).stdout)
    assert again["ok"]
    assert again["command"] == told["command"]


def test_rows_that_differ_in_a_column_left_out_are_no_copies(folder):
    told = json.loads(run(["check", "survey.csv", "--drop", "respondent", "--json"]).stdout)
    assert "repeated_rows" not in {one["code"] for one in told["findings"]}


def test_fit_itself_says_all_that_is_wrong_and_what_to_paste(folder):
    result = run(["fit", "clinic.csv", "-o", "here"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "'visit date' hold(s) dates" in line
    assert "missing" in line
    assert line.endswith("-o here")
    assert run(shlex.split(line.split("Try: rescore ")[1])).exit_code == 0


def test_names_of_any_kind_can_be_dropped_and_forbidden(folder):
    names = ["flow, mean (m³/s)", 'it\'s "pH"', "temp [°C]"]
    words = ["fit", "units.csv", "--drop", "weight,note", "--forbid", f"{names[0]} -> {names[2]}"]
    told = json.loads(run([*words, "--json"]).stdout)
    assert told["knowledge"][0]["holds"]
    told = json.loads(run([*words[:4], "--drop", names[0], "--json"]).stdout)
    assert told["d"] == 2


def test_lines_of_another_length_are_all_named_and_no_command_is_made_up(folder):
    (folder / "odd.csv").write_text("a,b\n1,2\n3\n4,5,6\n7,8\n")
    result = run(["check", "odd.csv"])
    assert result.exit_code == 2
    assert "line 3 (1), line 4 (3)" in " ".join(result.stdout.split())
    assert "Run next" not in result.stdout
