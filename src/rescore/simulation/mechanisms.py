"""Random functions of a variable's parents, and the data that a graph of them makes.

Each mechanism draws one random function f and returns f at the given rows: (n, p) -> (n,).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rescore.checking import check_choice
from rescore.graph import topological_order
from rescore.simulation.gaussian_process import gp_additive, gp_joint
from rescore.simulation.graphs import Adjacency

__all__ = ["MECHANISMS", "coefficients", "linear", "linear_coefficients", "mim", "mlp", "propagate"]

FloatArray = NDArray[np.float64]
HIDDEN = 100  # units of the random network


def coefficients(shape: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Independent draws from the even mixture of U(-2, -0.5) and U(0.5, 2).

    Examples
    --------
    >>> b = coefficients(1000, np.random.default_rng(0))
    >>> bool(abs(b).min() >= 0.5 and abs(b).max() <= 2)
    True
    """
    return rng.uniform(0.5, 2.0, shape) * rng.choice((-1.0, 1.0), shape)


def linear(parents: FloatArray, rng: np.random.Generator) -> FloatArray:
    """f(x) = x b with b from `coefficients`.

    Examples
    --------
    >>> linear(np.zeros((3, 2)), np.random.default_rng(0))
    array([0., 0., 0.])
    """
    return parents @ coefficients(parents.shape[1], rng)


def mlp(parents: FloatArray, rng: np.random.Generator) -> FloatArray:
    """f(x) = sigmoid(x U) v, a network of 100 hidden units with U and v from `coefficients`.

    Examples
    --------
    >>> mlp(np.zeros((3, 2)), np.random.default_rng(0)).shape
    (3,)
    """
    from scipy.special import expit

    U = coefficients((parents.shape[1], HIDDEN), rng)  # (p, h)
    return expit(parents @ U) @ coefficients(HIDDEN, rng)


def mim(parents: FloatArray, rng: np.random.Generator) -> FloatArray:
    """f(x) = tanh(x a) + cos(x b) + sin(x c), a multiple index model from `coefficients`.

    Examples
    --------
    >>> mim(np.zeros((2, 3)), np.random.default_rng(0))  # tanh 0 + cos 0 + sin 0
    array([1., 1.])
    """
    a, b, c = (parents @ coefficients((parents.shape[1], 3), rng)).T  # (n,) each
    return np.tanh(a) + np.cos(b) + np.sin(c)


MECHANISMS: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "linear": linear,
    "gp": gp_joint,
    "gp-add": gp_additive,
    "mlp": mlp,
    "mim": mim,
}


def propagate(
    graph: Adjacency, noise: FloatArray, mechanism: str, rng: np.random.Generator
) -> FloatArray:
    """The data of the additive noise model x_j = f_j(parents of j) + noise_j, (n, d).

    Every node draws f_j from its own child of `rng`, so the function of one node does not depend
    on how many numbers the others use. A node without parents is its noise.

    Examples
    --------
    >>> chain = np.array([[0, 1], [0, 0]], dtype=np.int8)
    >>> x = propagate(chain, np.array([[1.0, 0.0]]), "linear", np.random.default_rng(0))
    >>> b = linear_coefficients(chain, np.random.default_rng(0))[0, 1]
    >>> bool(x[0, 1] == b)  # 1 * b + 0
    True
    """
    function = MECHANISMS[check_choice("mechanism", mechanism, MECHANISMS)]
    X = np.array(noise, dtype=np.float64)  # (n, d), a copy
    node_rngs = rng.spawn(len(graph))
    for j in topological_order(graph):
        parents = np.flatnonzero(graph[:, j])
        if parents.size:
            X[:, j] += function(X[:, parents], node_rngs[j])
    return X


def linear_coefficients(graph: Adjacency, rng: np.random.Generator) -> FloatArray:
    """The coefficients B, (d, d), of x = x B + noise in `propagate` with "linear" and this `rng`.

    Examples
    --------
    The coefficients behind a simulated dataset:

    >>> from rescore.simulation import simulate, streams
    >>> data = simulate(nodes=5, degree=1, samples=10, random_state=3)
    >>> B = linear_coefficients(data.truth.to_numpy(), streams(3).mechanism)
    >>> bool(((B != 0) == data.truth).all(axis=None))
    True
    """
    B = np.zeros(graph.shape)
    for j, node_rng in enumerate(rng.spawn(len(graph))):
        parents = np.flatnonzero(graph[:, j])
        B[parents, j] = coefficients(parents.size, node_rng)
    return B
