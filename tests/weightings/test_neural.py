from functools import partial

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import rescore as rs
from rescore import weight_box
from rescore.protocols import Problem
from rescore.weight_box import likelihood_units
from rescore.weightings import Exact
from rescore.weightings.neural import (
    Neural,
    capped_softmax,
    initial_layers,
    logit_slopes,
    parameter_slopes,
    row_logits,
    train,
    unit_losses,
)

solved = jax.jit(partial(capped_softmax, steps=60))
N, D = 400, 6  # one shape for nearly all: each compiles once
PLAYERS = {
    "linear": Neural(tau=0.5),
    "raw": Neural(tau=0.5, loss="raw"),
    "two hidden layers": Neural(tau=0.5, hidden=(10, 10)),
    "noise": Neural(tau=0.5, noise=True),
}


@pytest.fixture(scope="module")
def losses():
    """Squared residuals of different sizes."""
    return np.random.default_rng(0).normal(size=(N, D)) ** 2 * [1, 10, 0.1, 1, 5, 1]


def with_prior(prior):
    plain = Problem.unconstrained(np.zeros((len(prior), D)))
    return Problem(plain.rows, prior / prior.sum(), plain.allowed, plain.required)


UNIFORM = with_prior(np.ones(N))


def played(player, losses, problem=UNIFORM, times=1):
    state = player.init(*losses.shape)
    for _ in range(times):
        w, state = player.step(problem, lambda: losses, state)
    return w, state


@pytest.mark.parametrize("name", PLAYERS)
@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_the_weighted_loss_is_between_uniform_and_exact_and_near_exact(name, tau, losses):
    player = Neural(**{**vars(PLAYERS[name]), "tau": tau})
    w, state = played(player, losses)
    per_row = losses.sum(axis=1) if name == "raw" else likelihood_units(losses, UNIFORM.prior)
    best = Exact(tau, player.loss).step(UNIFORM, lambda: losses, None)[0] @ per_row
    assert per_row.mean() < w @ per_row <= best * (1 + 1e-12)
    assert w @ per_row > 0.95 * best
    told = player.explain(state)
    unit = 1.0 if name != "raw" else losses.mean()
    assert told["neural"] * unit == pytest.approx(w @ per_row)
    assert told["exact"] * unit == pytest.approx(best)
    assert told["uniform"] * unit == pytest.approx(per_row.mean())
    assert told["share"] > 0.9


@pytest.mark.parametrize("name", PLAYERS)
def test_the_weights_are_in_the_box_and_sum_to_one(name, losses):
    prior = np.random.default_rng(1).uniform(0.5, 2, size=N)
    problem = with_prior(prior)
    w, _ = played(PLAYERS[name], losses, problem, times=2)
    floor, ceiling = weight_box.bounds(problem.prior, 0.5)
    assert (w >= floor).all()
    assert (w <= ceiling).all()
    assert w.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("hidden", [(), (10, 10)])
def test_it_starts_at_the_prior_exactly(hidden, losses):
    player, problem = Neural(hidden=hidden), with_prior(np.arange(1.0, N + 1))
    layers = player.init(N, D).training.layers
    with jax.enable_x64(True):
        w, _ = capped_softmax(row_logits(layers, losses), problem.prior, 0.5)
    assert (np.array(w) == problem.prior).all()
    almost, _ = played(Neural(hidden=hidden, epochs=1, learning_rate=1e-9), losses, problem)
    np.testing.assert_allclose(almost, problem.prior, rtol=1e-6)


def test_tau_one_is_the_prior_bit_for_bit(losses):
    w, state = played(Neural(tau=1.0), losses)
    assert (w == UNIFORM.prior).all()
    assert Neural(tau=1.0).explain(state) == {}


def test_further_calls_and_other_numbers_compile_nothing(losses):
    played(Neural(), losses)
    before = train._cache_size()
    played(Neural(tau=0.3, temperature=2.0, epochs=7, learning_rate=0.2, seed=5), losses, times=3)
    assert train._cache_size() == before


@pytest.mark.parametrize("name", PLAYERS)
def test_the_same_seed_gives_the_same_bits_and_the_losses_stay_as_they_are(name, losses):
    before = losses.copy()
    first, second = (played(PLAYERS[name], losses, times=2)[0] for _ in range(2))
    assert (first == second).all()
    assert (losses == before).all()


