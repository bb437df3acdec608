import numpy as np
import pytest

from rescore.algorithm import rescore
from rescore.graph.dag import is_dag
from rescore.learners.networks.notears_mlp import NotearsMLPBackbone
from rescore.moments import Rows
from rescore.protocols import Problem, Status
from rescore.weightings import Exact, Uniform

TRUE = {(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)}


@pytest.fixture(scope="module")
def curved():
    """Five variables, effects that no linear learner sees in full, noise of deviation one."""
    rng = np.random.default_rng(3)
    E = rng.normal(size=(400, 5))
    X = E.copy()
    X[:, 1] += 2 * np.sin(1.5 * X[:, 0])
    X[:, 2] += X[:, 0] ** 2
    X[:, 3] += 2 * np.cos(X[:, 1]) + X[:, 2]
    X[:, 4] += 3 * np.tanh(X[:, 3])
    return X


@pytest.fixture(scope="module")
def plain(curved):
    return rescore(Problem.unconstrained(curved), NotearsMLPBackbone(), Uniform())


def edges(W):
    return set(map(tuple, np.argwhere(W)))


def test_it_finds_curved_effects_and_stops_converged(plain):
    assert edges(plain.W) == TRUE
    assert plain.status is Status.CONVERGED
    assert plain.history[-1]["h"] == 0
    assert {"objective", "h", "rho"} <= set(plain.history[0])


def test_the_losses_are_squared_residuals_near_the_noise(curved, plain):
    assert plain.losses.shape == curved.shape
    assert plain.losses.dtype == np.float64
    np.testing.assert_allclose(plain.losses.mean(axis=0)[1:], 1, atol=0.3)
    np.testing.assert_allclose(plain.losses[:, 0].mean(), curved[:, 0].var(), rtol=1e-4)


def test_strengths_are_what_a_cause_explains(curved, plain):
    """x4 has one cause: without it, the residual variance is the variance."""
    share = curved[:, 4].var() / plain.losses[:, 4].mean() - 1
    assert plain.W[3, 4] == pytest.approx(share, rel=0.25)


def test_losses_and_strengths_are_those_of_networks_fitted_to_the_final_graph(curved):
    """Once more from the end changes next to nothing: the last stage pruned no input."""
    problem, backbone = Problem.unconstrained(curved), NotearsMLPBackbone()
    state = backbone.init(problem)
    while state.status is Status.RUNNING:
        before, state = state, backbone.step(problem, problem.prior, state)
    assert (before.params.edges == state.params.edges).all()
    again = backbone.step(problem, problem.prior, state)
    np.testing.assert_allclose(
        backbone.losses(problem, again).mean(axis=0),
        backbone.losses(problem, state).mean(axis=0),
        rtol=0.02,
    )


def test_neither_order_of_rows_nor_of_columns_nor_repeats_matter(curved, plain):
    rng = np.random.default_rng(0)
    order, columns = rng.permutation(400), rng.permutation(5)
    moved = Problem.unconstrained(curved[order][:, columns])
    found = rescore(moved, NotearsMLPBackbone(), Uniform())
    np.testing.assert_allclose(found.W, plain.W[np.ix_(columns, columns)], atol=0.02)
    np.testing.assert_allclose(found.losses, plain.losses[order][:, columns], atol=0.1)
    doubled = Problem(Rows(np.repeat(curved, 2, axis=0)), np.full(800, 1 / 800), moved.allowed,
                      moved.required, count=400)  # fmt: skip
    found = rescore(doubled, NotearsMLPBackbone(), Uniform())
    np.testing.assert_allclose(found.W, plain.W, atol=0.02)


def test_shifts_do_not_matter_and_units_only_scale_the_losses(curved, plain):
    found = rescore(Problem.unconstrained(1e3 * curved + 1e4), NotearsMLPBackbone(), Uniform())
    assert edges(found.W) == TRUE
    np.testing.assert_allclose(
        found.losses.mean(axis=0) / 1e6, plain.losses.mean(axis=0), rtol=0.02
    )


def test_a_variance_of_its_own_for_each_variable_finds_quiet_effects_of_loud_causes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)) * [3, 0.3, 1, 1, 1]
    X[:, 1] += np.tanh(X[:, 0])  # less variance than its cause has
    found = rescore(Problem.unconstrained(X), NotearsMLPBackbone(variance="unequal"), Uniform())
    assert edges(found.W) == {(0, 1)}


