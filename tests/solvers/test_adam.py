import jax
import jax.numpy as jnp
import numpy as np

from rescore.solvers.adam import Averages, adam


def test_moves_are_those_of_weighted_means_over_all_gradients():
    """Unbiased running averages, written as what they are: means with weights that fade."""
    gradients = np.random.default_rng(0).normal(size=(20, 3))
    with jax.enable_x64(True):
        averages = Averages((jnp.zeros(3),), (jnp.zeros(3),), 0)
        for gradient in gradients:
            (move,), averages = adam(averages, (jnp.asarray(gradient),), 0.1, 0.01)
    ages = np.arange(20)[::-1]
    mean = np.average(gradients, axis=0, weights=0.9**ages)
    square = np.average(gradients**2, axis=0, weights=0.99**ages)
    np.testing.assert_allclose(move, 0.1 * mean / (np.sqrt(square) + 0.01), rtol=1e-12)
    assert averages.count == 20
