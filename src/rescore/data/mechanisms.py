"""Random additive noise models: functions of a variable's parents, noise, the data they make.

Each mechanism draws one random function f and returns f at the given rows: (n, p) -> (n,).  The
kernel of a Gaussian process is exp(-|x - y|^2 / 2), bandwidth one.  Cost for 2,000 rows on one
thread: 0.13 CPU s for a function of several variables (a Cholesky factor), 1 ms for a function of
one variable (a series).  With 50 nodes that makes 2 to 5 CPU s for "gp" and 0.1 to 0.2 for
"gp-add"; benchmarks/gp_simulator.py measures it.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rescore.graph.dag import topological_order
from rescore.validation import check_choice, check_integer, check_number

Adjacency = NDArray[np.int8]  # (d, d) of 0 and 1; [i, j] = 1 means i -> j
FloatArray = NDArray[np.float64]
HIDDEN = 100  # units of the random network
# The kernel matrix of more rows than this is 0.8 GB or more, and its factor 10 s per node.
MOST_ROWS = 10_000
# Added to the diagonal: nearby rows make the kernel singular to machine precision.
JITTER = 1e-8
# exp(-x^2 / 2) of larger |x| comes near the smallest float, and the series below gets long.
LARGEST_SERIES_INPUT = 30.0


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

    >>> from rescore.data.simulate import simulate, streams
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


def gp_joint(parents: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One function of all parents together, at the given rows: (n, p) -> (n,).

    The covariance of any two values is the kernel to within 1e-8. The same seed gives the same bits
    on the same machine; another number of BLAS threads was seen to move values by 1e-7, because the
    kernel matrix of close rows is nearly singular.

    Examples
    --------
    >>> f = gp_joint(np.array([[0.0, 1.0], [0.0, 1.0], [9.0, 9.0]]), np.random.default_rng(0))
    >>> bool(abs(f[0] - f[1]) < 1e-3 < abs(f[0] - f[2]))  # equal rows, equal values
    True
    """
    if parents.shape[1] == 1 and np.abs(parents).max() <= LARGEST_SERIES_INPUT:
        return _series(parents[:, 0], rng)
    return _dense(parents, rng)


