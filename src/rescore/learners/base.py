"""What every learner shares: a fit from X to the learned attributes."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rescore.algorithm import Record
from rescore.fitting import (
    BY_NOISE,
    EVERY_EDGE,
    SCALE_FINDINGS,
    Fitted,
    Preparation,
    diagnose,
    learn,
    learn_moments,
)
from rescore.known_edges import Edges, Known, as_knowledge
from rescore.learners.estimator import Answers
from rescore.learners.wrappers import Repeated, from_several_starts
from rescore.protocols import Backbone, Status, Weighting
from rescore.scanning.sources import has_many_rows, is_scannable, rows_of, scan
from rescore.tables.convert import DataWarning
from rescore.tables.opening import Opening
from rescore.tables.table import TableLike, as_table, has_names, names_index
from rescore.validation import check_integer, check_seed
from rescore.weightings import Uniform

if TYPE_CHECKING:
    from rescore.out_of_core import Players


@dataclass(frozen=True)
class InnerPlayer:
    """How a fit weighs its rows, and when."""

    weighting: Weighting
    warmup: int = 0  # outer steps before the weights move
    whole_fits: bool = False  # whether they move between fits rather than between steps


class StructureLearner(Answers):
    """What all estimators share: the learned attributes, and what can be asked of them.

    Attributes
    ----------
    adjacency_matrix_ : DataFrame (d, d)
        Coefficients; ``.loc[a, b] != 0`` means a → b.  Always a DAG, a member of the class
        ``cpdag_``.
    cpdag_ : DataFrame (d, d)
        The graph as far as its directions are known: 1 at [a, b] for a → b, at [b, a] too where
        the direction of the edge is open.
    sample_weight_ : Series (n,)
        The row weights of the last step, on the index of X; they sum to one.
    cell_weight_ : DataFrame (n, d)
        The same for every row and variable.
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
    equations_ : Equations
        Each variable as a function of its parents in the graph, in the units of X.
    edges_ : DataFrame
        The edges, the strongest first, each with its interval, what tells its direction, and a
        verdict; `edges` joins in what resamples and other units say.
    standard_errors_, explained_ : DataFrame (d, d)
        Of the coefficients, and the share of an effect's variance that is lost without the edge;
        NaN where there is no edge.  None where relations are not straight lines.
    noise_variance_ : Series (d,)
        The weighted variance of what the equations leave unexplained.
    categories_ : dict
        The levels of every column that is a category, in the order of their numbers.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, where X had some.
    """

    needs_groups = False  # whether it learns from groups of rows that the caller names

    @property
    def plain(self) -> Any:
        """The learner without adaptive row weights: itself, or the one that `ReScore` wraps."""
        return self

    def _store(self, X: Any, fitted: Fitted) -> Self:
        table, result = fitted.table, fitted.result
        names = names_index(table.names)
        self.n_features_in_ = len(names)
        self._store_feature_names(X, table.names)
        self.adjacency_matrix_ = pd.DataFrame(result.W, index=names, columns=names)
        self.__dict__.pop("causal_graph_", None)  # that of an earlier fit
        self.cpdag_ = pd.DataFrame(fitted.directions.cpdag, index=names, columns=names)
        self.sample_weight_ = pd.Series(result.sample_weight, index=table.index, name="weight")
        self._cell_weight = None if result.weights.ndim == 1 else result.weights
        self.losses_ = pd.DataFrame(result.losses, index=table.index, columns=names, copy=False)
        self.row_losses_ = pd.Series(fitted.row_losses, index=table.index, name="loss")
        self.history_ = pd.DataFrame(list(result.history)).set_index("step")
        self.equations_ = fitted.equations
        self.noise_variance_ = pd.Series(fitted.noise_variance, index=names, name="variance")
        self.standard_errors_, self.explained_ = (
            None if each is None else pd.DataFrame(each, index=names, columns=names)
            for each in (fitted.errors, fitted.explained)
        )
        self.categories_ = dict(table.levels)
        self.status_ = result.status
        self._weigh = fitted.weigh
        self.diagnostics_ = diagnose(fitted)
        if result.status is Status.INTERRUPTED:  # what was reached is kept, and the caller stops
            raise KeyboardInterrupt(result.status.value)
        self._warn(fitted)
        return self

    def _store_feature_names(self, X: Any, names: tuple[Any, ...]) -> None:
        if has_names(X) and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # left by an earlier fit
            del self.feature_names_in_

    def _warn(self, fitted: Fitted) -> None:
        level = _levels_to_caller()
        for finding in fitted.findings:
            warnings.warn(finding.message, DataWarning, stacklevel=level)
        if fitted.result.status is not Status.CONVERGED:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(fitted.result.status.value, ConvergenceWarning, stacklevel=level)


def _levels_to_caller() -> int:
    """How far up the function above this one the code lies that asked for the fit."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("rescore."):
        frame, level = frame.f_back, level + 1
    return level


