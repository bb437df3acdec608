from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import rescore as rs
from rescore.algorithm import rescore
from rescore.exchange.saving import load, save
from rescore.graph.dag import is_dag
from rescore.learners import dicd
from rescore.learners.dicd import DICDBackbone, on_edges
from rescore.learners.networks import prepare
from rescore.learners.networks.dicd_mlp import DICDMLPBackbone, group_rows, invariant_errors
from rescore.learners.networks.notears_mlp_paper import PaperMLPBackbone
from rescore.learners.notears import NotearsBackbone
from rescore.moments import Rows
from rescore.protocols import Problem, Status
from rescore.weightings import Exact, InversePropensity, Uniform

GROUPS = np.repeat([0, 1, 2], [200, 70, 30])


@pytest.fixture(scope="module")
def table():
    """x0 → x1 → x2 → x3 → x4 with noise whose scales differ from group to group, and means too."""
    rng = np.random.default_rng(3)
    scales = rng.uniform(0.2, 1.5, size=(3, 5))
    X = rng.normal(size=(300, 5)) * scales[GROUPS] + [0, 1, -1, 0, 5]
    for j in range(1, 5):
        X[:, j] += 1.5 * X[:, j - 1]
    return X


@pytest.fixture(scope="module")
def problem(table):
    return replace(Problem.unconstrained(table), groups=GROUPS)


def one_group(problem):
    return replace(problem, groups=np.zeros(300, dtype=np.intp))


def by_rows(X, w, groups, W, strength):
    """Loss and penalty from their definitions, the slope by differences of the stretched loss."""
    K = groups.max() + 1
    mean = sum(np.average(X[groups == e], axis=0, weights=w[groups == e]) for e in range(K)) / K
    total = 0.0
    for e in range(K):
        Z, v = X[groups == e] - mean, w[groups == e] / w[groups == e].sum()

        def loss(s, Z=Z, v=v):
            return v @ (Z - s * (Z @ W)) ** 2 / 2  # (d,)

        slope = (loss(1 + 1e-4) - loss(1 - 1e-4)) / 2e-4
        total += (loss(1.0).sum() + strength * (slope**2 / (v @ Z**2)).sum()) / K
    return total


def penalty_term(problem, W):
    """The price of the slopes at γ = 1."""
    _, groups = dicd.group_moments(problem, problem.prior, 1.0, 1.0)
    return float((groups.cost * dicd.slopes(groups.each, W) ** 2).sum())


def test_the_score_equals_the_rows_and_its_gradient_finite_differences(problem, table):
    rng = np.random.default_rng(0)
    w = rng.dirichlet(np.ones(300))
    W = rng.normal(size=(5, 5)) * problem.allowed * 0.4
    _, groups = dicd.group_moments(problem, w, 3.0, unit=1.0)
    numeric = np.empty_like(W)
    with jax.enable_x64(True):
        value, gradient = dicd.score(groups, jnp.asarray(W))
        for k in np.ndindex(W.shape):
            step = np.zeros_like(W)
            step[k] = 1e-5
            up, down = (float(dicd.score(groups, W + s)[0]) for s in (step, -step))
            numeric[k] = (up - down) / 2e-5
    assert float(value) == pytest.approx(by_rows(table, w, GROUPS, W, 3.0), rel=1e-7)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("gamma", [0.0, 1.0, 30.0])
def test_a_column_is_where_another_optimiser_ends_from_the_same_start(problem, gamma):
    _, groups = dicd.group_moments(problem, problem.prior, gamma, 1.0)
    start, penalty = np.array([0.3, 0.2, 0.0, 0.0, 0.1]), np.full((5, 5), 0.05)
    found = dicd.column(groups, penalty, 2, start)

    def value(x):  # in positive and negative parts, so that the penalty is smooth
        b = np.zeros(5)
        b[[0, 1, 4]] = x[:3] - x[3:]
        return dicd._value(groups, penalty * 0, 2, b) + 0.05 * x.sum()

    first = np.r_[np.maximum(start[[0, 1, 4]], 0), np.zeros(3)]
    other = minimize(value, first, bounds=[(0, None)] * 6, options={"ftol": 1e-15, "gtol": 1e-10})
    assert found.objective <= other.fun + 1e-7
    assert found.objective == pytest.approx(dicd._value(groups, penalty, 2, found.coefficients))
    assert (found.coefficients[[2, 3]] == 0).all()
    assert found.optimality < 1e-5