def gp_additive(parents: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A sum of independent functions, one of each parent, at the given rows: (n, p) -> (n,).

    Examples
    --------
    >>> gp_additive(np.zeros((3, 2)), np.random.default_rng(0)).shape
    (3,)
    """
    functions = [
        gp_joint(parents[:, [i]], child) for i, child in enumerate(rng.spawn(parents.shape[1]))
    ]
    return np.sum(functions, axis=0)


def _series(x: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Values of f(x) = sum_k z_k exp(-x^2 / 2) x^k / sqrt(k!), z_k from N(0, 1).

    The covariance of this sum is exp(-(x^2 + y^2) / 2) sum_k (x y)^k / k! = exp(-(x - y)^2 / 2),
    the kernel itself, with no n x n matrix. Its first terms suffice: those left out have variance
    P(Poisson(x^2) >= number of terms).
    """
    z = rng.standard_normal(_terms(float(np.abs(x).max())))
    term = np.exp(-0.5 * x**2)
    total = z[0] * term
    for k in range(1, len(z)):
        term = term * (x / math.sqrt(k))
        total += z[k] * term
    return total


def _terms(largest: float) -> int:
    """How many terms leave out a variance below 1e-15 at every |x| <= largest."""
    return math.ceil(largest**2 + 8 * largest + 20)


def _dense(parents: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The values L z, with L the Cholesky factor of the kernel matrix of the rows."""
    from scipy.linalg import cholesky
    from scipy.spatial.distance import cdist

    n = len(parents)
    if n > MOST_ROWS:
        raise ValueError(
            f"A Gaussian process over several parents needs a matrix of {n} x {n} numbers; at most "
            f"{MOST_ROWS} rows are allowed. Lower samples, or use mechanism='gp-add' or 'mlp'."
        )
    K = cdist(parents, parents, "sqeuclidean")  # (n, n)
    K *= -0.5
    np.exp(K, out=K)
    K.flat[:: n + 1] += JITTER
    # K is symmetric, so its transpose is K in the order LAPACK factors in place.
    L = cholesky(K.T, lower=True, overwrite_a=True, check_finite=False)
    return L @ rng.standard_normal(n)


MECHANISMS: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "linear": linear,
    "gp": gp_joint,
    "gp-add": gp_additive,
    "mlp": mlp,
    "mim": mim,
}

# Every kind has mean zero: otherwise a smaller scale would also shift a group's means, and the
# groups would differ in more than their noise scales. Spreads stay those of the textbook
# distribution: variances 1, 1, pi^2 / 6 and 1 / 3.
NOISES: dict[str, Callable[[np.random.Generator, tuple[int, int]], FloatArray]] = {
    "gauss": lambda rng, shape: rng.standard_normal(shape),
    "exp": lambda rng, shape: rng.standard_exponential(shape) - 1.0,
    "gumbel": lambda rng, shape: rng.gumbel(0.0, 1.0, shape) - np.euler_gamma,
    "uniform": lambda rng, shape: rng.uniform(-1.0, 1.0, shape),
}


def standard_noise(kind: str, samples: int, nodes: int, rng: np.random.Generator) -> FloatArray:
    """Independent noise, (samples, nodes): N(0, 1), Exp(1) - 1, Gumbel(0, 1) - 0.577..., U(-1, 1).

    A larger sample begins with the rows of a smaller one from the same seed.

    Examples
    --------
    >>> standard_noise("uniform", 3, 2, np.random.default_rng(0)).shape
    (3, 2)
    """
    shape = check_integer("samples", samples, at_least=1), check_integer("nodes", nodes, at_least=1)
    return NOISES[check_choice("noise", kind, NOISES)](rng, shape)


def group_sizes(shares: Sequence[float], samples: int) -> list[int]:
    """How many of the rows each group gets: samples * share, the largest remainders rounded up.

    Examples
    --------
    >>> group_sizes((0.9, 0.1), 1000)
    [900, 100]
    >>> group_sizes((0.5, 0.25, 0.25), 10)
    [5, 3, 2]
    """
    exact = np.array(_checked_shares(shares)) * samples
    sizes = np.floor(exact).astype(int)
    left = samples - int(sizes.sum())
    sizes[np.argsort(sizes - exact, kind="stable")[:left]] += 1
    if (sizes == 0).any():
        raise ValueError(
            f"groups={tuple(shares)} leaves a group without a row among {samples} samples. "
            "Raise samples or the smallest share."
        )
    return sizes.tolist()


def group_members(
    shares: Sequence[float], samples: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The group of every row, (samples,): exact sizes in a random order.

    Rows are mixed and not in blocks, so that nothing can learn a group from a row's position.

    Examples
    --------
    >>> np.bincount(group_members((0.9, 0.1), 50, np.random.default_rng(0))).tolist()
    [45, 5]
    """
    sizes = group_sizes(shares, samples)
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


def group_scales(groups: int, nodes: int, low: float, rng: np.random.Generator) -> FloatArray:
    """The factor on every variable's noise in every group, (groups, nodes).

    In the first group a random half of the variables has 1 and the other half `low`; the second
    group is the first one flipped; each further group has a new random half. Of an odd number of
    variables the first group gives 1 to the larger part.

    Examples
    --------
    >>> group_scales(2, 4, 0.1, np.random.default_rng(0)).sum(axis=0)
    array([1.1, 1.1, 1.1, 1.1])
    """
    K, d = check_integer("groups", groups, at_least=1), check_integer("nodes", nodes, at_least=1)
    quiet = [rng.permutation(d) < d // 2 for _ in range(K)]
    if K > 1:
        quiet[1] = ~quiet[0]
    return np.where(quiet, check_number("noise_scale", low, above=0), 1.0)


def _checked_shares(shares: object) -> list[float]:
    """The shares as positive floats that sum to one."""
    if isinstance(shares, str) or not isinstance(shares, Sequence | np.ndarray):
        raise TypeError(f"groups must be shares such as (0.9, 0.1); got {shares!r}.")
    numbers = [check_number("Each share in groups", share, above=0) for share in shares]
    if abs(math.fsum(numbers) - 1) > 1e-9:
        raise ValueError(
            f"The shares in groups must sum to 1; {tuple(numbers)} sum to {math.fsum(numbers):g}. "
            "Divide them by their sum."
        )
    return numbers
