"""New rows from fitted equations, as they are or under interventions."""

from collections.abc import Mapping

import numpy as np

from rescore.equations import Equations
from rescore.graph import topological_order
from rescore.moments import Matrix

__all__ = ["draw"]


def draw(
    equations: Equations,
    W: Matrix,
    variance: Matrix,
    n: int,
    rng: np.random.Generator,
    do: Mapping[int, float] | None = None,
) -> Matrix:
    """``x_j = f_j(parents of j) + σ_j e_j`` along the order of the graph W, e standard normal.

    Variables in ``do`` are set to their value instead.  The noise is drawn for all variables
    whatever ``do`` says, so that the same generator gives the same individuals under every
    intervention.

    Examples
    --------
    >>> from rescore.equations import LinearEquations
    >>> W = np.array([[0.0, 2.0], [0.0, 0.0]])
    >>> line = LinearEquations(W, np.zeros(2))
    >>> rng = np.random.default_rng(0)
    >>> draw(line, W, np.array([1.0, 0.0]), 2, rng, do={0: 3.0})
    array([[3., 6.],
           [3., 6.]])
    """
    noise = rng.standard_normal((n, len(W))) * np.sqrt(variance)
    X, fixed = np.zeros((n, len(W))), do or {}
    for j in topological_order(W):
        X[:, j] = fixed[j] if j in fixed else equations.variable(X, j) + noise[:, j]
    return X
