"""Weights of cells from latent groups of rows, in units that nobody chose."""

import numpy as np
import pandas as pd
import pytest

from rescore.data.simulate import simulate
from rescore.graph.dag import cpdag
from rescore.learners.baselines import EmptyBackbone
from rescore.learners.linear import Linear
from rescore.learners.rescore import ReScore
from rescore.metrics import shd
from rescore.moments import Cells, Rows, row_weights
from rescore.protocols import Losses, Problem
from rescore.weightings.environments import Environments


def in_random_units(X, seed):
    """Other units and another order of the columns: neither may give the answer away."""
    rng = np.random.default_rng(seed)
    d = X.shape[1]
    columns = rng.permutation(d)
    return (X * np.exp(rng.uniform(-3, 3, d)))[:, columns], columns


def scaled_groups(seed, shares, d=10, n=1500):
    """A linear model whose noise has other scales in every group; truth, rows and groups."""
    rng = np.random.default_rng(seed)
    W = np.triu(rng.uniform(0.5, 1.5, (d, d)) * rng.choice([-1, 1], (d, d)), 1)
    W *= rng.random((d, d)) < 4 / d
    groups = rng.choice(len(shares), n, p=shares)
    scale = np.exp(rng.uniform(-1.1, 1.1, (len(shares), d)))
    X = rng.normal(size=(n, d)) * scale[groups] @ np.linalg.inv(np.eye(d) - W)
    X, columns = in_random_units(X, seed)
    return W[np.ix_(columns, columns)] != 0, X, groups


def first_step(X, prior=None, **options):
    problem = Problem.unconstrained(X)
    if prior is not None:
        total = prior.sum()
        problem = Problem(Rows(X), prior / total, problem.allowed, problem.required, count=total)
    player, empty = Environments(**options), EmptyBackbone()
    w, state = player.step(problem, Losses(problem, empty, empty.init(problem)), None)
    return problem, w, player.explain(state)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", ["gauss", "exp", "uniform"])
def test_rows_alike_keep_their_weights_whatever_the_noise_and_it_says_so(seed, noise):
    data = simulate(nodes=8, degree=2, samples=800, noise=noise, random_state=seed)
    problem, w, said = first_step(in_random_units(data.X.to_numpy(), seed)[0])
    assert w is problem.prior
    assert said["groups"] == 1
    assert said["summary"].startswith("The rows look alike")


@pytest.mark.parametrize(
    ("seed", "shares"), [(0, [0.8, 0.2]), (1, [0.7, 0.3]), (2, [0.5, 0.3, 0.2])]
)
def test_groups_by_noise_tell_directions_in_any_units(seed, shares):
    truth, X, groups = scaled_groups(seed, shares)
    model = ReScore(Linear()).fit(X)
    assert shd(truth, model.adjacency_matrix_.to_numpy()) <= 1
    said = model.diagnostics_["weighting"]
    assert said["groups"] == len(shares)
    assert model.diagnostics_["noise"]["hypothesis"] == "groups"
    found = np.asarray(said["membership"])
    agreement = max(np.mean(found[groups == 0] == k) for k in range(len(shares)))
    assert agreement > 0.9


def test_cells_count_by_the_precision_of_their_group():
    _, X, _ = scaled_groups(0, [0.8, 0.2])
    model = ReScore(Linear()).fit(X)
    cells = model.cell_weight_
    assert list(cells.columns) == list(model.adjacency_matrix_.columns)
    assert cells.index.equals(model.sample_weight_.index)
    assert cells.to_numpy().sum() == pytest.approx(10)
    np.testing.assert_allclose(cells.sum(axis=1) / 10, model.sample_weight_, rtol=1e-9)
    said = model.diagnostics_["weighting"]
    rows = np.asarray(said["membership"]) == 0
    ratio = cells[rows].mean() / cells[~rows].mean()
    by_noise = np.asarray(said["variance"])[1] / np.asarray(said["variance"])[0]
    np.testing.assert_allclose(np.log(ratio), np.log(by_noise), atol=0.5)


@pytest.mark.parametrize("share", [0.02, 0.05])
@pytest.mark.parametrize("seed", range(2))
def test_rows_of_another_model_are_set_aside_and_counted(seed, share):
    data = simulate(nodes=10, samples=1500, corrupt=share, random_state=seed)
    X, columns = in_random_units(data.X.to_numpy(), seed)
    model = ReScore(Linear()).fit(X)
    said = model.diagnostics_["weighting"]
    corrupted = (data.groups == "corrupted").to_numpy()
    assert model.sample_weight_[corrupted].sum() < 0.01
    assert any(said["noise"])
    assert "set aside" in said["summary"]
    assert abs(said["noise_rows"] - corrupted.sum()) < 0.3 * corrupted.sum()
    truth = data.truth.to_numpy()[np.ix_(columns, columns)]
    clean = Linear().fit(X[~corrupted])
    assert _classes_apart(truth, model) <= _classes_apart(truth, clean) + 2


def _classes_apart(truth, model):
    apart = cpdag(truth) != cpdag(model.adjacency_matrix_.to_numpy())
    return int((apart | apart.T).sum()) // 2


