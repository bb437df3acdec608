from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rescore.algorithm import rescore
from rescore.graph.dag import is_dag
from rescore.learners.notears import NotearsBackbone
from rescore.learners.straight_lines import least_squares
from rescore.protocols import Problem, Status
from rescore.weightings import Uniform


@pytest.fixture
def problem(chain):
    return Problem.unconstrained(chain)


def score(S, W, lambda1):
    R = np.eye(len(S)) - W
    return np.trace(R.T @ S @ R) / 2 + lambda1 * np.abs(W).sum()


def test_the_score_equals_the_rows_and_its_gradient_finite_differences(problem):
    rng = np.random.default_rng(0)
    W = rng.normal(size=(5, 5)) * 0.3
    mean, S = problem.rows.moments(problem.prior)
    with jax.enable_x64(True):
        value, gradient = (np.asarray(v) for v in least_squares(jnp.asarray(S), jnp.asarray(W)))
        numeric = np.empty_like(W)
        for k in np.ndindex(W.shape):
            step = np.zeros_like(W)
            step[k] = 1e-5
            up, down = (float(least_squares(S, W + s)[0]) for s in (step, -step))
            numeric[k] = (up - down) / 2e-5
    rows = problem.prior @ problem.rows.squared_residuals(W, mean).sum(axis=1) / 2
    assert value == pytest.approx(rows, abs=1e-10)
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)


@pytest.mark.parametrize("constraint", ["exponential", "polynomial"])
def test_it_finds_the_chain_and_stops_converged(problem, constraint):
    found = rescore(problem, NotearsBackbone(constraint=constraint), Uniform())
    assert found.status is Status.CONVERGED
    assert set(map(tuple, np.argwhere(found.W))) == {(0, 1), (1, 2), (2, 3), (3, 4)}
    assert found.history[-1]["h"] <= 1e-8


def test_each_dual_step_solves_its_subproblem(problem):
    found = rescore(problem, NotearsBackbone(), Uniform())
    assert all(record["optimality"] < 1e-2 for record in found.history)
    assert found.history[0]["optimality"] < 1e-3
    assert found.history[-1]["optimality"] < 1e-6


def test_h_falls_to_a_quarter_with_every_step(problem):
    h = [record["h"] for record in rescore(problem, NotearsBackbone(), Uniform()).history]
    assert all(later <= earlier / 4 or later <= 1e-8 for earlier, later in pairwise(h))


def test_the_last_step_is_the_exact_lasso_on_the_edges_found(problem):
    """KKT of min ½ tr (I−W)ᵀS(I−W) + λ|W|₁ on the support: S(I−W) = λ sign W there."""
    found = rescore(problem, NotearsBackbone(threshold=0.0), Uniform())
    S = problem.rows.moments(problem.prior).covariance
    edges = found.W != 0
    slope = S @ (np.eye(5) - found.W)
    np.testing.assert_allclose(slope[edges], 0.1 * np.sign(found.W[edges]), atol=1e-6)
    assert found.history[-1]["objective"] == pytest.approx(score(S, found.W, 0.1), abs=1e-10)


@pytest.mark.parametrize("scale", [1e-3, 10.0, 1e4])
def test_units_change_neither_convergence_nor_the_graph(problem, chain, scale):
    """λ counts in squared units, so with it scaled along everything but rounding is the same."""
    plain = rescore(problem, NotearsBackbone(), Uniform())
    scaled = rescore(
        Problem.unconstrained(chain * scale), NotearsBackbone(lambda1=0.1 * scale**2), Uniform()
    )
    assert scaled.status is Status.CONVERGED
    np.testing.assert_allclose(scaled.W, plain.W, atol=1e-6)


def test_forbidden_edges_stay_out_and_required_ones_stay_in(problem, chain):
    allowed = problem.allowed.copy()
    required = np.zeros((5, 5), dtype=bool)
    allowed[1, 2] = False
    required[0, 4] = True
    allowed[4, 0] = False
    constrained = Problem(problem.rows, problem.prior, allowed, required)
    W = rescore(constrained, NotearsBackbone(), Uniform()).W
    assert W[1, 2] == 0
    assert W[0, 4] != 0
    assert is_dag(W)


def test_a_cap_on_the_penalty_is_a_status_and_still_a_dag(problem):
    found = rescore(problem, NotearsBackbone(rho_max=2.0, threshold=0.0), Uniform())
    assert found.status is Status.PENALTY_CAP
    assert is_dag(found.W)
    assert found.removed


def test_a_limit_of_steps_is_a_status_and_still_a_dag(problem):
    found = rescore(problem, NotearsBackbone(threshold=0.0), Uniform(), max_steps=1)
    assert found.status is Status.STEP_LIMIT
    assert len(found.history) == 1
    assert is_dag(found.W)


def test_jax_keeps_its_default_precision(problem):
    before = jnp.zeros(1).dtype
    rescore(problem, NotearsBackbone(), Uniform(), max_steps=1)
    assert jnp.zeros(1).dtype == before == np.float32
