"""Categories may cause and are not caused: one node each, whatever the learner."""

import numpy as np
import pandas as pd
import pytest

import rescore as rs


@pytest.fixture(scope="module")
def clinic():
    rng = np.random.default_rng(0)
    n = 600
    site, sex = rng.choice(list("ABC"), n), rng.choice(["f", "m"], n)
    age = rng.normal(size=n)
    pressure = 0.8 * age + 1.5 * (sex == "m") + rng.normal(size=n)
    shift = np.select([site == "B", site == "C"], [1.5, -1.0])
    level = 0.7 * pressure + shift + rng.normal(size=n)
    return pd.DataFrame(
        {"site": site, "age": age, "sex": sex, "pressure": pressure, "level": level}
    )


EDGES = {("age", "pressure"), ("sex", "pressure"), ("pressure", "level"), ("site", "level")}


@pytest.mark.parametrize("kind", [rs.Linear, rs.Notears, rs.GES])
def test_every_learner_finds_what_categories_cause(clinic, kind):
    model = kind(categories="exogenous").fit(clinic)
    found = {frozenset(edge) for edge in model.causal_graph_.edges}
    assert found == {frozenset(edge) for edge in EDGES}
    assert not model.adjacency_matrix_[["site", "sex"]].to_numpy().any()
    assert (model.cpdag_.loc["sex", "pressure"], model.cpdag_.loc["pressure", "sex"]) == (1, 0)


def test_effects_of_levels_are_those_of_a_regression(clinic):
    model = rs.ReScore(rs.Linear(categories="exogenous")).fit(clinic)
    D = pd.get_dummies(clinic["site"]).to_numpy(float)
    reference, *_ = np.linalg.lstsq(np.c_[clinic["pressure"], D], clinic["level"], rcond=None)
    curve = model.effect(clinic, "site", "level")
    assert list(curve.index) == ["A", "B", "C"]
    np.testing.assert_allclose(np.diff(curve), np.diff(reference[1:]), atol=0.02)
    assert model.adjacency_matrix_.loc["sex", "pressure"] == pytest.approx(1.5, abs=0.2)


def test_a_permuted_category_has_no_edge(clinic):
    rng = np.random.default_rng(1)
    shuffled = clinic.assign(site=rng.permutation(clinic["site"]))
    model = rs.Linear(categories="exogenous").fit(shuffled)
    assert not model.adjacency_matrix_.loc["site"].any()


def test_it_does_not_matter_how_levels_are_called_or_typed(clinic):
    other = clinic.assign(
        sex=(clinic["sex"] == "m").astype(int), site=clinic["site"].astype("category")
    )
    ours, theirs = (rs.Linear(categories="exogenous").fit(X) for X in (clinic, other))
    np.testing.assert_allclose(ours.adjacency_matrix_, theirs.adjacency_matrix_, atol=1e-9)
    assert theirs.categories_["sex"] == (0, 1)


def test_predictions_and_files_know_the_levels(clinic, tmp_path):
    model = rs.Linear(categories="exogenous").fit(clinic)
    rs.save(model, tmp_path)
    loaded = rs.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict(clinic), model.predict(clinic))
    assert loaded.categories_ == {"site": ("A", "B", "C"), "sex": ("f", "m")}
    with pytest.raises(ValueError, match="'D' is not among the levels of 'site'"):
        model.predict(clinic.assign(site="D"))
    with pytest.raises(ValueError, match="New rows need a level of the categories 'site', 'sex'"):
        model.sample(3)
    drawn = model.intervene({"site": "B", "sex": "m"}, 500)
    assert drawn["pressure"].mean() == pytest.approx(1.5, abs=0.3)
    assert set(drawn["site"]) == {"B"}


def test_knowledge_holds_for_categories_too(clinic):
    model = rs.Linear(categories="exogenous", forbidden=[("sex", "pressure")],
                      required=[("site", "age")]).fit(clinic)  # fmt: skip
    W = model.adjacency_matrix_
    assert W.loc["sex", "pressure"] == 0
    assert W.loc["site", "age"] != 0
    assert all(one["holds"] for one in model.diagnostics_["knowledge"])
    with pytest.raises(ValueError, match="lead to 'sex', which may cause and is not caused"):
        rs.Linear(categories="exogenous", required=[("age", "sex")]).fit(clinic)


def test_dropped_categories_leave_a_receipt_and_refused_ones_a_remedy(clinic):
    model = rs.Linear(categories="drop").fit(clinic)
    assert list(model.adjacency_matrix_) == ["age", "pressure", "level"]
    assert model.diagnostics_["table"] == {"dropped": ["site", "sex"]}
    with pytest.raises(TypeError, match="categories='exogenous'"):
        rs.Linear().fit(clinic)
    many = clinic.assign(site=[f"s{i % 300}" for i in range(len(clinic))])
    with pytest.raises(ValueError, match="'site' has 300 levels"):
        rs.Linear(categories="exogenous").fit(many)
