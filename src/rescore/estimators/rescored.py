"""ReScore as an estimator around another."""

from collections.abc import Callable
from typing import Any, Self

from rescore.algorithm import Record
from rescore.checking import check_choice, check_integer
from rescore.estimators.base import GraphLearner, StructureLearner
from rescore.protocols import Weighting
from rescore.weightings.balanced import Balanced
from rescore.weightings.exact import Exact
from rescore.weightings.regrouped import Regrouped
from rescore.weightings.uniform import Uniform

WEIGHTINGS = ("auto", "balanced", "exact", "uniform")
USUAL_TAU = 0.5  # of exact weights, where none is given


class ReScore(StructureLearner):
    """A learner with adaptive row weights: the rows that fit worst get more, inside bounds.

    Parameters
    ----------
    estimator : GraphLearner
        The learner to wrap.
    tau : "auto" or float in (0, 1]
        The box C(τ): weights stay between τ/n and 1/(τn).  1 is the plain learner.
    weighting : {"auto", "balanced", "exact", "uniform"}
        How the weights are chosen.  "balanced" finds groups of rows whose noise differs, balances
        them and sets plain noise aside; with nonlinear learners after a first fit, in its own
        residuals.  Homogeneous rows keep equal weights.  "exact" gives the rows that fit worst the
        ceiling of the box.  "auto" is balanced, but exact if ``tau`` is given or the learner
        standardises: balancing compares the noise of variables in their own units.  "uniform" is
        the plain learner.
    loss : {"nll", "raw"}
        How "exact" ranks rows: by Gaussian likelihood with a variance per variable, or by the
        paper's plain sum of squared residuals.
    warmup : int
        Outer steps of the learner before exact weights move (the paper's K_reweight).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from rescore import Notears
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
        tau: float | str = "auto",
        weighting: str = "auto",
        loss: str = "nll",
        warmup: int = 1,
    ) -> None:
        self.estimator = estimator
        self.tau = tau
        self.weighting = weighting
        self.loss = loss
        self.warmup = warmup

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
        weighting, warmup = self._weighting()
        whole = isinstance(weighting, Regrouped)
        fitted = self.estimator._learn(X, sample_weight, weighting, warmup, on_step, whole)
        return self._store(X, fitted)

    def _weighting(self) -> tuple[Weighting, int]:
        """The inner player, and after how many outer steps it starts."""
        chosen = check_choice("weighting", self.weighting, WEIGHTINGS)
        warmup = check_integer("warmup", self.warmup, at_least=0)
        exact = Exact(USUAL_TAU if self.tau == "auto" else self.tau, self.loss)  # type: ignore[arg-type]
        if chosen == "uniform":
            return Uniform(), 0
        own_units = self.tau == "auto" and not self.estimator.standardize
        if chosen == "exact" or (chosen == "auto" and not own_units):
            return exact, warmup
        if self.estimator.linear:
            return (Balanced() if self.tau == "auto" else Balanced(exact.tau)), 0
        return (Regrouped() if self.tau == "auto" else Regrouped(exact.tau)), 1
