import inspect
import json
import re

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.cli.options import default_of
from rescore.exchange.saving import load
from rescore.graph.io import read_graph
from rescore.tables import files
from rescore.tables import table as tables


def edges(result):
    return {(edge["from"], edge["to"]): edge["weight"] for edge in result["edges"]}


def expected(model):
    return {(i, j): w for i, j, w in model.causal_graph_.edges(data="weight")}


def test_fit_finds_what_the_estimator_finds_with_its_defaults(cli_json, data, table, tmp_path):
    result = cli_json("fit", data, "-o", tmp_path / "run")
    model = rs.ReScore().fit(table)
    assert edges(result) == pytest.approx(expected(model))
    assert (result["n"], result["d"], result["converged"]) == (150, 3, True)
    assert result["effective_rows"] == pytest.approx(model.diagnostics_["effective_rows"])
    saved = load(tmp_path / "run").get_params()
    for name, value in model.get_params().items():
        if name not in ("estimator", "random_state"):
            assert saved[name] == value
    assert isinstance(saved["estimator"], rs.Linear)
    assert sorted(result["files"]) == sorted(path.name for path in (tmp_path / "run").iterdir())


@pytest.mark.parametrize("kind", [rs.Linear, rs.Notears, rs.GranDAG, rs.ReScore])
def test_the_defaults_in_the_help_are_those_of_the_estimators(kind):
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.default is not parameter.empty:
            assert default_of(kind.__name__, name) == str(parameter.default)


@pytest.mark.usefixtures("undrawn")
def test_every_option_reaches_the_estimator(cli_json, data, tmp_path):
    cli_json(
        "fit", data, "-o", tmp_path / "run", "--lambda1", 0.2, "--threshold", 0.4, "--tau", 0.7,
        "--weighting", "uniform", "--loss", "raw", "--standardize", "--seed", 3,
        "--forbid", "a,c", "--require", "a,b", "--learner", "notears", "--h-tol=1e-7",
        "--no-polish", "--constraint", "polynomial",
    )  # fmt: skip
    saved = load(tmp_path / "run").get_params()
    around = {"tau": 0.7, "weighting": "uniform", "loss": "raw", "random_state": 3}
    assert {name: saved[name] for name in around} == around
    inner = {"lambda1": 0.2, "threshold": 0.4, "standardize": True, "random_state": 3}
    inner |= {"h_tol": 1e-7, "polish": False, "constraint": "polynomial"}
    assert {name: saved[f"estimator__{name}"] for name in inner} == inner
    assert [list(edge) for edge in saved["estimator__forbidden"]] == [["a", "c"]]
    assert [list(edge) for edge in saved["estimator__required"]] == [["a", "b"]]


@pytest.mark.usefixtures("undrawn")
def test_the_terminal_tells_the_story(cli, data, truth, tmp_path):
    result = cli("fit", data, "-o", tmp_path / "run", "--truth", truth)
    assert result.exit_code == 0
    assert result.stderr == ""
    for words in ("2 edges", "effective of 150 rows", "SHD", "Written"):
        assert words in result.stdout
    assert "\x1b" not in result.stdout
    assert len(result.stdout.splitlines()) <= 24
    assert "2 edges" in result.stdout.splitlines()[0]
    more = cli("fit", data, "--verbose")
    assert "Converged" in more.stdout
    assert "Heaviest rows" in more.stdout


def test_the_help_has_groups_and_fits_a_terminal(program):
    told = program("fit", "--help", COLUMNS="80", TERMINAL_WIDTH="80").stdout
    for group in ("The file", "Columns and rows", "Learner and weights", "What is known"):
        assert group in told
    assert max(map(len, told.splitlines())) <= 80


def test_fit_warns_of_what_the_check_knows_and_not_of_what_is_done(cli, tmp_path):
    rng = np.random.default_rng(0)
    few = pd.DataFrame(rng.normal(size=(12, 6)) * 10.0 ** np.arange(6), columns=list("abcdef"))
    few.to_csv(tmp_path / "few.csv", index=False)
    told = cli("fit", tmp_path / "few.csv").stderr
    assert "There are 12 rows for 6 variables." in told
    assert "standard deviations of" not in told  # `linear` works in any units
    flags = cli("fit", tmp_path / "few.csv", "--learner", "notears").stderr
    assert "--standardize" in flags
    assert "standardize=True" not in flags
    assert "--standardize" not in cli(
        "fit", tmp_path / "few.csv", "--learner", "notears", "--standardize"
    ).stderr  # fmt: skip