@dataclass(eq=False, repr=False, kw_only=True)
class GraphLearner(StructureLearner):
    """An estimator around one backbone; a subclass names it and lists its own parameters.

    Parameters
    ----------
    standardize : bool
        Fit on columns of deviation one.
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name, that must not or must be in the graph.
    knowledge : Knowledge, or the path of a file of it, optional
        More of the same, and tiers.  All that is known is joined; contradictions are refused.
    missing : {"refuse", "drop", "em"}
        What is done about missing cells: rows that have some count nothing, or they are filled in
        by the Gaussian that makes all others likeliest (`rescore.tables.missing`).
    categories : {"refuse", "drop", "exogenous"}
        What is done about columns of words: left out, or nodes that may cause and are not caused,
        as are then columns of two values (`rescore.categories`).
    max_steps : int
        Outer steps at most.
    """

    one_step = False  # whether the backbone's first step is its whole fit
    linear = False  # whether its graph is one of straight lines
    directions: ClassVar[Any] = (
        EVERY_EDGE  # what tells which way its edges point: a word, or a `Told`
    )
    in_passes = False  # whether it can learn from rows that are not in memory
    weighs_rows = True  # whether it can count some rows more than others
    automatic_weighting = "balanced"  # what `ReScore` chooses for it, unless told
    levels_of_groups = False  # whether it gives groups of rows, in `Cells`, levels of their own
    standardize: bool = False
    forbidden: Edges | None = None
    required: Edges | None = None
    knowledge: Known | None = None
    missing: str = "refuse"
    categories: str = "refuse"
    max_steps: int = 100

    def fit(
        self,
        X: "TableLike",
        y: object = None,
        sample_weight: "ArrayLike | None" = None,
        *,
        on_step: Callable[[Record], Any] | None = None,
    ) -> Self:
        """Learn a graph from the rows of X, each counted ``sample_weight`` times; y is ignored."""
        return self._store(X, self._learn(X, sample_weight, InnerPlayer(Uniform()), on_step))

    def scout(self) -> Backbone | None:
        """A learner of one step that shows `ReScore` the first groups of rows; None is this one."""
        return None

    def _learn(
        self,
        X: Any,
        sample_weight: Any,
        player: InnerPlayer,
        on_step: Callable[[Record], Any] | None,
        groups: Any = None,
    ) -> Fitted:
        preparation = self._preparation()
        if is_scannable(X) or self._in_passes(X, sample_weight, groups, player.weighting):
            from rescore.out_of_core import learn_large, learn_scan  # imports numba

            players = self.players(player)
            told = {"told_by": self.directions, "on_step": on_step}
            if not is_scannable(X):
                return learn_large(as_table(X, copy=False), players, preparation, **told)
            self._refuse_passes(sample_weight, groups)
            source = scan(X)
            if source.groups is None:  # a column of groups that nobody needs is not learned from
                self._checked_groups(None, player.weighting)
            return learn_scan(source, players, preparation, **told)
        backbone, max_steps = self._repeated(player)
        return learn(
            X,
            sample_weight,
            backbone,
            player.weighting,
            preparation,
            groups=self._checked_groups(groups, player.weighting),
            told_by=self.directions,
            warmup=player.warmup,
            max_steps=max_steps,
            on_step=on_step,
        )

    def _repeated(self, player: InnerPlayer) -> tuple[Backbone, int]:
        """The backbone, again and again where weights move between fits; steps at most."""
        backbone = self.backbone()
        max_steps = check_integer("max_steps", self.max_steps, at_least=1)
        if player.whole_fits or (self.one_step and player.warmup > 0):
            backbone = Repeated(backbone, max_steps, self.scout())
            max_steps *= 1 if self.one_step else max_steps  # as many fits as a fit may have steps
        return backbone, max_steps

    def players(self, player: InnerPlayer) -> "Players":
        """Who takes turns in a fit of rows that are read in passes."""
        from rescore.out_of_core import Players

        repeated, max_steps = self._repeated(player)
        return Players(self.backbone(), player.weighting, repeated, player.warmup, max_steps)

    def _in_passes(self, X: Any, sample_weight: Any, groups: Any, weighting: Weighting) -> bool:
        """Whether rows in memory are so many that they are read in passes like any others."""
        complete = self.missing == self.categories == "refuse"
        if not (self.in_passes and has_many_rows(X) and complete and groups is None):
            return False
        if sample_weight is not None and not np.array_equal(sample_weight, np.ones(rows_of(X))):
            return False
        from rescore.weightings.refined import can_refine

        return isinstance(weighting, Uniform) or can_refine(weighting)

    def _refuse_passes(self, sample_weight: Any, groups: Any) -> None:
        """Raise unless this learner needs moments alone, and nothing else is given by row."""
        if not self.in_passes:
            raise ValueError(
                f"{type(self).__name__} needs all rows in memory; Linear and Additive, alone or in "
                "ReScore, learn from rows that are read in passes. Choose one of them, or fit a "
                "sample of the rows."
            )
        if sample_weight is not None or groups is not None:
            raise ValueError(
                "Weights and groups of rows that are read in passes are columns of theirs: name "
                "them in rs.scan(..., weights='COLUMN', groups='COLUMN')."
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

    def known_edges(self) -> dict[str, Any]:
        """The ``forbidden`` and ``required`` edges, by column name, of all that is known.

        Examples
        --------
        >>> from rescore import Knowledge, Linear
        >>> tiers = Knowledge(tiers=[["rain"], ["grass"]])
        >>> Linear(knowledge=tiers, required=[("rain", "grass")]).known_edges()
        {'forbidden': [('grass', 'rain')], 'required': [('rain', 'grass')]}
        """
        return as_knowledge(self.knowledge).joined(self.forbidden, self.required).edges()

    def _preparation(self) -> Preparation:
        return Preparation(self.standardize, **self.known_edges(), opening=self.opening())

    def opening(self) -> Opening:
        """What is done to a table before the fit.

        Examples
        --------
        >>> from rescore import Linear
        >>> Linear(missing="em").opening().missing
        'em'
        """
        seed = check_seed(getattr(self, "random_state", None))
        return Opening(self.missing, self.categories, seed)

    def backbone(self) -> Backbone:
        """What takes the steps of a fit, with the parameters given here."""
        raise NotImplementedError(f"{type(self).__name__} does not say what takes its steps.")

    def _filled(self, kind: type[Any]) -> Any:
        """A backbone of this kind with the estimator's parameters, which its constructor checks."""
        return kind(**{f.name: getattr(self, f.name) for f in fields(kind)})


class GroupedLearner(GraphLearner):
    """A learner that is told which rows belong together."""

    needs_groups = True

    def fit(
        self,
        X: "TableLike",
        y: object = None,
        sample_weight: "ArrayLike | None" = None,
        *,
        groups: "ArrayLike | None" = None,
        on_step: Callable[[Record], Any] | None = None,
    ) -> Self:
        """Learn a graph from the rows of X and their ``groups``, one label each; y is ignored."""
        fitted = self._learn(X, sample_weight, InnerPlayer(Uniform()), on_step, groups)
        return self._store(X, fitted)


class LinearLearner(GraphLearner):
    """A learner that needs the rows' moments alone."""

    linear = True
    directions = BY_NOISE
    automatic_weighting = "environments"

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
            self.backbone(),
            self._preparation(),
            max_steps=steps,
            on_step=on_step,
        )
        return self._store(covariance, fitted)


@dataclass(eq=False, repr=False, kw_only=True)
class PathLearner(LinearLearner):
    """A linear learner that follows a path to its graph, from one or more starting points."""

    n_starts: int = 1
    random_state: int | None = None

    def _filled(self, kind: type[Any]) -> Any:
        one = super()._filled(kind)
        return from_several_starts(one, self.n_starts, check_seed(self.random_state))


class Unpenalised(GraphLearner):
    """A learner that says nothing of what matters to penalised ones only."""

    silenced = frozenset(SCALE_FINDINGS)

    def _learn(self, *data: Any, **options: Any) -> Fitted:
        return self._quietened(super()._learn(*data, **options))

    def _store(self, X: Any, fitted: Fitted) -> Self:
        return super()._store(X, self._quietened(fitted))

    def _quietened(self, fitted: Fitted) -> Fitted:
        told = tuple(finding for finding in fitted.findings if finding.code not in self.silenced)
        return replace(fitted, findings=told)
