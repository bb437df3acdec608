"""One verdict for each edge, and the evidence behind it."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.cli.after_fit import edges_as_data
from rescore.moments import Cells
from rescore.protocols import Problem
from rescore.reports.folder import write_run, write_stability
from rescore.reports.run import Run, read_run
from rescore.verdicts import (
    FIRM,
    FRAGILE,
    MADE,
    NORMAL_90,
    OPEN,
    Evidence,
    Shares,
    judged,
    regression_evidence,
    trust,
)

TOLD = ["", "known", "v-structures", "equal noise", "non-Gaussian noise", "groups", "the learner"]
SHARES = [None, 0.0, 0.89, 0.9, 1.0]
EVERY = [
    Evidence(by, required, repeated, stability, direction, survives)
    for by, required, repeated, stability, direction, survives in itertools.product(
        TOLD, [False, True], [None, 0.5, 0.99], SHARES, SHARES, [None, False, True]
    )
]


def test_an_edge_is_firm_only_if_nothing_that_was_asked_speaks_against_it():
    for e in EVERY:
        word = judged(e)
        if e.required:
            assert word == FIRM
            continue
        shaky = e.stability if e.stability is not None else e.repeated
        against = [
            e.by == "",
            e.survives is False,
            e.by == "equal noise" and not e.survives,
            shaky is not None and shaky < 0.9,
            e.by != "" and e.direction is not None and e.direction < 0.9,
        ]
        assert (word == FIRM) == (not any(against)), e


def test_what_each_word_means():
    for e in (e for e in EVERY if not e.required):
        word = judged(e)
        if word == OPEN:
            assert e.by == ""
        if word == MADE:
            assert e.survives is False or (e.survives is None and e.by == "equal noise")
        if word == FRAGILE:
            assert min(s for s in (e.stability, e.repeated, e.direction) if s is not None) < 0.9
        if e.survives is False:
            assert word == MADE


def test_steadiness_cannot_hide_what_the_units_do():
    """Found in every resample and turned in other units: the units have the last word."""
    assert judged(Evidence("equal noise", stability=1.0, direction=1.0, survives=False)) == MADE


@pytest.fixture(scope="module")
def simulated():
    return rs.simulate(nodes=6, degree=2, samples=500, random_state=1)


@pytest.fixture(scope="module")
def model(simulated):
    return rs.Linear().fit(simulated.X)


@pytest.fixture(scope="module")
def studies(model, simulated):
    found = rs.bootstrap(model, simulated.X, resamples=20)
    return {"stability": found, "units": rs.units(model, simulated.X)}


def test_the_table_holds_what_each_study_found(model, studies):
    table = rs.edges(model, **studies)
    shares, units = studies["stability"], studies["units"].table
    units = {(c, e): v for c, e, v in units[["cause", "effect", "verdict"]].to_numpy().tolist()}
    assert len(table) == (model.adjacency_matrix_ != 0).to_numpy().sum()
    for line in table.to_dict("records"):
        pair = line["cause"], line["effect"]
        assert line["coefficient"] == model.adjacency_matrix_.loc[pair]
        assert line["survives"] == (units[pair] == "unit-proof")
        own = shares.edges if line["directed"] else shares.adjacent
        assert line["stability"] == own.loc[pair]
        assert line["low"] <= line["high"]
        assert (line["verdict"] == MADE) == (not line["survives"])
    assert set(table["verdict"]) == {FIRM, MADE}
    assert "20 bootstrap resamples of 500 rows and 4 changes of units" in table["rests_on"][0]


def test_without_studies_the_table_says_so_and_is_no_firmer_on_directions(model, studies):
    alone, studied = model.edges_, rs.edges(model, **studies)
    assert set(alone["rests_on"]) == {"the fit alone"}
    assert alone["stability"].isna().all()
    assert alone["survives"].isna().all()
    told_by_units = alone["by"] == "equal noise"
    assert set(alone["verdict"][told_by_units]) == {MADE}
    assert (studied["survives"][~told_by_units]).all()


def test_what_tells_directions_is_named():
    rng = np.random.default_rng(0)
    a, b, e, f = rng.normal(size=(4, 1000))
    X = pd.DataFrame({"a": a, "b": b, "c": 5 * (a + b + e)})
    X["d"] = 40 * (X["c"] + 9 * f)
    found = rs.Linear().fit(X).edges_.set_index(["cause", "effect"])["by"]
    assert set(found) == {"v-structures"}
    pair = X[["a", "d"]].assign(a=X["c"])
    assert rs.Linear().fit(pair).edges_["verdict"].tolist() == [OPEN]
    for known in ({"required": [("a", "d")]}, {"forbidden": [("d", "a")]}):
        (line,) = rs.Linear(**known).fit(pair).edges_.to_dict("records")
        assert (line["by"], line["verdict"]) == ("known", FIRM)
        assert line["known"] == ("required" if "required" in known else "reverse forbidden")
    skewed = pd.DataFrame({"a": np.exp(a), "b": 3 * np.exp(a) + 9 * np.exp(b)})
    assert rs.Linear().fit(skewed).edges_["by"].tolist() == ["non-Gaussian noise"]


def test_a_line_that_hardly_shows_is_fragile_and_a_clear_one_is_not():
    rng = np.random.default_rng(1)
    a, b, e = rng.normal(size=(3, 400))
    for size, word in ((0.2, FRAGILE), (1.0, FIRM)):
        X = pd.DataFrame({"a": a, "b": b, "c": a + size * b + e})
        table = rs.Linear(required=[("a", "c")], forbidden=[("c", "b")]).fit(X).edges_
        assert table.set_index("cause").loc["b", "verdict"] == word


def sandwich(X, y, w, counts):
    """Coefficients, their errors and what each explains, by the textbook and by leaving out."""
    Z = X - w @ X / w.sum()
    r = y - w @ y / w.sum()
    bread = np.linalg.inv(Z.T @ (w[:, None] * Z))
    b = bread @ (Z.T @ (w * r))
    meat = Z.T @ ((w**2 / counts * (r - Z @ b) ** 2)[:, None] * Z)
    left = w @ (r - Z @ b) ** 2
    without = []
    for k in range(Z.shape[1]):
        part = np.delete(Z, k, axis=1) * np.sqrt(w)[:, None]
        fit = np.linalg.lstsq(part, r * np.sqrt(w), rcond=None)[0]
        without.append((np.sum((r * np.sqrt(w) - part @ fit) ** 2) - left) / (w @ r**2))
    return np.sqrt(np.diag(bread @ meat @ bread)), without


@pytest.mark.parametrize("kind", ["equal", "rows", "cells"])
def test_errors_and_shares_are_those_of_weighted_regressions(kind):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3)) * [1, 5, 1]
    X[:, 2] += X[:, 0] - 0.3 * X[:, 1]
    W = np.zeros((3, 3))
    W[:2, 2] = 1.0, -0.3
    problem = Problem.unconstrained(X)
    w, weight = problem.prior, problem.prior
    if kind == "rows":
        w = weight = rng.dirichlet(np.ones(300))
    if kind == "cells":
        group = np.arange(300) % 2
        X = X + 3 * group[:, None]  # a level of its own, which is taken out
        problem = Problem.unconstrained(X)
        members = np.eye(2)[group] / 300
        w = Cells(members, np.array([[1.0, 1.0, 1.5], [1.0, 1.0, 0.5]]))
        weight = np.asarray(w)[:, 2] / np.asarray(w)[:, 2].sum()
        X = X - np.array([X[group == g].mean(axis=0) for g in (0, 1)])[group]
    errors, explained = regression_evidence(problem, W, w)
    expected = sandwich(X[:, :2], X[:, 2], weight, np.ones(300))
    np.testing.assert_allclose(errors[:2, 2], expected[0], rtol=1e-8)
    np.testing.assert_allclose(explained[:2, 2], expected[1], rtol=1e-6)
    assert np.isnan(errors[W == 0]).all()


def test_of_many_rows_some_stand_for_all_and_moments_for_rows(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 2))
    X[:, 1] += X[:, 0]
    W = np.array([[0.0, 1.0], [0.0, 0.0]])
    problem = Problem.unconstrained(X)
    every = regression_evidence(problem, W, problem.prior)[0][0, 1]
    monkeypatch.setattr("rescore.verdicts.MOST_ROWS", 1000)
    some = regression_evidence(problem, W, problem.prior)[0][0, 1]
    assert some == pytest.approx(every, rel=0.1)
    model = rs.Linear().fit_moments(pd.DataFrame(X).cov(), 4000)
    assert np.nanmax(model.standard_errors_.to_numpy()) == pytest.approx(every, rel=0.05)


def test_nine_tenths_of_the_intervals_have_the_coefficient():
    rng = np.random.default_rng(4)
    inside = []
    W = np.array([[0.0, 1.0], [0.0, 0.0]])
    for _ in range(400):
        a, e = rng.normal(size=(2, 200))
        b = 0.7 * a + e * (0.3 + np.abs(a))  # noise of many sizes
        problem = Problem.unconstrained(np.c_[a, b])
        error = regression_evidence(problem, W, problem.prior)[0][0, 1]
        inside.append(abs(np.polyfit(a, b, 1)[0] - 0.7) < NORMAL_90 * error)
    assert 0.85 < np.mean(inside) < 0.94


def test_other_relations_have_no_interval_of_their_own():
    X = rs.simulate(mechanism="gp-add", nodes=3, degree=1, samples=150, random_state=2).X
    model = rs.Additive().fit(X)
    table = model.edges_
    assert model.standard_errors_ is None
    assert table[["low", "high", "explains"]].isna().to_numpy().all()
    assert len(table)
    found = rs.bootstrap(model, X, resamples=3)
    assert rs.edges(model, stability=found)["low"].notna().any()


def test_everywhere_the_table_is_the_same(model, studies, tmp_path):
    run = Run(model, units=studies["units"])
    for stability in (None, studies["stability"]):
        expected = rs.edges(model, units=studies["units"], stability=stability)
        if stability is None:
            write_run(tmp_path, run)
        else:
            write_stability(tmp_path, run, stability)
        again = read_run(tmp_path)
        pd.testing.assert_frame_equal(again.edges, expected)
        file = pd.read_csv(tmp_path / "edges.csv", keep_default_na=False, na_values=[""])
        numbers = ["coefficient", "low", "high", "explains", "stability"]
        np.testing.assert_allclose(file[numbers], expected[numbers])
        assert file["verdict"].tolist() == expected["verdict"].tolist()
        as_json = json.loads(json.dumps(edges_as_data(again.edges), allow_nan=False))
        assert [line["verdict"] for line in as_json] == expected["verdict"].tolist()


def test_names_that_are_no_text_and_knowledge_survive_saving(tmp_path):
    rng = np.random.default_rng(5)
    a = rng.normal(size=200)
    X = pd.DataFrame({3: a, (1, 2): 3 * a + rng.normal(size=200)})
    model = rs.Linear(required=[(3, (1, 2))]).fit(X)
    rs.save(model, tmp_path)
    assert model.edges_["known"].tolist() == ["required"]
    assert rs.load(tmp_path).edges_["known"].tolist() == ["required"]


def test_the_sentence_counts_every_edge_once(model, studies):
    table = rs.edges(model, **studies)
    said = trust(table)
    count = table["verdict"].value_counts()
    assert said.startswith(f"{count[FIRM]} of {len(table)} edges are firm, {count[MADE]} {MADE}")
    assert said.endswith("4 changes of units.")
    assert trust(table.head(0)) == "There is no edge."


def test_no_share_of_resamples_for_an_edge_that_none_has(model):
    nothing = Shares(np.zeros((6, 6)))
    table = rs.edges(model, stability=nothing)
    assert (table["stability"] == 0).all()
    assert FIRM not in set(table["verdict"])
    assert table["low"].notna().all()  # the fit's own
