from itertools import product

import numpy as np
import pytest

from rescore.solvers.gaussian_covariance import Target, factored, kernel
from rescore.solvers.gaussian_orders import Costs, Found, gathered, total
from rescore.solvers.gaussian_sets import Pairs, Scores, likely_set
from rescore.solvers.relevance import Prior, nothing

ROWS, INPUTS = 400, 7
PRIOR = Prior(spread=0.3, width=0.3)
TRUE = np.array([True, True, False, True, True, False, True])


@pytest.fixture(scope="module")
def rows():
    """Five of seven inputs act on y, all of them together."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(ROWS, INPUTS)).astype(np.float32)
    Z = X[:, TRUE].astype(float)
    K = np.exp(-np.square(Z[:, None] - Z).sum(axis=2) / 2) + 1e-6 * np.eye(ROWS)
    y = np.linalg.cholesky(K) @ rng.normal(size=ROWS) + rng.normal(size=ROWS)
    return X, ((y - y.mean()) / y.std()).astype(np.float32)


def weighed(rows, levels):
    rng = np.random.default_rng(1)
    groups = np.eye(2)[rng.integers(0, 2, ROWS)] if levels else None
    return Target(*rows, rng.uniform(0.5, 2, ROWS), groups)


@pytest.mark.parametrize("levels", [False, True])
def test_a_weak_signal_gains_what_its_slope_says(rows, levels):
    """So weak that only what is linear in it counts; whole variances of rows stay what they are."""
    weak = -9.0
    one, prior = weighed(rows, levels), PRIOR._replace(ratio=weak)
    pairs = Pairs.of(one.X, prior)
    score = Scores(one, pairs, prior)(pairs.apart[TRUE].sum(axis=0))
    noise = np.exp(nothing(one, prior).theta[-1])
    signal = noise / (1 + np.exp(-weak))
    theta = np.r_[np.where(TRUE, prior.relevance, 0.0), np.log(signal), 0.0]
    there = one._replace(noise=noise * one.noise - signal)
    none = np.r_[np.zeros(INPUTS), -30.0, 0.0]
    without = factored(none, one._replace(noise=noise * one.noise), np.float64).value
    assert without - factored(theta, there, np.float64).value == pytest.approx(score, rel=0.05)


def test_and_loses_half_its_mean_curvature(rows):
    """Under noise alone: ``¼ tr (T⁻¹ K)²`` off the diagonal."""
    one = weighed(rows, levels=False)
    pairs = Pairs.of(one.X, PRIOR)
    nothing_to_explain = one._replace(y=np.full(ROWS, 1e-9, dtype=np.float32))
    noise = np.exp(nothing(nothing_to_explain, PRIOR).theta[-1])
    K = kernel(np.r_[np.where(TRUE, PRIOR.relevance, 0.0), 0.0, 0.0], one.X, one.X)
    np.fill_diagonal(K, 0.0)
    K *= noise / (1 + np.exp(-PRIOR.ratio)) / (noise * one.noise[:, None])
    score = Scores(nothing_to_explain, pairs, PRIOR)(pairs.apart[TRUE].sum(axis=0))
    assert score == pytest.approx(-np.trace(K @ K) / 4, rel=1e-3)


def test_the_best_set_has_no_better_neighbour_and_is_the_true_one(rows):
    one = Target(*rows, np.ones(ROWS))
    pairs = Pairs.of(one.X, PRIOR)
    score = Scores(one, pairs, PRIOR)
    every = np.ones(INPUTS, dtype=bool)
    chosen, value = score.best(every, every)
    sets = np.array(list(product([False, True], repeat=INPUTS)))
    values = np.array([score(pairs.apart[s].sum(axis=0)) for s in sets])
    neighbours = (sets != chosen).sum(axis=1) == 1
    assert values[neighbours].max() <= value + 0.02
    assert value == pytest.approx(values.max(), abs=0.02)
    np.testing.assert_array_equal(chosen, TRUE)


def test_inputs_in_another_order_give_the_same_set(rows):
    X, y = rows
    turned = np.random.default_rng(2).permutation(INPUTS)
    every = np.ones(INPUTS, dtype=bool)
    chosen, value = likely_set(Target(X, y, np.ones(ROWS)), every, Pairs.of(X, PRIOR), PRIOR)
    Z = X[:, turned]
    again, same = likely_set(Target(Z, y, np.ones(ROWS)), every, Pairs.of(Z, PRIOR), PRIOR)
    np.testing.assert_array_equal(again, chosen[turned])
    assert same == pytest.approx(value, rel=1e-4)


def test_of_no_candidates_there_is_no_set(rows):
    none = np.zeros(INPUTS, dtype=bool)
    chosen, value = likely_set(Target(*rows, np.ones(ROWS)), none, Pairs.of(rows[0], PRIOR), PRIOR)
    assert not chosen.any()
    assert value == 0


@pytest.fixture(scope="module")
def costs(rows):
    X, y = rows
    Z = np.column_stack((X, y))
    return Costs(Z, np.ones(Z.shape), ~np.eye(INPUTS + 1, dtype=bool), PRIOR, thorough=False)


ORDER = (0, 2, 5, INPUTS, 1, 3, 4, 6)  # four of the five causes come too late


def test_an_effect_goes_behind_causes_that_show_themselves_only_together(costs):
    found = Found(ORDER, costs.along(ORDER))
    again = gathered(costs, found, np.zeros((INPUTS + 1,) * 2, dtype=bool))
    assert again.moves == 1
    assert total(again.fits) < total(found.fits) - 2
    assert set(again.fits[INPUTS].inputs) == set(np.flatnonzero(TRUE))
    for k, v in enumerate(again.order):
        assert set(again.fits[v].inputs) <= set(again.order[:k])


def test_but_not_past_what_it_is_required_to_cause(costs):
    required = np.zeros((INPUTS + 1,) * 2, dtype=bool)
    required[INPUTS, 6] = True
    found = Found(ORDER, costs.along(ORDER))
    assert gathered(costs, found, required).order == ORDER
