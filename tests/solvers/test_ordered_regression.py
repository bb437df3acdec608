import itertools

import numpy as np
import pytest

from rescore.data.mechanisms import linear_coefficients
from rescore.data.simulate import simulate, streams
from rescore.graph.dag import is_dag, precedence
from rescore.moments import Rows, Summary
from rescore.protocols import Problem
from rescore.solvers.ordered_regression import (
    least_variance_order,
    ordered_graph,
    ordered_graphs,
    parent_sets,
    screened_parents,
)


def free(d):
    return ~np.eye(d, dtype=bool), np.zeros((d, d), dtype=bool)


def order_of(S, allowed, required):
    return least_variance_order(S[None], allowed, required)[0].tolist()


def parents_of(S, order, allowed, required, rows):
    return parent_sets(S[None], np.array([order]), allowed, required, rows)[0]


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
    order = order_of(S, *free(6))
    position = np.argsort(order)
    assert all(position[i] < position[j] for i, j in np.argwhere(B))
    np.testing.assert_array_equal(parents_of(S, order, *free(6), 1e6), B != 0)
    problem = Problem(Summary.of(np.zeros(6), S), np.full(12, 1 / 12), *free(6), count=1e6)
    np.testing.assert_allclose(ordered_graph(problem, problem.prior)[0], B, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_no_order_of_five_leaves_less_residual_variance(seed):
    """Brute force over all 120 orders: the greedy order is the least-squares optimum here."""
    S, _ = population(seed, nodes=5, degree=1)
    best = min(residual_sum(S, order) for order in itertools.permutations(range(5)))
    assert residual_sum(S, order_of(S, *free(5))) == pytest.approx(best)


def test_edges_are_those_whose_loss_would_raise_the_variance_enough():
    """The kept gains are checked against refitting without each parent."""
    data = simulate(nodes=6, degree=2, samples=300, random_state=3)
    S = np.cov(data.X.to_numpy().T, bias=True)
    order = order_of(S, *free(6))
    parents = parents_of(S, order, *free(6), 300)
    least = (np.log(300) + 2 * np.log(6)) / 300

    def residual(j, parents):
        if not parents:
            return S[j, j]
        b = np.linalg.solve(S[np.ix_(parents, parents)], S[parents, j])
        return S[j, j] - b @ S[parents, j]

    for j in range(6):
        kept = list(np.flatnonzero(parents[:, j]))
        for i in kept:
            without = residual(j, [k for k in kept if k != i])
            assert without / residual(j, kept) - 1 >= least * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_has_hardly_an_edge(seed):
    X = np.random.default_rng(seed).normal(size=(500, 10))
    S = np.cov(X.T, bias=True)
    parents = parents_of(S, order_of(S, *free(10)), *free(10), 500)
    assert parents.sum() <= 1


def test_masks_are_honoured_and_required_parents_come_first():
    S, B = population(0)
    allowed, required = free(6)
    cause, effect = np.argwhere(B)[0]
    required[effect, cause] = True  # against the truth, to see that it wins
    allowed[cause, effect] = False
    order = order_of(S, allowed, required)
    assert order.index(effect) < order.index(cause)
    parents = parents_of(S, order, allowed, required, 1000)
    assert parents[effect, cause]
    assert not parents[cause, effect]
    assert is_dag(parents)


def test_collinear_columns_do_not_divide_by_zero():
    x = np.random.default_rng(0).normal(size=(200, 3))
    X = np.column_stack([x, x[:, 0] + x[:, 1], x[:, 2]])
    S = np.cov(X.T, bias=True)
    parents = parents_of(S, order_of(S, *free(5)), *free(5), 200)
    assert is_dag(parents)


def test_two_copies_of_a_cause_do_not_vanish_together():
    """Either can go because the other is there; not both."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    X = np.column_stack([a, a + rng.normal(size=500), 2 * a])
    S = np.cov(X.T, bias=True)
    parents = parents_of(S, [0, 2, 1], *free(3), 500)
    assert parents[[0, 2], 1].sum() == 1


@pytest.mark.parametrize("seed", range(3))
def test_an_order_that_must_go_against_the_variances_still_has_edges(seed):
    """Where only backward edges are allowed, they are found, as many as a regression can see."""
    S, B = population(seed)
    order = order_of(S, *free(6))
    allowed = np.zeros((6, 6), dtype=bool)
    for later, earlier in itertools.combinations(order[::-1], 2):
        allowed[later, earlier] = True
    backward = order_of(S, allowed, np.zeros_like(allowed))
    assert backward == order[::-1]
    parents = parents_of(S, backward, allowed, np.zeros_like(allowed), 1000)
    assert parents.sum() >= (B != 0).sum()
    assert not parents[~allowed].any()


def tables(count, n, d, seed):
    """Rows of random linear models, every third with a column that others determine."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, n, d)) @ np.linalg.inv(
        np.eye(d) - np.triu(rng.normal(size=(count, d, d)) * (rng.random((count, d, d)) < 0.4), 1)
    )
    X[::3, :, 0] = X[::3, :, 1] + X[::3, :, 2]
    return X[:, :, rng.permutation(d)]


def masks(d, seed):
    """Nothing known, some edges forbidden, a required one, and both."""
    rng = np.random.default_rng(seed)
    some = (rng.random((d, d)) < 0.7) & free(d)[0]
    one = np.zeros((d, d), dtype=bool)
    one[2, 4] = True
    return {
        "free": free(d),
        "forbidden": (some, free(d)[1]),
        "required": (free(d)[0] & ~one.T, one),
        "both": ((some | one) & ~one.T, one),
    }


