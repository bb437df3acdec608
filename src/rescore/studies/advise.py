"""Which λ and which threshold?  The whole path of graphs, and a point on it, without any truth."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from rescore.studies.candidates import known_learner, lambda_grid, numbers, splits
from rescore.studies.recommendation import choose, draw_path, sentence
from rescore.studies.refit import Given, check_groups
from rescore.studies.scored_path import Study, measured, tuned
from rescore.validation import check_integer

FOLDS, SUBSAMPLES = 5, 6
SOUGHT = ("lambda1", "threshold")


if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Advice:
    """What `advise` found; nothing in it has seen a true graph.

    Attributes
    ----------
    table : DataFrame
        One row per point of the path: lambda1 (where the learner has one), threshold, the edges
        of its graph, its held-out log-likelihood, how far that is ``behind`` the best and the
        standard error of this difference over the folds (``behind_se``), the stability of its
        edges over halves of the rows, whether it was ``acyclic`` before any edge was cut, and
        whether it is the ``recommended`` one.
    recommended : dict
        The recommended lambda1 and threshold.
    estimator : estimator
        The learner with them, not fitted yet.
    sentence : str
        The recommendation, and what it rests on.

    Examples
    --------
    >>> from rescore import Linear, advise, simulate
    >>> found = advise(Linear(), simulate(nodes=3, degree=1, random_state=100).X)
    >>> found.estimator.threshold == found.recommended["threshold"]
    True
    """

    table: pd.DataFrame
    recommended: dict[str, float]
    estimator: Any
    sentence: str

    def figure(self) -> "Figure":
        """Likelihood, stability and edges over the threshold, a line for each λ.

        Examples
        --------
        >>> from rescore import Linear, advise, simulate
        >>> found = advise(Linear(), simulate(nodes=3, degree=1, random_state=100).X)
        >>> len(found.figure().axes)
        3
        """
        return draw_path(self.table)

    def __repr__(self) -> str:
        return f"{self.table.round(4).to_string(index=False)}\n\n{self.sentence}"


def advise(
    learner: Any,
    X: Any,
    *,
    lambdas: Iterable[float] | None = None,
    thresholds: Iterable[float] | None = None,
    folds: int = FOLDS,
    subsamples: int = SUBSAMPLES,
    sample_weight: Any = None,
    groups: Any = None,
    random_state: int = 0,
    n_jobs: int | None = 1,
    on_fit: Callable[[int], Any] | None = None,
) -> Advice:
    """Follow a learner's graph over λ and the threshold, and recommend a point of that path.

    Recommended is the sparsest graph whose held-out log-likelihood is not behind the best by more
    than one standard error of the difference over the folds; of several the most stable, then the
    likeliest, then the nearest to the learner's own setting.  If its stability is below 0.9, the
    learner's own setting stays.  There is no true graph in any of it.

    All thresholds come from the same fits, one for each λ and part of the rows; where row weights
    move between whole fits they are those of the fit without a threshold.  The held-out
    log-likelihood is that of a graph with straight lines refitted to it, for linear learners, and
    otherwise of the learner's own functions without the dropped edges.  The stability is that of
    `compare`: two graphs agree in the share of the pairs adjacent in either of them that have the
    same edge in both, here on average over the graphs of halves of the rows.

    Parameters
    ----------
    learner : GraphLearner, ReScore, or whatever `ReScore` takes
        One with a threshold, and perhaps with lambda1.
    X : table
        The rows, as for `fit`.
    lambdas : iterable of float, optional
        The λ to try; by default 0.1, 0.3, 1 and 3 times the learner's own.  One whose lambda1 is
        None keeps the λ it chooses by itself.
    thresholds : iterable of float, optional
        By default zero, the learner's own, and round numbers from a hundredth of the strongest
        edge up to it.
    folds : int
        Into how many parts the rows are divided, each left out once; at least two.
    subsamples : int
        How many halves of the rows the stability is of, at least two.
    sample_weight : array (n,), optional
        Prior row weights, in fits and on rows left out.
    groups : array (n,), optional
        Labels for learners that need them, each spread evenly over folds and halves.
    random_state : int
        Seed of folds and halves.
    n_jobs : int, optional
        Processes, as joblib counts them.
    on_fit : callable, optional
        Called with the number of fits done, after each.

    Examples
    --------
    >>> from rescore import Linear, simulate
    >>> X = simulate(nodes=3, degree=1, samples=500, random_state=100).X
    >>> found = advise(Linear(), X, thresholds=[0, 0.2, 2])
    >>> found.table[["threshold", "edges", "recommended"]]
       threshold  edges  recommended
    0        0.0      3         True
    1        0.2      3        False
    2        2.0      0        False
    """
    study = Study(Given.of(X, sample_weight, groups), known_learner(learner))
    check_groups(study.learner, groups)
    wanted = lambda_grid(study.inner, lambdas)
    given = None if thresholds is None else numbers("thresholds", thresholds)
    seed = check_integer("random_state", random_state, at_least=0)
    counts = (_several("folds", folds), _several("subsamples", subsamples))
    table = measured(study, wanted, given, splits(study.given, *counts, seed), n_jobs, on_fit)
    own = {name: getattr(study.inner, name) for name in SOUGHT if name in table}
    choice = choose(table, own)
    recommended = {name: float(table[name].iloc[choice.recommended]) for name in own}
    said = sentence(table, choice, list(own))
    table["recommended"] = table.index == choice.recommended
    return Advice(table, recommended, tuned(study.learner, **recommended), said)


def fits_needed(
    learner: Any,
    lambdas: Iterable[float] | None = None,
    folds: int = FOLDS,
    subsamples: int = SUBSAMPLES,
) -> int:
    """How many fits `advise` makes.

    Examples
    --------
    >>> from rescore import Linear, Notears
    >>> fits_needed(Linear()), fits_needed(Notears())
    (12, 48)
    """
    known = known_learner(learner)
    count = len(lambda_grid(known.plain, lambdas))
    return count * (1 + _several("folds", folds) + _several("subsamples", subsamples))


def _several(name: str, value: Any) -> int:
    return check_integer(name, value, at_least=2)
