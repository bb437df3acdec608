from itertools import pairwise

import jax
import numpy as np
import pytest

from rescore.acyclicity import log_det
from rescore.algorithm import rescore
from rescore.graph.dag import is_dag
from rescore.learners import dagma
from rescore.learners.dagma import DagmaBackbone
from rescore.learners.straight_lines import least_squares
from rescore.moments import Rows
from rescore.protocols import Problem, Status
from rescore.weightings import Exact, Uniform

FIELDS = ("value", "objective", "h")
CHAIN = {(0, 1), (1, 2), (2, 3), (3, 4)}


@pytest.fixture
def problem(chain):
    return Problem.unconstrained(chain)


def radius(W):
    return np.abs(np.linalg.eigvals(W * W)).max()


def stages(problem, backbone, weights=None):
    """Every state of the path, the weights of each stage being the next of ``weights``."""
    state, states = backbone.init(problem), []
    while state.status is Status.RUNNING:
        w = problem.prior if weights is None else weights[len(states) % len(weights)]
        state = backbone.step(problem, w, state)
        states.append(state)
    return states


def test_the_objective_has_the_gradient_of_finite_differences(problem):
    W = np.random.default_rng(0).normal(size=(5, 5)) * 0.2
    S = problem.rows.moments(problem.prior).covariance

    def smooth(W):
        (score, slope), (h, h_slope) = least_squares(S, W), log_det(W)
        return float(score + h / 0.3), np.asarray(slope + h_slope / 0.3)

    numeric = np.empty_like(W)
    with jax.enable_x64(True):
        for k in np.ndindex(W.shape):
            step = np.zeros_like(W)
            step[k] = 1e-5
            numeric[k] = (smooth(W + step)[0] - smooth(W - step)[0]) / 2e-5
        np.testing.assert_allclose(smooth(W)[1], numeric, atol=1e-6)


@pytest.mark.parametrize("mu", [1.0, 0.1, 1e-3])
def test_a_stage_lowers_its_own_objective(problem, mu):
    S = problem.rows.moments(problem.prior).covariance
    penalty = np.where(problem.allowed, 0.02, 0.0)
    rng = np.random.default_rng(1)
    for size in (0.0, 0.1, 0.3):
        W = rng.normal(size=(5, 5)) * size * problem.allowed
        assert radius(W) < 1
        with jax.enable_x64(True):
            found = dagma._minimise(S, W, penalty, problem.allowed, mu, least_squares)
            again = dagma._minimise(S, found.W, penalty, problem.allowed, mu, least_squares)
            score, h = float(least_squares(S, W)[0]), float(log_det(W)[0])
        value, objective, barrier = (float(getattr(found, name)) for name in FIELDS)
        assert value <= score + 0.02 * np.abs(W).sum() + h / mu
        assert value == pytest.approx(objective + barrier / mu)
        assert value - float(again.value) < 1e-4 * value  # there was next to nothing left to gain


def test_with_a_tight_tolerance_a_stage_ends_at_a_kkt_point(problem, monkeypatch):
    monkeypatch.setattr(dagma, "SOLVED", (1e-15, 1e-7))
    S = problem.rows.moments(problem.prior).covariance
    penalty = np.where(problem.allowed, 0.02, 0.0)
    with jax.enable_x64(True):
        uncompiled = dagma._minimise.__wrapped__  # the compiled one keeps its tolerance
        found = uncompiled(S, np.zeros((5, 5)), penalty, problem.allowed, 1.0, least_squares)
    assert float(found.optimality) < 1e-5


def test_every_stage_stays_inside_the_domain_also_when_the_weights_jump(problem):
    rng = np.random.default_rng(2)
    weights = rng.dirichlet(np.full(300, 0.05), size=7)  # a handful of rows has all the weight
    for state in stages(problem, DagmaBackbone(), weights):
        assert radius(state.params.W) < 1
        assert np.isfinite(state.params.W).all()


def test_it_finds_the_chain_and_stops_converged(problem):
    found = rescore(problem, DagmaBackbone(), Uniform())
    assert found.status is Status.CONVERGED
    assert set(map(tuple, np.argwhere(found.W))) == CHAIN
    assert found.history[-1]["h"] <= 1e-8


def test_the_barrier_falls_and_its_weight_grows_along_the_path(problem):
    history = rescore(problem, DagmaBackbone(), Uniform()).history
    assert all(b["h"] < a["h"] for a, b in pairwise(history))
    assert all(b["rho"] == pytest.approx(a["rho"] / 0.6) for a, b in pairwise(history))


def test_the_last_step_is_the_exact_lasso_on_the_edges_found(problem):
    found = rescore(problem, DagmaBackbone(threshold=0.0), Uniform())
    S = problem.rows.moments(problem.prior).covariance
    edges = found.W != 0
    R = np.eye(5) - found.W
    np.testing.assert_allclose((S @ R)[edges], 0.02 * np.sign(found.W[edges]), atol=1e-9)
    value = np.trace(R.T @ S @ R) / 2 + 0.02 * np.abs(found.W).sum()
    assert found.history[-1]["objective"] == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize("scale", [1e-3, 10.0, 1e4])
def test_units_change_neither_convergence_nor_the_graph(problem, chain, scale):
    """λ counts in squared units, so with it scaled along everything but rounding is the same."""
    plain = rescore(problem, DagmaBackbone(), Uniform())
    scaled = rescore(
        Problem.unconstrained(chain * scale), DagmaBackbone(lambda1=0.02 * scale**2), Uniform()
    )
    assert len(scaled.history) == len(plain.history)
    np.testing.assert_allclose(scaled.W, plain.W, atol=1e-6)


@pytest.mark.parametrize("weighting", [Uniform(), Exact(0.3)])
def test_forbidden_edges_stay_out_and_required_ones_stay_in(problem, weighting):
    allowed, required = problem.allowed.copy(), problem.required.copy()
    allowed[1, 2] = allowed[4, 0] = False
    required[0, 4] = True
    constrained = Problem(problem.rows, problem.prior, allowed, required)
    for state in stages(constrained, DagmaBackbone()):
        assert not state.params.W[~allowed].any()
    W = rescore(constrained, DagmaBackbone(), weighting).W
    assert W[0, 4] != 0
    assert is_dag(W)


def test_copies_and_constants_still_give_a_dag(chain):
    X = np.c_[chain[:, 0], chain[:, 0], chain[:, 1], chain[:, 1] * 1e3, np.ones(300)]
    allowed = ~np.eye(5, dtype=bool)
    allowed[4] = allowed[:, 4] = False
    problem = Problem(Rows(X), np.full(300, 1 / 300), allowed, np.zeros((5, 5), dtype=bool))
    found = rescore(problem, DagmaBackbone(), Uniform())
    assert is_dag(found.W)
    assert np.isfinite(found.W).all()


def test_a_path_that_ends_too_early_is_a_status(problem, monkeypatch):
    monkeypatch.setattr(dagma, "LEAST_MU", 0.5)
    found = rescore(problem, DagmaBackbone(threshold=0.0), Uniform())
    assert found.status is Status.PENALTY_CAP
    assert found.removed
