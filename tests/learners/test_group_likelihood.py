import jax
import numpy as np
import pytest

from rescore.graph.dag import is_dag
from rescore.learners import group_likelihood
from rescore.learners.dagma import DagmaBackbone
from rescore.learners.golem import GolemBackbone, likelihood
from rescore.learners.group_likelihood import SMALLEST, groups_of, into_domain, score
from rescore.learners.notears import NotearsBackbone, path_objective
from rescore.learners.polish import moved, order_by_own_variance
from rescore.learners.straight_lines import least_squares, noise_variance, regression_moments
from rescore.moments import Cells, simplest
from rescore.protocols import Problem, Status
from rescore.solvers.lasso import column
from rescore.solvers.ordered_regression import least_variance_order

BACKBONES = [
    NotearsBackbone(),
    DagmaBackbone(),
    GolemBackbone(),
    GolemBackbone(variance="unequal"),
]


@pytest.fixture
def problem(chain):
    return Problem.unconstrained(chain)


@pytest.fixture
def cells(problem):
    """Soft groups; one of them says nothing of two variables."""
    rng = np.random.default_rng(0)
    membership = rng.dirichlet(np.ones(3), size=300) / 300
    precision = rng.uniform(0.5, 2.0, size=(3, 5))
    precision[2, :2] = 0.0
    return Cells(membership, precision * 5 / (membership.sum(axis=0) @ precision).sum())


def centred_by_group(X, membership):
    return [X - m @ X / m.sum() for m in membership.T]


def by_rows(X, cells, W):
    """The negative log-likelihood of the groups, row by row."""
    M, speaks = cells.membership, cells.precision > 0
    squares = [np.square(Z - Z @ W) for Z in centred_by_group(X, M)]
    each = np.array([m @ r / m.sum() for m, r in zip(M.T, squares, strict=True)])  # (K, d)
    mass = M.sum(axis=0)
    each = (1 - SMALLEST) * each + SMALLEST * mass @ each
    value = 0.0
    for k in range(len(mass)):
        value += mass[k] * np.log(each[k, speaks[k]]).sum() / 2
        value -= mass[k] * np.log(np.linalg.det(np.eye(5) - W * speaks[k]))
    return value


def numeric_gradient(f, W):
    out = np.empty_like(W)
    for k in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[k] = 1e-5
        out[k] = (f(W + step) - f(W - step)) / 2e-5
    return out


def test_the_likelihood_of_groups_equals_the_rows_and_its_gradient_finite_differences(
    problem, cells
):
    X, W = problem.rows.matrix(), np.random.default_rng(1).normal(size=(5, 5)) * 0.1
    with jax.enable_x64(True):
        value, gradient = score(groups_of(problem, cells), W)
    assert float(value) == pytest.approx(by_rows(X, cells, W), abs=1e-10)
    np.testing.assert_allclose(
        gradient, numeric_gradient(lambda W: by_rows(X, cells, W), W), atol=1e-6
    )


@pytest.mark.parametrize("kind", ["cells", "groups"])
def test_least_squares_of_cells_equal_the_rows_and_their_gradient_finite_differences(
    problem, cells, kind
):
    """Of an array every variable has its own mean, of groups each group."""
    X, W = problem.rows.matrix(), np.random.default_rng(1).normal(size=(5, 5)) * 0.3

    def direct(W):
        if kind == "cells":
            w = np.asarray(cells)
            centred = [X - w[:, j] @ X / w[:, j].sum() for j in range(5)]
            return sum(w[:, j] @ (Z - Z @ W)[:, j] ** 2 for j, Z in enumerate(centred)) / 2
        groups = zip(centred_by_group(X, cells.membership), cells.membership.T, strict=True)
        squares = [m @ np.square(Z - Z @ W) for Z, m in groups]
        return np.sum(cells.precision * squares) / 2

    w = np.asarray(cells) if kind == "cells" else cells
    with jax.enable_x64(True):
        value, gradient = least_squares(problem.rows.cell_moments(w).covariance, W)
    assert float(value) == pytest.approx(direct(W), abs=1e-10)
    np.testing.assert_allclose(gradient, numeric_gradient(direct, W), atol=1e-6)


