"""CD-NOD as an estimator."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from rescore.algorithm import Record
from rescore.backbones.cdnod import CDNODBackbone
from rescore.estimators.learner import GroupedLearner, InnerPlayer
from rescore.estimators.unpenalised import Unpenalised
from rescore.fitting import Fitted
from rescore.row_weights import prior_weights
from rescore.tables.findings import Finding
from rescore.text import listing


class CDNOD(Unpenalised, GroupedLearner):
    """CD-NOD (Huang and others 2020) by causal-learn: groups of rows tell causes from effects.

    The number of a row's group joins the variables as a cause that nothing else causes; Fisher-z
    tests remove edges, colliders and Meek's rules orient the others.  It needs causal-learn,
    ``pip install "rescore[causal-learn]"``.  Rows cannot have different weights.  The tests see
    straight lines only, also along the groups' numbers, which follow their first rows: put groups
    that differ by degrees in that order.

    What is found is in ``partial_graph_``.  Undirected edges, also listed in
    ``diagnostics_["undirected_edges"]``, are directed in ``adjacency_matrix_`` without adding a
    cycle or a collider; where no such DAG exists they point at the variable of larger variance,
    and edges that close a cycle are cut.

    Parameters
    ----------
    alpha : float
        Level of the tests.
    standardize : bool
        Coefficients for columns of deviation one.  The graph found is the same.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> place = np.repeat(["dry", "wet"], 250)
    >>> rain = rng.normal(size=500) + 3 * (place == "wet")
    >>> X = pd.DataFrame({"grass": rain + rng.normal(size=500), "rain": rain})
    >>> CDNOD().fit(X, groups=place).partial_graph_
           grass  rain
    grass      0     0
    rain       1     0
    """

    backbone = CDNODBackbone
    one_step = True
    weighs_rows = False
    forbidden = None
    required = None
    max_steps = 100

    def __init__(self, alpha: float = 0.05, *, standardize: bool = False) -> None:
        self.alpha = alpha
        self.standardize = standardize

    @property
    def partial_graph_(self) -> pd.DataFrame:
        """What was found (d, d): 1 at [a, b] for a → b, at [b, a] too for a - b."""
        check_is_fitted(self, "adjacency_matrix_")
        P = (self.adjacency_matrix_ != 0).astype(np.int8)
        for edge in self.diagnostics_["undirected_edges"]:
            P.loc[edge["to"], edge["from"]] = 1
        for edge in self.diagnostics_["removed_edges"]:
            P.loc[edge["from"], edge["to"]] = 1
        return P

    def _learn(
        self,
        X: Any,
        sample_weight: Any,
        player: InnerPlayer,
        on_step: Callable[[Record], Any] | None,
        groups: Any = None,
    ) -> Fitted:
        if sample_weight is not None:
            w = prior_weights(sample_weight, max(np.size(sample_weight), 1))
            if np.ptp(w[w > 0]) > 1e-9 * w.max():
                raise ValueError("CD-NOD cannot weigh rows: fit it without sample_weight.")
        return super()._learn(X, sample_weight, player, on_step, groups)

    def _store(self, X: Any, fitted: Fitted) -> Self:
        """Tell edges without direction from edges that were cut, as the algorithm does not."""
        result, names = fitted.result, fitted.table.names
        undirected = [(j, i) for i, j, _ in result.removed if result.W[j, i] != 0]
        cut = tuple((i, j, 0.0) for i, j, _ in result.removed if result.W[j, i] == 0)
        told = tuple(finding for finding in fitted.findings if finding.code != "cycle_cut")
        if cut:
            edges = listing([f"{names[i]} -> {names[j]}" for i, j, _ in cut])
            told += (Finding("cycle_cut", f"Cut because they closed a cycle: {edges}."),)
        try:
            return super()._store(
                X, replace(fitted, result=replace(result, removed=cut), findings=told)
            )
        finally:  # also where a warning is an error, or after Ctrl-C: what was reached is kept
            self.history_["edges"] = int((result.W != 0).sum())  # an undirected one counts once
            self.diagnostics_["undirected_edges"] = [
                {"from": names[i], "to": names[j]} for i, j in sorted(undirected)
            ]
