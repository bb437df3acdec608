"""Steps, what they ask for, and the trail they leave: no browser, no server."""

import json
import runpy
import shlex
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rescore.app.jobs import Bench
from rescore.app.recipe import Recipe, recipe_of, told
from rescore.app.session import (
    KNOWLEDGE_FILE,
    ROWS_FILE,
    Session,
    command,
    safe_name,
    script,
)
from rescore.cli import app
from rescore.studies.table_input import asked_for, in_ranges, row_numbers

STEPS = [
    {"do": "settings", "drop": ["id"], "missing": "em", "why": "a finding"},
    {"do": "settings", "categories": "exogenous"},
    {"do": "transform", "column": "x 1", "by": "asinh"},
    {"do": "transform", "column": "x2", "by": "1000"},
    {"do": "tiers", "tiers": [["x0"], ["x 1", "x2", "x3"]]},
    {"do": "forbid", "edges": [["x2", "x3"]]},
    {"do": "require", "edges": [["x 1", "x3"]]},
    {"do": "exclude", "rows": "3-5,17", "why": "heavy"},
    {"do": "learner", "name": "Linear", "options": {"n_starts": 3},
     "around": {"weighting": "uniform"}},
]  # fmt: skip


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 4)) @ np.triu(np.ones((4, 4)))
    frame = pd.DataFrame(x, columns=["x0", "x 1", "x2", "x3"])
    frame.loc[::20, "x2"] = np.nan
    frame["sex"] = np.where(rng.random(150) < 0.5, "f", "m")
    frame.insert(0, "id", [f"case {k}" for k in range(150)])
    path = tmp_path_factory.mktemp("trail") / "my_table.csv"
    frame.to_csv(path, index=False)
    return path


