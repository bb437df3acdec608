import numpy as np
import pytest

from rescore.solvers.gaussian_orders import Costs, Found, completed, improved, total

FREE = np.zeros((4, 4), dtype=bool)


@pytest.fixture(scope="module")
def costs():
    """Variables 0 and 1 act on 2 only together, and 2 on 3."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 4))
    X[:, 2] = 2 * np.sin(X[:, 0] * X[:, 1]) + 0.3 * X[:, 2]
    X[:, 3] = np.cos(2 * X[:, 2]) + 0.3 * X[:, 3]
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    return Costs(X, np.ones(X.shape), ~np.eye(4, dtype=bool))


def settled(costs, order, required=FREE):
    found = Found(order, costs.along(order))
    before = total(found.fits)
    while True:
        found = improved(costs, found, required)
        assert total(found.fits) <= before + 1e-9
        before = total(found.fits)
        if not found.moves:
            return found


@pytest.mark.parametrize("order", [(2, 3, 0, 1), (2, 3, 1, 0), (3, 2, 1, 0), (0, 2, 3, 1)])
def test_an_effect_goes_behind_its_joint_causes_with_effects_of_its_own(costs, order):
    """Alone neither cause gains anything in front of it, nor can it go past its own effect."""
    found = settled(costs, order)
    assert found.order.index(2) > max(found.order.index(0), found.order.index(1))
    assert found.order.index(3) > found.order.index(2)


def test_the_fits_belong_to_the_order(costs):
    found = settled(costs, (2, 3, 0, 1))
    for k, v in enumerate(found.order):
        assert set(found.fits[v].inputs) <= set(found.order[:k])


def test_required_causes_stay_in_front(costs):
    required = FREE.copy()
    required[2, 0] = True
    found = settled(costs, (2, 3, 0, 1), required)
    assert found.order.index(2) < found.order.index(0)


def test_a_cause_that_a_fit_lacks_comes_in():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 3))
    X[:, 2] = np.sin(2 * X[:, 0]) + np.sin(2 * X[:, 1]) + 0.3 * X[:, 2]
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    costs, order = Costs(X, np.ones(X.shape), ~np.eye(3, dtype=bool)), (0, 1, 2)
    found = Found(order, {0: costs.fit(0, ()), 1: costs.fit(1, (0,)), 2: costs.fit(2, (0,))})
    assert set(found.fits[2].inputs) == {0}
    again = completed(costs, found)
    assert set(again.fits[2].inputs) == {0, 1}
    assert total(again.fits) < total(found.fits) - 10
    assert again.order == order


def test_nothing_comes_in_where_nothing_is_lacking(costs):
    order = (0, 1, 2, 3)
    found = Found(order, costs.along(order))
    assert total(completed(costs, found).fits) <= total(found.fits)
    assert set(completed(costs, found).fits[3].inputs) == {2}
