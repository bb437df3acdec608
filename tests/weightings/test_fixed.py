import numpy as np
import pytest

import rescore as rs
from rescore import weight_box
from rescore.protocols import Problem
from rescore.weightings import Drawn, Exact


@pytest.fixture
def problem(chain):
    return Problem.unconstrained(chain)


def step(player, problem, losses):
    return player.step(problem, lambda: losses, player.init(*problem.rows.shape))[0]


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_as_heavy_as_exact_weights_but_on_other_rows(tau, problem):
    losses = np.random.default_rng(3).exponential(size=problem.rows.shape)
    exact, drawn = (step(player, problem, losses) for player in (Exact(tau), Drawn(tau)))
    np.testing.assert_allclose(np.sort(drawn), np.sort(exact), atol=1e-15)
    assert (drawn != exact).mean() > 0.1
    assert problem.effective_rows(drawn) == pytest.approx(problem.effective_rows(exact))


def test_the_losses_do_not_matter_and_the_seed_does(problem):
    player = Drawn(0.5, seed=1)
    one, other = (step(player, problem, np.full(problem.rows.shape, x)) for x in (1.0, 7.0))
    assert (one == other).all()
    assert (one != step(Drawn(0.5, seed=2), problem, np.ones(problem.rows.shape))).any()


def test_prior_weights_keep_their_box(problem, chain):
    prior = np.random.default_rng(0).uniform(0.5, 2, size=len(chain))
    own = Problem(problem.rows, prior / prior.sum(), problem.allowed, problem.required)
    w = step(Drawn(0.3), own, np.ones(problem.rows.shape))
    floor, ceiling = weight_box.bounds(own.prior, 0.3)
    assert w.sum() == pytest.approx(1)
    assert ((floor <= w) & (w <= ceiling)).all()


def test_all_seeds_together_favour_no_row(problem):
    ones = np.ones(problem.rows.shape)
    mean = np.mean([step(Drawn(0.5, seed), problem, ones) for seed in range(400)], axis=0)
    # A row is at 2/n with the chance 1/3, otherwise at 0.5/n: the mean of 400 is 1/n ± 0.035/n.
    assert np.abs(mean * len(ones) - 1).max() < 0.2


def test_random_weights_do_not_pretend_to_be_a_finding(chain):
    model = rs.ReScore(rs.Linear(), weighting=Drawn(0.5, seed=4)).fit(chain)
    assert "random" in model.diagnostics_["weighting"]["summary"]
    assert (
        rs.ReScore(rs.Linear(), weighting=Drawn(1.0)).fit(chain).sample_weight_ == 1 / 300
    ).all()


@pytest.mark.parametrize("wrong", [{"tau": 0}, {"tau": 1.5}, {"seed": -1}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        Drawn(**wrong)