def fitted(recipe, path):
    """As the workbench fits it."""
    table = asked_for(recipe.params(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return recipe.model().fit(table.X, sample_weight=table.sample_weight)


def graph_of(folder):
    return pd.read_csv(Path(folder) / "adjacency.csv", index_col=0).to_numpy()


@pytest.mark.parametrize("many_rows", [False, True], ids=["short", "in files"])
def test_script_and_command_repeat_the_fit_exactly(messy, monkeypatch, many_rows, tmp_path):
    more = [{"do": "exclude", "rows": in_ranges(range(0, 150, 3))}] * many_rows
    steps = [*STEPS, *more] if many_rows else STEPS
    recipe = recipe_of(steps)
    (tmp_path / messy.name).write_bytes(messy.read_bytes())
    recipe.knowledge.write(tmp_path / KNOWLEDGE_FILE)
    (tmp_path / ROWS_FILE).write_text(recipe.excluded)
    expected = fitted(recipe, messy).adjacency_matrix_
    assert expected.loc["x 1", "x3"] != 0
    assert expected.loc["x2", "x3"] == 0
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fit.py").write_text(script(recipe, messy.name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = runpy.run_path("fit.py")["model"].adjacency_matrix_
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    words = shlex.split(command(recipe, messy.name))[1:]
    assert app([*words, "--no-units", "--no-plain"], standalone_mode=False) == 0
    np.testing.assert_array_equal(graph_of("run"), expected.to_numpy())


def test_a_step_can_be_undone_done_again_and_replaced(tmp_path):
    session = Session(tmp_path)
    for step in STEPS:
        session.take(step)
    key = session.key
    session.go(0)
    assert session.recipe == Recipe()
    session.go(len(STEPS))
    assert session.key == key
    session.go(2)
    session.take({"do": "keep", "columns": ["id"]})
    assert len(session.steps) == 3
    assert session.recipe.drop == ()
    again = Session(tmp_path)
    assert (again.steps, again.at, again.key) == (session.steps, 3, session.key)


def test_a_step_that_cannot_be_taken_changes_nothing(tmp_path):
    session = Session(tmp_path)
    session.take({"do": "require", "edges": [["a", "b"]]})
    for step, words in [
        ({"do": "tiers", "tiers": [["b"], ["a"]]}, "earlier"),
        ({"do": "require", "edges": [["b", "c"], ["c", "a"]]}, "cycle"),
        ({"do": "learner", "name": "Magic"}, "no learner"),
        ({"do": "learner", "name": "Linear", "options": {"magic": 1}}, "no parameter"),
        ({"do": "exclude", "rows": "x"}, "counted from 0"),
        ({"do": "nothing"}, "no step"),
        ({"do": "settings", "path": "/etc/passwd"}, "no setting"),
        ({"do": "forbid", "edges": [["a"]]}, "pair"),
    ]:
        with pytest.raises(ValueError, match=words):
            session.take(step)
    assert len(session.steps) == 1


def test_turning_forbids_one_way_and_requires_the_other_and_freeing_forgets(tmp_path):
    recipe = recipe_of([{"do": "turn", "edges": [["a", "b"]]}])
    assert (recipe.forbidden, recipe.required) == ((("a", "b"),), (("b", "a"),))
    freed = recipe_of(
        [{"do": "turn", "edges": [["a", "b"]]}, {"do": "free", "edges": [["a", "b"], ["b", "a"]]}]
    )
    assert freed == Recipe()


def test_every_step_has_words_that_no_name_can_break(tmp_path):
    for step in [*STEPS, {"do": "groups", "column": "\x1b[31m"}, {"do": "keep", "columns": ["\n"]}]:
        assert told(step).isprintable()


def test_a_session_that_was_tampered_with_is_refused_in_a_sentence(tmp_path):
    for text in ("[]", "{", json.dumps({"steps": [{"do": "run"}], "at": 0})):
        (tmp_path / "session.json").write_text(text)
        with pytest.raises(ValueError, match="no session of the workbench"):
            Session(tmp_path)


def test_rows_as_text():
    rows = [0, 1, 2, 9, 40, 41]
    assert row_numbers(in_ranges(rows)) == rows
    assert row_numbers("") == []
    with pytest.raises(ValueError, match="counted from 0"):
        row_numbers("-3")


@pytest.mark.parametrize("name", ["../../x.csv", "a;rm -rf.csv", "$(id).csv", "-o.csv", "…", ""])
def test_names_of_files_are_harmless_in_scripts_and_archives(name):
    safe = safe_name(name)
    assert zipfile.ZipInfo(safe).filename == safe
    assert not set(safe) & set("/\\$;() '\"`")
    assert safe[0] not in ".-"


@pytest.mark.parametrize(
    ("change", "words"),
    [("x0=log", "zero or below"), ("sex=log", "holds words"), ("x0=cube", "by log"),
     ("nobody=log", "such as 'a=log'")],
)  # fmt: skip
def test_a_change_that_cannot_be_is_a_sentence(messy, change, words):
    params = recipe_of(STEPS[:2]).params(messy) | {"transform": [change]}
    with pytest.raises(ValueError, match=words):
        asked_for(params)


def test_numbers_can_be_codes_of_a_category(messy, tmp_path):
    frame = pd.read_csv(messy).assign(code=lambda x: np.arange(len(x)) % 3)
    frame.to_csv(tmp_path / "t.csv", index=False)
    steps = [*STEPS[:2], {"do": "transform", "column": "code", "by": "category"}]
    table = asked_for(recipe_of(steps).params(tmp_path / "t.csv")).X
    assert table.levels["code"] == ("0", "1", "2")


def test_too_many_rows_left_out_are_refused(messy):
    for rows, words in (("0-149", "exclude fewer"), ("150", "the last of 150 is 149")):
        with pytest.raises(ValueError, match=words):
            asked_for(recipe_of([*STEPS[:2], {"do": "exclude", "rows": rows}]).params(messy))


def test_without_the_extra_the_command_says_what_to_install(monkeypatch, capsys):
    for name in ("starlette", "starlette.applications", "rescore.app.server"):
        monkeypatch.setitem(sys.modules, name, None)
    assert app(["app", "--no-browser"], standalone_mode=False) == 2
    assert 'pip install "rescore[app]"' in capsys.readouterr().err


def test_a_table_that_is_not_there_is_told_before_anything_is_served(capsys):
    assert app(["app", "nowhere.csv", "--no-browser"], standalone_mode=False) == 2
    assert "There is no file 'nowhere.csv'" in capsys.readouterr().err


def test_a_table_is_read_by_one_process_and_mapped_by_the_next(messy, tmp_path, monkeypatch):
    recipe = recipe_of([{"do": "settings", "drop": ["id", "x2"]}, {"do": "exclude", "rows": "3"},
                        {"do": "groups", "column": "sex"}])  # fmt: skip
    read = Bench(tmp_path).table(recipe, messy)
    monkeypatch.setattr("rescore.app.jobs.asked_for", None)  # the file is not read again
    mapped = Bench(tmp_path).table(recipe, messy)
    known = pd.read_csv(messy)
    for one in (read, mapped):
        assert isinstance(one.X.values.base, np.memmap)
        np.testing.assert_array_equal(one.X.values, known[["x0", "x 1", "x3"]])
        assert one.X.names == ("x0", "x 1", "x3")
        assert one.groups == known["sex"].tolist()
        assert one.sample_weight[:5].tolist() == [1, 1, 1, 0, 1]


def nats(X, edges):
    """The log-likelihood of a Gaussian graph less the price of its edges, by least squares."""
    n, d = X.shape
    found = -(0.5 * np.log(n) + np.log(d)) * edges.sum()
    for j in range(d):
        Z = np.column_stack([np.ones(n), X[:, edges[:, j]]])
        left = X[:, j] - Z @ np.linalg.lstsq(Z, X[:, j], rcond=None)[0]
        found -= 0.5 * n * (np.log(2 * np.pi * np.mean(left**2)) + 1)
    return found


def test_what_a_constraint_costs_is_what_the_fit_without_it_gains(tmp_path):
    rng = np.random.default_rng(3)
    X = (
        rng.normal(size=(600, 4))
        * [1, 0.3, 1, 0.3]
        @ np.linalg.inv(np.eye(4) - 1.2 * np.eye(4, k=1))
    )
    frame = pd.DataFrame(X, columns=list("abcd"))
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    recipe = recipe_of([
        {"do": "learner", "name": "Linear", "around": {"weighting": "uniform"}},
        {"do": "forbid", "edges": [["b", "c"], ["c", "b"]]},
        {"do": "require", "edges": [["d", "a"]]},
    ])  # fmt: skip
    bench = Bench(tmp_path)
    bench.fit(recipe, path, lambda _: None, "whole")
    told = bench.costs(recipe, path, lambda _: None, "whole")
    assert [one["kind"] for one in told] == ["forbidden", "forbidden", "required"]
    constrained = nats(X, recipe.model().fit(frame).adjacency_matrix_.to_numpy() != 0)
    for one, (what, without) in zip(told, recipe.without_each(), strict=True):
        free = nats(X, without.model().fit(frame).adjacency_matrix_.to_numpy() != 0)
        assert one["edge"] == what["edge"]
        assert one["cost"] == pytest.approx(free - constrained, abs=1e-3)
        assert one["cost"] > 4


def test_a_first_answer_leaves_variables_where_they_are(messy, tmp_path):
    steps = [{"do": "settings", "drop": ["id", "x2", "sex"]}]
    bench, plain = Bench(tmp_path), recipe_of(steps)
    whole = bench.fit(plain, messy, lambda _: None, "whole")
    first = whole["graph"]["edges"][0]
    names = {node["id"]: node["name"] for node in whole["graph"]["nodes"]}
    ends = [names[first["source"]], names[first["target"]]]
    asked = recipe_of([*steps, {"do": "turn", "edges": [ends]}])
    quick = bench.quick(asked, messy, lambda _: None, "next", "whole")
    places = [(node["name"], node["x"], node["y"]) for node in whole["graph"]["nodes"]]
    assert [(node["name"], node["x"], node["y"]) for node in quick["graph"]["nodes"]] == places
    ids = {edge["id"] for edge in quick["graph"]["edges"]}
    assert first["id"] not in ids
    assert f"e{first['target'][1:]}-{first['source'][1:]}" in ids
    alone = bench.quick(asked, messy, lambda _: None, "next", "")  # without a fit before it
    assert {edge["id"] for edge in alone["graph"]["edges"]} == ids
