"""Noise of mean zero, and how its scale differs between groups of rows."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rescore.validation import check_choice, check_integer, check_number

FloatArray = NDArray[np.float64]
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