@pytest.mark.parametrize("weighting", [Uniform(), Exact(0.5)])
def test_forbidden_edges_stay_out_and_required_ones_stay_in(curved, weighting):
    problem = Problem.unconstrained(curved)
    allowed, required = problem.allowed.copy(), problem.required.copy()
    allowed[1, 3] = allowed[3, 1] = False
    required[4, 0] = True
    found = rescore(
        Problem(problem.rows, problem.prior, allowed, required), NotearsMLPBackbone(), weighting
    )
    assert found.W[1, 3] == found.W[3, 1] == found.W[0, 4] == 0
    assert found.W[4, 0] != 0
    assert is_dag(found.W)


def test_pure_noise_has_no_edges():
    X = np.random.default_rng(1).normal(size=(400, 5))
    assert not rescore(Problem.unconstrained(X), NotearsMLPBackbone(), Uniform()).W.any()


@pytest.mark.parametrize(
    ("least", "kept"), [(0.0, {(0, 1), (0, 2)}), (0.04, {(0, 2)}), (0.4, set())]
)
def test_with_many_rows_a_slight_effect_is_certain_but_too_small(least, kept):
    """x0 explains 1.4 % of x1 and 6 % of x2; at 4,000 rows half of the share is asked for."""
    X = np.random.default_rng(0).normal(size=(4000, 3))
    X[:, 1] += 0.12 * X[:, 0]
    X[:, 2] += 0.25 * X[:, 0]
    graph = np.triu(np.ones((3, 3), dtype=bool), 1)
    learner = NotearsMLPBackbone(least_share=least)
    problem = Problem.unconstrained(X)
    assert edges(learner.pruned(problem, problem.prior, graph)) == kept


def test_an_input_that_another_can_stand_in_for_is_too_small():
    """x1 is x0 but for 1 % of its variance, and both act: either alone would nearly do."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    X[:, 2] += X[:, 0] + X[:, 1]
    graph = np.triu(np.ones((3, 3), dtype=bool), 1)
    problem = Problem.unconstrained(X)
    both = NotearsMLPBackbone(least_share=0).pruned(problem, problem.prior, graph)
    assert edges(both) == {(0, 1), (0, 2), (1, 2)}
    assert (
        NotearsMLPBackbone(least_share=0.04).pruned(problem, problem.prior, graph)[:2, 2].sum() == 1
    )


def test_pruning_a_dag_keeps_what_acts_jointly_and_what_is_required():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 5))
    X[:, 3] += 2 * X[:, 0] * X[:, 1]  # neither has an effect of its own
    graph = np.triu(np.ones((5, 5), dtype=bool), 1)
    problem = Problem.unconstrained(X)
    kept = NotearsMLPBackbone(variance="unequal").pruned(problem, problem.prior, graph)
    assert edges(kept) == {(0, 3), (1, 3)}
    required = problem.required.copy()
    required[2, 4] = True
    problem = Problem(problem.rows, problem.prior, problem.allowed, required)
    kept = NotearsMLPBackbone(variance="unequal").pruned(problem, problem.prior, graph)
    assert edges(kept) == {(0, 3), (1, 3), (2, 4)}


def test_deep_networks_and_constant_columns_are_fine(curved):
    X = curved.copy()
    X[:, 0] = 7.0
    problem = Problem.unconstrained(X)
    allowed = problem.allowed.copy()
    allowed[0] = allowed[:, 0] = False
    problem = Problem(problem.rows, problem.prior, allowed, problem.required)
    backbone = NotearsMLPBackbone(hidden=(6, 6), activation="relu")
    found = rescore(problem, backbone, Uniform())
    assert is_dag(found.W)
    assert (3, 4) in edges(found.W)
    assert not found.W[0].any()
    assert np.isfinite(found.losses).all()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"hidden": 10}, TypeError),
        ({"hidden": ()}, TypeError),
        ({"hidden": (0,)}, ValueError),
        ({"activation": "cubic"}, ValueError),
        ({"variance": "some"}, ValueError),
        ({"lambda1": -1}, ValueError),
        ({"least_share": 1.5}, ValueError),
        ({"threshold": -0.1}, ValueError),
    ],
)
def test_impossible_settings_are_errors(wrong, error):
    with pytest.raises(error, match=next(iter(wrong))):
        NotearsMLPBackbone(**wrong)
