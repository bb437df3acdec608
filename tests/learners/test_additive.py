import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.moments import Cells
from rescore.tables.convert import DataWarning


@pytest.fixture(scope="module")
def bent():
    """Ten variables, twenty smooth additive relations."""
    return rs.simulate("ER", degree=2, nodes=10, samples=1000, mechanism="gp-add", random_state=250)


@pytest.fixture(scope="module")
def model(bent):
    return rs.Additive().fit(bent.X)


def edges(model):
    return model.adjacency_matrix_.to_numpy() != 0


def chain(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 1]
    return pd.DataFrame(X, columns=["a", "b", "c"])


def test_it_finds_the_graph_of_smooth_additive_relations(bent, model):
    assert rs.evaluate(bent.truth, model).shd <= 1
    assert model.diagnostics_["noise"]["open_directions"] == 0


def test_units_and_signs_do_not_matter(bent, model):
    scale = np.random.default_rng(0).uniform(0.01, 100, 10) * np.tile([1, -1], 5)
    other = rs.Additive().fit(bent.X * scale + 1e3)
    assert (edges(other) == edges(model)).all()
    standard = rs.Additive(standardize=True).fit(bent.X)
    assert np.allclose(standard.adjacency_matrix_, model.adjacency_matrix_, rtol=1e-4)
    assert np.allclose(standard.predict(bent.X), model.predict(bent.X), atol=1e-6)


def test_straight_relations_are_told_as_such_and_left_open():
    found = rs.Additive().fit(chain())
    assert edges(found).sum() == 2
    assert found.cpdag_.to_numpy().sum() == 4
    told = found.diagnostics_["noise"]
    assert told["bent_edges"] == 0
    assert "rs.Linear()" in told["summary"]
    assert "2 could as well be turned" in told["summary"]


def test_noise_alone_has_no_edges():
    rng = np.random.default_rng(1)
    for X in (rng.normal(size=(500, 15)), rng.standard_t(4, size=(500, 15))):
        assert edges(rs.Additive().fit(X)).sum() <= 1


def test_strength_is_explained_variance_in_units_of_the_noise():
    x, e = np.random.default_rng(2).normal(size=(2, 5000))
    found = rs.Additive().fit(np.c_[x, 2 * np.sin(2 * x) + 0.5 * e])
    wanted = np.var(2 * np.sin(2 * x)) / 0.25
    assert found.adjacency_matrix_.iloc[0, 1] == pytest.approx(wanted, rel=0.1)


def test_predict_effect_score_and_sample_agree_with_the_functions():
    rng = np.random.default_rng(3)
    dose, e = rng.normal(size=(2, 2000))
    X = pd.DataFrame({"dose": dose, "effect": np.cos(2 * dose) + 0.3 * e})
    found = rs.Additive().fit(X[:1000])
    left = X["effect"] - found.predict(X)["effect"]
    assert left[1000:].std() == pytest.approx(0.3, rel=0.1)
    curve = found.effect(X, "dose", "effect", points=21)
    inner = np.abs(curve.index) < 2
    assert np.allclose(curve[inner], np.cos(2 * curve.index[inner]), atol=0.15)
    assert found.score(X[1000:]) > rs.Linear().fit(X[:1000]).score(X[1000:]) + 0.5
    drawn = found.sample(2000)
    assert drawn["effect"].std() == pytest.approx(X["effect"].std(), rel=0.1)
    assert found.losses_["effect"].mean() == pytest.approx(0.09, rel=0.15)


def test_it_is_saved_and_loaded(bent, model, tmp_path):
    rs.save(model, tmp_path / "model")
    again = rs.load(tmp_path / "model")
    assert (again.predict(bent.X) == model.predict(bent.X)).all(axis=None)


def test_gross_outliers_and_odd_columns_do_no_harm(bent, model):
    X = bent.X.copy()
    X.iloc[:3, 0] = [1e5, -1e5, 1e4]
    X["constant"] = 4.0
    X["coin"] = np.arange(len(X)) % 2
    with pytest.warns(DataWarning):
        found = rs.Additive().fit(X)
    assert not found.adjacency_matrix_.loc[["constant"]].to_numpy().any()
    others = edges(model)[1:, 1:]
    lost = (edges(found)[1:10, 1:10] != others).sum()
    assert lost <= 0.2 * others.sum()
    assert np.isfinite(found.predict(X)).all(axis=None)


def test_many_rows_ask_for_a_share_of_the_noise():
    x, e = np.random.default_rng(4).normal(size=(2, 40_000))
    X = np.c_[x, 0.06 * np.sin(2 * x) + e]
    assert not edges(rs.Additive().fit(X)).any()
    assert edges(rs.Additive(least_share=0.0).fit(X))[0, 1]


def test_required_edges_have_a_level_of_their_own(bent):
    truth = bent.truth.to_numpy() != 0
    names = list(bent.X.columns)
    absent = next(
        (i, j) for i in range(10) for j in range(10) if not (truth | truth.T)[i, j] and i != j
    )
    known = [(names[absent[0]], names[absent[1]])]
    found = rs.Additive(required=known).fit(bent.X)
    assert edges(found)[absent]
    assert rs.evaluate(bent.truth, found).shd <= 6


def test_groups_whose_noise_differs_are_weighed_by_cell():
    """Loud rows hide relations from pooled rows; counted by their noise, cells show them."""
    data = rs.simulate("ER", degree=2, nodes=10, samples=1000, mechanism="gp-add", random_state=251)
    rng = np.random.default_rng(5)
    quiet = rng.random(1000) < 0.3
    X = data.X + rng.normal(size=data.X.shape) * np.where(quiet[:, None], 0.0, 1.5)
    membership = np.c_[quiet, ~quiet] / len(X)
    weighting = Labelled(membership)
    plain = rs.evaluate(data.truth, rs.Additive().fit(X)).shd
    found = rs.ReScore(rs.Additive(), weighting=weighting, warmup=0).fit(X)
    assert found.cell_weight_.shape == X.shape
    assert rs.evaluate(data.truth, found).shd < plain


class Labelled:
    """Cells of groups that are known."""

    tau = 1.0

    def __init__(self, membership):
        self.membership = membership

    def init(self, n, d):
        return d

    def step(self, problem, losses, d):
        return Cells(self.membership, np.ones((self.membership.shape[1], d))), d

    def explain(self, state):
        return {}


@pytest.mark.parametrize(
    ("setting", "said"),
    [({"n_starts": 0}, "n_starts"), ({"least_share": 1.0}, "least_share")],
)
def test_settings_that_make_no_sense_are_refused(setting, said):
    with pytest.raises(ValueError, match=said):
        rs.Additive(**setting).fit(chain())