def test_open_directions_are_told_on_the_terminal_and_in_the_json(cli, cli_json, tmp_path):
    rng = np.random.default_rng(0)
    a, x, z = rng.normal(size=(3, 1000))
    b, m = 1.5 * a + rng.normal(size=1000), x - z + rng.normal(size=1000)
    table = pd.DataFrame({"a": a, "b": b, "x": x, "z": z, "m": m})
    table.to_csv(tmp_path / "data.csv", index=False)
    words = ("fit", tmp_path / "data.csv", "--learner", "ges", "--no-plain", "--no-units")
    told = {frozenset((e["from"], e["to"])): e["directed"] for e in cli_json(*words)["edges"]}
    assert told == {frozenset("ab"): False, frozenset("xm"): True, frozenset("zm"): True}
    shown = cli(*words).stdout
    assert "2 of 3 edges are firm, 1 with an open direction." in shown
    assert len(re.findall(r"^ +[ab] +-- +[ab] ", shown, flags=re.MULTILINE)) == 1
    assert len(re.findall(r"^ +[xz] +-> +m ", shown, flags=re.MULTILINE)) == 2


@pytest.mark.usefixtures("undrawn")
def test_a_truth_gives_scores_and_changes_nothing_else(cli_json, data, truth, tmp_path):
    with_truth = cli_json("fit", data, "-o", tmp_path / "run", "--truth", truth)
    without = cli_json("fit", data)
    model = load(tmp_path / "run")
    scores = rs.evaluate(read_graph(truth), model).as_dict()
    assert with_truth["scores"] == scores
    assert json.loads((tmp_path / "run/scores.json").read_text()) == {**scores, "undefined": {}}
    assert with_truth["edges"] == without["edges"]
    assert without["files"] == []


def test_rows_of_weight_zero_are_rows_that_are_not_there(cli_json, table, tmp_path):
    table.iloc[:100].to_csv(tmp_path / "short.csv", index=False)
    weighted = table.assign(s=np.r_[np.ones(100), np.zeros(50)])
    weighted.to_csv(tmp_path / "weighted.csv", index=False)
    result = cli_json("fit", tmp_path / "weighted.csv", "--weights", "s")
    assert edges(result) == pytest.approx(edges(cli_json("fit", tmp_path / "short.csv")))
    assert result["d"] == 3


def test_groups_are_reported_and_never_reach_the_learner(cli, cli_json, data, table, tmp_path):
    labels = np.where(np.arange(150) < 30, "=few, <b>", "many")
    table.assign(label=labels).to_csv(tmp_path / "grouped.csv", index=False)
    result = cli_json("fit", tmp_path / "grouped.csv", "--groups", "label", "-o", tmp_path / "run")
    assert result["edges"] == cli_json("fit", data)["edges"]
    w = pd.read_csv(tmp_path / "run/weights.csv")["weight"]
    few = next(group for group in result["groups"] if group["group"] == "=few, <b>")
    assert few["rows"] == 30
    assert few["share_of_weight"] == pytest.approx(w[:30].sum())
    assert "&lt;b&gt;" in (tmp_path / "run/report.html").read_text()
    assert "share of weight" in cli("fit", tmp_path / "grouped.csv", "--groups", "label").stdout


def test_columns_are_dropped_by_name_even_with_commas(cli_json, data, table, tmp_path):
    odd = table.assign(**{"x,y": "text", "id": range(150), "z": "more"})
    odd.to_csv(tmp_path / "odd.csv", index=False)
    result = cli_json("fit", tmp_path / "odd.csv", "--drop", '"x,y",id', "--drop", "z")
    assert result["edges"] == cli_json("fit", data)["edges"]


def test_forbidden_edges_stay_out_and_required_ones_in(cli_json, data):
    assert ("a", "b") not in edges(cli_json("fit", data, "--forbid", "a,b"))
    assert ("a", "c") in edges(cli_json("fit", data, "--require", '"a","c"'))


