"""All resamples of `Linear` in one search: what `fit` finds on each, without its ceremony."""

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from rescore.estimators import Linear
from rescore.graph import threshold
from rescore.moments import Matrix, Moments, Rows
from rescore.ordered import TINY, beyond_chance, chance_level, ordered_graph
from rescore.protocols import Problem, Status
from rescore.stability.drawing import Counts
from rescore.stability.fits import Outcome, Study, drawn, refit
from rescore.stability.search import Indices, Masks, by_size, orders, parent_sets, submatrices
from rescore.tables.distinct import FEW

__all__ = ["fits_together", "searched_together"]

MOST_TOGETHER = 128
MOST_CELLS = 2**23  # of the rows of all resamples that are held at once


def searched_together(study: Study) -> bool:
    """Whether this model's resamples can share a search."""
    model = study.model
    return type(model) is Linear and study.by_weight and model.standardize is False


def fits_together(
    study: Study, seeds: Sequence[np.random.SeedSequence]
) -> Generator[Outcome, None, None]:
    """The outcomes of all resamples, as `resample` would find them but for rounding."""
    model: Any = study.model
    least = model._backbone().threshold  # its parameters are checked here
    total = study.rows / study.rows.sum()
    full = model._preparation().problem(study.table, total, float(study.rows.sum()))
    size = int(np.clip(MOST_CELLS // study.table.values.size, 1, MOST_TOGETHER))
    for first in range(0, len(seeds), size):
        counts = [drawn(study, seed) for seed in seeds[first : first + size]]
        problems = [_problem(full, each) for each in counts]
        graphs = iter(_graphs([problem for problem in problems if problem is not None]))
        for each, problem in zip(counts, problems, strict=True):
            if problem is None:
                yield refit(study, each)
                continue
            W = threshold(next(graphs), least, keep=full.required)
            W = np.where(full.required & (W == 0), TINY, W)
            yield Outcome(W, each, Status.CONVERGED)


def _problem(full: Problem, counts: Counts) -> Problem | None:
    """The rows drawn; None where `fit` would merge rows, or find that a column has no spread."""
    used = counts > 0
    X = full.rows.values[used]
    alike = np.flatnonzero(X[0] == X[-1])  # may be constant
    if len(X) <= FEW * X.shape[1] or (np.ptp(X[:, alike], axis=0) == 0).any():
        return None
    N = float(counts.sum())
    return Problem(Rows(X), counts[used] / N, full.allowed, full.required, N)


def _graphs(problems: list[Problem]) -> list[Matrix]:
    """The graph of every problem before the threshold, (d, d) each."""
    if not problems:
        return []
    first, d = problems[0], problems[0].rows.shape[1]
    moments = [problem.rows.moments(problem.prior) for problem in problems]
    S = np.stack([each.covariance for each in moments])
    free = first.allowed.sum() == d * (d - 1) and not first.required.any()
    rows = float(first.count or 0)
    parents = parent_sets(S, orders(S), rows) if free else None
    if parents is None:
        return [ordered_graph(problem, problem.prior)[0] for problem in problems]
    return _tested(problems, moments, S, parents, chance_level(rows, d))


def _tested(
    problems: list[Problem], moments: list[Moments], S: Matrix, parents: Masks, chance: float
) -> list[Matrix]:
    """Regressions on the parents, (d, d) each; where an edge may be chance, tested one by one."""
    W, edges, directions = _regressions(S, parents)
    b, i, j = edges
    ends = np.searchsorted(b, np.arange(len(problems) + 1))
    for k, problem in enumerate(problems):
        own = slice(ends[k], ends[k + 1])
        variance = _variances(problem, moments[k], W[k], directions[:, own], j[own])
        with np.errstate(over="ignore"):  # no variance left: as far beyond chance as can be
            t = np.square(W[k, i[own], j[own]]) / np.maximum(variance, TINY)
        doubtful = np.unique(j[own][t < chance])
        if len(doubtful):
            alone = np.zeros_like(W[k])
            alone[:, doubtful] = W[k][:, doubtful]
            tested = beyond_chance(problem, problem.prior, moments[k], alone, chance)
            W[k][:, doubtful] = tested[:, doubtful]
    return list(W)


def _regressions(S: Matrix, parents: Masks) -> tuple[Matrix, tuple[Indices, ...], Matrix]:
    """W (B, d, d); its edges as (b, i, j), by b; and for each a direction (d,).

    Along it the rows are projected for the variance of the edge's coefficient: its column of the
    inverse covariance of the parents.
    """
    B, d, _ = S.shape
    W = np.zeros_like(S)
    edges = np.nonzero(parents)
    number = np.zeros(S.shape, dtype=np.intp)
    number[edges] = np.arange(len(edges[0]))
    directions = np.zeros((d, len(edges[0])))
    for tasks, index in by_size(parents.transpose(0, 2, 1).reshape(B * d, d)):
        b, j = np.divmod(tasks, d)
        C = np.linalg.pinv(submatrices(S, b, index), hermitian=True)
        at = b[:, None], index, j[:, None]
        W[at] = np.einsum("mik,mk->mi", C, S[at])
        directions[index[:, :, None], number[at][:, None, :]] = C
    return W, edges, directions


def _variances(
    problem: Problem, moments: Moments, W: Matrix, directions: Matrix, effects: Indices
) -> Matrix:
    """Of each coefficient, with noise that may differ between rows: `Rows.coefficients` at once."""
    centred = problem.rows.values - moments.mean
    counts = problem.prior * problem.effective_rows(problem.prior)
    errors = np.square(centred - centred @ W)
    errors *= (np.square(problem.prior) / counts)[:, None]
    return np.einsum("ne,ne->e", errors[:, effects], np.square(centred @ directions))