def test_the_last_step_solves_the_whole_objective_on_the_edges_found(problem, table):
    found = rescore(problem, DICDBackbone(2.0, NotearsBackbone(threshold=0.0)), Uniform())
    assert found.status is Status.CONVERGED
    _, groups = dicd.group_moments(problem, problem.prior, 2.0, 1.0)
    with jax.enable_x64(True):
        slope = np.asarray(dicd.score(groups, jnp.asarray(found.W))[1])
    edges = found.W != 0
    np.testing.assert_allclose(slope[edges], -0.1 * np.sign(found.W[edges]), atol=1e-5)
    value = by_rows(table, problem.prior, GROUPS, found.W, 2.0) + 0.1 * np.abs(found.W).sum()
    assert found.history[-1]["objective"] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("polish", [True, False])
def test_one_group_without_a_price_is_notears(problem, polish):
    notears = NotearsBackbone(polish=polish)
    plain = rescore(problem, notears, Uniform())
    found = rescore(one_group(problem), DICDBackbone(0.0, notears), Uniform())
    np.testing.assert_allclose(found.W, plain.W, atol=1e-6)
    assert len(found.history) == len(plain.history)


def test_without_a_price_it_is_notears_with_inverse_propensity_weights(problem):
    plain = rescore(problem, NotearsBackbone(), InversePropensity(), warmup=0)
    found = rescore(problem, DICDBackbone(0.0), Uniform())
    np.testing.assert_allclose(found.W, plain.W, atol=1e-6)


@pytest.mark.parametrize("seed", range(100, 103))
def test_a_larger_price_buys_smaller_slopes_and_plain_least_squares_has_larger_ones(seed):
    data = rs.simulate(
        nodes=5, degree=1, samples=300, groups=(0.8, 0.2), noise_scale=0.1, random_state=seed
    )
    codes = (data.groups == "g1").to_numpy().astype(np.intp)
    problem = replace(Problem.unconstrained(data.X.to_numpy()), groups=codes)
    plain = rescore(problem, NotearsBackbone(threshold=0.0), Uniform()).W
    _, groups = dicd.group_moments(problem, problem.prior, 0.0, 1.0)
    terms = []
    for gamma in (0.0, 1.0, 30.0):  # on the same edges, so that nothing but the price differs
        _, groups = dicd.group_moments(problem, problem.prior, gamma, 1.0)
        fitted = on_edges(groups, plain, np.full((5, 5), 0.1))
        terms.append(penalty_term(problem, fitted.W))
    assert terms[0] > terms[1] > terms[2]
    learned = rescore(problem, DICDBackbone(1.0, NotearsBackbone(threshold=0.0)), Uniform()).W
    assert penalty_term(problem, learned) < penalty_term(problem, plain)


def test_units_change_neither_convergence_nor_the_graph(problem, table):
    plain = rescore(problem, DICDBackbone(), Uniform())
    scaled = replace(problem, rows=Rows(table * 1e3))
    found = rescore(scaled, DICDBackbone(notears=NotearsBackbone(lambda1=0.1e6)), Uniform())
    np.testing.assert_allclose(found.W, plain.W, atol=1e-6)
    assert found.status is Status.CONVERGED


@pytest.mark.parametrize("learner", [rs.DICD(), rs.DICDMLP(hidden=(4,))], ids=["linear", "mlp"])
def test_only_who_is_with_whom_and_how_much_it_weighs_matters(learner, table):
    frame = pd.DataFrame(table, columns=list("abcde"))
    counts = np.random.default_rng(1).integers(1, 3, size=300)
    expected = learner.fit(frame, sample_weight=counts, groups=GROUPS).adjacency_matrix_
    order = np.repeat(np.arange(300), counts)
    np.random.default_rng(0).shuffle(order)
    named = np.array(["zeta", "alpha", "mu"])[GROUPS]
    repeated = learner.fit(frame.iloc[order][list("ecabd")], groups=named[order])
    found = repeated.adjacency_matrix_.loc[list("abcde"), list("abcde")]
    np.testing.assert_allclose(found, expected, atol=1e-6 if learner.linear else 0.02)
    assert is_dag(expected.to_numpy())


