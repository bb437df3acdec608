import itertools

import numpy as np
import pytest

from rescore.graph import is_dag
from rescore.ordered import least_variance_order, regressions
from rescore.simulation import simulate, streams
from rescore.simulation.mechanisms import linear_coefficients


def free(d):
    return ~np.eye(d, dtype=bool), np.zeros((d, d), dtype=bool)


def population(seed, nodes=6, degree=2):
    """The exact covariance of a linear model with unit noise, and its coefficients."""
    graph = simulate(nodes=nodes, degree=degree, samples=2, random_state=seed).truth.to_numpy()
    B = linear_coefficients(graph, streams(seed).mechanism)
    inverse = np.linalg.inv(np.eye(nodes) - B)
    return inverse.T @ inverse, B


def residual_sum(S, order):
    return np.square(np.diag(np.linalg.cholesky(S[np.ix_(order, order)]))).sum()


@pytest.mark.parametrize("seed", range(10))
def test_the_population_gives_the_true_graph_exactly(seed):
    S, B = population(seed)
    order = least_variance_order(S, *free(6))
    position = np.argsort(order)
    assert all(position[i] < position[j] for i, j in np.argwhere(B))
    W = regressions(S, order, *free(6), effective_rows=1e6)
    np.testing.assert_allclose(W, B, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_no_order_of_five_leaves_less_residual_variance(seed):
    """Brute force over all 120 orders: the greedy order is the least-squares optimum here."""
    S, _ = population(seed, nodes=5, degree=1)
    best = min(residual_sum(S, order) for order in itertools.permutations(range(5)))
    assert residual_sum(S, least_variance_order(S, *free(5))) == pytest.approx(best)


def test_edges_are_those_whose_loss_would_raise_the_variance_enough():
    """The kept gains are checked against refitting without each parent."""
    data = simulate(nodes=6, degree=2, samples=300, random_state=3)
    S = np.cov(data.X.to_numpy().T, bias=True)
    order = least_variance_order(S, *free(6))
    W = regressions(S, order, *free(6), effective_rows=300)
    least = (np.log(300) + 2 * np.log(6)) / 300

    def residual(j, parents):
        if not parents:
            return S[j, j]
        b = np.linalg.solve(S[np.ix_(parents, parents)], S[parents, j])
        return S[j, j] - b @ S[parents, j]

    for j in range(6):
        parents = list(np.flatnonzero(W[:, j]))
        for i in parents:
            without = residual(j, [k for k in parents if k != i])
            assert without / residual(j, parents) - 1 >= least * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_has_hardly_an_edge(seed):
    X = np.random.default_rng(seed).normal(size=(500, 10))
    S = np.cov(X.T, bias=True)
    W = regressions(S, least_variance_order(S, *free(10)), *free(10), effective_rows=500)
    assert (W != 0).sum() <= 1


def test_masks_are_honoured_and_required_parents_come_first():
    S, B = population(0)
    allowed, required = free(6)
    cause, effect = np.argwhere(B)[0]
    required[effect, cause] = True  # against the truth, to see that it wins
    allowed[cause, effect] = False
    order = least_variance_order(S, allowed, required)
    assert order.index(effect) < order.index(cause)
    W = regressions(S, order, allowed, required, effective_rows=1000)
    assert W[effect, cause] != 0
    assert W[cause, effect] == 0
    assert is_dag(W)


def test_collinear_columns_do_not_divide_by_zero():
    x = np.random.default_rng(0).normal(size=(200, 3))
    X = np.column_stack([x, x[:, 0] + x[:, 1], x[:, 2]])
    S = np.cov(X.T, bias=True)
    W = regressions(S, least_variance_order(S, *free(5)), *free(5), effective_rows=200)
    assert np.isfinite(W).all()
    assert is_dag(W)


def test_two_copies_of_a_cause_do_not_vanish_together():
    """Either can go because the other is there; not both."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    X = np.column_stack([a, a + rng.normal(size=500), 2 * a])
    S = np.cov(X.T, bias=True)
    W = regressions(S, [0, 2, 1], *free(3), effective_rows=500)
    assert (W[[0, 2], 1] != 0).sum() == 1


@pytest.mark.parametrize("seed", range(3))
def test_an_order_that_must_go_against_the_variances_still_has_edges(seed):
    """Where only backward edges are allowed, they are found, as many as a regression can see."""
    S, B = population(seed)
    order = least_variance_order(S, *free(6))
    allowed = np.zeros((6, 6), dtype=bool)
    for later, earlier in itertools.combinations(order[::-1], 2):
        allowed[later, earlier] = True
    backward = least_variance_order(S, allowed, np.zeros_like(allowed))
    assert backward == order[::-1]
    W = regressions(S, backward, allowed, np.zeros_like(allowed), effective_rows=1000)
    assert (W != 0).sum() >= (B != 0).sum()
    assert not (W != 0)[~allowed].any()
