"""Which of many inputs act together, where each alone shows nothing.

A function of ten inputs is nearly noise of its own: its kernel matrix is small off the diagonal.
To second order in what is there, the log evidence of a set S of inputs over that of none is

    A Σ_a<b u_a u_b k_ab − ½ A² Σ_a<b k_ab² / (T_a T_b),    k_ab = exp(−½ ρ Σ_i∈S (x_ai − x_bi)²)

with T the whole variance of every row, u = y / T, and ρ and A as relevant and as strong as in this
table's other relations.  No matrix is factored, so that hundreds of sets are tried in the time of
a few fits, and a fit by `relevance.maximise` begins at the best of them instead of at all
candidates alike.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.protocols import Mask
from rescore.solvers.gaussian_covariance import Target
from rescore.solvers.gaussian_inputs import spread_rows
from rescore.solvers.relevance import Prior, beside_levels, nothing

MOST = 2000  # rows that sets are compared on: a fit takes seconds there, the pairs 8 MB an input
GAINS = 0.01  # log evidence that a set must gain on the one before it


class Pairs(NamedTuple):
    """Of rows: how much each input, as relevant as inputs are, takes from the logarithm of k_ab."""

    rows: NDArray[np.intp]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    apart: NDArray[np.float32]  # (d, pairs), −½ ρ (x_ai − x_bi)²

    @classmethod
    def of(cls, X: NDArray[np.float32], prior: Prior) -> "Pairs":
        """Of the rows of X (n, d), or of MOST of them.

        Examples
        --------
        >>> X = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
        >>> print((Pairs.of(X, Prior()).apart / Prior().relevance).round(1))
        [[-0.5 -4.5 -2. ]]
        """
        rows = spread_rows(len(X), MOST)
        Z = X[rows] * np.float32(np.sqrt(prior.relevance / 2))
        a, b = np.triu_indices(len(rows), 1)
        apart = np.empty((X.shape[1], len(a)), dtype=np.float32)
        for i, z in enumerate(Z.T):
            np.negative(np.square(z[a] - z[b]), out=apart[i])
        return cls(rows, a, b, apart)


class Scores:
    """The log evidence of sets of inputs of one variable, to second order."""

    def __init__(self, target: Target, pairs: Pairs, prior: Prior) -> None:
        part = target.part(pairs.rows)
        noise = np.exp(nothing(part, prior).theta[-1])
        u = beside_levels(noise * part.noise, part).y / (noise * part.noise)
        signal = noise / (1 + np.exp(-prior.ratio))
        a, b = pairs.first, pairs.second
        self._apart = pairs.apart
        self._linear = (signal * u[a] * u[b]).astype(np.float32)
        root = signal / (noise * part.noise)
        self._square = (root[a] * root[b] / 2).astype(np.float32)
        self._k: Any = np.empty_like(self._linear)

    def __call__(self, exponent: NDArray[np.float32]) -> float:
        """Of the set whose kernel has these logarithms (pairs,)."""
        k = np.exp(exponent, out=self._k)
        linear = float(self._linear @ k)
        np.square(k, out=k)
        return linear - float(self._square @ k)

    def best(self, start: Mask, among: Mask) -> tuple[Mask, float]:
        """From a set to the next, with one input ``among`` (d,) more or fewer, while that gains."""
        chosen = start.copy()
        exponent = self._apart[chosen].sum(axis=0)
        value = self(exponent)
        while True:
            tried = {i: self(exponent + self._change(i, chosen)) for i in np.flatnonzero(among)}
            i = max(tried, key=lambda one: tried[one])
            if tried[i] - value < GAINS:
                return chosen, value
            exponent += self._change(i, chosen)
            chosen[i], value = ~chosen[i], tried[i]

    def _change(self, i: np.intp, chosen: Mask) -> NDArray[np.float32]:
        return -self._apart[i] if chosen[i] else self._apart[i]


def likely_set(target: Target, candidates: Mask, pairs: Pairs, prior: Prior) -> tuple[Mask, float]:
    """The best set (d,) that all candidates lead to, and the log evidence that it promises.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 6)).astype(np.float32)
    >>> K = np.exp(-np.square(X[:, None, :3] - X[:, :3]).sum(axis=2) / 2) + np.eye(300)
    >>> y = np.linalg.cholesky(K) @ rng.normal(size=300)
    >>> one = Target(X, (y / y.std()).astype(np.float32), np.ones(300))
    >>> every = np.ones(6, dtype=bool)
    >>> likely_set(one, every, Pairs.of(X, Prior()), Prior())[0]
    array([ True,  True,  True, False, False, False])
    """
    if not candidates.any():
        return candidates, 0.0
    chosen, value = Scores(target, pairs, prior).best(candidates, candidates)
    return (chosen, value) if value > 0 else (np.zeros_like(chosen), 0.0)