@pytest.mark.parametrize("equal", [True, False])
def test_the_likelihood_of_cells_equals_the_rows_and_its_gradient_finite_differences(
    problem, cells, equal
):
    X, w = problem.rows.matrix(), np.asarray(cells)
    W = np.random.default_rng(1).normal(size=(5, 5)) * 0.2

    def direct(W):
        centred = [X - w[:, j] @ X / w[:, j].sum() for j in range(5)]
        left = np.array([w[:, j] @ (Z - Z @ W)[:, j] ** 2 for j, Z in enumerate(centred)])
        logs = 5 * np.log(left.sum()) if equal else np.log(left).sum()
        return logs / 2 - np.log(np.linalg.det(np.eye(5) - W))

    with jax.enable_x64(True):
        value, gradient = likelihood(problem.rows.cell_moments(w).covariance, W, equal)
    assert float(value) == pytest.approx(direct(W), abs=1e-10)
    np.testing.assert_allclose(gradient, numeric_gradient(direct, W), atol=1e-6)


def test_one_group_is_the_likelihood_of_unequal_variances(problem):
    W = np.random.default_rng(1).normal(size=(5, 5)) * 0.2
    one = Cells(problem.prior[:, None], np.array([[1.0, 2.0, 0.5, 1.0, 0.5]]))
    with jax.enable_x64(True):
        of_groups = score(groups_of(problem, one), W)
        of_rows = likelihood(problem.moments(problem.prior).covariance, W, equal=False)
    for found, expected in zip(of_groups, of_rows, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_group_that_says_nothing_of_any_variable_is_set_aside(problem, cells):
    rest = Cells(cells.membership[:, 1:], cells.precision[1:])
    aside = Cells(cells.membership, np.vstack([np.zeros(5), cells.precision[1:]]))
    for found, expected in zip(groups_of(problem, aside), groups_of(problem, rest), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_columns_on_a_dag_are_solved_exactly(problem, cells):
    """KKT: the slope of the likelihood on an edge equals the penalty."""
    groups = groups_of(problem, cells)
    W = np.triu(np.ones((5, 5)), 1)
    found = group_likelihood.on_dag(groups, W, np.full((5, 5), 0.05))
    with jax.enable_x64(True):
        value, gradient = score(groups, found.W)
    edges = found.W != 0
    np.testing.assert_allclose(
        np.asarray(gradient)[edges], -0.05 * np.sign(found.W[edges]), atol=1e-6
    )
    assert found.objective == pytest.approx(float(value) + 0.05 * np.abs(found.W).sum(), abs=1e-9)


def test_hostile_starts_are_brought_to_where_all_determinants_are_positive(problem, cells):
    groups = groups_of(problem, cells)
    for seed in range(5):
        W = np.random.default_rng(seed).normal(size=(5, 5)) * 10.0
        with jax.enable_x64(True):
            assert np.isfinite(score(groups, into_domain(W, groups))[0])


def test_the_order_of_least_own_variance_is_the_usual_one_where_all_covariances_are_alike(problem):
    S = problem.moments(problem.prior).covariance
    allowed, required = problem.allowed.copy(), problem.required.copy()
    allowed[0, 1] = allowed[3] = False
    required[4, 2] = True
    for p in (problem, Problem(problem.rows, problem.prior, allowed, required)):
        usual = least_variance_order(S[None], p.allowed, p.required)[0].tolist()
        assert order_by_own_variance(p, np.repeat(S[None], 5, axis=0)) == usual


def test_moves_keep_required_edges_and_never_raise_the_objective(problem):
    S, penalty = problem.moments(problem.prior).covariance, np.full((5, 5), 0.1)
    required = problem.required.copy()
    required[4, 0] = True
    constrained = Problem(problem.rows, problem.prior, problem.allowed & ~required.T, required)

    def regression(j, parents, start):
        return column(S, penalty, j, parents, start)

    against = np.tril(np.ones((5, 5)), -1) * 0.1
    start = sum(
        regression(j, np.flatnonzero(against[:, j]), against[:, j]).objective for j in range(5)
    )
    free, held = (moved(p, S, against, regression) for p in (problem, constrained))
    assert free.objective <= held.objective <= start
    assert is_dag(held.W)
    assert held.W[0, 4] == 0


def test_precisions_and_units_do_not_change_the_graph_of_groups(problem, cells, chain):
    """The likelihood finds the precisions itself, and its penalty is in units of the spread."""

    def found(X, precision):
        p = Problem.unconstrained(X)
        cells_ = Cells(cells.membership, precision)
        return path_objective(p, cells_, 0.1, 1.0, True).close(np.zeros((5, 5))).W

    scale = np.array([1.0, 10.0, 0.1, 3.0, 100.0])
    speaks = (cells.precision > 0).astype(float)
    W = found(chain, cells.precision)
    np.testing.assert_array_equal(found(chain, speaks), W)
    np.testing.assert_allclose(found(chain * scale, speaks), W * scale / scale[:, None], atol=1e-5)


def test_of_cells_the_noise_is_one(problem):
    """Precisions of the chain in other units undo the units."""
    scale = np.array([1.0, 2.0, 0.5, 4.0, 0.25])
    other = Problem.unconstrained(problem.rows.matrix() * scale)
    w = np.outer(problem.prior, 1 / scale**2)
    S = regression_moments(other, w * 5 / w.sum()).covariance / noise_variance(other)
    S0 = problem.moments(problem.prior).covariance / noise_variance(problem)
    for j in range(5):
        np.testing.assert_allclose(S[j] * scale[j] ** 2, S0 * np.outer(scale, scale), rtol=1e-9)


@pytest.mark.parametrize("backbone", BACKBONES, ids=repr)
def test_cells_of_both_shapes_find_the_chain_on_standardised_columns(backbone):
    """Two groups of rows whose noise differs, told with the precisions of that noise."""
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat([0, 1], [150, 150]))
    noise = np.array([[1.0, 0.3, 1.0, 0.3, 1.0], [0.3, 1.0, 0.3, 1.0, 0.3]])
    X = rng.normal(size=(300, 5)) * noise[group]
    for j in range(1, 5):
        X[:, j] += 1.5 * X[:, j - 1]
    unit = 1 / X.std(axis=0)
    problem = Problem.unconstrained(X * unit)
    precision = 1 / (noise * unit) ** 2
    cells = Cells(np.eye(2)[group] / 300, precision / precision.sum() * 10)
    for w in (cells, np.asarray(cells)):
        state = backbone.init(problem)
        while state.status is Status.RUNNING:
            state = backbone.step(problem, w, state)
        assert state.status is Status.CONVERGED
        W = np.where(np.abs(backbone.adjacency(state)) > 0.3, 1, 0)
        assert set(map(tuple, np.argwhere(W))) == {(0, 1), (1, 2), (2, 3), (3, 4)}


def test_simplest_reduces_what_counts_rows_alike_and_nothing_else():
    w = np.random.default_rng(0).dirichlet(np.ones(6))
    alike = np.repeat(w[:, None], 3, axis=1)
    one = Cells(w[:, None], np.ones((1, 3)))
    for each in (w, alike, one):
        np.testing.assert_array_equal(simplest(each), w)
    other = alike.copy()
    other[0, 1] *= 1 + 1e-15
    two = Cells(np.repeat(w[:, None] / 2, 2, axis=1), np.ones((2, 3)))
    for each in (other, two):
        assert simplest(each) is each
