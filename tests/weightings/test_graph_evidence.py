import numpy as np
import pytest

from rescore.data.simulate import simulate
from rescore.protocols import Problem
from rescore.weightings.groups import Groups, find_groups, graph_evidence, precise_losses


def mixture(n, d, K, seed):
    rng = np.random.default_rng(seed)
    membership = rng.dirichlet(np.ones(K), size=n)
    variance = rng.uniform(0.1, 3, size=(K, d))
    return Groups(membership.mean(axis=0), variance, membership, 0.0, 0.0)


def least_squares(X, edges, weights):
    """Each variable on its parents and a constant, by a solver that sees the rows themselves."""
    out = np.empty_like(X)
    for j in range(X.shape[1]):
        A = np.column_stack([np.ones(len(X)), X[:, edges[:, j]]])
        root = np.sqrt(weights[:, j])
        b = np.linalg.lstsq(A * root[:, None], X[:, j] * root, rcond=None)[0]
        out[:, j] = np.square(X[:, j] - A @ b)
    return out


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("K", [1, 2, 4])
def test_losses_from_the_moments_of_groups_are_those_of_weighted_least_squares(seed, K):
    data = simulate(nodes=6, degree=2, samples=80, random_state=seed)
    X = data.X.to_numpy() + np.arange(6) * 10
    plain = Problem.unconstrained(X)
    prior = np.random.default_rng(seed).dirichlet(np.full(80, 5.0))
    problem = Problem(plain.rows, prior, plain.allowed, plain.required)
    edges, groups = data.truth.to_numpy() != 0, mixture(80, 6, K, seed)
    by_hand = least_squares(X, edges, groups.membership @ (1 / groups.variance) * prior[:, None])
    np.testing.assert_allclose(
        precise_losses(problem, edges, groups), by_hand, rtol=1e-5, atol=1e-8
    )


def test_the_true_graph_has_more_evidence_than_others():
    data = simulate(nodes=6, samples=600, groups=(0.8, 0.2), noise_scale=0.1, random_state=0)
    problem, edges = Problem.unconstrained(data.X.to_numpy()), data.truth.to_numpy() != 0
    member = (data.groups == "g1").to_numpy()[:, None] == [False, True]
    start = Groups(np.array([0.8, 0.2]), np.ones((2, 6)), member.astype(float), 0.0, 0.0)
    groups = find_groups(precise_losses(problem, edges, start), np.ones(600), 2)
    true = graph_evidence(problem, edges, groups)
    for i, j in np.argwhere(edges):
        without = edges.copy()
        without[i, j] = False
        assert graph_evidence(problem, without, groups) < true
