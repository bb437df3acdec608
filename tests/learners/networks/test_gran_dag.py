"""GraN-DAG: its objective against independent references, and what a fit must do."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from rescore.algorithm import rescore
from rescore.graph.dag import is_dag
from rescore.learners.networks import gran_dag, mlp, outward
from rescore.learners.networks import gran_dag_training as training
from rescore.learners.networks.gran_dag import GranDAGBackbone
from rescore.moments import Rows
from rescore.protocols import Problem, Status
from rescore.weightings import Exact, Uniform

LEARNER = GranDAGBackbone(neighbours=None)


@pytest.fixture(scope="module")
def curved():
    """x0 → x1 → x2 and x0 → x3 by curves that no line explains; x4 alone."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 5))
    X[:, 1] = np.sin(2 * X[:, 0]) + 0.4 * X[:, 1]
    X[:, 2] = X[:, 1] ** 2 + 0.4 * X[:, 2]
    X[:, 3] = np.cos(2 * X[:, 0]) + 0.4 * X[:, 3]
    X.flags.writeable = False
    return X


@pytest.fixture(scope="module")
def plain(curved):
    """What the plain learner finds there."""
    return rescore(Problem.unconstrained(curved), LEARNER, Uniform())


@pytest.fixture(scope="module")
def small():
    """Three networks of 4 and 2 units in double precision, with rows, weights and a multiplier."""
    rng = np.random.default_rng(0)
    d, hidden, n = 3, (4, 2), 20
    x = training.initial(d, hidden, rng).astype(np.float64) + 0.1 * rng.normal(size=90)
    rows = training.Rows(rng.normal(size=(d, n)), rng.dirichlet(np.ones(n)))
    edges = 1.0 - np.eye(d)
    required = np.zeros((d, d), dtype=bool)
    return x, edges, rows, training.Penalty(0.7, 3.0, 0.0, required), hidden


def test_connectivity_is_the_mean_over_all_paths(small):
    x, edges, _, _, hidden = small
    (W1, _), (W2, _), (W3, _) = layers = mlp.masked(mlp.unflatten(x, 3, hidden), edges)
    with jax.enable_x64(True):
        A = np.array(jax.jit(training.connectivity)(layers))
    paths = list(itertools.product(range(4), range(2)))
    for i, j in np.ndindex(3, 3):
        products = [abs(W3[j, 0, b] * W2[j, b, a] * W1[j, a, i]) for a, b in paths]
        assert A[i, j] == pytest.approx(np.mean(products), rel=1e-12)


def test_constraint_is_the_trace_of_the_exponential_and_counts_required_edges_as_one(small):
    A = np.random.default_rng(1).uniform(size=(3, 3))
    required = np.zeros((3, 3), dtype=bool)
    with jax.enable_x64(True):
        h = float(training.constraint(jnp.asarray(A), required))
        assert h == pytest.approx(np.trace(expm(A)) - 3, rel=1e-12)
        required[0, 1], A[0, 1] = True, 1e-9
        h = float(training.constraint(jnp.asarray(A), required))
    A[0, 1] = 1.0
    assert h == pytest.approx(np.trace(expm(A)) - 3, rel=1e-12)


def test_the_objective_is_a_gaussian_likelihood_with_its_penalty(small):
    x, edges, rows, penalty, hidden = small
    layers = mlp.masked(mlp.unflatten(x, 3, hidden), edges)
    total = 0.0
    for i, j in np.ndindex(20, 3):
        z = rows.XT[:, i]
        for W, b in layers[:-1]:
            z = W[j] @ z + b[j]
            z = np.where(z > 0, z, 0.01 * z)
        mean = layers[-1][0][j, 0] @ z + layers[-1][1][j, 0]
        s = x[-3 + j]
        total += rows.w[i] * ((rows.XT[j, i] - mean) ** 2 / np.exp(s) + s) / 2
    with jax.enable_x64(True):
        lagrangian = jax.jit(training.augmented_lagrangian, static_argnames="hidden")
        value, A = lagrangian(x, edges, rows, penalty, hidden=hidden)
        h = float(training.constraint(A, penalty.required))
    assert float(value) == pytest.approx(total + 0.7 * h + 1.5 * h**2, rel=1e-12)


