"""How sure is an edge?  The same model on many resamples of the rows."""

import warnings
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone

from rescore.checking import check_choice, check_integer
from rescore.estimators import StructureLearner
from rescore.estimators.custom import as_learner
from rescore.row_weights import prior_weights
from rescore.stability.drawing import SCHEMES, rows_behind
from rescore.stability.fits import Outcome, Study, resample
from rescore.stability.result import Stability
from rescore.stability.summary import edge_table, row_table, shares
from rescore.stability.together import fits_together, searched_together
from rescore.tables.labels import group_codes, row_labels
from rescore.tables.table import Table, as_table

__all__ = ["Stability", "bootstrap"]

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
        Processes, as joblib counts them.  `Linear` needs none: its resamples are searched together.
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
    outcomes = _outcomes(study, seeds.spawn(count), n_jobs)
    try:
        for outcome in outcomes:
            found.append(outcome)
            if on_resample is not None:
                on_resample(len(found))
    except KeyboardInterrupt:
        if not found:
            raise
        stopped = f"Stopped by Ctrl-C after {len(found)} of {count} resamples."
        warnings.warn(stopped, stacklevel=2)
    finally:
        _close(outcomes)
    return _summarised(study, found, len(found) < count)


def _outcomes(
    study: Study, seeds: list[np.random.SeedSequence], n_jobs: int | None
) -> Generator[Outcome, None, None]:
    if searched_together(study):
        return fits_together(study, seeds)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    return parallel(delayed(resample)(study, seed) for seed in seeds)


def _close(outcomes: Generator[Outcome, None, None]) -> None:
    """Let other processes go; fits that nobody waits for any more are no cause for a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes.close()


def _study(model: Any, X: Any, scheme: str, sample_weight: Any, groups: Any) -> Study:
    known = clone(model if isinstance(model, StructureLearner) else as_learner(model))
    table = as_table(X)
    n = len(table.values)
    if n < FEWEST_ROWS:
        raise ValueError(f"Resamples need at least {FEWEST_ROWS} rows to draw from, got {n}.")
    prior_weights(sample_weight, n)  # refused before the first fit
    rows = rows_behind(sample_weight, n)
    weight = None
    if rows is None:
        weight = np.array(np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n))
        rows = (weight > 0).astype(np.int64)
    labels = _labels(known, groups, table)
    codes = None if labels is None else group_codes(labels)
    return Study(table, known, check_choice("scheme", scheme, SCHEMES), rows, weight, labels, codes)


def _labels(model: Any, groups: Any, table: Table) -> Any:
    """The group of each row, refused if nobody needs it and missed if somebody does."""
    name = type(model).__name__
    if groups is None and model.needs_groups:
        raise ValueError(f"{name} needs the group of each row: bootstrap(model, X, groups=...).")
    if groups is not None and not model.needs_groups:
        raise ValueError(f"{name} learns without groups; leave them out.")
    return None if groups is None else row_labels(groups, table.index)


def _summarised(study: Study, found: list[Outcome], interrupted: bool) -> Stability:
    names = pd.Index(list(study.table.names), tupleize_cols=False)
    graphs = np.stack([outcome.W for outcome in found])
    edges = shares(graphs, names)
    return Stability(
        edges,
        edges + edges.T,
        edge_table(graphs, names),
        row_table(found, study.table.index),
        len(found),
        study.scheme,
        dict(Counter(outcome.status.name for outcome in found)),
        interrupted,
    )
