"""What every estimator does: store the parameters, call `learn`, keep what it found."""

import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from rescore.algorithm import Record
from rescore.backbones.repeated import Repeated
from rescore.backbones.starts import Starts
from rescore.checking import check_integer
from rescore.constraints import Edges
from rescore.diagnosis import diagnose
from rescore.fitting import Fitted, Preparation, learn
from rescore.graph.io import to_networkx
from rescore.protocols import Backbone, Status, Weighting
from rescore.summaries import learn_moments
from rescore.tables.table import DataWarning
from rescore.weightings.uniform import Uniform


class StructureLearner(BaseEstimator):
    """What all estimators share: the learned attributes, and saving them.

    Attributes
    ----------
    adjacency_matrix_ : DataFrame (d, d)
        Coefficients; ``.loc[a, b] != 0`` means a → b.  Always a DAG.
    causal_graph_ : networkx.DiGraph
        The same graph, ``weight`` on its edges.
    sample_weight_ : Series (n,)
        The row weights of the last step, on the index of X; they sum to one.
    losses_ : DataFrame (n, d)
        Squared residual of every row and variable, before the threshold.
    row_losses_ : Series (n,)
        How badly each row fits: its squared residuals, each divided by the variable's mean.
    history_ : DataFrame
        One row per outer step: objective, h, rho, edges, effective_rows, ceiling_share.
    status_ : Status
        How the fit ended, as a sentence.
    diagnostics_ : dict
        Convergence, scales, condition number, cut edges, heaviest rows, warnings as data.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, where X had some.
    """

    def _store(self, X: Any, fitted: Fitted) -> Self:
        table, result = fitted.table, fitted.result
        names = pd.Index(list(table.names), tupleize_cols=False)
        self.n_features_in_ = len(names)
        self._store_feature_names(X, table.names)
        self.adjacency_matrix_ = pd.DataFrame(result.W, index=names, columns=names)
        self.causal_graph_ = to_networkx(result.W, table.names)
        self.sample_weight_ = pd.Series(result.sample_weight, index=table.index, name="weight")
        self.losses_ = pd.DataFrame(result.losses, index=table.index, columns=names, copy=False)
        self.row_losses_ = pd.Series(fitted.row_losses, index=table.index, name="loss")
        self.history_ = pd.DataFrame(list(result.history)).set_index("step")
        self.status_ = result.status
        self.diagnostics_ = diagnose(fitted)
        self._warn(fitted)
        return self

    def _store_feature_names(self, X: Any, names: tuple[Any, ...]) -> None:
        named = hasattr(X, "columns") or hasattr(X, "column_names")
        if named and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # left by an earlier fit
            del self.feature_names_in_

    def _warn(self, fitted: Fitted) -> None:
        for finding in fitted.findings:
            warnings.warn(finding.message, DataWarning, stacklevel=4)
        if fitted.result.status is not Status.CONVERGED:
            warnings.warn(fitted.result.status.value, ConvergenceWarning, stacklevel=4)


class GraphLearner(StructureLearner):
    """An estimator around one backbone; a subclass names it and lists its parameters."""

    backbone: type[Any]
    one_step = False  # whether the backbone's first step is its whole fit
    standardize: bool
    forbidden: Edges | None
    required: Edges | None
    max_steps: int

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        on_step: Callable[[Record], Any] | None = None,
    ) -> Self:
        """Learn a graph from the rows of X, each counted ``sample_weight`` times; y is ignored."""
        return self._store(X, self._learn(X, sample_weight, Uniform(), 0, on_step))

    def _learn(
        self,
        X: Any,
        sample_weight: Any,
        weighting: Weighting,
        warmup: int,
        on_step: Callable[[Record], Any] | None,
    ) -> Fitted:
        backbone = self._backbone()
        if self.one_step and warmup > 0:  # weights that move need another fit to move to
            backbone = Repeated(backbone)
        return learn(
            X,
            sample_weight,
            backbone,
            weighting,
            self._preparation(),
            warmup=warmup,
            max_steps=check_integer("max_steps", self.max_steps, at_least=1),
            on_step=on_step,
        )

    def _preparation(self) -> Preparation:
        return Preparation(self.standardize, self.forbidden, self.required)

    def _backbone(self) -> Backbone:
        """The estimator's parameters that are the backbone's; checked by its constructor."""
        return self.backbone(**{f.name: getattr(self, f.name) for f in fields(self.backbone)})


class LinearLearner(GraphLearner):
    """A learner that needs the rows' moments alone."""

    def fit_moments(
        self,
        covariance: Any,
        n_rows: float,
        mean: Any = None,
        *,
        on_step: Callable[[Record], Any] | None = None,
    ) -> Self:
        """Learn a graph from a covariance (d, d) of ``n_rows`` rows, as `fit` would from the rows.

        What has a value per row in `fit` has a single one here, the average over all rows.

        Examples
        --------
        >>> import pandas as pd
        >>> from rescore import Notears
        >>> S = pd.DataFrame([[5, 2], [2, 1]], index=["grass", "rain"], columns=["grass", "rain"])
        >>> Notears().fit_moments(S, n_rows=500).adjacency_matrix_
               grass  rain
        grass    0.0   0.0
        rain     1.9   0.0
        """
        steps = check_integer("max_steps", self.max_steps, at_least=1)
        fitted = learn_moments(
            covariance,
            n_rows,
            mean,
            self._backbone(),
            self._preparation(),
            max_steps=steps,
            on_step=on_step,
        )
        return self._store(covariance, fitted)


class PathLearner(LinearLearner):
    """A linear learner that follows a path to its graph, from one or more starting points."""

    n_starts: int
    random_state: int | None

    def _backbone(self) -> Backbone:
        n_starts = check_integer("n_starts", self.n_starts, at_least=1)
        seed = 0 if self.random_state is None else self.random_state
        check_integer("random_state", seed, at_least=0)
        one = super()._backbone()
        return one if n_starts == 1 else Starts(one, n_starts, seed)
