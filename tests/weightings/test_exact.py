import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from rescore import weight_box
from rescore.protocols import Problem
from rescore.weight_box import likelihood_units
from rescore.weightings import Exact


def linear_program(losses, prior, tau):
    floor, ceiling = weight_box.bounds(prior, tau)
    found = linprog(
        -losses,
        A_eq=np.ones((1, len(losses))),
        b_eq=[1.0],
        bounds=list(zip(floor, ceiling, strict=True)),
        method="highs",
    )
    assert found.success
    return found.x


def test_exact_weights_equal_linprog():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n, tau = int(rng.integers(1, 40)), rng.uniform(0.02, 1)
        losses = rng.exponential(size=n)
        prior = rng.dirichlet(np.ones(n)) if seed % 2 else np.full(n, 1 / n)
        w = weight_box.heaviest(losses, prior, tau)
        expected = linear_program(losses, prior, tau)
        np.testing.assert_allclose(w, expected, atol=1e-12, err_msg=f"seed {seed}")
        assert w.sum() == pytest.approx(1, abs=1e-12), seed


rows = st.lists(st.integers(0, 5), min_size=1, max_size=30).map(lambda v: np.array(v, float))
taus = st.floats(0.01, 1.0)


@settings(deadline=None)
@given(rows, taus, st.integers(0, 10**6))
def test_with_ties_it_is_still_optimal_inside_the_box_and_blind_to_order(losses, tau, seed):
    n = len(losses)
    prior = np.full(n, 1 / n)
    w = weight_box.heaviest(losses, prior, tau)
    floor, ceiling = weight_box.bounds(prior, tau)
    assert (w >= floor - 1e-15).all()
    assert (w <= ceiling + 1e-15).all()
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert w @ losses >= losses.mean() - 1e-12  # never below uniform weights
    assert w @ losses == pytest.approx(linear_program(losses, prior, tau) @ losses, abs=1e-9)
    order = np.random.default_rng(seed).permutation(n)
    np.testing.assert_allclose(weight_box.heaviest(losses[order], prior, tau), w[order], atol=1e-12)
    for value in np.unique(losses):
        assert np.ptp(w[losses == value]) < 1e-12


@settings(deadline=None)
@given(rows, taus)
def test_a_larger_loss_never_has_a_smaller_weight(losses, tau):
    w = weight_box.heaviest(losses, np.full(len(losses), 1 / len(losses)), tau)
    order = np.argsort(losses)
    assert (np.diff(w[order]) >= -1e-12).all()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=12), taus)
def test_a_row_repeated_k_times_gets_k_times_the_weight(counted, tau):
    losses, counts = (np.array(column) for column in zip(*counted, strict=True))
    total = counts.sum()
    weighted = weight_box.heaviest(losses.astype(float), counts / total, tau)
    repeated = weight_box.heaviest(
        np.repeat(losses, counts).astype(float), np.full(total, 1 / total), tau
    )
    starts = np.r_[0, np.cumsum(counts)[:-1]]
    np.testing.assert_allclose(np.add.reduceat(repeated, starts), weighted, atol=1e-12)


def test_the_share_at_the_ceiling_is_tau_over_one_plus_tau():
    losses, prior = np.random.default_rng(0).exponential(size=3000), np.full(3000, 1 / 3000)
    for tau in (0.1, 0.5, 0.9):
        w = weight_box.heaviest(losses, prior, tau)
        top = w > w.mean()
        assert weight_box.ceiling_share(w, prior, tau) == pytest.approx(tau / (1 + tau), abs=1e-3)
        assert w[top].sum() == pytest.approx(1 / (1 + tau), abs=1e-3)


def test_tau_one_returns_the_prior_bit_for_bit():
    plain = Problem.unconstrained(np.zeros((50, 3)))
    prior = np.random.default_rng(0).dirichlet(np.ones(50))
    problem = Problem(plain.rows, prior, plain.allowed, plain.required)
    w, _ = Exact(tau=1.0).step(
        problem, lambda: np.random.default_rng(1).exponential(size=(50, 3)), None
    )
    assert (w == prior).all()
    assert w is not prior


def test_likelihood_units_do_not_depend_on_the_units_of_a_variable():
    losses = np.random.default_rng(0).exponential(size=(100, 3))
    prior = np.full(100, 0.01)
    scaled = likelihood_units(losses * [1.0, 1e6, 1e-8], prior)
    np.testing.assert_allclose(likelihood_units(losses, prior), scaled)


def test_a_minority_with_another_noise_pattern_is_seen_by_nll_and_not_by_raw():
    """The flipped minority has the same total but other proportions."""
    rng = np.random.default_rng(0)
    scale = np.where(np.arange(20) < 10, 1.0, 0.1)
    minority = np.arange(1000) >= 900
    losses = (rng.normal(size=(1000, 20)) * np.where(minority[:, None], scale[::-1], scale)) ** 2
    problem = Problem.unconstrained(np.zeros((1000, 20)))
    mass = {
        loss: Exact(0.2, loss).step(problem, lambda: losses, None)[0][minority].sum()
        for loss in ("nll", "raw")
    }
    assert mass["nll"] > 0.4
    assert mass["raw"] < 0.2


@pytest.mark.parametrize("tau", [0, -0.5, 1.0001, np.nan, np.inf])
def test_tau_outside_its_range_is_refused(tau):
    with pytest.raises(ValueError, match="tau must be a number above 0 and of at most 1"):
        Exact(tau=tau)


def test_a_variable_with_hardly_any_variance_says_nothing():
    """1 / 1e-309 is no number any more."""
    losses = np.array([[1.0, 0.0], [3.0, 2e-309]])
    np.testing.assert_array_equal(likelihood_units(losses, np.full(2, 0.5)), [0.5, 1.5])
