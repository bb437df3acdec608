"""An estimator around a backbone: it stores the parameters, calls `learn`, keeps what it found."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

from rescore.algorithm import Record
from rescore.backbones.repeated import Repeated
from rescore.backbones.starts import from_several_starts
from rescore.checking import check_integer
from rescore.constraints import Edges
from rescore.estimators.base import StructureLearner
from rescore.fitting import Fitted, Preparation, learn
from rescore.protocols import Backbone, Weighting
from rescore.summaries import learn_moments
from rescore.weightings.uniform import Uniform


@dataclass(frozen=True)
class InnerPlayer:
    """How a fit weighs its rows, and when."""

    weighting: Weighting
    warmup: int = 0  # outer steps before the weights move
    whole_fits: bool = False  # whether they move between fits rather than between steps


class GraphLearner(StructureLearner):
    """An estimator around one backbone; a subclass names it and lists its parameters."""

    backbone: type[Any]
    one_step = False  # whether the backbone's first step is its whole fit
    linear = False  # whether its graph is one of straight lines
    needs_groups = False  # whether it learns from groups of rows that the caller names
    weighs_rows = True  # whether it can count some rows more than others
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
        return self._store(X, self._learn(X, sample_weight, InnerPlayer(Uniform()), on_step))

    def _learn(
        self,
        X: Any,
        sample_weight: Any,
        player: InnerPlayer,
        on_step: Callable[[Record], Any] | None,
        groups: Any = None,
    ) -> Fitted:
        backbone = self._backbone()
        max_steps = check_integer("max_steps", self.max_steps, at_least=1)
        if player.whole_fits or (self.one_step and player.warmup > 0):
            backbone = Repeated(backbone, max_steps)
            max_steps *= 1 if self.one_step else max_steps  # as many fits as a fit may have steps
        return learn(
            X,
            sample_weight,
            backbone,
            player.weighting,
            self._preparation(),
            groups=self._checked_groups(groups, player.weighting),
            warmup=player.warmup,
            max_steps=max_steps,
            on_step=on_step,
        )

    def _checked_groups(self, groups: Any, weighting: Weighting) -> Any:
        """The groups, refused if nobody needs them and missed if somebody does."""
        by_weights = getattr(weighting, "needs_groups", False)
        if groups is None and (self.needs_groups or by_weights):
            who = type(weighting if by_weights else self).__name__
            raise ValueError(f"{who} needs the group of each row: fit(X, groups=...).")
        if groups is not None and not (self.needs_groups or by_weights):
            raise ValueError(
                f"{type(self).__name__} learns without groups, and so do these weights. Leave "
                'groups out, or choose weighting="inverse-propensity".'
            )
        return groups

    def _preparation(self) -> Preparation:
        known = (None if e is None else tuple(e) for e in (self.forbidden, self.required))
        return Preparation(self.standardize, *known)

    def _backbone(self) -> Backbone:
        """The estimator's parameters that are the backbone's; checked by its constructor."""
        return self.backbone(**{f.name: getattr(self, f.name) for f in fields(self.backbone)})


class GroupedLearner(GraphLearner):
    """A learner that is told which rows belong together."""

    needs_groups = True

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        on_step: Callable[[Record], Any] | None = None,
    ) -> Self:
        """Learn a graph from the rows of X and their ``groups``, one label each; y is ignored."""
        fitted = self._learn(X, sample_weight, InnerPlayer(Uniform()), on_step, groups)
        return self._store(X, fitted)


class LinearLearner(GraphLearner):
    """A learner that needs the rows' moments alone."""

    linear = True

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
        seed = 0 if self.random_state is None else self.random_state
        check_integer("random_state", seed, at_least=0)
        return from_several_starts(super()._backbone(), self.n_starts, seed)
