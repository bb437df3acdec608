"""Weights of cells in networks: every variable counts the rows in its own way, at every stage.

Rows, columns and units as in the conformance suite, which compiles the same programs.
"""

import numpy as np
import pytest

import rescore as rs
from rescore.algorithm import rescore
from rescore.learners.networks import Weighted, effective_rows, gran_dag, mlp, prepare, weighted
from rescore.learners.networks import gran_dag_training as training
from rescore.learners.networks.gran_dag import GranDAGBackbone
from rescore.learners.networks.notears_mlp import NotearsMLPBackbone
from rescore.learners.networks.selection import explained, substantial
from rescore.moments import Cells
from rescore.protocols import Problem
from rescore.pruning import neighbours
from rescore.pruning.cam import significant
from rescore.weightings import Uniform

KIND = {"hidden": (3,), "activation": "sigmoid"}


@pytest.fixture(scope="module")
def noise():
    return np.random.default_rng(1).normal(size=(300, 5))


class Given:
    """Weights that stay as they are given."""

    tau = 1e-6

    def __init__(self, w):
        self.w = w

    def init(self, n, d):
        return None

    def step(self, problem, losses, state):
        return self.w, state

    def explain(self, state):
        return {}


def damaged(noise):
    """Unrelated variables, but for a quarter of the rows where x0 makes x4; and cells without."""
    X, w = noise.copy(), np.full(noise.shape, 1 / len(noise))
    X[:75, 4] += 5 * X[:75, 0]
    w[:75, 4] = 0.0
    return X, w * 5 / w.sum()


def as_groups(w):
    """The same as two groups of rows, the first of which says nothing about x4."""
    first = np.arange(len(w)) < 75
    return Cells(np.column_stack([first, ~first]) / len(w), np.array([[1.0, 1, 1, 1, 0], [1] * 5]))


@pytest.mark.parametrize("shape", [np.asarray, as_groups], ids=["cells", "groups"])
@pytest.mark.parametrize(
    "learner",
    [
        NotearsMLPBackbone(hidden=(4,)),
        GranDAGBackbone(neighbours=None, hidden=(4,), prune="cam"),
    ],
    ids=["notears-mlp", "gran-dag"],
)
def test_cells_without_weight_say_nothing_about_their_variable(noise, learner, shape):
    X, w = damaged(noise)
    problem = Problem.unconstrained(X)
    related = rescore(problem, learner, Uniform()).W
    assert related[0, 4] or related[4, 0]
    # x4 may still seem a cause of x0, whose own cells count in full: the other way must be closed.
    problem.allowed[4] = False
    assert not rescore(problem, learner, Given(shape(w)), warmup=0).W[:, 4].any()


def test_every_network_has_the_score_and_the_shares_of_its_own_rows(noise):
    rng = np.random.default_rng(0)
    inputs, w = prepare(Problem.unconstrained(noise), 1.0), rng.exponential(size=noise.shape)
    x = mlp.initial(5, (3,), rng)
    cells = weighted(inputs, w)
    D, left = explained(x, cells, **KIND)
    R = np.square(mlp.residuals(x, cells, np.ones((5, 5)), **KIND))
    for k, column in enumerate(inputs.columns):
        alone = weighted(inputs, w[:, column] / w[:, column].sum())
        share, noise_left = explained(x, alone, **KIND)
        np.testing.assert_allclose(D[:, k], share[:, k], rtol=2e-3, atol=1e-5)
        np.testing.assert_allclose(left[k], noise_left[k], rtol=1e-4)
        total = w[:, column].sum() * (R @ alone.w)[k]
        np.testing.assert_allclose(mlp.over_rows(R, cells.w)[k], total, rtol=1e-4)


def test_inputs_stand_in_for_each_other_as_each_network_counts_the_rows():
    rng = np.random.default_rng(2)
    XT, w = rng.normal(size=(4, 40)).astype(np.float32), rng.exponential(size=(4, 40))
    w /= w.sum(axis=1, keepdims=True)
    edges, x = np.triu(np.ones((4, 4), dtype=bool), 1), mlp.initial(4, (3,), rng)
    D, least = rng.random((4, 4)), 0.2
    Y = mlp.predict(mlp.masked(mlp.unflatten(x, 4, (3,)), edges), XT, "sigmoid")
    kept = substantial(x, Weighted(XT, Y, np.float32(w)), edges, D, least, **KIND)
    assert kept.any()
    assert (kept != edges).any()
    for j in range(4):
        alone = Weighted(XT, Y, np.float32(w[j]))
        assert (kept[:, j] == substantial(x, alone, edges, D, least, **KIND)[:, j]).all()


