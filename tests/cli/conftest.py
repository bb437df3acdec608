import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from rescore.cli import app


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch):
    monkeypatch.setenv("RESCORE_CACHE", "off")


@pytest.fixture
def cli():
    """Run a command in this process: `cli("fit", path, ...)`."""
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def cli_json(cli):
    """Run a command that must succeed, and read the one JSON object it prints."""

    def run(*words):
        result = cli(*words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return run


@pytest.fixture
def program():
    """Run a command in a process of its own."""
    code = "from rescore.cli import run; run()"

    def run(*words, **variables):
        command = [sys.executable, "-c", code, *(str(word) for word in words)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120,
            env={**os.environ, "RESCORE_CACHE": "off", **variables},
        )  # fmt: skip

    return run


def chain(n=150, columns=("a", "b", "c")):
    """Each column is caused by the one before."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, len(columns)))
    for j in range(1, len(columns)):
        X[:, j] += 1.5 * X[:, j - 1]
    return pd.DataFrame(X, columns=list(columns))


@pytest.fixture
def table():
    return chain()


@pytest.fixture
def data(tmp_path, table):
    table.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


@pytest.fixture
def truth(tmp_path):
    (tmp_path / "truth.csv").write_text("from,to\na,b\nb,c\n")
    return tmp_path / "truth.csv"
