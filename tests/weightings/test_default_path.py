"""`ReScore(Linear())` as it comes, on tables in units that nobody chose with care."""

import networkx as nx
import numpy as np
import pytest

from rescore.data import Dataset
from rescore.data.simulate import simulate
from rescore.learners.linear import Linear
from rescore.learners.rescore import ReScore
from rescore.protocols import Problem
from rescore.weightings.balanced import Balanced, balanced_weights
from rescore.weightings.groups import find_groups

TABLES = 200
UNITS = {
    "as they are": lambda x: [x],
    "standardised": lambda x: [(x - x.mean()) / x.std()],
    "ranks": lambda x: [x.argsort().argsort().astype(float)],
    "one-hot": lambda x: list(np.eye(3)[np.digitize(x, np.quantile(x, [1 / 3, 2 / 3]))].T),
    "large": lambda x: [1e6 * x],
    "small": lambda x: [1e-6 * x],
}


def odd_table(seed):
    """Groups of rows whose noise differs, each column in units of its own or all in the same."""
    rng = np.random.default_rng(seed)
    n, d, K = (int(rng.integers(*limits)) for limits in ((20, 201), (2, 7), (2, 5)))
    scale = rng.choice([0.1, 1.0, 5.0], size=(K, d))[rng.choice(K, n, p=rng.dirichlet([2.0] * K))]
    W = np.triu(rng.normal(size=(d, d)) * (rng.random((d, d)) < 0.5), 1)
    X = rng.normal(size=(n, d)) * scale @ np.linalg.inv(np.eye(d) - W)
    units = rng.choice(list(UNITS), size=d) if rng.random() < 0.5 else [rng.choice(list(UNITS))] * d
    return np.column_stack([y for x, unit in zip(X.T, units, strict=True) for y in UNITS[unit](x)])


def check_parts_belong_together(problem, weights, tau):
    """The weights are those of the groups, and the explanation is about the weights."""
    groups, said = weights.groups, weights.explained
    again = balanced_weights(groups, weights.noise, problem.prior, tau)
    np.testing.assert_allclose(weights.w, again, rtol=1e-12)
    np.testing.assert_allclose(said["share_after"], again @ groups.membership, rtol=1e-9)
    np.testing.assert_allclose(said["share_before"], problem.prior @ groups.membership, rtol=1e-9)
    assert said["noise"] == weights.noise.tolist()
    assert said["groups"] == len(weights.noise) == groups.count


@pytest.mark.filterwarnings("ignore::rescore.tables.convert.DataWarning")
def test_tables_in_odd_units_end_as_a_dag_and_weights_that_explain_themselves():
    for seed in range(TABLES):
        model = ReScore(Linear()).fit(odd_table(seed))
        w, said = model.sample_weight_.to_numpy(), model.diagnostics_["weighting"]
        assert nx.is_directed_acyclic_graph(model.causal_graph_), seed
        assert np.isfinite(w).all(), seed
        assert w.sum() == pytest.approx(1), seed
        assert sum(said["share_after"]) == pytest.approx(1), seed
        assert len(said["noise"]) == len(said["share_after"]) == said["groups"], seed


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_given_residuals_belong_to_their_weights_too(seed):
    X = odd_table(seed)
    problem = Problem.unconstrained(X)
    w, state = Balanced().step(problem, lambda: np.square(X - X.mean(axis=0)), None)
    assert w is state.w
    check_parts_belong_together(problem, state, Balanced().tau)


def standardised(data: Dataset):
    return (data.X - data.X.mean()) / data.X.std()


@pytest.mark.parametrize("seed", [10, 11])
def test_standardised_columns_of_the_papers_groups(seed):
    data = simulate(nodes=20, groups=(0.9, 0.1), noise_scale=0.1, random_state=seed)
    said = ReScore(Linear()).fit(standardised(data)).diagnostics_["weighting"]
    assert said["groups"] == len(said["noise"]) == 2


def test_without_room_in_the_box_no_group_is_said_to_be_noise_that_is_set_aside():
    losses = np.square(np.random.default_rng(0).normal(size=(400, 4)))
    losses[:40] *= 36
    problem = Problem.unconstrained(np.zeros((400, 4)))
    assert find_groups(losses, np.ones(400), 4).count > 1
    w, state = Balanced(tau=1.0).step(problem, lambda: losses, None)
    assert (w == problem.prior).all()
    assert "taken as noise" not in Balanced(tau=1.0).explain(state)["summary"]
