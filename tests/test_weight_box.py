import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

from rescore import weight_box

taus = st.floats(0.02, 0.99)
seeds = st.integers(0, 10**6)
sizes = st.integers(1, 40)


def case(seed, n):
    """A point that is spread out, has ties, or lies far outside, and a prior."""
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(n, 5.0)) if seed % 2 else np.full(n, 1 / n)
    v = prior * rng.normal(1, rng.choice([0.01, 1, 30]), size=n)
    if seed % 3 == 0:
        v = prior * np.round(v / prior)
    return v, prior


def distance(w, v, prior):
    return np.sum((w - v) ** 2 / prior)


@settings(deadline=None, max_examples=300)
@given(seeds, sizes, taus)
def test_the_projection_satisfies_the_optimality_conditions(seed, n, tau):
    """One multiplier for all free rows, and the right sign of the gradient at each bound."""
    v, prior = case(seed, n)
    w = weight_box.project(v, prior, tau)
    floor, ceiling = weight_box.bounds(prior, tau)
    assert (w >= floor).all()
    assert (w <= ceiling).all()
    assert w.sum() == pytest.approx(1, abs=1e-12)
    slope = (w - v) / prior  # −μ for free rows
    at_floor, at_ceiling = w <= floor * (1 + 1e-9), w >= ceiling * (1 - 1e-9)
    free = ~at_floor & ~at_ceiling
    least = slope[at_floor].min() if at_floor.any() else np.inf
    largest = slope[at_ceiling].max() if at_ceiling.any() else -np.inf
    if free.any():
        assert np.ptp(slope[free]) < 1e-9
        least, largest = min(least, slope[free].min()), max(largest, slope[free].max())
    assert largest <= least + 1e-9


@settings(deadline=None, max_examples=300)
@given(seeds, sizes, taus)
def test_the_projection_equals_a_search_for_the_multiplier(seed, n, tau):
    v, prior = case(seed, n)

    def clipped(shift):
        return np.clip(v - shift * prior, *weight_box.bounds(prior, tau))

    ratio = v / prior
    shift = brentq(
        lambda m: clipped(m).sum() - 1, ratio.min() - 1 / tau - 1, ratio.max() + 1, xtol=1e-14
    )
    np.testing.assert_allclose(weight_box.project(v, prior, tau), clipped(shift), atol=1e-10)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # of older scipy
@pytest.mark.parametrize("seed", range(20))
def test_no_quadratic_program_gets_nearer(seed):
    v, prior = case(seed, 8)
    floor, ceiling = weight_box.bounds(prior, 0.3)
    found = minimize(
        distance,
        prior,
        args=(v, prior),
        jac=lambda w, v, prior: 2 * (w - v) / prior,
        method="SLSQP",
        bounds=list(zip(floor, ceiling, strict=True)),
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(8)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    ours = weight_box.project(v, prior, 0.3)
    assert distance(ours, v, prior) <= distance(found.x, v, prior) * (1 + 1e-6) + 1e-12
    np.testing.assert_allclose(ours, found.x, atol=1e-4)


def test_with_equal_prior_it_is_the_euclidean_projection():
    rng = np.random.default_rng(0)
    v, prior = rng.normal(size=50), np.full(50, 0.02)
    nearest = weight_box.project(v, prior, 0.2)
    for _ in range(200):
        other = weight_box.heaviest(
            rng.normal(size=50), prior, rng.uniform(0.2, 1)
        )  # inside C(0.2)
        assert np.linalg.norm(nearest - v) <= np.linalg.norm(other - v)


@settings(deadline=None)
@given(seeds, sizes, taus)
def test_a_point_of_the_box_stays_bit_for_bit(seed, n, tau):
    v, prior = case(seed, n)
    inside = weight_box.project(v, prior, tau)
    again = weight_box.project(inside, prior, tau)
    np.testing.assert_allclose(again, inside, rtol=1e-12)
    assert (weight_box.project(prior, prior, tau) == prior).all()
    assert (weight_box.project(v, prior, 1.0) == prior).all()


@settings(deadline=None)
@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=12), taus)
def test_a_row_repeated_k_times_gets_k_times_the_weight(seed, repeats, tau):
    counts = np.array(repeats)
    total, n = counts.sum(), len(counts)
    v = case(seed, n)[0]
    weighted = weight_box.project(v, counts / total, tau)
    repeated = weight_box.project(np.repeat(v / counts, counts), np.full(total, 1 / total), tau)
    starts = np.r_[0, np.cumsum(counts)[:-1]]
    np.testing.assert_allclose(np.add.reduceat(repeated, starts), weighted, atol=1e-11)


def test_the_point_itself_is_not_changed():
    v, prior = case(1, 10)
    before = v.copy()
    weight_box.project(v, prior, 0.5)
    assert (v == before).all()