def test_rows_are_counted_for_every_variable_and_price_its_network(noise):
    problem = Problem.unconstrained(noise)
    w = np.full(noise.shape, 1.0)
    w[:225, 2] = 0
    np.testing.assert_allclose(effective_rows(problem, w), [300, 300, 75, 300, 300])
    rows = effective_rows(problem, as_groups(w))
    np.testing.assert_allclose(rows, [300, 300, 300, 300, 225])
    learner = NotearsMLPBackbone()
    start = learner.init(problem).params
    prices = learner._penalties(problem, w, start, np.zeros((5, 5), dtype=bool))
    where, other = (list(start.inputs.columns).index(j) for j in (2, 3))
    assert prices.edges[0, where] == pytest.approx(4 * prices.edges[0, other])
    assert prices.weights[where] == pytest.approx(4 * prices.weights[other])


def test_the_size_of_cells_leaves_the_networks_cost_where_it_was(noise):
    problem, learner = Problem.unconstrained(noise), NotearsMLPBackbone()
    start = learner.init(problem).params
    w = np.random.default_rng(3).exponential(size=noise.shape)
    for size in (1.0, 1e6):
        rows = learner._weighted(problem, size * w, start)
        R = np.square(learner._residuals(start))
        usual = R @ weighted(start.inputs, problem.prior).w
        np.testing.assert_allclose((R * rows.w).sum(), usual.sum(), rtol=1e-3)


def test_gran_dag_scores_each_variable_by_its_own_rows(noise):
    XT = noise.T.astype(np.float32)
    w = np.random.default_rng(4).dirichlet(np.ones(300), size=5).astype(np.float32)
    x, edges = training.initial(5, (3,), np.random.default_rng(5)), 1 - np.eye(5, dtype=np.float32)
    together = training.negative_log_likelihood(x, edges, training.Rows(XT, w), (3,))
    x[-5:] = 0.0  # log-variances: without them a variable's part is its weighted squares
    each = [training.negative_log_likelihood(x, edges, training.Rows(XT, v), (3,)) for v in w]
    R = np.square(XT - training.predict(mlp.masked(mlp.unflatten(x, 5, (3,)), edges), XT))
    np.testing.assert_allclose(together, (R * w).sum() / 2, rtol=1e-4)
    np.testing.assert_allclose(each, (R @ w.T).sum(axis=0) / 2, rtol=1e-4)


def test_gran_dag_looks_for_neighbours_among_the_rows_that_count(noise):
    X, w = damaged(noise)
    X[:75, 4] = 20 * X[:75, 0]
    problem = Problem.unconstrained(X)
    inputs = prepare(problem, 1.0)
    near, without = (gran_dag._candidates(problem, v, inputs, 1.3, 0) for v in (problem.prior, w))
    place = np.argsort(inputs.columns)
    assert near[place[0], place[4]]
    assert not without[place[0], place[4]]


def test_trees_and_splines_count_the_rows_of_each_variable():
    rng = np.random.default_rng(6)
    X, w = rng.normal(size=(150, 3)), rng.dirichlet(np.ones(150), size=3).T
    X[:, 2] += X[:, 0] ** 2
    graph, rows = np.triu(np.ones((3, 3), dtype=bool), 1), np.array([60.0, 70.0, 80.0])
    tested, near = significant(X, graph, w, rows, 0.3), neighbours(X, w)
    for j in range(3):
        assert (tested[:, j] == significant(X, graph, w[:, j], rows[j], 0.3)[:, j]).all()
        assert (near[:, j] == neighbours(X, w[:, j])[:, j]).all()


def test_rows_that_differ_in_their_noise_get_cells_and_others_the_plain_graph(noise):
    loud = np.where(np.arange(300)[:, None] < 240, [1, 0.1, 1, 0.1, 1], [0.1, 1, 0.1, 1, 0.1])
    X = noise * loud
    X[:, 1] += np.sin(2 * X[:, 0])
    X[:, 3] += X[:, 1] ** 2 + np.cos(2 * X[:, 2])
    X[:, 4] += 2 * np.tanh(2 * X[:, 3])
    model = rs.ReScore(rs.NotearsMLP(hidden=(4,))).fit(X)
    assert model.diagnostics_["weighting"]["groups"] > 1
    assert model.cell_weight_.shape == X.shape
    alike, plain = (
        rs.ReScore(rs.NotearsMLP(hidden=(4,))).fit(noise),
        rs.NotearsMLP(hidden=(4,)).fit(noise),
    )
    assert alike.adjacency_matrix_.equals(plain.adjacency_matrix_)
    assert (alike.losses_.to_numpy() == plain.losses_.to_numpy()).all()
