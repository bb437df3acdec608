"""The resamples: which rows each has, and what the model finds on them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rescore.learners.base import StructureLearner
from rescore.learners.custom import Custom
from rescore.moments import Matrix
from rescore.protocols import Status
from rescore.studies.refit import Given, Positions, refit
from rescore.weight_box import MOST_ROWS

SCHEMES = ("bootstrap", "subsample")
FEWEST_ROWS = 2  # of a group: one row alone has no spread
ROUNDING = 1e-9  # relative difference of weights that is none
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Study:
    """What all resamples have in common; the weights given are those that are no counts."""

    given: Given
    model: StructureLearner
    scheme: str
    rows: Counts  # (n,), how many each row of the table stands for
    codes: Positions | None = None  # (n,), the groups as numbers

    @property
    def by_weight(self) -> bool:
        """Whether a row drawn k times may be one row of weight k, which is faster.

        Not where the rows have other weights or are counted by group, nor for learners that know
        no weights or would draw rows by them once more.
        """
        learner = self.model.plain
        weighs = learner.weighs_rows and not isinstance(learner, Custom)
        return weighs and self.given.sample_weight is None and self.codes is None

    def draw(self, seed: np.random.SeedSequence) -> Counts:
        """How often each row is in the resample of this seed, (n,)."""
        return draw(self.rows, self.scheme, self.codes, np.random.default_rng(seed))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one resample gave."""

    W: Matrix  # (d, d)
    counts: Counts  # (n,), how often each row was drawn
    status: Status
    weight: Matrix | None = None  # (n,), relative to equal weights; NaN, not drawn; None, all one


def resample(study: Study, seed: np.random.SeedSequence) -> Outcome:
    """Draw, and fit."""
    return fitted(study, study.draw(seed))


def fitted(study: Study, counts: Counts) -> Outcome:
    """The model fitted to the rows drawn ``counts`` (n,) times, by its own `fit`."""
    every = np.arange(len(counts))
    rows = every if study.by_weight else np.repeat(every, counts)
    part = study.given.part(rows)
    part = replace(part, sample_weight=counts.astype(np.float64)) if study.by_weight else part
    try:
        model = refit(study.model, part)
    except ValueError as error:
        raise ValueError(f"In a resample of the rows: {error}") from error
    relative = _relative(model.sample_weight_.to_numpy(), part.prior, rows, len(counts))
    return Outcome(model.adjacency_matrix_.to_numpy(), counts, model.status_, relative)


def _relative(w: Matrix, prior: Matrix, rows: Positions, n: int) -> Matrix | None:
    """The learned weight of each row of the table over the weight it came with, (n,)."""
    if np.allclose(w, prior, rtol=ROUNDING, atol=0):
        return None
    learned, given = (np.bincount(rows, each, minlength=n) for each in (w, prior))
    return np.divide(learned, given, out=np.full(n, np.nan), where=given > 0)


def rows_behind(sample_weight: Any, n: int) -> Counts | None:
    """How many rows each row of the table stands for, (n,); None where weights only compare.

    Whole numbers count rows, as in every fit: a row repeated k times is a row of weight k.

    Examples
    --------
    >>> rows_behind(None, 3), rows_behind([2, 0, 1], 3), rows_behind([0.5, 1, 1], 3)
    (array([1, 1, 1]), array([2, 0, 1]), None)
    """
    if sample_weight is None:
        return np.ones(n, dtype=np.int64)
    s = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n)
    # Beyond so many rows numpy draws none without replacement.
    return s.astype(np.int64) if (s == np.round(s)).all() and s.sum() < MOST_ROWS else None


def draw(rows: Counts, scheme: str, groups: Positions | None, rng: np.random.Generator) -> Counts:
    """How often each row is in a resample, (n,), if the table has ``rows`` (n,) of each.

    As many as there are, with replacement, or half of them without.  With ``groups`` (n,) each is
    drawn from by itself, so that none is lost by chance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draw(np.ones(6, dtype=np.int64), "bootstrap", None, rng).sum()
    np.int64(6)
    >>> draw(np.ones(6, dtype=np.int64), "subsample", None, rng)
    array([1, 0, 0, 1, 0, 1])
    """
    if groups is None:
        return _drawn(rows, scheme, rng, fewest=0)
    counts = np.zeros_like(rows)
    for group in range(groups.max() + 1):
        inside = groups == group
        counts[inside] = _drawn(rows[inside], scheme, rng, FEWEST_ROWS)
    return counts


def _drawn(rows: Counts, scheme: str, rng: np.random.Generator, fewest: int) -> Counts:
    total = int(rows.sum())
    if scheme == "bootstrap":
        if (rows == 1).all():  # the usual case, and the faster way
            return np.bincount(rng.integers(total, size=total), minlength=total)
        return rng.multinomial(total, rows / total)
    half = min(max(total // 2, fewest), total)
    return rng.multivariate_hypergeometric(rows, half, method="marginals")
