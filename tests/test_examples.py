"""Every example runs, without a warning, and every Python block of the documentation too."""

import doctest
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_says_something(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_an_example_runs_in_a_process_of_its_own():
    command = [sys.executable, "-W", "error", ROOT / "examples/your_own_learner.py"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()


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
