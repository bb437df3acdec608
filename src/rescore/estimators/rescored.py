"""ReScore as an estimator around another."""

from collections.abc import Callable
from typing import Any, Self

from rescore.algorithm import Record
from rescore.checking import check_choice, check_integer
from rescore.estimators.base import GraphLearner, StructureLearner
from rescore.protocols import Weighting
from rescore.weightings.exact import Exact
from rescore.weightings.uniform import Uniform

WEIGHTINGS = ("exact", "uniform")


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
