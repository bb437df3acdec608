import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import rescore as rs
from rescore.cli import app
from rescore.reports.folder import write_run
from rescore.reports.page import graph_data, render_page
from rescore.reports.run import Run, read_run
from rescore.tables.findings import Finding


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 3)).cumsum(axis=1), columns=["a", "<b>", "\u2028c"])
    model = rs.ReScore(rs.Notears(required=[("a", "<b>")])).fit(X)
    scores = rs.evaluate(np.zeros((3, 3)), model.adjacency_matrix_.to_numpy())
    return Run(
        model, ["u", "v"] * 40, scores, {"plain": scores}, ("odd",), "rescore fit x.csv", "x.csv",
        plain=rng.normal(size=(3, 3)) * np.tri(3, k=-1), stability=rng.random((3, 3)),
        versions={"rescore": "0.0.1"},
        findings=(Finding("odd", "Column '<b>' is odd.", ("<b>", 7), "Look.", "note"),),
    )  # fmt: skip


@pytest.fixture(scope="module")
def written(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    write_run(folder, run)
    return folder


@pytest.fixture
def saved(written, tmp_path):
    """The folder of the run, which a test may spoil."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_the_page_of_a_saved_run_is_the_page_of_the_run(saved):
    written = (saved / "report.html").read_text()
    (saved / "report.html").unlink()
    result = CliRunner().invoke(app, ["report", str(saved)])
    assert result.exit_code == 0, result.output
    assert "report.html" in result.stdout
    assert (saved / "report.html").read_text() == written
    assert "rescore 0.0.1" in written  # of the fit, not of who shows it
    answer = CliRunner().invoke(app, ["report", str(saved), "--json"])
    assert json.loads(answer.stdout) == {"folder": str(saved), "files": ["report.html"]}


def test_a_saved_run_keeps_which_directions_are_open(tmp_path):
    rng = np.random.default_rng(0)
    a, x, z = rng.normal(size=(3, 1000))
    b, m = 1.5 * a + rng.normal(size=1000), x - z + rng.normal(size=1000)
    model = rs.GES().fit(pd.DataFrame({"a": a, "b": b, "x": x, "z": z, "m": m}))
    write_run(tmp_path, Run(model))
    written = (tmp_path / "report.html").read_text()
    assert "2 of 3 edges are firm, 1 with an open direction." in written
    arrows = re.findall(r'class="name">(\w)</td><td>(.)</td><td class="name">(\w)', written)
    assert {("x", "→", "m"), ("z", "→", "m")} < set(arrows)
    assert {mark for *_, mark, _ in arrows} == {"→", "—"}
    drawn = {(e["source"], e["target"]): e["directed"] for e in graph_data(Run(model))["edges"]}
    assert sorted(drawn.values()) == [False, True, True]
    assert graph_data(read_run(tmp_path)) == graph_data(Run(model))
    assert render_page(read_run(tmp_path)) == written


def test_everything_around_the_model_comes_back(run, written):
    back = read_run(written)
    assert back.groups == run.groups
    assert (back.scores, back.baselines) == (run.scores, run.baselines)
    assert (back.warnings, back.command, back.source) == (run.warnings, run.command, run.source)
    np.testing.assert_array_equal(back.plain, run.plain)
    np.testing.assert_array_equal(back.stability, run.stability)


def test_a_model_alone_has_a_page_too(saved):
    (saved / "run.json").unlink()
    assert render_page(read_run(saved)).startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda about: about | {"schema": 9}, "schema is 9"),
        (lambda about: about | {"groups": {"labels": ["u"], "rows": [0]}}, "1 group labels"),
        (lambda about: about | {"plain": [[7, 0, 1.0]]}, "out of bounds"),
        (lambda about: {"schema": 1}, "groups"),
        (lambda about: [], "cannot be used"),
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(saved, change, words):
    about = json.loads((saved / "run.json").read_text())
    (saved / "run.json").write_text(json.dumps(change(about)))
    before = (saved / "report.html").read_bytes()
    result = CliRunner().invoke(app, ["report", str(saved)])
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Fit again" in result.stderr
    assert (saved / "report.html").read_bytes() == before


def test_a_folder_without_a_run_is_refused(tmp_path):
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 2
    assert "There is no saved model" in result.stderr
