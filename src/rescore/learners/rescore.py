"""ReScore: any learner, with adaptive row weights around it."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

from numpy.typing import ArrayLike

from rescore.algorithm import Record
from rescore.learners import RECOMMENDED, load_learner
from rescore.learners.base import GraphLearner, InnerPlayer, StructureLearner
from rescore.learners.custom import as_learner
from rescore.protocols import Weighting
from rescore.tables.table import TableLike
from rescore.validation import check_choice, check_integer, check_number, check_seed
from rescore.weightings import LOSSES, Exact, InversePropensity, Uniform
from rescore.weightings.balanced import Balanced
from rescore.weightings.precision import Precision

WEIGHTINGS = (
    "auto",
    "environments",
    "balanced",
    "exact",
    "inverse-propensity",
    "neural",
    "precision",
    "uniform",
)
OF_WHOLE_FITS = ("environments", "balanced", "precision")  # those that look at whole fits
USUAL_TAU = 0.5  # of exact and neural weights, where none is given
HIDDEN = (10, 10)  # of the network behind neural weights, for learners that are not linear


@dataclass(eq=False, repr=False)
class ReScore(StructureLearner):
    """A learner with adaptive row weights: the rows that fit worst get more, inside bounds.

    Parameters
    ----------
    estimator : GraphLearner, callable, or object with init, step, losses and adjacency, optional
        The learner to wrap: one of this package, or one of your own, as `Custom` describes.  None
        is the recommended one, `Linear`.
    tau : "auto" or float in (0, 1]
        The box C(τ): weights stay between τ/n and 1/(τn).  1 is the plain learner.
    weighting : {"auto", "environments", "balanced", "exact", "inverse-propensity", "neural", \
            "precision", "uniform"} or object
        How the weights are chosen.  "environments" finds latent groups of rows that share the
        mechanisms and differ in noise or level, and weighs every cell by the precision of its
        group; rows of another model are set aside.  "balanced" weighs whole rows, so that groups
        whose noise differs are balanced.  "precision" weighs cells by the precision of groups
        found in the learner's own residuals; around `Additive` and `GaussianProcess` also of
        groups that differ in level, where these describe the table better.  Rows that look alike
        keep equal weights.  "exact" gives the rows that fit worst the ceiling of the box, "neural"
        lets the paper's network learn them.  "auto" is exact if ``tau`` is given, otherwise what
        suits the learner: environments with linear ones, precision with additive ones, Gaussian
        processes and `NotearsMLP`, balanced with others.
        "uniform" is the plain learner, also around weights of your own in ``sample_weight``.
        "inverse-propensity" gives every group the same weight in all; it needs ``groups``.  Or a
        Weighting such as ``rescore.weightings.Exact(tau=0.2)``.
    loss : {"nll", "raw"}
        How "exact" and "neural" rank rows: by Gaussian likelihood with a variance per variable,
        or by the paper's plain sum of squared residuals.
    warmup : int
        Outer steps of the learner before exact or neural weights move (the paper's K_reweight).
    random_state : int, optional
        Seed of the network behind "neural" weights; None is 0.  Other weights draw nothing, and
        the learner has a seed of its own.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> model = ReScore(tau=0.5).fit(X)
    >>> list(model.causal_graph_.edges), bool(model.sample_weight_.between(1e-3, 4e-3).all())
    ([('rain', 'grass')], True)
    """

    estimator: Any = None
    _: KW_ONLY
    tau: float | str = "auto"
    weighting: str | Weighting = "auto"
    loss: str = "nll"
    warmup: int = 1
    random_state: int | None = None

    def fit(
        self,
        X: "TableLike",
        y: object = None,
        sample_weight: "ArrayLike | None" = None,
        *,
        groups: "ArrayLike | None" = None,
        on_step: Callable[[Record], Any] | None = None,
    ) -> Self:
        """Learn a graph and row weights from X; ``sample_weight`` is the prior they move around.

        ``groups`` (a label for each row) is for learners and weightings that need it.
        """
        learner = self.plain
        player = self._player(learner)
        return self._store(X, learner._learn(X, sample_weight, player, on_step, groups))

    @property
    def plain(self) -> GraphLearner:
        """The learner inside, which would fit without adaptive row weights."""
        given = load_learner(RECOMMENDED)() if self.estimator is None else self.estimator
        return given if isinstance(given, GraphLearner) else as_learner(given)

    def _player(self, learner: GraphLearner) -> InnerPlayer:
        """The inner player; balancing starts before the first step, or between whole fits."""
        warmup = check_integer("warmup", self.warmup, at_least=0)
        loss = check_choice("loss", self.loss, LOSSES)
        seed = check_seed(self.random_state)
        if not isinstance(self.weighting, str):
            return InnerPlayer(self._own(self.weighting), warmup)
        chosen = check_choice("weighting", self.weighting, WEIGHTINGS)
        tau = None if self.tau == "auto" else check_number("tau", self.tau, above=0, at_most=1)
        if chosen == "auto":
            chosen = learner.automatic_weighting if tau is None else "exact"
        if chosen in OF_WHOLE_FITS:
            return _of_whole_fits(chosen, tau, learner.levels_of_groups)
        if chosen == "inverse-propensity":
            return InnerPlayer(InversePropensity())
        if chosen == "uniform":
            return InnerPlayer(Uniform())
        tau = USUAL_TAU if tau is None else tau
        if chosen == "neural":
            from rescore.weightings.neural import Neural  # imports JAX, which others do without

            hidden = () if learner.linear else HIDDEN
            return InnerPlayer(Neural(tau, loss, hidden, seed=seed), warmup)
        return InnerPlayer(Exact(tau, loss), warmup)

    @property
    def needs_groups(self) -> bool:  # type: ignore[override]
        """Whether the learner or the weights are made from groups that the caller names."""
        return (
            self.weighting == "inverse-propensity"
            or getattr(self.weighting, "needs_groups", False)
            or getattr(self.estimator, "needs_groups", False)
        )

    def _own(self, weighting: Any) -> Weighting:
        if all(hasattr(weighting, name) for name in ("tau", "init", "step", "explain")):
            return weighting
        raise TypeError(
            f"weighting must be one of {', '.join(WEIGHTINGS)}, or an object with tau, init, step "
            f"and explain, got {weighting!r}."
        )


def _of_whole_fits(chosen: str, tau: float | None, levels: bool) -> InnerPlayer:
    """Weights that stay as they are within a fit; environments are sought before the first."""
    kind: Any = Balanced if chosen == "balanced" else partial(Precision, levels=levels)
    if chosen == "environments":
        from rescore.weightings.environments import Environments  # imports numba: only if asked for

        kind = Environments
    start = 0 if chosen == "environments" else 1
    return InnerPlayer(kind() if tau is None else kind(tau), start, whole_fits=True)
