"""Every example runs, without a warning, and every Python block of the documentation too."""

import doctest
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rescore as rs
from rescore import fitting, out_of_core
from rescore.cli import app
from rescore.cli.demo import hidden_groups
from rescore.graph.io import read_graph

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_says_something(path, capsys, monkeypatch):
    monkeypatch.setattr(out_of_core, "SAMPLE", 2000)  # rows that are looked at more closely
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_an_example_runs_in_a_process_of_its_own():
    command = [sys.executable, "-W", "error", ROOT / "examples/your_own_learner.py"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()


@pytest.fixture(scope="module")
def fitted_once():
    """A fit that several pages and the demo show, such as that of the Sachs data, is made once."""
    made, run = {}, fitting.rescore

    def remembered(problem, backbone, weighting, *others, **options):
        asked = {name: value for name, value in options.items() if name != "on_step"}
        rows = (problem.rows.matrix(), problem.prior, problem.allowed, problem.required)
        key = (
            repr((backbone, weighting, others, asked, problem.groups)),
            *map(np.ndarray.tobytes, rows),
        )
        if key not in made:
            made[key] = run(problem, backbone, weighting, *others, **options)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "rescore", remembered)
        yield


@pytest.mark.usefixtures("fitted_once")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::rescore.tables.convert.DataWarning")
@pytest.mark.filterwarnings("ignore:The copy keyword is deprecated")  # of pandas 3, in DoWhy
def test_python_blocks_of_the_documentation_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    names: dict = {}
    failed = 0
    for block in blocks:
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, names, path.name, str(path), 0)
            runner = doctest.DocTestRunner(
                optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            )
            failed += runner.run(test, clear_globs=False).failed
            names = test.globs  # a later block goes on where this one ended
        else:
            exec(compile(block, str(path), "exec"), names)
    assert failed == 0


@pytest.mark.usefixtures("fitted_once")
def test_the_demo_is_honest(tmp_path):
    result = CliRunner().invoke(app, ["demo", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "report.html").exists()
    data = rs.load_sachs()
    page = (tmp_path / "report.html").read_text()
    for condition in data.groups.unique():
        assert condition in page
    found = read_graph(tmp_path / "graph.json")
    scores = rs.evaluate(data.truth, found)
    assert json.loads((tmp_path / "scores.json").read_text())["shd"] == scores.shd
    said = result.stdout.splitlines()
    simulated, real = (line for line in said if line.strip().startswith("with reweighting"))
    expected = [scores.shd, scores.cpdag_shd, scores.sid, scores.edges]
    assert real.split()[-4:] == [str(each) for each in expected]
    hidden = hidden_groups()
    scores = rs.evaluate(hidden.truth, rs.ReScore().fit(hidden.X))
    assert simulated.split()[-4] == str(scores.shd)
    assert sum(text.startswith("Reweighting ") for text in said) == 2
    assert sum(text.startswith("ReScore found") for text in said) == 2
    assert len(said) < 40  # a screen
