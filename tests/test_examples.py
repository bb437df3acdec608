"""Every example runs as a user would run it, and every Python block of the documentation too."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_says_something(path):
    run = subprocess.run(
        [sys.executable, "-W", "error", path], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::rescore.tables.table.DataWarning")
def test_python_blocks_of_the_documentation_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    names: dict = {}
    for block in blocks:
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, names, path.name, str(path), 0)
            runner = doctest.DocTestRunner(
                optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            )
            runner.run(test, clear_globs=False)
            assert runner.summarize(verbose=False).failed == 0
            names = test.globs  # a later block goes on where this one ended
        else:
            exec(compile(block, str(path), "exec"), names)


def test_links_of_the_documentation_lead_to_files_that_exist():
    for path in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name} links to {target}"