def test_the_seed_decides_noise_and_hidden_layers_and_nothing_else(losses):
    def differs(**options):
        a, b = (played(Neural(seed=seed, epochs=5, **options), losses)[0] for seed in (0, 1))
        return (a != b).any()

    assert not differs()
    assert differs(noise=True)
    assert differs(hidden=(10, 10))


def test_noise_goes_on_from_call_to_call(losses):
    """A call of ten epochs is two of five: parameters, Adam's averages and the stream go on."""
    once, state = played(Neural(noise=True, epochs=10), losses)
    twice, other = played(Neural(noise=True, epochs=5), losses, times=2)
    np.testing.assert_allclose(once, twice, rtol=1e-9)
    assert state.training.averages.count == other.training.averages.count == 10
    again, _ = played(Neural(noise=True, epochs=5), losses)
    assert not np.allclose(again, twice, rtol=1e-9)


@pytest.mark.parametrize("hidden", [(), (10, 10)])
def test_permuting_rows_permutes_the_weights_and_columns_change_nothing(hidden, losses):
    rows, columns = (np.random.default_rng(2).permutation(k) for k in (N, D))
    w, _ = played(Neural(hidden=hidden), losses)
    np.testing.assert_allclose(played(Neural(hidden=hidden), losses[rows])[0], w[rows], rtol=1e-6)
    np.testing.assert_allclose(played(Neural(hidden=hidden), losses[:, columns])[0], w, rtol=1e-6)


