import numpy as np
import pytest

from rescore.weightings.balanced import Balanced, balance, unevenness
from rescore.weightings.groups import expectation_maximisation, find_groups, first_guesses


def test_groups_are_found_with_their_variances():
    rng = np.random.default_rng(0)
    member = np.arange(1000) < 250
    scale = np.where(member[:, None], [2.0, 0.5, 1.0, 1.0], [1.0, 1.0, 1.0, 3.0])
    losses = (rng.normal(size=(1000, 4)) * scale) ** 2
    found = find_groups(losses, np.ones(1000), most=4)
    assert found.count == 2
    small = int(found.share.argmin())
    assert found.share[small] == pytest.approx(0.25, abs=0.04)
    np.testing.assert_allclose(found.variance[small], [4, 0.25, 1, 1], rtol=0.35)
    np.testing.assert_allclose(found.membership.sum(axis=1), 1)


def test_em_never_lowers_the_likelihood(monkeypatch):
    from rescore.weightings import groups

    rng = np.random.default_rng(1)
    losses = (rng.normal(size=(300, 3)) * rng.choice([0.3, 2.0], size=(300, 1))) ** 2
    start = rng.dirichlet(np.ones(2), size=300)
    reached = []
    for iterations in (1, 2, 5, 20, 80):
        monkeypatch.setattr(groups, "MOST_ITERATIONS", iterations)
        reached.append(expectation_maximisation(losses, np.ones(300), start).likelihood)
    assert (np.diff(reached) >= -1e-2).all()  # the pseudo-row may cost a trace
    assert reached[-1] > reached[0]


def test_a_row_counted_twice_is_the_row_repeated():
    losses = np.random.default_rng(2).exponential(size=(50, 2))
    start = np.random.default_rng(3).dirichlet(np.ones(2), size=50)
    once = expectation_maximisation(losses, np.full(50, 2.0), start)
    twice = expectation_maximisation(np.tile(losses, (2, 1)), np.ones(100), np.tile(start, (2, 1)))
    np.testing.assert_allclose(once.variance, twice.variance)
    assert once.evidence == pytest.approx(twice.evidence)


@pytest.mark.parametrize("seed", range(6))
def test_racing_the_starts_loses_nothing_against_following_each_to_its_end(seed):
    rng = np.random.default_rng(seed)
    scales = np.array([[1.0] * 6, [0.3, 3.0] * 3, [4.0] * 6])[: 2 + seed % 2]
    scale = scales[rng.choice(len(scales), size=500, p=[0.75, 0.25] if seed % 2 == 0 else None)]
    losses, counts = np.square(rng.normal(size=(500, 6)) * scale), np.ones(500)
    found = find_groups(losses, counts, most=4)
    assert found.count == len(scales)
    ends = [
        expectation_maximisation(losses, counts, start.T)
        for few in first_guesses(losses, counts, 4)
        for start in few
    ]
    assert found.evidence >= max(end.evidence for end in ends) - 0.1


def test_em_gives_up_only_on_a_goal_out_of_reach():
    rng = np.random.default_rng(4)
    losses = np.square(rng.normal(size=(300, 4)) * rng.choice([0.5, 2.0], size=(300, 1)))
    start = rng.dirichlet(np.ones(2), size=300)
    to_the_end = expectation_maximisation(losses, np.ones(300), start)
    reached = to_the_end.likelihood
    aimed = expectation_maximisation(losses, np.ones(300), start, goal=reached)
    assert aimed.likelihood == reached
    lost = expectation_maximisation(losses, np.ones(300), start, goal=reached + 1e6)
    assert lost.likelihood < reached


@pytest.mark.parametrize("K", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_balance_beats_every_mixture_on_a_grid(seed, K):
    rng = np.random.default_rng(seed)
    variance, share = rng.uniform(0.01, 2, size=(K, 5)), rng.dirichlet(np.full(K, 3.0))
    q = balance(variance, share, tau=0.01)
    grid = rng.dirichlet(np.ones(K), size=2000)
    inside = ((grid >= 0.01 * share) & (grid <= share / 0.01)).all(axis=1)
    least = min(unevenness(p, variance, share)[0] for p in grid[inside])
    assert unevenness(q, variance, share)[0] <= least + 1e-5


def test_unevenness_is_zero_for_equal_variances_and_its_slope_that_of_differences():
    rng = np.random.default_rng(0)
    variance, share, q = rng.uniform(0.1, 2, size=(3, 5)), *rng.dirichlet(np.ones(3), size=2)
    _, slope = unevenness(q, variance, share)
    steps = 1e-6 * np.eye(3)
    value = [[unevenness(q + s * step, variance, share)[0] for s in (1, -1)] for step in steps]
    np.testing.assert_allclose(slope, -np.diff(value)[:, 0] / 2e-6, rtol=1e-5)
    assert unevenness(share, np.ones((3, 5)), share)[0] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("bad", [{"tau": 0}, {"tau": 2}, {"most_groups": 0}])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Balanced(**bad)
