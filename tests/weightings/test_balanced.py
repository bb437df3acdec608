import numpy as np
import pytest

from rescore import weight_box
from rescore.moments import Rows
from rescore.protocols import Problem
from rescore.weightings.balanced import Balanced


def losses(scales, sizes, seed=0):
    """Squared residuals of groups of rows, each with its own noise per variable."""
    rng = np.random.default_rng(seed)
    scale = np.repeat(np.asarray(scales), sizes, axis=0)
    return np.square(rng.normal(size=scale.shape) * scale)


HALVES = [[1, 1, 1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 1, 1, 1]]


def weights(L, tau=0.01, prior=None):
    problem = Problem.unconstrained(np.zeros_like(L))
    if prior is not None:
        problem = Problem(Rows(np.zeros_like(L)), prior, problem.allowed, problem.required)
    return Balanced(tau).step(problem, lambda: L, None)


def test_rows_that_look_alike_keep_their_weights_bit_for_bit():
    L = losses([[1, 2, 3, 1, 1, 1]], [600])
    w, state = weights(L)
    assert (w == 1 / 600).all()
    assert Balanced().explain(state)["groups"] == 1


def test_a_minority_with_other_noise_gets_half_of_the_weight():
    L = losses(HALVES, [900, 100])
    w, state = weights(L)
    assert w.sum() == pytest.approx(1)
    assert w[900:].sum() == pytest.approx(0.5, abs=0.05)
    decided = Balanced().explain(state)
    assert decided["noise"] == [False, False]
    assert sorted(decided["share_before"]) == pytest.approx([0.1, 0.9], abs=0.01)


def test_plain_noise_gets_the_floor():
    L = losses([[1] * 6, [9] * 6], [950, 50])
    w, state = weights(L)
    assert np.median(w[950:]) == pytest.approx(0.01 / 1000, rel=0.01)
    assert Balanced().explain(state)["noise_rows"] == pytest.approx(50, abs=5)


@pytest.mark.parametrize("tau", [0.05, 0.3, 1.0])
def test_weights_stay_in_the_box(tau):
    L = losses(HALVES, [900, 100])
    w, _ = weights(L, tau)
    prior = np.full(1000, 1 / 1000)
    low, high = weight_box.bounds(prior, tau)
    assert (w >= low * (1 - 1e-9)).all()
    assert (w <= high * (1 + 1e-9)).all()
    assert tau < 1 or (w == prior).all()


def test_the_same_losses_give_the_same_weights_whatever_went_before():
    L = losses(HALVES, [900, 100])
    problem = Problem.unconstrained(np.zeros_like(L))
    first, state = Balanced().step(problem, lambda: L, None)
    again, _ = Balanced().step(problem, lambda: L, state)
    assert (first == again).all()
