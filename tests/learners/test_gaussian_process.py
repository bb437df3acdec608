import numpy as np
import pytest

import rescore as rs
from rescore.algorithm import rescore
from rescore.graph.dag import is_dag
from rescore.learners.gaussian_process import GaussianProcessBackbone
from rescore.protocols import Problem, Status
from rescore.solvers.gaussian_orders import total
from rescore.weightings import Uniform

TRUE = {(0, 2), (1, 2), (2, 3)}
QUICK = {"n_starts": 1}  # without networks, which take longer to compile than all else


@pytest.fixture(scope="module")
def joint():
    """Two causes that act only together, and an effect of their effect."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 4))
    X[:, 2] = 2 * np.sin(X[:, 0] * X[:, 1]) + 0.3 * X[:, 2]
    X[:, 3] = np.cos(2 * X[:, 2]) + 0.3 * X[:, 3]
    return X


@pytest.fixture(scope="module")
def plain(joint):
    return rescore(Problem.unconstrained(joint), GaussianProcessBackbone(**QUICK), Uniform())


def edges(W):
    return set(map(tuple, np.argwhere(W).tolist()))


def test_causes_that_act_only_together_are_found(plain):
    assert edges(plain.W) == TRUE
    assert plain.status is Status.CONVERGED


def test_units_make_no_difference_to_the_graph(joint):
    units = np.array([100.0, 1e-3, 7.0, 1e4])
    found = rescore(
        Problem.unconstrained(joint * units + units), GaussianProcessBackbone(**QUICK), Uniform()
    )
    assert edges(found.W) == TRUE


def test_the_losses_leave_each_row_out(joint, plain):
    """So a flexible fit does not hide noise: they are larger than the residuals of the fit."""
    fitted = np.square(joint - plain.equations.predict(joint))[:, 2:].mean(axis=0)
    assert (plain.losses[:, 2:].mean(axis=0) > fitted).all()
    np.testing.assert_allclose(plain.losses[:, 2:].mean(axis=0), 0.09, rtol=0.8)


def test_predictions_follow_the_function(joint, plain):
    grid = np.random.default_rng(0).uniform(-1, 1, size=(50, 4))
    error = plain.equations.predict(grid)[:, 2] - 2 * np.sin(grid[:, 0] * grid[:, 1])
    assert np.abs(error).mean() < 0.15


def test_more_rows_than_it_may_see_still_have_losses(joint):
    backbone = GaussianProcessBackbone(most_rows=100, **QUICK)
    found = rescore(Problem.unconstrained(joint), backbone, Uniform())
    assert is_dag(found.W)
    assert np.isfinite(found.losses).all()
    assert found.equations.arrays()["inputs"].shape == (100, 4)


def test_fewer_false_edges_may_be_asked_for(joint):
    strict = GaussianProcessBackbone(false_edges=1e-200, **QUICK)
    assert len(edges(rescore(Problem.unconstrained(joint), strict, Uniform()).W)) < 3


def test_groups_in_its_residuals_become_weights_of_cells():
    """Half of the rows know the effect far better: they count more in its regression alone."""
    rng = np.random.default_rng(1)
    n = 150
    good = np.arange(n) < n // 2
    X = rng.normal(size=(n, 3))
    X[:, 1] = np.sin(2 * X[:, 0]) + np.where(good, 0.05, 1.0) * X[:, 1]
    X[:, 2] = np.cos(2 * X[:, 0]) + np.where(good, 1.0, 0.05) * X[:, 2]
    model = rs.ReScore(rs.GaussianProcess(**QUICK)).fit(X)
    assert model.diagnostics_["weighting"]["groups"] >= 2
    w = model.cell_weight_.to_numpy()
    assert w[good, 1].mean() > 4 * w[~good, 1].mean()
    assert w[good, 2].mean() < w[~good, 2].mean() / 4
    assert edges(model.adjacency_matrix_.to_numpy()) == {(0, 1), (0, 2)}


def test_rows_that_are_alike_are_the_plain_learner_bit_for_bit(joint):
    plain = rs.GaussianProcess(**QUICK).fit(joint)
    model = rs.ReScore(rs.GaussianProcess(**QUICK)).fit(joint)
    assert model.diagnostics_["weighting"]["groups"] == 1
    assert (model.adjacency_matrix_ == plain.adjacency_matrix_).all(axis=None)


def test_it_comes_back_from_disk(joint, tmp_path):
    model = rs.GaussianProcess(**QUICK).fit(joint)
    rs.save(model, tmp_path)
    np.testing.assert_allclose(rs.load(tmp_path).predict(joint), model.predict(joint))


def test_weights_that_change_before_every_step_do_not_keep_the_search_from_ending(chain):
    model = rs.ReScore(rs.GaussianProcess(n_starts=1, most_rows=60), tau=0.3, loss="raw").fit(chain)
    assert model.diagnostics_["converged"]
    assert len(model.history_) < 10


def test_the_search_starts_from_the_best_proposal_of_each_kind_and_the_best_end_is_kept(
    joint, monkeypatch
):
    proposed = [("curvature", [3, 2, 1, 0]), ("graph", [0, 2, 1, 3]), ("graph", [2, 3, 0, 1])]
    begun, costs = [], []

    def orders(self, problem, w, inputs):
        yield from proposed

    def noted(costs, found, required, fewer=None):
        begun.append(found.order)
        return found  # no moves: where a search began is where it ends

    monkeypatch.setattr(GaussianProcessBackbone, "_orders", orders)
    monkeypatch.setattr("rescore.learners.gaussian_process.improved", noted)
    problem, backbone = Problem.unconstrained(joint), GaussianProcessBackbone(n_starts=3)
    state = backbone.init(problem)
    while state.status is Status.RUNNING:
        state = backbone.step(problem, problem.prior, state)
        costs.append(total(state.params.found.fits))
    columns = state.params.inputs.columns
    starts = {tuple(columns[list(order)].tolist()) for order in begun[:2]}
    assert starts == {tuple(proposed[0][1]), tuple(proposed[1][1])}
    assert costs[4] == pytest.approx(min(costs[1], costs[3]))  # ends of both searches
