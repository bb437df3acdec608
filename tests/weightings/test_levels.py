"""Groups of rows that differ in level, around relations that need not be straight."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import rescore as rs
from rescore.protocols import Problem
from rescore.weightings.levels import Described, level_groups
from rescore.weightings.mixture import as_mixture
from rescore.weightings.precision import Precision
from rescore.weightings.refined import OfResiduals, looked_at


def unrelated(seed=0, n=500, d=5):
    """Two groups of unrelated variables with other means, and who is in the second."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.4
    return rng.normal(size=(n, d)) + 3 * group[:, None] * rng.normal(size=d), group


@pytest.fixture(scope="module")
def curved():
    """The same with a curved relation that both groups share."""
    X, group = unrelated(seed=3, n=800)
    X[:, 1] += 2 * np.sin(2 * X[:, 0])
    return pd.DataFrame(X, columns=list("abcde")), group


def edges(model):
    return set(model.causal_graph_.edges)


def groups_in(X):
    return level_groups(Problem.unconstrained(X), np.ones((len(X), 1)))


@pytest.mark.parametrize("seed", [0, 1])
def test_groups_that_differ_in_level_are_no_edges(seed):
    X, _ = unrelated(seed)
    assert len(edges(rs.Additive().fit(X))) >= 3
    found = rs.ReScore(rs.Additive()).fit(X)
    assert not edges(found)
    assert "level or noise differs" in found.diagnostics_["weighting"]["summary"]


def test_who_is_in_which_group_is_found(curved):
    table, group = curved
    found = groups_in(table.to_numpy())
    assert found.count == 2
    same = (found.membership.argmax(axis=1) == group).mean()
    assert max(same, 1 - same) > 0.95


def test_what_both_groups_share_is_an_edge(curved):
    table, _ = curved
    assert edges(rs.ReScore(rs.Additive()).fit(table)) == {("a", "b")}


def test_gaussian_processes_take_levels_out_too():
    X, _ = unrelated(seed=4, n=200, d=4)
    learner = rs.GaussianProcess(n_starts=1)
    assert edges(learner.fit(X))
    found = rs.ReScore(learner).fit(X)
    assert not edges(found)
    np.testing.assert_allclose(np.asarray(found.predict(X)).mean(axis=0), X.mean(axis=0), atol=0.3)


@pytest.mark.parametrize("mechanism", ["linear", "gp-add", "gp"])
def test_rows_that_are_alike_have_no_groups(mechanism):
    assert groups_in(rs.simulate("ER", 2, 8, 600, mechanism, random_state=5).X.to_numpy()) is None


def test_groups_that_differ_in_noise_alone_are_left_to_others():
    """Their means may differ by chance, now and then."""
    scale = np.where(np.arange(600)[:, None] < 400, [1.0, 0.2, 1.0], [0.3, 1.0, 2.0])
    tables = (np.random.default_rng(seed).normal(size=(600, 3)) * scale for seed in range(5))
    assert sum(groups_in(X) is not None for X in tables) <= 1


def test_more_groups_than_differ_in_noise_are_not_found_for_their_levels():
    """Loud and quiet rows of a joint table split into four have levels, and say less than two."""
    data = rs.simulate("ER", 2, 8, 600, "gp", groups=(0.8, 0.2), noise_scale=0.1, random_state=2)
    assert groups_in(data.X.to_numpy()) is None


def test_units_and_the_order_of_rows_and_columns_do_not_matter(curved):
    X = curved[0].to_numpy()
    turned = np.random.default_rng(1).permutation(len(X))
    one = groups_in(X).membership
    other = groups_in((X * [1, 50, 0.1, 3, 7] + 4)[turned][:, ::-1]).membership
    least = min(np.abs(P - one[turned]).max() for P in (other, other[:, ::-1]))
    assert least < 0.02


def test_groups_that_are_none_take_longer_to_say():
    X = np.random.default_rng(2).normal(size=(300, 4))
    problem = Problem.unconstrained(X)
    alike = Described(problem, np.ones((300, 1)))
    by_chance = Described(problem, np.tile(np.eye(2), (150, 1)))
    assert alike.shortest_of([by_chance])
    assert not by_chance.shortest_of([alike])


def test_cells_say_how_levels_differ_and_stay():
    X, _ = unrelated(seed=1)
    problem, losses = Problem.unconstrained(X), np.square(X - X.mean(axis=0))
    player = Precision(levels=True)
    w, seen = player.step(problem, lambda: losses, None)
    assert np.ptp(player.explain(seen)["level"], axis=0).max() > 1
    again, same = player.step(problem, lambda: losses, seen)
    assert again is w
    assert same is seen
    blind = Precision()
    assert "level" not in blind.explain(blind.step(problem, lambda: losses, None)[1])


def test_in_passes_rows_belong_to_groups_as_their_density_says(curved):
    table, group = curved
    X, P = table.to_numpy(), np.eye(2)[group.astype(int)]
    equations = SimpleNamespace(predict=np.zeros_like)
    looks = looked_at(X, equations)
    sums = SimpleNamespace(mass=P.sum(axis=0), squares=P.T @ looks)
    found = SimpleNamespace(equations=equations)
    rule = OfResiduals(Precision(), levels=True).rule(None, found, sums)
    described = as_mixture(X, np.ones(len(X)), P)
    np.testing.assert_allclose(rule.level, described.level, atol=1e-9)
    members, logs, _ = rule(X)
    each = [
        np.log(share) + norm.logpdf(X, level, np.sqrt(variance)).sum(axis=1)
        for share, level, variance in zip(rule.share, rule.level, rule.variance, strict=True)
    ]
    both = np.logaddexp(*each)
    np.testing.assert_allclose(logs - 2.5 * np.log(2 * np.pi), both, rtol=1e-9)
    np.testing.assert_allclose(members[:, 0], np.exp(each[0] - both), atol=1e-9)