@pytest.mark.parametrize("known", masks(8, 0))
@pytest.mark.parametrize("n", [25, 300])
def test_a_stack_is_searched_as_each_of_its_tables_alone(known, n):
    allowed, required = masks(8, 0)[known]
    problems = [
        Problem(Rows(X), np.full(n, 1 / n), allowed, required) for X in tables(30, n, 8, seed=n)
    ]
    together, moments = ordered_graphs(problems, [problem.prior for problem in problems])
    assert (together != 0).any(axis=(1, 2)).sum() > 20  # otherwise nothing is tested
    for problem, W, each in zip(problems, together, moments, strict=True):
        alone, own = ordered_graph(problem, problem.prior)
        np.testing.assert_allclose(W, alone, rtol=1e-9)
        np.testing.assert_array_equal(each.mean, own.mean)
        np.testing.assert_array_equal(each.covariance, own.covariance)


@pytest.mark.parametrize("known", masks(8, 0))
def test_the_order_is_that_of_regressions_one_by_one(known):
    """An independent search: least squares on the rows themselves at every place."""
    allowed, required = masks(8, 0)[known]
    before = precedence(allowed, required)
    X = tables(30, 200, 8, seed=1)
    X[::3] += 0.1 * np.random.default_rng(0).normal(size=X[::3].shape)  # no exact ties
    X -= X.mean(axis=1, keepdims=True)
    S = X.transpose(0, 2, 1) @ X / 200
    for Z, found in zip(X, least_variance_order(S, allowed, required), strict=True):
        placed = []
        for j in found:
            waiting = [k for k in range(8) if k not in placed]
            left = {}
            for k in waiting:
                if not before[waiting, k].any():
                    parents = [i for i in placed if allowed[i, k]]
                    b = np.linalg.lstsq(Z[:, parents], Z[:, k])[0]
                    left[k] = np.square(Z[:, k] - Z[:, parents] @ b).mean()
            assert j == min(left, key=left.get)
            placed.append(int(j))


def test_ties_and_collinear_columns_are_ordered_alike_in_a_stack():
    rng = np.random.default_rng(0)
    B = rng.integers(-2, 3, size=(60, 6, 3)).astype(float)
    B[30:] += rng.normal(size=(30, 6, 3))
    S = B @ B.transpose(0, 2, 1)  # six variables that are combinations of three
    S[::2] += np.eye(6)  # of equal noise
    S[:5] = np.eye(6)
    S[5:10] = np.eye(6) + 1.0
    for each, order in zip(S, least_variance_order(S, *free(6)), strict=True):
        assert order.tolist() == order_of(each, *free(6))


def test_matrices_beyond_one_call_are_solved_in_several(monkeypatch):
    S = np.stack([np.cov(X.T) for X in tables(9, 300, 6, seed=0)])
    order = least_variance_order(S, *free(6))
    whole = parent_sets(S, order, *free(6), 300.0)
    monkeypatch.setattr("rescore.solvers.ordered_regression.MOST_CELLS", 1)
    np.testing.assert_array_equal(parent_sets(S, order, *free(6), 300.0), whole)


def test_a_matrix_that_is_singular_to_working_precision_is_searched_too(monkeypatch):
    """By regressions on what comes before, which must agree with the shorter way."""
    S = np.stack([np.cov(X.T) for X in tables(9, 300, 6, seed=0)])
    order = least_variance_order(S, *free(6))
    whole = parent_sets(S, order, *free(6), 300.0)
    monkeypatch.setattr("rescore.solvers.ordered_regression.over_all_before", lambda R: None)
    np.testing.assert_array_equal(parent_sets(S, order, *free(6), 300.0), whole)


@pytest.mark.parametrize("d", [30, 60])
def test_with_fewer_rows_than_columns_a_chain_is_found_all_the_same(d):
    """Regressed on all those before it, every late variable would be explained without rest."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(40, d))
    for j in range(1, d):
        X[:, j] += X[:, j - 1]
    shuffle = rng.permutation(d)
    problem = Problem.unconstrained(X[:, shuffle])
    W, _ = ordered_graph(problem, problem.prior)
    found = np.argwhere(W)
    right = [shuffle[i] + 1 == shuffle[j] for i, j in found]
    assert is_dag(W)
    assert len(found) <= d + 3
    assert sum(right) >= d - 4


def test_screened_parents_are_few_known_edges_hold_and_columns_may_change_places():
    rng = np.random.default_rng(3)
    factor, allowed, required = rng.normal(size=(25, 3)), *free(50)
    S = np.cov((factor @ rng.normal(size=(3, 50)) + 0.1 * rng.normal(size=(25, 50))).T)
    allowed[:, 7], required[4, 5] = False, True
    found = screened_parents(S, 25.0, allowed, required)
    assert is_dag(found)
    assert found.sum(axis=0).max() <= 25 // 5
    assert found[4, 5]
    assert not found[:, 7].any()
    other = rng.permutation(50)
    known = [each[np.ix_(other, other)] for each in (allowed, required)]
    again = screened_parents(S[np.ix_(other, other)], 25.0, *known)
    np.testing.assert_array_equal(again, found[np.ix_(other, other)])