def test_every_format_gives_the_same_graph(cli_json, data, table, tmp_path):
    labelled = table.assign(g="u")
    labelled.to_csv(tmp_path / "t.csv.gz", index=False)
    labelled.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    labelled.to_parquet(tmp_path / "t.parquet")
    labelled.to_csv(tmp_path / "german.csv", index=False, sep=";", decimal=",")
    labelled.to_csv(tmp_path / "bare.csv", index=False, header=False)
    reference = cli_json("fit", data)["edges"]
    for name in ("t.csv.gz", "t.tsv", "t.parquet"):
        result = cli_json("fit", tmp_path / name, "--groups", "g")
        assert result["edges"] == reference
        assert result["groups"][0]["group"] == "u"
    marks = ("--delimiter", ";", "--decimal", ",", "--groups", "g")
    assert cli_json("fit", tmp_path / "german.csv", *marks)["edges"] == reference
    bare = cli_json("fit", tmp_path / "bare.csv", "--no-header", "--groups", "x3")
    assert [edge["weight"] for edge in bare["edges"]] == [edge["weight"] for edge in reference]
    assert bare["groups"][0]["rows"] == 150


def test_warnings_are_single_lines_and_in_the_json(cli, table, tmp_path):
    table.assign(c=1.0).to_csv(tmp_path / "constant.csv", index=False)
    result = cli("fit", tmp_path / "constant.csv", "-o", tmp_path / "run", "--json")
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert lines
    assert all(line.startswith("warning: ") for line in lines)
    noted = json.loads(result.stdout)["warnings"]
    assert any("onstant column" in text for text in noted)
    assert noted[0].split()[0] in (tmp_path / "run/report.html").read_text()


def test_hostile_names_do_no_harm(cli, tmp_path, request):
    names = [
        "<script>alert(1)</script>", "\"q\"'\nline", "\x1b[31mred\u202e", "😀../../x", "L" * 10_000,
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 5)).cumsum(axis=1) * 1.3, columns=names)
    home = tmp_path / "home"
    home.mkdir()
    X.to_csv(home / "data.csv", index=False)
    result = cli("fit", home / "data.csv", "-o", home / "run")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    run = home / "run"
    assert "<script" not in (run / "report.html").read_text()
    assert "<script" not in (run / "graph.svg").read_text()
    names_of_files = ("adjacency.csv", "graph.json", "graph.graphml")
    frames = [read_graph(run / name) for name in names_of_files]
    for frame in frames:
        assert list(frame) == names
        pd.testing.assert_frame_equal(frame, frames[0])
    assert frames[0].to_numpy().any()
    pd.testing.assert_frame_equal(load(run).adjacency_matrix_, frames[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]
    assert sorted(path.name for path in home.iterdir()) == ["data.csv", "run"]
    assert all(path.is_file() for path in run.iterdir())


def test_an_option_the_learner_does_not_know_is_refused_in_words(program, data):
    result = program("fit", data, "--learner", "linear", "--lambda1", 0.1)
    assert result.returncode == 2
    assert "--lambda1 means nothing to the learner linear" in result.stderr


@pytest.mark.parametrize("groups", [(), ("--groups", "g")])
def test_a_file_is_read_once_and_becomes_one_table(cli, table, tmp_path, monkeypatch, groups):
    """Fit, plain fit, check and report share them; other units and resamples are other numbers."""
    table.assign(g="u").to_csv(tmp_path / "data.csv", index=False)
    made = {"reads": 0, "parsed": 0, "tables": 0}

    def counted(name, function):
        def count(*arguments, **options):
            made[name] += 1
            return function(*arguments, **options)

        return count

    monkeypatch.setattr(files, "file_bytes", counted("reads", files.file_bytes))
    monkeypatch.setattr(files, "parse", counted("parsed", files.parse))
    monkeypatch.setattr(tables, "unpack", counted("tables", tables.unpack))
    words = ("--learner", "linear", "--weighting", "exact", "--no-units")
    drop = groups or ("--drop", "g")
    result = cli("fit", tmp_path / "data.csv", *words, *drop, "-o", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert made == {"reads": 1, "parsed": 1, "tables": 1}