@pytest.mark.parametrize("kind", [rs.DICD, rs.DICDMLP])
def test_weights_move_inside_rescore_and_knowledge_is_honoured(kind, table):
    inner = kind(forbidden=[("x1", "x2"), ("x4", "x0")], required=[("x0", "x4")])
    if kind is rs.DICDMLP:
        inner.set_params(hidden=(4,))
    model = rs.ReScore(inner, tau=0.5).fit(table, groups=GROUPS)
    W = model.adjacency_matrix_.to_numpy()
    assert is_dag(W)
    assert W[1, 2] == 0
    assert W[0, 4] != 0
    assert model.sample_weight_.nunique() > 1
    balanced = rs.ReScore(inner).fit(table, groups=GROUPS)
    assert is_dag(balanced.adjacency_matrix_.to_numpy())
    with pytest.raises(ValueError, match="needs the group of each row"):
        inner.fit(table)


@pytest.mark.parametrize("bad", [-1.0, "much", None, np.nan])
@pytest.mark.parametrize("kind", [rs.DICD, rs.DICDMLP])
def test_a_price_is_a_number_of_at_least_zero(kind, bad, table):
    with pytest.raises((TypeError, ValueError), match="invariance"):
        kind(invariance=bad).fit(table, groups=GROUPS)


def test_a_backbone_without_groups_says_so(problem):
    for backbone in (DICDBackbone(), DICDMLPBackbone()):
        with pytest.raises(ValueError, match="needs the groups"):
            rescore(replace(problem, groups=None), backbone, Uniform())


def test_a_variable_that_is_constant_in_one_group_costs_nothing_there(problem, table):
    X = table - table.mean(axis=0)
    X[GROUPS == 1] = 0.0
    hard = replace(problem, rows=Rows(X))
    rows = group_rows(prepare(hard, None), hard.prior, GROUPS, 1.0)
    assert np.isfinite(rows.w.cost).all()
    found = rescore(hard, DICDBackbone(), Exact(0.5))
    assert is_dag(found.W)
    assert np.isfinite(found.W).all()
    assert np.isfinite(found.history[-1]["objective"])


def test_the_networks_see_the_same_objective(problem):
    """Predictions of a straight line: the linear score about the prior mean, from rows."""
    w = np.random.default_rng(0).dirichlet(np.ones(300))
    inputs = prepare(problem, None)
    rows = group_rows(inputs, w, GROUPS, 3.0)
    W = np.random.default_rng(1).normal(size=(5, 5)) * 0.4
    F = W.T @ inputs.XT
    total = 0.0
    for e in range(3):
        own = w * (e == GROUPS)
        v = np.bincount(inputs.distinct, own) / own.sum()
        R = F - inputs.targets
        slope, variance = (R * F) @ v, inputs.targets**2 @ v
        total += ((R**2 @ v) / 2 + 3.0 * slope**2 / variance).sum() / 3
    assert float(jnp.sum(invariant_errors(jnp.asarray(F), rows))) / 2 == pytest.approx(
        total, rel=1e-5
    )


def test_networks_of_one_group_without_a_price_are_notears_mlp(problem):
    networks = PaperMLPBackbone(hidden=(4,))
    plain = rescore(problem, networks, Uniform())
    found = rescore(one_group(problem), DICDMLPBackbone(0.0, networks), Uniform())
    assert ((found.W != 0) == (plain.W != 0)).all()
    np.testing.assert_allclose(found.W, plain.W, atol=0.02)


def test_a_fit_is_saved_and_loaded(table, tmp_path):
    model = rs.DICD(invariance=0.5, forbidden=[("x4", "x0")]).fit(table, groups=GROUPS)
    save(model, tmp_path)
    again = load(tmp_path)
    assert again.get_params()["invariance"] == 0.5
    pd.testing.assert_frame_equal(again.adjacency_matrix_, model.adjacency_matrix_)
