"""How likely graphs make rows that their fit has not seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rescore.comparison.fits import refitted_score
from rescore.equations import Equations, log_likelihoods, residual_moments
from rescore.moments import Matrix
from rescore.protocols import Mask
from rescore.row_weights import prior_weights

SMALLEST_SHARE = 1e-12  # of a variance that counts as noise rather than rounding


def held_out(
    model: Any,
    graphs: Sequence[Mask],
    X: pd.DataFrame,
    weight: Matrix | None,
    test: pd.DataFrame,
    test_weight: Matrix | None,
) -> list[float]:
    """The mean log-likelihood of the rows of ``test`` under each graph (d, d), fitted to X.

    Without a model, straight lines are fitted to each graph; with one, it is the model's own
    functions that are used, blind to the edges a graph lacks.

    Examples
    --------
    >>> X = pd.DataFrame(np.random.default_rng(0).normal(size=(1000, 1)))
    >>> [score] = held_out(None, [np.zeros((1, 1), dtype=bool)], X, None, X, None)
    >>> round(score, 1)
    -1.4
    """
    known: dict[bytes, float] = {}  # neighbouring thresholds often leave the same graph
    for graph in graphs:
        if graph.tobytes() not in known:
            known[graph.tobytes()] = (
                refitted_score(X, weight, graph, test, test_weight)
                if model is None
                else pruned_score(model, graph, X, weight, test, test_weight)
            )
    return [known[graph.tobytes()] for graph in graphs]


def pruned_score(
    model: Any,
    graph: Mask,
    X: pd.DataFrame,
    weight: Matrix | None,
    test: pd.DataFrame,
    test_weight: Matrix | None,
) -> float:
    """What ``model.score`` would say had the threshold left this graph (d, d), a part of its own.

    Examples
    --------
    >>> from rescore import Linear, simulate
    >>> X = simulate(nodes=3, degree=1, random_state=100).X
    >>> model = Linear().fit(X)
    >>> own = pruned_score(model, model.adjacency_matrix_.to_numpy() != 0, X, None, X, None)
    >>> bool(np.isclose(own, model.score(X)))
    True
    """
    values = X.to_numpy(dtype=np.float64)
    blind = _Blind(model.equations_, graph, prior_weights(weight, len(values)) @ values)
    w = model.sample_weight_.to_numpy()
    mean, variance = residual_moments(blind, values, w)  # type: ignore[arg-type]
    own = values.var(axis=0)
    variance = np.maximum(variance, SMALLEST_SHARE * own) * (own > 0)
    shifted = _Blind(blind.equations, graph, blind.fill, mean)
    v = prior_weights(test_weight, len(test))
    rows = log_likelihoods(shifted, variance, test.to_numpy(dtype=np.float64))  # type: ignore[arg-type]
    return float(v[v > 0] @ rows[v > 0])


@dataclass(frozen=True, eq=False)
class _Blind:
    """Equations that see the edges of a graph alone: other inputs are held at their means."""

    equations: Equations
    graph: Mask  # (d, d)
    fill: Matrix  # (d,)
    offset: Matrix | float = 0.0  # (d,)

    def predict(self, X: Matrix) -> Matrix:
        """Every variable of every row from its parents in the graph, (n, d)."""
        seen = (np.where(self.graph[:, j], X, self.fill) for j in range(len(self.fill)))
        columns = [self.equations.variable(Z, j) for j, Z in enumerate(seen)]
        return np.column_stack(columns) + self.offset
