"""The paper's two theorems: the second as a property, the first as a rate where it holds."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rescore import weight_box
from rescore.moments import Rows
from rescore.protocols import Problem
from rescore.weight_box import likelihood_units
from rescore.weightings import Exact

SCRIPT = Path(__file__).parents[2] / "docs" / "make_theory_figure.py"

cells = st.lists(st.tuples(*[st.floats(0, 100)] * 2), min_size=2, max_size=25).map(np.array)
taus = st.floats(0.02, 0.98)


@settings(deadline=None, max_examples=300)
@given(cells, taus, st.sampled_from(["nll", "raw"]), st.integers(0, 10**6))
def test_theorem_2_a_larger_loss_never_has_less_weight(losses, tau, loss, seed):
    """Per unit of prior weight; equal weights only at the same bound, or for tied losses.

    The paper's "only at a bound" leaves out ties: rows of equal loss share what is left.
    """
    n = len(losses)
    raw_prior = np.random.default_rng(seed).uniform(0.5, 2, size=n)
    prior = raw_prior / raw_prior.sum() if seed % 2 else np.full(n, 1 / n)
    plain = Problem.unconstrained(np.zeros((n, 2)))
    problem = Problem(plain.rows, prior, plain.allowed, plain.required)
    w, _ = Exact(tau, loss).step(problem, lambda: losses, None)
    per_row = losses.sum(axis=1) if loss == "raw" else likelihood_units(losses, prior)
    density = w / prior
    larger = per_row[:, None] > per_row * (1 + 1e-9) + 1e-300
    assert (density[:, None] >= density - 1e-9)[larger].all()
    same = larger & (np.abs(density[:, None] - density) < 1e-9)
    at_floor, at_ceiling = density < tau * (1 + 1e-6), density > (1 - 1e-6) / tau
    together = np.logical_or.outer(at_floor, np.zeros(n, bool)) & at_floor
    together |= np.logical_or.outer(at_ceiling, np.zeros(n, bool)) & at_ceiling
    assert together[same].all()


@pytest.fixture(scope="module")
def figure():
    """The script that draws the figure, where the documentation is there."""
    if not SCRIPT.exists():
        pytest.skip("the documentation is not part of this copy")
    found = spec_from_file_location("make_theory_figure", SCRIPT)
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


SIZES, SEEDS = (500, 2000, 8000, 32000), range(100, 106)


@pytest.mark.parametrize(
    ("case", "least", "largest"),
    [
        ("least squares, Gaussian noise", -0.6, -0.4),
        ("likelihood, Gaussian noise, unequal variances", -0.6, -0.4),
        ("likelihood, exponential noise (skewed)", -0.15, 0.05),
    ],
)
def test_theorem_1_coefficients_meet_at_root_n_unless_the_noise_is_skewed(
    figure, case, least, largest
):
    slope = figure.slope(figure.curve(case, SIZES, SEEDS), SIZES)
    assert least < slope < largest


def weighted_noise(noise, tau=0.5):
    """The covariance of noise (n, d) under exact weights made from its own squares."""
    prior = np.full(len(noise), 1 / len(noise))
    w = weight_box.heaviest(likelihood_units(noise**2, prior), prior, tau)
    return Rows(noise).moments(w).covariance


def test_the_reason_weighted_noise_stays_uncorrelated_only_if_it_is_symmetric():
    rng = np.random.default_rng(0)
    n = 200_000
    symmetric = weighted_noise(rng.normal(size=(n, 2)))
    skewed = weighted_noise(rng.exponential(size=(n, 2)) - 1)
    one_of_two = weighted_noise(np.c_[rng.normal(size=n), rng.exponential(size=n) - 1])
    assert abs(symmetric[0, 1]) < 0.015
    assert abs(one_of_two[0, 1]) < 0.015
    assert abs(skewed[0, 1]) > 0.05


def test_what_does_not_converge_the_variances_grow_by_one_factor_in_likelihood_units():
    noise = np.random.default_rng(1).normal(size=(200_000, 3)) * [1.0, 3.0, 0.1]
    growth = np.diag(weighted_noise(noise)) / noise.var(axis=0)
    assert growth.min() > 1.2
    assert np.ptp(growth) < 0.03
