"""How sure is an edge?  The same model on many resamples of the rows."""

import warnings
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from rescore.learners.base import StructureLearner
from rescore.learners.custom import as_learner
from rescore.learners.linear import Linear
from rescore.studies.edge_shares import Stability, summarised
from rescore.studies.refit import Given, Refits, check_groups, refit
from rescore.studies.resamples import (
    SCHEMES,
    Outcome,
    Study,
    resample,
    rows_behind,
)
from rescore.tables.table import group_codes
from rescore.validation import check_choice, check_integer

FEWEST_ROWS = 10


def bootstrap(
    model: Any,
    X: Any,
    *,
    resamples: int = 100,
    scheme: str = "bootstrap",
    sample_weight: Any = None,
    groups: Any = None,
    random_state: int = 0,
    n_jobs: int | None = 1,
    on_resample: Callable[[int], Any] | None = None,
) -> Stability:
    """Fit a model again on resamples of the rows, and count how often it finds each edge.

    A share says how steadily this model finds the edge in rows like these, not how probable it
    is that the edge is causal: what a model gets wrong it may get wrong every time.

    Ctrl-C ends it early, with a warning, and what is done by then is returned.

    Parameters
    ----------
    model : GraphLearner, ReScore, or whatever `ReScore` takes
        The model, fitted or not; it is cloned and never changed.
    X : table
        The rows, as for `fit`.
    resamples : int
        How many.
    scheme : {"bootstrap", "subsample"}
        As many rows as there are, drawn with replacement; or half of them, without.
    sample_weight : array (n,), optional
        Prior row weights.  Whole numbers count rows, so that of a row of weight k there are k to
        draw from; a row with another weight is drawn like any other, and keeps its weight.
    groups : array (n,), optional
        Labels for models that need them; each group is then resampled by itself.
    random_state : int
        Seed of the resamples.  The model keeps its own.
    n_jobs : int, optional
        Processes, as joblib counts them.
    on_resample : callable, optional
        Called with the number of resamples done, after each.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from rescore import Linear
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> bootstrap(Linear(), X)
    100 bootstrap resamples of 500 rows; all fits converged.
    <BLANKLINE>
    cause effect  edge adjacent direction       coefficient
     rain  grass 100 %    100 %     100 % 2.01 [1.94, 2.08]
    """
    study = _study(model, X, scheme, sample_weight, groups)
    count = check_integer("resamples", resamples, at_least=1)
    seeds = np.random.SeedSequence(check_integer("random_state", random_state, at_least=0))
    found: list[Outcome] = []
    try:
        for outcome in _outcomes(study, seeds.spawn(count), Refits(n_jobs, on_resample)):
            found.append(outcome)
    except KeyboardInterrupt:
        if not found:
            raise
        stopped = f"Stopped by Ctrl-C after {len(found)} of {count} resamples."
        warnings.warn(stopped, stacklevel=2)
    return summarised(found, study.given.X, study.scheme, len(found) < count)


def _outcomes(
    study: Study, seeds: list[np.random.SeedSequence], refits: Refits
) -> Generator[Outcome, None, None]:
    return refits.made(resample, ((study, seed) for seed in seeds))


def _study(model: Any, X: Any, scheme: str, sample_weight: Any, groups: Any) -> Study:
    known = clone(model if isinstance(model, StructureLearner) else as_learner(model))
    check_groups(known, groups)
    given = Given.of(X, sample_weight, groups)
    n = len(given.X)
    if n < FEWEST_ROWS:
        raise ValueError(f"Resamples need at least {FEWEST_ROWS} rows to draw from, got {n}.")
    rows = rows_behind(given.sample_weight, n)
    if rows is None:
        rows = (given.prior > 0).astype(np.int64)
    else:  # how often a row is drawn says it all
        given = replace(given, sample_weight=None)
    codes = None if given.groups is None else group_codes(given.groups)
    known = _with_its_noise(known, given)
    return Study(given, known, check_choice("scheme", scheme, SCHEMES), rows, codes)


def _with_its_noise(model: StructureLearner, given: Given) -> StructureLearner:
    """A model with the hypothesis on the noise that all rows support, where it lets them decide.

    Resamples repeat rows, so that every difference in them looks twice as certain as it is; and how
    sure an edge is, is asked of one model, not of several that take turns.
    """
    if not isinstance(model, Linear) or model.noise != "auto":
        return model
    return model.set_params(noise=refit(model, given).diagnostics_["noise"]["hypothesis"])
