import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from rescore.acyclicity import expm1, log_det, polynomial, saturating, trace_exponential
from rescore.graph.dag import is_dag


@jax.jit
def of_weights(W):
    """The measure of squares as one of weights, with the gradient that JAX finds."""
    return jax.value_and_grad(lambda W: saturating(W * W))(W)


ALL = [trace_exponential, polynomial, log_det, of_weights]


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


def random_weights(seed, d=5, scale=0.3):
    return np.random.default_rng(seed).normal(size=(d, d)) * scale


@pytest.mark.parametrize("h", ALL)
@pytest.mark.parametrize("seed", range(3))
def test_gradients_equal_finite_differences(h, seed):
    W = random_weights(seed)
    gradient = np.asarray(h(W)[1])
    numeric = np.empty_like(W)
    for k in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[k] = 1e-6
        numeric[k] = (h(W + step)[0] - h(W - step)[0]) / 2e-6
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)


@pytest.mark.parametrize("h", ALL)
def test_zero_exactly_for_dags_and_positive_for_cycles(h):
    rng = np.random.default_rng(0)
    for _ in range(20):
        order = rng.permutation(6)
        W = np.triu(rng.normal(size=(6, 6)), 1)[np.ix_(order, order)]
        assert float(h(W)[0]) == pytest.approx(0, abs=1e-15)
        cause, effect = np.argwhere(W)[0]
        W[effect, cause] = 1e-3
        assert not is_dag(W)
        assert float(h(W)[0]) > 0


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_values_equal_scipy(scale):
    W = random_weights(1, scale=scale)
    A = W * W
    E = scipy.linalg.expm(A)
    np.testing.assert_allclose(expm1(jnp.asarray(A)), E - np.eye(5), rtol=1e-9, atol=1e-12)
    assert float(trace_exponential(W)[0]) == pytest.approx(np.trace(E) - 5, rel=1e-10)
    P = np.linalg.matrix_power(np.eye(5) + A / 5, 5)
    assert float(polynomial(W)[0]) == pytest.approx(np.trace(P) - 5, rel=1e-10)
    B = A / (1 + A)
    P = np.linalg.matrix_power(np.eye(5) + B / 8, 8)
    assert float(saturating(jnp.asarray(A))) == pytest.approx(np.trace(P) - 5, rel=1e-10)


def test_log_det_equals_numpy_inside_its_domain():
    W = random_weights(2)
    expected = -np.log(np.linalg.det(0.8 * np.eye(5) - W * W)) + 5 * np.log(0.8)
    assert float(log_det(W, 0.8)[0]) == pytest.approx(expected, rel=1e-10)


def test_log_det_is_infinite_outside_its_domain():
    assert float(log_det(random_weights(0, scale=3.0))[0]) == np.inf


@pytest.mark.parametrize("h", [trace_exponential, polynomial, of_weights])
@pytest.mark.parametrize("back", [1e-3, 1e-6, 1e-9])
def test_small_cycles_show_to_full_precision(h, back):
    """tr e^{W∘W} − d is back² here; as a difference from d it would drown in rounding."""
    W = np.array([[0.0, 1.0], [back, 0.0]])
    # The square of the weight one saturates at a half; a cycle of two counts half when k = 2.
    factor = {trace_exponential: 1.0, polynomial: 0.5, of_weights: 0.25}[h]
    leading = factor * back**2
    assert float(h(W)[0]) == pytest.approx(leading, rel=1e-5)


@pytest.mark.parametrize("d", [5, 400])
def test_never_negative_even_when_large(d):
    W = np.triu(np.random.default_rng(0).normal(size=(d, d)), 1) * 0.1
    assert float(trace_exponential(W)[0]) >= 0
    assert float(polynomial(W)[0]) >= 0
    assert float(saturating(W * W)) >= 0


def test_overflow_is_not_finite_rather_than_wrong():
    assert not np.isfinite(float(trace_exponential(np.full((5, 5), 100.0))[0]))


@pytest.mark.parametrize("h", ALL)
def test_float32_is_refused(h):
    with pytest.raises(TypeError, match="float64"):
        h(np.zeros((2, 2), dtype=np.float32))
