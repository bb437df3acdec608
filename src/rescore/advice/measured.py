"""All points of a path, measured: a table with one row for each λ and threshold."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from rescore.advice.choice import with_likelihood
from rescore.advice.grids import round_thresholds
from rescore.advice.inputs import Splits
from rescore.advice.path import Fit, Study, fit, fold_scores, graphs, half_strengths
from rescore.comparison.summary import stabilities
from rescore.moments import Matrix


def measured(
    study: Study,
    lambdas: Sequence[float | None],
    thresholds: Sequence[float] | None,
    parts: Splits,
    n_jobs: int | None,
    on_fit: Callable[[int], Any] | None,
) -> pd.DataFrame:
    """The table, and in its attrs how many fits there were and how many did not converge."""
    fits = _Fits(n_jobs, on_fit)
    every = np.arange(len(study.X))
    whole: list[Fit] = fits.made(delayed(fit)(study, lambda1, every) for lambda1 in lambdas)
    grid = thresholds or round_thresholds([found.W for found in whole], study.inner.threshold)
    scores = fits.made(
        delayed(fold_scores)(study, lambda1, grid, *fold)
        for lambda1 in lambdas
        for fold in parts.folds
    )
    halves = fits.made(
        delayed(half_strengths)(study, lambda1, half)
        for lambda1 in lambdas
        for half in parts.halves
    )
    paths = [_graphs(study, *each, grid) for each in zip(lambdas, whole, strict=True)]
    table = pd.concat(paths, ignore_index=True)
    table = with_likelihood(table, _by_point([each for _, each in scores], len(lambdas)))
    table["stability"] = _stability(study, [W for _, W in halves], grid, len(lambdas))
    ended = [found.converged for found in whole] + [fine for fine, _ in [*scores, *halves]]
    table.attrs |= {"fits": len(ended), "not_converged": ended.count(False)}
    return table


def _graphs(
    study: Study, lambda1: float | None, found: Fit, thresholds: Sequence[float]
) -> pd.DataFrame:
    """What the fit to all rows says at each threshold."""
    edges = [int(graph.sum()) for graph in graphs(found.W, thresholds, study.required)]
    acyclic = [found.cut == 0 or found.cut < at for at in thresholds]
    known = {} if lambda1 is None else {"lambda1": lambda1}
    return pd.DataFrame({**known, "threshold": thresholds, "edges": edges, "acyclic": acyclic})


def _by_point(scores: list[list[float]], count: int) -> Matrix:
    """(λ and fold, threshold) as (λ and threshold, fold)."""
    cube = np.array(scores).reshape(count, -1, len(scores[0]))
    return cube.transpose(0, 2, 1).reshape(count * cube.shape[2], -1)


def _stability(
    study: Study, strengths: list[Matrix], thresholds: Sequence[float], count: int
) -> list[float]:
    """The mean agreement of the graphs of the halves, for each λ and threshold."""
    each = len(strengths) // count
    parts = (strengths[k * each : (k + 1) * each] for k in range(count))
    return [
        float(np.mean(stabilities([graphs(W, [at], study.required)[0] for W in part])))
        for part in parts
        for at in thresholds
    ]


class _Fits:
    """Fits in as many processes as wanted, counted."""

    def __init__(self, n_jobs: int | None, on_fit: Callable[[int], Any] | None) -> None:
        self.n_jobs, self.on_fit, self.done = n_jobs, on_fit, 0

    def made(self, tasks: Iterable[Any]) -> list[Any]:
        """What the tasks return, in their order."""
        return list(self._counted(Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks)))

    def _counted(self, results: Iterable[Any]) -> Iterator[Any]:
        for result in results:
            self.done += 1
            if self.on_fit is not None:
                self.on_fit(self.done)
            yield result
