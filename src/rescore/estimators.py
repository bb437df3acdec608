"""The learners as scikit-learn estimators: parameters stored, everything else in `learn`."""

import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from rescore.algorithm import Record
from rescore.backbones.notears import NotearsBackbone
from rescore.checking import check_choice, check_integer
from rescore.constraints import Edges
from rescore.diagnosis import diagnose
from rescore.fitting import Fitted, Preparation, learn
from rescore.graph.io import to_networkx
from rescore.protocols import Backbone, Status, Weighting
from rescore.tables.containers import DataWarning
from rescore.weightings.exact import Exact
from rescore.weightings.uniform import Uniform

WEIGHTINGS = ("exact", "uniform")


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
        self.losses_ = pd.DataFrame(result.losses, index=table.index, columns=names)
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
        return self._store(X, self._learn(X, sample_weight, Uniform(), 1, on_step))

    def _learn(
        self,
        X: Any,
        sample_weight: Any,
        weighting: Weighting,
        warmup: int,
        on_step: Callable[[Record], Any] | None,
    ) -> Fitted:
        return learn(
            X,
            sample_weight,
            self._backbone(),
            weighting,
            Preparation(self.standardize, self.forbidden, self.required),
            warmup=warmup,
            max_steps=check_integer("max_steps", self.max_steps, at_least=1),
            on_step=on_step,
        )

    def _backbone(self) -> Backbone:
        """The estimator's parameters that are the backbone's; checked by its constructor."""
        return self.backbone(**{f.name: getattr(self, f.name) for f in fields(self.backbone)})


class Notears(GraphLearner):
    """NOTEARS (linear): ``½ Σ_i w_i |x_i − x_i W|² + λ|W|₁`` subject to ``h(W) = 0``.

    Parameters
    ----------
    lambda1 : float
        λ, the penalty on the coefficients.
    threshold : float
        Coefficients smaller than this are dropped at the end.
    standardize : bool
        Fit on columns of deviation one.  Coefficients are then in standard deviations, and the
        graph no longer depends on units; but nor does it profit from informative ones.
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name, that must not or must be in the graph.
    constraint : {"exponential", "polynomial"}
        The acyclicity measure h.
    h_tol, rho_max, max_steps : float, float, int
        Where the augmented Lagrangian stops: tolerance on h, cap of its penalty, outer steps.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> Notears().fit(X).adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     1.9   0.0
    """

    backbone = NotearsBackbone

    def __init__(
        self,
        lambda1: float = 0.1,
        *,
        threshold: float = 0.3,
        standardize: bool = False,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        constraint: str = "exponential",
        h_tol: float = 1e-8,
        rho_max: float = 1e16,
        max_steps: int = 100,
    ) -> None:
        self.lambda1 = lambda1
        self.threshold = threshold
        self.standardize = standardize
        self.forbidden = forbidden
        self.required = required
        self.constraint = constraint
        self.h_tol = h_tol
        self.rho_max = rho_max
        self.max_steps = max_steps


class ReScore(StructureLearner):
    """A learner with adaptive row weights: the rows that fit worst get more, inside bounds.

    Parameters
    ----------
    estimator : GraphLearner
        The learner to wrap.
    tau : float in (0, 1]
        The box C(τ): weights stay between τ/n and 1/(τn).  1 is the plain learner.
    weighting : {"exact", "uniform"}
        How the weights are chosen: exactly, or not at all.
    loss : {"nll", "raw"}
        How rows are ranked: by Gaussian likelihood with a variance per variable, or by the
        paper's plain sum of squared residuals.
    warmup : int
        Outer steps of the learner before the weights move (the paper's K_reweight).
    random_state : int, optional
        Seed of the weightings that draw; "exact" does not.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> model = ReScore(Notears(), tau=0.5).fit(X)
    >>> list(model.causal_graph_.edges), bool(model.sample_weight_.between(1e-3, 4e-3).all())
    ([('rain', 'grass')], True)
    """

    def __init__(
        self,
        estimator: GraphLearner,
        *,
        tau: float = 0.5,
        weighting: str = "exact",
        loss: str = "nll",
        warmup: int = 1,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.tau = tau
        self.weighting = weighting
        self.loss = loss
        self.warmup = warmup
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        on_step: Callable[[Record], Any] | None = None,
    ) -> Self:
        """Learn a graph and row weights from X; ``sample_weight`` is the prior they move around."""
        if not isinstance(self.estimator, GraphLearner):
            raise TypeError(
                f"estimator must be a learner such as Notears(), got {self.estimator!r}."
            )
        warmup = check_integer("warmup", self.warmup, at_least=0)
        if self.random_state is not None:
            check_integer("random_state", self.random_state, at_least=0)
        weighting = self._weighting()
        return self._store(X, self.estimator._learn(X, sample_weight, weighting, warmup, on_step))

    def _weighting(self) -> Weighting:
        exact = Exact(self.tau, self.loss)  # checks both, also where they are not used
        return (
            exact if check_choice("weighting", self.weighting, WEIGHTINGS) == "exact" else Uniform()
        )
