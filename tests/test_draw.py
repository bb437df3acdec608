"""New rows from fitted equations."""

import numpy as np
import pandas as pd
import pytest

import rescore as rs


@pytest.fixture(scope="module")
def model():
    data = rs.simulate(nodes=6, degree=2, samples=5000, random_state=100)
    return rs.Linear().fit(data.X), data


def test_samples_have_the_moments_of_the_data(model):
    fitted, data = model
    drawn = fitted.sample(50_000)
    assert list(drawn) == list(data.X)
    scale = np.sqrt(np.outer(data.X.var(), data.X.var()))
    assert np.abs((drawn.cov() - data.X.cov()) / scale).to_numpy().max() < 0.06


def test_an_intervention_moves_descendants_alone_by_the_total_effect(model):
    fitted, _ = model
    W = fitted.adjacency_matrix_.to_numpy()
    total = np.linalg.inv(np.eye(6) - W)  # sums of products over all directed paths
    for i, name in enumerate(fitted.adjacency_matrix_):
        low, high = (fitted.intervene({name: value}, 50) for value in (0.0, 1.0))
        assert np.allclose((high - low).to_numpy(), total[i], atol=1e-8)


def test_what_is_done_is_what_is_there(model):
    fitted, _ = model
    drawn = fitted.intervene({"x0": 3.0, "x5": -1.0}, 10)
    assert (drawn["x0"] == 3.0).all()
    assert (drawn["x5"] == -1.0).all()


def test_networks_are_followed_too():
    data = rs.simulate(nodes=4, degree=1, samples=400, mechanism="gp", random_state=100)
    fitted = rs.NotearsMLP().fit(data.X)
    drawn = fitted.intervene({"x0": 0.5}, 20)
    again = fitted.predict(drawn)
    residual = (drawn - again).drop(columns="x0")
    assert np.isfinite(residual.to_numpy()).all()
    noise = fitted.sample(20) - fitted.predict(fitted.sample(20))
    pd.testing.assert_frame_equal(residual, noise.drop(columns="x0"))  # the same individuals


def test_the_same_seed_gives_the_same_rows(model):
    fitted, _ = model
    pd.testing.assert_frame_equal(fitted.sample(5), fitted.sample(5))
    assert not fitted.sample(5).equals(fitted.sample(5, random_state=1))


def test_bad_interventions_are_named(model):
    fitted, _ = model
    with pytest.raises(ValueError, match="'nobody' is not among the variables"):
        fitted.intervene({"nobody": 1.0})
    with pytest.raises((TypeError, ValueError), match="do\\['x0'\\]"):
        fitted.intervene({"x0": float("nan")})
    with pytest.raises((TypeError, ValueError), match="n must"):
        fitted.sample(0)
