"""A learner is one file and one line: all else follows from the list of learners."""

import json
import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator
from typer.testing import CliRunner

import rescore as rs
from rescore.cli import app
from rescore.experiments.running import learner as declared
from rescore.learners import LEARNERS, learner_called, load_learner, option_word, register

HERE = Path(__file__).parent
CHECKS = runpy.run_path(str(HERE / "conformance/learner_checks.py"))
DOCS = HERE.parent / "docs"
LINEAR = [name for name in LEARNERS if load_learner(name).linear]
DRAWN = {"Random"}  # by the places of the columns, so that their order matters


@pytest.fixture
def my_learner(tmp_path, monkeypatch):
    """A package with a learner in it, and the one line that makes it known."""
    (tmp_path / "mypackage").mkdir()
    shutil.copy(HERE / "conformance/my_learner.py", tmp_path / "mypackage/my_learner.py")
    monkeypatch.syspath_prepend(tmp_path)
    register("MyLearner", "mypackage.my_learner")
    yield "MyLearner"
    del LEARNERS["MyLearner"]
    sys.modules.pop("mypackage.my_learner", None)
    sys.modules.pop("mypackage", None)


def test_the_package_has_it(my_learner):
    assert my_learner in dir(rs)
    assert rs.MyLearner(its_option=2).get_params()["its_option"] == 2
    with pytest.raises(ValueError, match="There is a learner 'MyLearner' already"):
        register("MyLearner", "elsewhere")


def test_the_checks_of_all_learners_are_its_checks(my_learner):
    CHECKS["check_learner"](rs.MyLearner())


@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_accepts_it(my_learner):
    check_estimator(rs.MyLearner(), on_skip=None)


def test_the_command_line_has_it_and_its_options(my_learner, tmp_path):
    X, _ = CHECKS["rows"]()
    X.to_csv(tmp_path / "data.csv", index=False)
    words = ["fit", tmp_path / "data.csv", "--learner", "my-learner", "--its-option", 3, "--json"]
    done = CliRunner().invoke(app, [str(word) for word in [*words, "-o", tmp_path / "run"]])
    assert done.exit_code == 0, done.output
    told = rs.ReScore(rs.MyLearner(its_option=3)).fit(X)
    found = {(edge["from"], edge["to"]) for edge in json.loads(done.stdout)["edges"]}
    assert found == set(told.causal_graph_.edges)
    assert len(found) > len(rs.MyLearner().fit(X).causal_graph_.edges)
    assert rs.load(tmp_path / "run").estimator.its_option == 3


def test_it_is_saved_and_loaded(my_learner, tmp_path):
    X, _ = CHECKS["rows"]()
    model = rs.MyLearner(its_option=2, knowledge=rs.Knowledge(tiers=[["rain"], ["sun"]])).fit(X)
    rs.save(model, tmp_path)
    again = rs.load(tmp_path)
    assert type(again) is rs.MyLearner
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.adjacency_matrix_, model.adjacency_matrix_)


def test_experiments_can_declare_it(my_learner):
    model = declared({"learner": "MyLearner", "parameters": {"its_option": 2}}, seed=0)
    assert model.its_option == 2


def test_the_documentation_lists_it(my_learner):
    pages = runpy.run_path(str(DOCS / "learner_reference.py"))
    assert "| `MyLearner` | `my-learner` | Each variable on" in pages["table_of_learners"]()
    assert ".. autoclass:: mypackage.my_learner.MyLearner" in pages["learners_as_markdown"]()


@pytest.mark.parametrize("name", LINEAR)
def test_every_linear_learner_passes_the_checks(name):
    learner = load_learner(name)()
    for check in ("parameters", "graph", "knowledge", "equal_weights", "repeated_rows"):
        CHECKS[f"check_{check}"](learner)
    CHECKS["check_order_of_rows"](learner)
    if name not in DRAWN:
        CHECKS["check_order_of_columns"](learner)


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in LINEAR])
def test_every_other_learner_has_the_shared_parameters(name):
    CHECKS["check_parameters"](load_learner(name)())


@pytest.mark.parametrize("name", LEARNERS)
def test_every_word_of_the_command_line_means_one_learner(name):
    assert learner_called(option_word(name)) == name


@pytest.mark.parametrize("name", LEARNERS)
def test_the_front_page_names_every_learner(name):
    assert f"`{name}`" in (HERE.parent / "README.md").read_text()