@pytest.mark.parametrize("d", [2, 6])
@pytest.mark.parametrize("seed", range(3))
def test_groups_by_level_alone_make_no_edges(seed, d):
    """Simpson's paradox: the variables are unrelated in each group."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, d)) + np.outer(rng.random(1000) < 0.4, rng.uniform(2.5, 4, d))
    assert Linear().fit(X).adjacency_matrix_.to_numpy().any()
    model = ReScore(Linear()).fit(X)
    assert not model.adjacency_matrix_.to_numpy().any()
    assert model.diagnostics_["weighting"]["groups"] == 2


@pytest.mark.parametrize(("d", "apart"), [(2, 1.75), (6, 1.5)])
@pytest.mark.parametrize("seed", range(3))
def test_groups_that_overlap_in_every_variable_make_no_edges(seed, d, apart):
    """No variable shows two peaks; along their principal component the groups are apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, d)) + np.outer(rng.random(2000) < 0.4, np.full(d, apart))
    assert Linear().fit(X).adjacency_matrix_.to_numpy().any()
    assert not ReScore(Linear()).fit(X).adjacency_matrix_.to_numpy().any()


@pytest.mark.parametrize("seed", range(3))
def test_a_mechanism_that_differs_in_a_group_is_named_and_counts_nothing_there(seed):
    rng = np.random.default_rng(seed)
    d, n = 8, 2400
    W = np.triu(rng.uniform(0.6, 1.2, (d, d)) * (rng.random((d, d)) < 0.4), 1)
    target = int(np.argmax((W != 0).sum(axis=0) >= 2))
    changed = W.copy()
    changed[:, target] *= -0.7
    second = np.arange(n) >= 1600
    E = rng.normal(size=(n, d)) * np.where(second[:, None], np.exp(rng.uniform(-0.8, 0.8, d)), 1.0)
    X = np.empty((n, d))
    for j in range(d):
        X[:, j] = E[:, j] + np.where(second, X[:, :j] @ changed[:j, j], X[:, :j] @ W[:j, j])
    model = ReScore(Linear()).fit(pd.DataFrame(X).add_prefix("v"))
    said = model.diagnostics_["weighting"]
    assert [one["variable"] for one in said["interventions"]] == [f"v{target}"]
    assert f"v{target} in group" in said["summary"]
    rows = np.asarray(said["membership"]) == said["interventions"][0]["group"]
    assert np.mean(rows == second) > 0.8
    cells = model.cell_weight_[f"v{target}"]
    assert cells[rows].sum() < 0.1 * cells.sum()
    assert shd(W, model.adjacency_matrix_.to_numpy()) <= 1


def test_a_row_repeated_is_a_row_of_that_weight():
    _, X, _ = scaled_groups(3, [0.7, 0.3], d=6, n=500)
    counts = np.random.default_rng(3).integers(1, 4, 500).astype(float)
    _, once, _ = first_step(X, prior=counts)
    _, often, _ = first_step(np.repeat(X, counts.astype(int), axis=0))
    summed = np.add.reduceat(row_weights(often), np.r_[0, np.cumsum(counts)[:-1]].astype(int))
    np.testing.assert_allclose(row_weights(once), summed, atol=1e-5)


def test_permuted_rows_and_columns_have_the_same_weights():
    _, X, _ = scaled_groups(4, [0.7, 0.3], d=6, n=600)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(600), rng.permutation(6)
    _, w, _ = first_step(X)
    _, v, _ = first_step(X[rows][:, columns])
    assert isinstance(w, Cells)
    np.testing.assert_allclose(np.asarray(v), np.asarray(w)[rows][:, columns], atol=1e-6)


def test_units_do_not_matter():
    _, X, _ = scaled_groups(5, [0.7, 0.3], d=6, n=600)
    rescaled = X * np.array([1e-3, 1, 50, 1e4, 2, 0.1])
    first, second = (ReScore(Linear()).fit(each) for each in (X, rescaled))
    np.testing.assert_array_equal(
        first.adjacency_matrix_.to_numpy() != 0, second.adjacency_matrix_.to_numpy() != 0
    )


def test_without_room_in_the_box_it_is_the_plain_learner():
    _, X, _ = scaled_groups(0, [0.8, 0.2], d=6, n=400)
    problem, w, said = first_step(X, tau=1.0)
    assert w is problem.prior
    assert said == {}


@pytest.mark.parametrize("bad", [{"tau": 0}, {"tau": 2}, {"most_groups": 0}])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Environments(**bad)


@pytest.mark.parametrize("seed", [1, 6])
@pytest.mark.parametrize("columns", [["a", "b", "c"], ["b", "a", "c"], ["c", "b", "a"]])
def test_one_changed_mechanism_is_not_told_as_changes_of_its_causes(seed, columns):
    rng = np.random.default_rng(seed)
    n, noise = 800, 0.6 * rng.normal(size=(2, 800))
    a = rng.normal(size=n)
    b = np.where(np.arange(n) < 240, -1.5, 1.0) * a + noise[0]
    X = pd.DataFrame({"a": a, "b": b, "c": 0.8 * b + noise[1]})[columns]
    model = ReScore(Linear()).fit(X)
    told = model.diagnostics_["weighting"]
    assert [change["variable"] for change in told["interventions"]] == ["b"]
    assert told["groups"] == 2
    assert set(model.causal_graph_.edges) == {("a", "b"), ("b", "c")}
