import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rescore.algorithm import rescore
from rescore.graph.dag import is_dag
from rescore.learners import golem
from rescore.learners.golem import GolemBackbone, into_domain, likelihood, likelihood_on_dag
from rescore.moments import Rows
from rescore.protocols import Problem, Status
from rescore.weightings import Exact, Uniform

CHAIN = {(0, 1), (1, 2), (2, 3), (3, 4)}
KINDS = ["equal", "unequal"]
each_kind = pytest.mark.parametrize("variance", KINDS)


@pytest.fixture
def problem(chain):
    return Problem.unconstrained(chain)


def by_rows(X, w, W, variance):
    """The negative log-likelihood without constants, row by row."""
    centred = X - w @ X
    squares = np.array([(x - x @ W) ** 2 for x in centred])
    log_det = np.log(abs(np.linalg.det(np.eye(len(W)) - W)))
    if variance == "equal":
        return len(W) / 2 * np.log(sum(w * squares.sum(axis=1))) - log_det
    return sum(np.log(w @ squares[:, j]) for j in range(len(W))) / 2 - log_det


@each_kind
def test_the_likelihood_equals_the_rows_and_its_gradient_finite_differences(problem, variance):
    rng = np.random.default_rng(0)
    w = rng.dirichlet(np.ones(300))
    W = rng.normal(size=(5, 5)) * 0.2
    S = problem.rows.moments(w).covariance
    numeric = np.empty_like(W)
    with jax.enable_x64(True):
        value, gradient = likelihood(jnp.asarray(S), jnp.asarray(W), variance == "equal")
        for k in np.ndindex(W.shape):
            step = np.zeros_like(W)
            step[k] = 1e-5
            up, down = (by_rows(problem.rows.matrix(), w, W + s, variance) for s in (step, -step))
            numeric[k] = (up - down) / 2e-5
    assert float(value) == pytest.approx(by_rows(problem.rows.matrix(), w, W, variance), abs=1e-10)
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)


@each_kind
def test_a_step_lowers_its_own_objective_and_keeps_the_determinant_positive(problem, variance):
    S = problem.rows.moments(problem.prior).covariance
    penalty = np.where(problem.allowed, 0.02, 0.0)
    rng = np.random.default_rng(1)
    for size in (0.0, 0.3, 1.0, 3.0):
        W = into_domain(rng.normal(size=(5, 5)) * size * problem.allowed)
        with jax.enable_x64(True):
            score = golem.LIKELIHOODS[variance == "equal"]
            found = golem._minimise(S, W, penalty, problem.allowed, 5.0, 4000, score)
            before = float(likelihood(S, W, variance == "equal")[0])
            before += 0.02 * np.abs(W).sum() + 5 * float(golem.trace_exponential(W)[0])
        value, objective, h = (float(v) for v in (found.value, found.objective, found.h))
        assert value <= before
        assert value == pytest.approx(objective + 5 * h)
        assert np.linalg.det(np.eye(5) - np.asarray(found.W)) > 0


@pytest.mark.parametrize("seed", range(10))
def test_hostile_starts_are_brought_to_where_the_determinant_is_positive(seed):
    W = np.random.default_rng(seed).normal(size=(5, 5)) * 10 ** (seed / 3)
    inside = into_domain(W)
    assert np.linalg.det(np.eye(5) - inside) > 0
    np.testing.assert_array_equal(into_domain(inside), inside)


@each_kind
def test_the_determinant_stays_positive_when_the_weights_jump(problem, variance):
    """Strong two-way dependence under weights that leave a handful of rows."""
    rng = np.random.default_rng(2)
    weights = rng.dirichlet(np.full(300, 0.05), size=7)
    backbone = GolemBackbone(variance)
    state, step = backbone.init(problem), 0
    while state.status is Status.RUNNING and step < 50:
        state = backbone.step(problem, weights[step % 7], state)
        assert np.linalg.det(np.eye(5) - state.params.W) > 0
        step += 1


@each_kind
def test_it_finds_the_chain_and_stops_converged(problem, variance):
    found = rescore(problem, GolemBackbone(variance), Uniform())
    assert found.status is Status.CONVERGED
    assert set(map(tuple, np.argwhere(found.W))) == CHAIN
    assert found.history[-1]["h"] <= 1e-8


