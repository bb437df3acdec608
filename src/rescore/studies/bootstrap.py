"""How sure is an edge?  The same model on many resamples of the rows."""

import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone

from rescore.algorithm import Result, rescore
from rescore.fitting import Preparation, Prepared
from rescore.learners.base import InnerPlayer, StructureLearner
from rescore.learners.custom import Custom, as_learner
from rescore.learners.linear import Linear
from rescore.learners.rescore import ReScore
from rescore.moments import Matrix, Moments
from rescore.out_of_core import (
    Known,
    Players,
    first_look,
    found_in,
    opened,
    prepared_from,
    rows_in_memory,
)
from rescore.protocols import Problem, Status
from rescore.scanning.digest import Digest
from rescore.scanning.sources import Scan, is_scannable, scan
from rescore.scanning.statistics import Count, Stretched, Stretches, Sums
from rescore.studies import Given, Positions, Refits, check_groups, opening_of, refit
from rescore.studies.edge_shares import STRETCHES, Counts, Outcome, Stability, summarised
from rescore.tables.table import TableLike, group_codes
from rescore.validation import check_choice, check_integer
from rescore.weight_box import MOST_ROWS
from rescore.weightings import Kept, Uniform

SCHEMES = ("bootstrap", "subsample")
FEWEST_ROWS = 10
FEWEST_OF_A_GROUP = 2  # one row alone has no spread
ROUNDING = 1e-9  # relative difference of weights that is none
MOST_STRETCHES, FEWEST_STRETCHES = 1024, 64  # of which resamples are drawn
MOST_CELLS = 2**25  # of the moments of all stretches, 256 MB