@pytest.mark.parametrize("hidden", [(), (10, 10)])
def test_a_row_repeated_k_times_gets_k_times_the_weight(hidden, losses):
    counts = np.tile([1, 2, 3, 2], N // 8)
    few = losses[: len(counts)]
    weighted, _ = played(Neural(hidden=hidden), few, with_prior(counts.astype(float)))
    many = np.repeat(few, counts, axis=0)
    repeated, _ = played(Neural(hidden=hidden), many)
    starts = np.r_[0, np.cumsum(counts)[:-1]]
    np.testing.assert_allclose(np.add.reduceat(repeated, starts), weighted, rtol=1e-6)


@pytest.mark.parametrize("hidden", [(), (3, 4)])
def test_the_direction_is_the_gradient_while_no_row_is_at_a_bound(hidden, losses):
    rng = np.random.default_rng(3)
    Z = unit_losses(losses[:50], np.full(50, 0.02), "nll") - 1
    prior, tau, noise = rng.dirichlet(np.full(50, 9.0)), 0.01, rng.normal(size=50) / 10
    layers = initial_layers(D, hidden, rng)
    W, b = layers[-1]
    layers = (*layers[:-1], (W + rng.normal(size=W.shape) / 20, b))

    @jax.jit
    def objective(flat):
        f = (row_logits(unflatten(flat), Z) + noise) / 2.0
        return capped_softmax(f, prior, tau, steps=60)[0] @ Z.sum(axis=1)

    with jax.enable_x64(True):
        flat, unflatten = ravel_pytree(layers)
        gradient, _ = parameter_slopes(layers, Z, prior, noise, tau, 2.0, 0.0)
        ours = np.array(ravel_pytree(gradient)[0])
        step = 1e-6 * np.eye(len(flat))
        slope = [float(objective(flat + e) - objective(flat - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(ours, slope, rtol=1e-5, atol=1e-7)


def test_at_a_bound_the_slope_is_zero_or_leads_back():
    rng = np.random.default_rng(4)
    n = 60
    prior, f, per_row = rng.dirichlet(np.full(n, 9.0)), rng.normal(0, 2, n), rng.exponential(size=n)
    with jax.enable_x64(True):
        w, shift = solved(f, prior, 0.4)
        ours = np.array(logit_slopes(per_row, f, prior, 0.4, shift))

        def value(f):
            return float(solved(f, prior, 0.4)[0] @ per_row)

        slope = np.array([value(f + e) - value(f - e) for e in 1e-6 * np.eye(n)]) / 2e-6
    ratio = np.array(w) / prior
    free = (ratio > 0.4 + 1e-9) & (ratio < 2.5 - 1e-9)
    assert 5 < free.sum() < n - 5
    np.testing.assert_allclose(ours[free], slope[free], atol=1e-7)
    np.testing.assert_allclose(slope[~free], 0, atol=1e-9)
    low, high = ratio <= 0.4 + 1e-9, ratio >= 2.5 - 1e-9
    assert (ours[low] >= 0).all()
    assert (ours[high] <= 0).all()
    assert (ours[low] > 0).any()


@pytest.mark.parametrize("tau", [0.02, 0.5, 0.97])
def test_the_capped_softmax_sums_to_one_and_becomes_the_exact_solution(tau):
    rng = np.random.default_rng(5)
    prior, per_row = rng.dirichlet(np.full(N, 3.0)), rng.exponential(size=N)
    with jax.enable_x64(True):
        for scale in (1e-3, 1.0, 1e2):
            w, _ = solved(scale * per_row, prior, tau)
            assert float(w.sum()) == pytest.approx(1, abs=1e-12)
        w, _ = solved(1e7 * per_row, prior, tau)
    np.testing.assert_allclose(w, weight_box.heaviest(per_row, prior, tau), atol=1e-9)


def test_without_cut_offs_in_reach_it_is_the_softmax_times_the_prior():
    rng = np.random.default_rng(6)
    prior, f = rng.dirichlet(np.ones(30)), rng.normal(size=30)
    with jax.enable_x64(True):
        w, _ = solved(f, prior, 1e-6)
    softmax = prior * np.exp(f)
    np.testing.assert_allclose(w, softmax / softmax.sum(), rtol=1e-10)


def test_why_the_cut_offs_are_part_of_the_training():
    """Put on afterwards, they make nearly uniform weights of a softmax that was trained long."""
    per_row = np.random.default_rng(8).chisquare(D, size=N)
    softmax = np.exp(10 * (per_row - per_row.max()))
    w = weight_box.project(softmax / softmax.sum(), UNIFORM.prior, 0.5)
    best = weight_box.heaviest(per_row, UNIFORM.prior, 0.5)
    assert (w - UNIFORM.prior) @ per_row < 0.1 * (best - UNIFORM.prior) @ per_row


@pytest.mark.parametrize("name", PLAYERS)
def test_rows_far_from_all_others_do_not_stop_the_training(name, losses):
    wild = losses.copy()
    wild[:3] *= 1e6
    _, state = played(PLAYERS[name], wild, times=2)
    assert state.told["share"] > 0.9


def test_losses_that_change_are_followed():
    """The parameters go on from the last call, which ended with the opposite preference."""
    rng = np.random.default_rng(7)
    first, second = rng.exponential(size=(2, N, D))
    first[:, :3] *= 0.01
    second[:, 3:] *= 0.01
    player = Neural(loss="raw")
    _, state = played(player, first, times=4)
    for _ in range(2):
        _, state = player.step(UNIFORM, lambda: second, state)
    assert state.told["share"] > 0.9


def test_losses_that_say_nothing_leave_the_weights_inside():
    for flat in (np.zeros((N, D)), np.ones((N, D))):
        w, state = played(Neural(), flat)
        np.testing.assert_allclose(w, UNIFORM.prior, rtol=1e-9)
        assert state.told["share"] == 1.0


@pytest.mark.parametrize("tau", [0.5, 0.9])
def test_within_five_per_cent_of_exact_on_linear_data(tau):
    X = rs.simulate("ER", degree=2, nodes=20, samples=2000, random_state=100).X.to_numpy()
    model = rs.Linear().fit(X)
    problem = Problem.unconstrained(X)
    _, state = played(Neural(tau=tau), model.losses_.to_numpy(), problem)
    assert state.told["neural"] >= 0.995 * state.told["exact"]


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"tau": 0}, ValueError, "tau must be a number above 0"),
        ({"loss": "square"}, ValueError, "loss must be one of nll, raw"),
        ({"hidden": 10}, TypeError, r"hidden must be a tuple of layer widths such as \(10, 10\)"),
        ({"hidden": (10, 0)}, ValueError, "Each width in hidden"),
        ({"temperature": 0}, ValueError, "temperature must be a number above 0"),
        ({"learning_rate": -1}, ValueError, "learning_rate must be a number above 0"),
        ({"epochs": 0}, ValueError, "epochs must be a whole number of at least 1"),
        ({"noise": 1}, TypeError, "noise must be True or False"),
        ({"seed": -1}, ValueError, "seed must be a whole number of at least 0"),
    ],
)
def test_wrong_options_are_refused(options, error, sentence):
    with pytest.raises(error, match=sentence):
        Neural(**options)


def test_it_plays_with_a_learner(chain):
    model = rs.ReScore(rs.Notears(), weighting=Neural(tau=0.5)).fit(chain)
    assert (model.adjacency_matrix_.to_numpy() != 0).sum() == 4
    assert model.diagnostics_["weighting"]["share"] > 0.95
    assert np.isfinite(model.sample_weight_.to_numpy()).all()