def test_gradient_against_finite_differences(small):
    x, edges, rows, penalty, hidden = small
    with jax.enable_x64(True):
        value = jax.jit(lambda x: training.augmented_lagrangian(x, edges, rows, penalty, hidden)[0])
        gradient = np.array(jax.jit(jax.grad(value))(x))
        for k in np.random.default_rng(2).choice(x.size, size=30, replace=False):
            e = np.eye(x.size)[k] * 1e-6
            difference = (float(value(x + e)) - float(value(x - e))) / 2e-6
            assert gradient[k] == pytest.approx(difference, abs=1e-7)


def test_a_repeated_row_is_a_row_of_that_weight_in_the_loss(small):
    x, edges, rows, _, hidden = small
    counts = np.random.default_rng(4).integers(1, 4, size=20)
    repeated = training.Rows(
        np.repeat(rows.XT, counts, axis=1), np.full(counts.sum(), 1 / counts.sum())
    )
    weighted = training.Rows(rows.XT, counts / counts.sum())
    loss = jax.jit(training.negative_log_likelihood, static_argnames="hidden")
    with jax.enable_x64(True):
        values = [float(loss(x, edges, part, hidden=hidden)) for part in (repeated, weighted)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_batches_cover_every_row_before_any_comes_twice():
    batches = training.batches(13, 4, 7, np.random.default_rng(0))
    assert batches.shape == (7, 4)
    assert len(set(batches[:3].ravel())) == len(set(batches[3:6].ravel())) == 12
    assert (batches[:3] != batches[3:6]).any()


def test_batches_of_weighted_rows_estimate_the_whole_gradient_without_bias(small):
    x, edges, rows, penalty, hidden = small
    with jax.enable_x64(True):
        slope = jax.jit(
            lambda part: jax.grad(training.augmented_lagrangian, has_aux=True)(
                x, edges, part, penalty, hidden
            )[0]
        )
        parts = [
            slope(training.Rows(rows.XT[:, k : k + 5], rows.w[k : k + 5] * 4))
            for k in range(0, 20, 5)
        ]
        np.testing.assert_allclose(np.mean(parts, axis=0), slope(rows), atol=1e-10)


def test_jacobian_against_finite_differences(small):
    x, edges, rows, _, hidden = small
    layers = mlp.masked(mlp.unflatten(x, 3, hidden), edges)
    with jax.enable_x64(True):
        J = np.array(jax.jit(training._mean_jacobian)(layers, rows))
        predict = jax.jit(training.predict)
        for i in range(3):
            e = np.zeros((3, 1))
            e[i] = 1e-6
            up, down = (np.array(predict(layers, rows.XT + s * e)) for s in (1, -1))
            np.testing.assert_allclose(J[i], np.abs(up - down) / 2e-6 @ rows.w, atol=1e-6)


def test_curves_are_found_and_the_graph_is_a_dag(curved, plain):
    found = plain
    assert found.status is Status.CONVERGED
    assert set(map(tuple, np.argwhere(found.W).tolist())) == {(0, 1), (1, 2), (0, 3)}
    assert found.history[-1]["h"] <= 1e-8
    assert {"objective", "h", "rho"} <= set(found.history[0])
    explained = 1 - found.losses.mean(axis=0) / curved.var(axis=0)
    assert (explained[1:4] > 0.5).all()
    assert abs(explained[[0, 4]]).max() < 0.05


def test_units_and_positions_do_not_matter_but_losses_are_in_the_units_of_the_data(curved, plain):
    scale = np.array([1.0, 64.0, 1 / 128, 4.0, 2.0])
    rows = np.random.default_rng(5).permutation(len(curved))
    scaled = rescore(Problem.unconstrained(curved[rows] * scale), LEARNER, Uniform())
    assert ((scaled.W != 0) == (plain.W != 0)).all()
    np.testing.assert_allclose(
        scaled.losses.mean(axis=0), plain.losses.mean(axis=0) * scale**2, rtol=0.05
    )


def test_the_seed_decides_and_equal_weights_are_the_plain_learner(curved, plain):
    problem, first = Problem.unconstrained(curved), plain
    again = rescore(problem, LEARNER, Exact(tau=1.0))
    other = rescore(problem, GranDAGBackbone(neighbours=None, random_state=1), Uniform())
    assert (first.W == again.W).all()
    assert (first.losses == again.losses).all()
    assert (first.W != other.W).any()
    assert ((first.W != 0) == (other.W != 0)).all()


def test_a_row_repeated_k_times_equals_weight_k(curved):
    counts = np.random.default_rng(0).integers(1, 4, size=300)
    alike = Problem.unconstrained(curved)
    prior = counts / counts.sum()
    weighted = Problem(alike.rows, prior, alike.allowed, alike.required, count=counts.sum())
    found = rescore(weighted, LEARNER, Uniform())
    repeated = rescore(Problem.unconstrained(np.repeat(curved, counts, axis=0)), LEARNER, Uniform())
    assert ((found.W != 0) == (repeated.W != 0)).all()
    np.testing.assert_allclose(found.W, repeated.W, atol=1e-3)


@pytest.mark.parametrize("weighting", [Uniform(), Exact(0.3)])
@pytest.mark.parametrize("prune", [None, "cam", "joint"])
def test_forbidden_edges_stay_out_and_required_ones_stay_in(curved, weighting, prune):
    problem = Problem.unconstrained(curved)
    allowed, required = problem.allowed.copy(), problem.required.copy()
    allowed[0, 1] = allowed[2, 3] = False
    required[4, 0] = required[2, 1] = True
    constrained = Problem(problem.rows, problem.prior, allowed, required)
    found = rescore(constrained, GranDAGBackbone(neighbours=None, prune=prune), weighting)
    assert (found.W[~allowed] == 0).all()
    assert (found.W[required] != 0).all()
    assert found.W[1, 2] == 0  # it would close a cycle with a required edge
    assert is_dag(found.W)


def test_joint_pruning_keeps_parents_that_only_act_together_and_cam_does_not():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 4))
    X[:, 3] = X[:, 0] * X[:, 1] + 0.2 * X[:, 3]
    problem = Problem.unconstrained(X)
    graph = np.zeros((4, 4), dtype=bool)
    graph[:3, 3] = True
    kept = {
        prune: gran_dag._pruned(problem, problem.prior, graph, GranDAGBackbone(prune=prune))[:, 3]
        for prune in ("joint", "cam", None)
    }
    assert kept["joint"].tolist() == [True, True, False, False]
    assert not kept["cam"][:2].all()
    assert kept[None].tolist() == [True, True, True, False]