@each_kind
def test_the_last_step_solves_the_penalised_likelihood_on_the_edges_found(problem, variance):
    """KKT on a DAG, where the determinant is one: (S(I−W))_ij = λ σ_j² sign w_ij."""
    found = rescore(problem, GolemBackbone(variance, lambda1=0.01, threshold=0.0), Uniform())
    S = problem.rows.moments(problem.prior).covariance
    R = np.eye(5) - found.W
    noise = np.diag(R.T @ S @ R)
    if variance == "equal":
        noise = np.full(5, noise.mean())
    edges = found.W != 0
    target = 0.01 * noise * np.sign(found.W)
    np.testing.assert_allclose((S @ R)[edges], target[edges], atol=1e-8)
    value = by_rows(problem.rows.matrix(), problem.prior, found.W, variance)
    value += 0.01 * np.abs(found.W).sum()
    assert found.history[-1]["objective"] == pytest.approx(value, abs=1e-9)
    assert found.history[-1]["optimality"] < 1e-8


@pytest.mark.parametrize("seed", range(3))
def test_unequal_variances_are_never_worse_in_their_own_likelihood(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 5)) * [0.3, 1, 3, 0.5, 2]
    X[:, 2] += X[:, 0] - X[:, 1]
    X[:, 4] += X[:, 2]
    problem = Problem.unconstrained(X)
    equal, unequal = (
        rescore(problem, GolemBackbone(kind, threshold=0.0), Uniform()).W for kind in KINDS
    )
    S = problem.rows.moments(problem.prior).covariance
    penalty = np.where(problem.allowed, 0.002, 0.0)
    refitted = likelihood_on_dag(S, equal, penalty, equal=False)
    own = by_rows(X, problem.prior, unequal, "unequal") + 0.002 * np.abs(unequal).sum()
    assert own <= refitted.objective + 1e-9


@each_kind
@pytest.mark.parametrize("scale", [1e-3, 10.0, 1e4])
def test_units_change_neither_convergence_nor_the_graph(problem, chain, scale, variance):
    plain = rescore(problem, GolemBackbone(variance), Uniform())
    scaled = rescore(Problem.unconstrained(chain * scale), GolemBackbone(variance), Uniform())
    assert len(scaled.history) == len(plain.history)
    np.testing.assert_allclose(scaled.W, plain.W, atol=1e-6)
    shift = 5 * np.log(scale)  # of the log-likelihood of five variables
    difference = scaled.history[-1]["objective"] - plain.history[-1]["objective"]
    assert difference == pytest.approx(shift, abs=1e-6)


@each_kind
def test_a_perfect_fit_is_floored(chain, variance):
    X = np.c_[chain[:, 0], 2 * chain[:, 0], chain[:, 1], chain[:, 1] - chain[:, 0], np.ones(300)]
    allowed = ~np.eye(5, dtype=bool)
    allowed[4] = allowed[:, 4] = False
    problem = Problem(Rows(X), np.full(300, 1 / 300), allowed, np.zeros((5, 5), dtype=bool))
    found = rescore(problem, GolemBackbone(variance), Uniform())
    assert is_dag(found.W)
    assert np.isfinite(found.W).all()
    assert all(np.isfinite(record["objective"]) for record in found.history)


@each_kind
@pytest.mark.parametrize("weighting", [Uniform(), Exact(0.3)])
def test_forbidden_edges_stay_out_and_required_ones_stay_in(problem, variance, weighting):
    allowed, required = problem.allowed.copy(), problem.required.copy()
    allowed[1, 2] = allowed[4, 0] = False
    required[0, 4] = True
    constrained = Problem(problem.rows, problem.prior, allowed, required)
    W = rescore(constrained, GolemBackbone(variance), weighting).W
    assert W[1, 2] == W[4, 0] == 0
    assert W[0, 4] != 0
    assert is_dag(W)


def test_a_cap_on_the_penalty_is_a_status(problem, monkeypatch):
    monkeypatch.setattr(golem, "MOST_LAMBDA2", 10.0)
    found = rescore(problem, GolemBackbone(lambda2=0.01, h_tol=1e-300), Uniform())
    assert found.status is Status.PENALTY_CAP
    assert is_dag(found.W)
