import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from rescore.algorithm import rescore
from rescore.graph.dag import is_dag
from rescore.learners.networks import mlp, notears_mlp_paper, prepare, weighted
from rescore.learners.networks.notears_mlp_paper import PaperMLPBackbone
from rescore.protocols import Problem, Status
from rescore.weightings import Uniform


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    X[:, 1] += 3 * np.sin(X[:, 0])
    X[:, 2] += 2 * np.tanh(X[:, 1])
    return Problem.unconstrained(X)


def objective(x, X, w, backbone):
    """The published objective without its constraint, variable by variable."""
    (W1, b1), (W2, b2) = mlp.unflatten(x, 3, backbone.hidden)
    value = backbone.lambda1 * np.abs(W1).sum() + backbone.lambda2 / 2 * (
        (W1**2).sum() + (W2**2).sum()
    )
    for j in range(3):
        H = 1 / (1 + np.exp(-(X @ W1[j].T + b1[j])))
        value += w @ (H @ W2[j, 0] + b2[j] - X[:, j]) ** 2 / 2
    return value


def test_it_minimises_the_published_objective(problem):
    backbone = PaperMLPBackbone(hidden=(4,))
    state = backbone.step(problem, problem.prior, backbone.init(problem))
    inputs, x = state.params.inputs, state.params.x
    rows = weighted(inputs, problem.prior)
    value = objective(x, rows.XT.T.astype(float), rows.w, backbone)
    A = mlp.squared_norms(mlp.unflatten(x, 3, (4,)))
    assert state.trace["objective"] == pytest.approx(value, rel=1e-5)
    assert state.trace["h"] == pytest.approx(np.trace(expm(A)) - 3, abs=1e-9)
    assert np.diag(A).max() == 0
    start = backbone.init(problem).params.x
    with jax.enable_x64(True):
        again = notears_mlp_paper._minimise(
            jnp.asarray(x), rows, ~np.eye(3, dtype=bool), np.full((3, 3), 0.01),
            np.array([0.01, 0.0, state.params.rho]), hidden=(4,), activation="sigmoid",
        )  # fmt: skip
    assert float(again.objective) == pytest.approx(value, rel=0.02)
    assert value < objective(start, rows.XT.T.astype(float), rows.w, backbone)


@pytest.mark.parametrize(("hidden", "activation"), [((4,), "sigmoid"), ((6, 6), "relu")])
def test_it_finds_dependence_and_stops_converged(problem, hidden, activation):
    found = rescore(problem, PaperMLPBackbone(hidden, activation, lambda1=0.002), Uniform())
    assert found.status is Status.CONVERGED
    assert is_dag(found.W)
    pairs = (found.W + found.W.T) > 0
    assert pairs[0, 1]
    assert pairs[1, 2]
    assert found.losses.sum() < 0.8 * 300 * problem.rows.matrix().var(axis=0).sum()


def test_masks_are_honoured(problem):
    allowed, required = problem.allowed.copy(), problem.required.copy()
    allowed[0, 1] = False
    required[2, 0] = True
    constrained = Problem(problem.rows, problem.prior, allowed, required)
    found = rescore(constrained, PaperMLPBackbone((4,)), Uniform())
    assert found.W[0, 1] == found.W[0, 2] == 0
    assert found.W[2, 0] != 0


def test_a_large_penalty_gives_exact_zeros(problem):
    found = rescore(problem, PaperMLPBackbone((4,), lambda1=5.0, threshold=0.0), Uniform())
    assert not found.W.any()


def test_inputs_keep_their_units(problem):
    np.testing.assert_allclose(
        np.sort(prepare(problem, None).XT.std(axis=1)), np.sort(problem.rows.matrix().std(axis=0)),
        rtol=1e-5,
    )  # fmt: skip