def test_neighbours_restrict_the_candidates_but_not_the_required_edges(curved):
    problem = Problem.unconstrained(curved)
    required = problem.required.copy()
    required[4, 0] = True
    constrained = Problem(problem.rows, problem.prior, problem.allowed, required)
    strict = GranDAGBackbone(neighbours=2.0)
    path = strict.init(constrained).params
    assert path.edges.sum() < LEARNER.init(constrained).params.edges.sum()
    W = rescore(constrained, strict, Uniform()).W
    assert W[4, 0] != 0
    assert W[0, 1] != 0
    assert (W[~outward(path.inputs, path.edges > 0)] == 0).all()


def test_a_cap_on_the_penalty_is_a_status_and_still_a_dag(curved, monkeypatch):
    monkeypatch.setattr(gran_dag, "MOST_MU", 10.0)
    found = rescore(Problem.unconstrained(curved), GranDAGBackbone(neighbours=None), Uniform())
    assert found.status is Status.PENALTY_CAP
    assert is_dag(found.W)


def test_constant_and_copied_columns_are_no_trouble(curved):
    X = np.c_[curved[:, 0], curved[:, 0], curved[:, 1], np.ones(300), curved[:, 4]]
    allowed = ~np.eye(5, dtype=bool)
    allowed[3] = allowed[:, 3] = False
    problem = Problem(Rows(X), np.full(300, 1 / 300), allowed, np.zeros((5, 5), dtype=bool))
    found = rescore(problem, LEARNER, Uniform(), max_steps=30)
    assert is_dag(found.W)
    assert np.isfinite(found.losses).all()
    assert all(np.isfinite(record["objective"]) for record in found.history)


@pytest.mark.parametrize(
    "parameter",
    [
        {"prune": "rough"},
        {"cutoff": 2.0},
        {"neighbours": -1},
        {"learning_rate": 0},
        {"hidden": (0,)},
        {"clamp": -1.0},
    ],
)
def test_bad_parameters_are_refused(parameter):
    with pytest.raises(ValueError, match="must be"):
        GranDAGBackbone(**parameter)
