"""Does reweighting help on these rows?  Plain and reweighted fits, paired over resamples."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from rescore.checking import check_integer, check_number
from rescore.comparison.answer import answer
from rescore.comparison.fits import Study, resample
from rescore.comparison.summary import deciding, readable, stabilities, summary
from rescore.estimators.custom import as_learner
from rescore.metrics.pairing import paired
from rescore.row_weights import prior_weights
from rescore.tables.labels import row_labels
from rescore.tables.table import as_table

__all__ = ["Comparison", "compare"]

FEWEST_ROWS = 10


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    table : DataFrame
        One row per method.  For every measure its mean, the mean paired difference to the plain
        learner and that difference's 95 % interval (``_difference``, ``_low``, ``_high``); mean
        edges and effective rows, the share of fits that converged, median CPU seconds.
    records : DataFrame
        One row per method and resample.
    answer : str
        Whether reweighting helps, as a sentence; its intervals are corrected for the number of
        comparisons, those of the table are not.

    Examples
    --------
    >>> from rescore import Linear, compare, simulate
    >>> X = simulate(nodes=3, degree=1, samples=200, random_state=100).X
    >>> result = compare(X, Linear(), resamples=3)
    >>> list(result.table.index)
    ['plain', 'auto', 'exact', 'neural', 'random']
    """

    table: pd.DataFrame
    records: pd.DataFrame
    answer: str

    def __repr__(self) -> str:
        shown = readable(self.table, deciding(self.records))
        return f"{shown.to_string()}\n\n{self.answer}"


def compare(
    X: Any,
    learner: Any,
    *,
    tau: float = 0.5,
    truth: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    resamples: int = 20,
    random_state: int = 0,
    n_jobs: int | None = 1,
    on_resample: Callable[[int], Any] | None = None,
) -> Comparison:
    """Fit a learner plainly and with every weighting, on the same resamples of the same rows.

    Each resample draws n of the n rows with replacement; the rows never drawn are held out.
    The methods are the plain learner, automatic, exact and neural weights, and random weights
    inside the same box as a control.

    Without a truth the measures are the mean log-likelihood of the held-out rows, with the
    equations of the model and, for linear learners, with its graph alone, refitted with equal
    weights; and the stability of the edges: the share of the pairs adjacent in the graphs of
    either of two resamples that have the same edge in both, on average over the other resamples.
    They say how well and how steadily rows are described, not which way arrows point.  With a
    truth there are also SHD and SID; it is used for these alone.

    Parameters
    ----------
    X : table
        The rows, as for `fit`.
    learner : GraphLearner, or whatever `ReScore` takes
        The learner to reweight.
    tau : float in (0, 1]
        The box of exact, neural and random weights.
    truth : graph, optional
        A matrix, table or networkx.DiGraph; only scores the graphs.
    sample_weight : array (n,), optional
        Prior row weights, in fits and on held-out rows.
    groups : array (n,), optional
        Labels for learners that need them; also adds inverse-propensity weights.
    resamples : int
        How many, at least two.
    random_state : int
        Seed of the resamples and of random weights.
    n_jobs : int, optional
        Processes, as joblib counts them.
    on_resample : callable, optional
        Called with the number of resamples done, after each.

    Examples
    --------
    >>> from rescore import Linear, simulate
    >>> data = simulate(nodes=3, degree=1, samples=200, random_state=100)
    >>> compare(data.X, Linear(), truth=data.truth, resamples=5).answer
    'No gain beyond chance: auto weights take the SHD from 0 to 0, a difference between +0 and +0
    at best (5 resamples of the rows, intervals corrected for 4 comparisons).'
    """
    study = _study(X, learner, tau, truth, sample_weight, groups)
    count = check_integer("resamples", resamples, at_least=2)
    seed = check_integer("random_state", random_state, at_least=0)
    fits = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(resample)(study, child) for child in np.random.SeedSequence(seed).spawn(count)
    )
    found = []
    for number, records in enumerate(fits):
        found += [{"resample": number, **record} for record in records]
        if on_resample is not None:
            on_resample(number + 1)
    records = _with_stability(pd.DataFrame(found))
    return Comparison(summary(records), records, answer(records))


def _study(X: Any, learner: Any, tau: float, truth: Any, sample_weight: Any, groups: Any) -> Study:
    table = as_table(X)
    n = len(table.values)
    if n < FEWEST_ROWS:
        raise ValueError(f"compare needs at least {FEWEST_ROWS} rows to leave some out, got {n}.")
    frame = pd.DataFrame(table.values, columns=pd.Index(list(table.names), tupleize_cols=False))
    if truth is not None:  # refused before the first fit rather than after it
        paired(truth, pd.DataFrame(0, index=frame.columns, columns=frame.columns))
    if sample_weight is not None:
        prior_weights(sample_weight, n)
        sample_weight = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n)
    labels = None if groups is None else row_labels(groups, table.index)
    box = check_number("tau", tau, above=0, at_most=1)
    known = as_learner(learner)
    if not known.weighs_rows:
        raise ValueError(f"{type(known).__name__} knows no row weights: nothing can be compared.")
    return Study(frame, known, box, truth, sample_weight, labels)


def _with_stability(records: pd.DataFrame) -> pd.DataFrame:
    """The records with the stability of every graph in the place of the graph itself."""
    for _, part in records.groupby("method"):
        records.loc[part.index, "stability"] = stabilities(list(part["graph"]))
    last = ["edges", "effective_rows", "converged", "cpu_seconds"]
    first = [name for name in records if name not in {*last, "graph"}]
    return records[[*first, *last]]