def bootstrap(
    model: Any,
    X: "TableLike",
    *,
    resamples: int = 100,
    scheme: str = "bootstrap",
    sample_weight: "ArrayLike | None" = None,
    groups: "ArrayLike | None" = None,
    random_state: int = 0,
    n_jobs: int | None = 1,
    on_resample: Callable[[int], Any] | None = None,
) -> Stability:
    """Fit a model again on resamples of the rows, and count how often it finds each edge.

    Of a `scan` stretches of about a thousandth of the rows are drawn, by their moments: one pass.

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
    count = check_integer("resamples", resamples, at_least=1)
    if is_scannable(X):
        source = scan(X)
        held = rows_in_memory(source)
        if held is None:
            seeds = np.random.SeedSequence(check_integer("random_state", random_state, at_least=0))
            return _of_stretches(model, source, scheme, seeds.spawn(count), on_resample)
        X = held
    study = study_of(model, X, scheme, sample_weight, groups)
    found: list[Outcome] = []
    try:
        for outcome in outcomes(study, count, random_state, Refits(n_jobs, on_resample)):
            found.append(outcome)
    except KeyboardInterrupt:
        if not found:
            raise
        stopped = f"Stopped by Ctrl-C after {len(found)} of {count} resamples."
        warnings.warn(stopped, stacklevel=2)
    return summarised(found, study.given.X, study.scheme, len(found) < count)


def _of_stretches(
    model: Any,
    source: Scan,
    scheme: str,
    seeds: list[np.random.SeedSequence],
    on_resample: Callable[[int], Any] | None,
) -> Stability:
    """Resamples of stretches of rows, from the moments of each: one pass after those of the fit."""
    known = clone(model if isinstance(model, StructureLearner) else as_learner(model))
    if not known.plain.in_passes:
        raise ValueError(
            "Resamples of rows that are read in passes are for Linear and Additive, alone or in "
            "ReScore. Take a sample of the rows with other learners."
        )
    if isinstance(known, Linear) and known.noise == "auto":  # as `_with_its_noise` says
        told = clone(known).fit(source).diagnostics_["noise"]["hypothesis"]
        known = known.set_params(noise=told)
    weighed = isinstance(known, ReScore)
    player = known._player(known.plain) if weighed else InnerPlayer(Uniform())
    study = Resampling.of(source, known.plain.players(player), known.plain._preparation())
    stretches = np.ones(len(study.stretches.first), dtype=np.int64)
    check_choice("scheme", scheme, SCHEMES)
    found = []
    for done, seed in enumerate(seeds, start=1):
        counts = draw(stretches, scheme, None, np.random.default_rng(seed))
        W, status = study.drawn(counts)
        found.append(Outcome(W, counts, status))
        if on_resample is not None:
            on_resample(done)
    index = pd.RangeIndex(len(stretches), name=STRETCHES)
    return summarised(found, pd.DataFrame(index=index, columns=list(source.names)), scheme, False)


@dataclass(frozen=True, eq=False)
class Resampling:
    """A fit, and the moments of stretches of rows, of which resamples are drawn.

    Rows next to each other are drawn together, so that rows that depend on their neighbours are
    no more certain than they are; where rows do not, it makes no difference.
    """

    prepared: Prepared
    problem: Problem
    found: Result
    refined: Any
    players: Players
    stretches: Stretched
    of_features: bool

    @classmethod
    def of(cls, source: Scan, players: Players, preparation: Preparation) -> "Resampling":
        """One pass after those of the fit."""
        passes = opened(source, players.weighting, preparation)
        table, looked = first_look(passes)
        prepared = prepared_from(passes, table, looked, preparation)
        problem, found, refined = found_in(prepared.problem, players, None, looked)
        rows = problem.rows
        assert isinstance(rows, Digest)
        features = passes.asked.get("features")  # of functions, if the learner has some
        count = features or Count(rows.rule, None, rows.centre, rows.unit)
        cells = (rows if features is None else replace(rows, expansion=count.expansion)).sums()
        many = min(MOST_STRETCHES, MOST_CELLS // cells.scatter.size)
        size = -(-source.rows // max(many, FEWEST_STRETCHES))
        stretches = passes.made("stretches of rows", Stretches(count, size))
        return cls(prepared, problem, found, refined, players, stretches, features is not None)

    def drawn(self, counts: Any) -> tuple[Matrix, Status]:
        """The graph (d, d) of the stretches drawn ``counts`` times each, and how it ended."""
        rows: Any = self.problem.rows
        sums = self.stretches.drawn(counts).scaled(rows.scale)
        again = replace(rows, passes=Known(sums), scale=1.0)
        if not self.of_features:  # whose units stay as they are
            again = replace(again, whole=_together(sums))
        problem = replace(self.problem, rows=again, count=float(sums.mass.sum()))
        given: Any = Uniform() if problem.groups is None else Kept(self.found.sample_weight)
        if self.refined is not None:
            given = self.refined.weigh(problem, self.found, again.rule)
        found = rescore(
            problem, self.players.backbone, given, warmup=0, max_steps=self.players.max_steps
        )
        return self.prepared.in_own_units(found).W, found.status


def _together(sums: Sums) -> Moments:
    """Of all groups of rows."""
    mass, mean, S = sums.moments
    share = mass / mass.sum()
    apart = mean - share @ mean
    whole = np.tensordot(share, S + apart[:, :, None] * apart[:, None, :], axes=1)
    return Moments(share @ mean, whole)


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


def outcomes(
    study: Study, count: int, random_state: int, refits: Refits
) -> Generator[Outcome, None, None]:
    """One resample after the other; the first of many are those of few."""
    seeds = np.random.SeedSequence(check_integer("random_state", random_state, at_least=0))
    return refits.made(resample, ((study, seed) for seed in seeds.spawn(count)))


def study_of(
    model: Any, X: Any, scheme: str = "bootstrap", sample_weight: Any = None, groups: Any = None
) -> Study:
    """What was given to `bootstrap`, checked."""
    known = clone(model if isinstance(model, StructureLearner) else as_learner(model))
    check_groups(known, groups)
    given = Given.of(X, sample_weight, groups, opening_of(known))
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
        counts[inside] = _drawn(rows[inside], scheme, rng, FEWEST_OF_A_GROUP)
    return counts


def _drawn(rows: Counts, scheme: str, rng: np.random.Generator, fewest: int) -> Counts:
    total = int(rows.sum())
    if scheme == "bootstrap":
        if (rows == 1).all():  # the usual case, and the faster way
            return np.bincount(rng.integers(total, size=total), minlength=total)
        return rng.multinomial(total, rows / total)
    half = min(max(total // 2, fewest), total)
    return rng.multivariate_hypergeometric(rows, half, method="marginals")
