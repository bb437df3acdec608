"""Which λ and which threshold?  The whole path of graphs, and a point on it, without any truth."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rescore.studies import Given, check_groups, opening_of
from rescore.studies.scored_path import (
    Study,
    known_learner,
    lambda_grid,
    measured,
    numbers,
    splits,
    tuned,
)
from rescore.tables.table import TableLike
from rescore.validation import check_integer

FOLDS, SUBSAMPLES = 5, 6
SOUGHT = ("lambda1", "threshold")
STABLE = 0.9  # agreement over halves of the rows below which edges are not to be relied on
ROUNDING = 1e-9  # difference of log-likelihoods that is none: equivalent graphs come this close
PANELS = {
    "log_likelihood": "held-out log-likelihood, a row",
    "stability": "stability of the edges over halves of the rows",
    "edges": "edges",
}
COLOURS = ("#1a6fb0", "#c4501b", "#2e8b57", "#8757b0", "#b08a1a", "#c2407a", "#3aa0a0", "#6b6b6b")
INK, FAINT, PAPER = "#20242b", "#9aa2ad", "#ffffff"
Setting = Mapping[str, Any]  # lambda1, where the learner has one, and threshold

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
    X: "TableLike",
    *,
    lambdas: Iterable[float] | None = None,
    thresholds: Iterable[float] | None = None,
    folds: int = FOLDS,
    subsamples: int = SUBSAMPLES,
    sample_weight: "ArrayLike | None" = None,
    groups: "ArrayLike | None" = None,
    random_state: int = 0,
    n_jobs: int | None = 1,
    on_fit: Callable[[int], Any] | None = None,
) -> Advice:
    """Follow a learner's graph over λ and the threshold, and recommend a point of that path.

    Recommended is the sparsest graph whose held-out log-likelihood is not behind the best by more
    than one standard error of the difference over the folds; of several the most stable, then the
    likeliest, then the nearest to the learner's own setting.  If its stability is below 0.9 and
    that of the learner's own setting is higher, the own setting stays.  There is no true graph in
    any of it.

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
    study = Study(Given.of(X, sample_weight, groups, opening_of(learner)), known_learner(learner))
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


class Choice(NamedTuple):
    """Positions in the table."""

    recommended: int
    sparsest: int  # of those within one error of the best; the same if it is stable
    own: int | None  # the learner's own setting, if it is there


def choose(table: pd.DataFrame, own: Setting) -> Choice:
    """The sparsest point that is not behind the best by more than one error, if it is stable.

    Of several the most stable one, then the likeliest, then the one nearest to ``own``.  If its
    edges change with the rows, the learner's own setting stays, where that was tried and its
    edges change less.

    Examples
    --------
    >>> table = pd.DataFrame({"threshold": [0.1, 0.3], "edges": [9, 5], "stability": [0.5, 0.9],
    ...     "log_likelihood": [-1.0, -1.1], "behind": [0.0, 0.1], "behind_se": [0.0, 0.2]})
    >>> choose(table, {"threshold": 0.1}).recommended
    1
    """
    known = {name: value for name, value in own.items() if value is not None}
    near = table[table["behind"] <= table["behind_se"] + ROUNDING].reset_index(names="place")
    likelihood = (near["log_likelihood"] / ROUNDING).round()
    order = near.assign(likelihood=likelihood, away=_distance(near, known)).sort_values(
        ["edges", "stability", "likelihood", "away", "place"],
        ascending=[True, False, False, True, True],
    )
    sparsest = int(order["place"].iloc[0])
    usual = _place(table, own)
    steady = table["stability"].to_numpy()
    kept = sparsest if usual is None or steady[sparsest] >= STABLE - ROUNDING else usual
    return Choice(kept if steady[kept] > steady[sparsest] else sparsest, sparsest, usual)


def _place(table: pd.DataFrame, own: Setting) -> int | None:
    """Where the learner's own setting is in the table."""
    same = np.logical_and.reduce([table[name] == value for name, value in own.items()])
    return int(np.flatnonzero(same)[0]) if same.any() else None


def _distance(table: pd.DataFrame, own: Setting) -> Any:
    """How many orders of magnitude each point is away from a setting."""
    least = 1e-3  # of what cannot be told from zero
    away = [
        np.abs(np.log(np.maximum(table[name], least) / max(value, least)))
        for name, value in own.items()
    ]
    return sum(away, start=np.zeros(len(table)))


def sentence(table: pd.DataFrame, choice: Choice, names: list[str]) -> str:
    """The recommended point, why it is that, and what the learner's own setting would give."""
    points = table.to_dict("records")
    sparsest = points[choice.sparsest]
    what = f"the sparsest of {len(table)} graphs within one standard error of the best held-out "
    what += f"log-likelihood ({table['log_likelihood'].max():.4g})"
    own = None if choice.own is None else points[choice.own]
    if choice.recommended == choice.sparsest:
        told = f"{_setting(sparsest, names)}: {_measured(sparsest)}, {what}"
        if own is not None and choice.own != choice.sparsest:
            told += f"; the learner's own {_setting(own, names)}: {_measured(own)}"
    else:
        assert own is not None
        told = (
            f"The learner's own {_setting(own, names)}: {_measured(own)}; {what}, at "
            f"{_setting(sparsest, names)}, is not stable enough to be preferred: "
            f"{_measured(sparsest)}, and {STABLE} is asked for"
        )
    return " ".join([f"{told}.", *_reservations(table, choice), "No true graph was used."])


def _reservations(table: pd.DataFrame, choice: Choice) -> list[str]:
    """What should keep a reader from trusting the point blindly."""
    told = []
    sparsest = table.iloc[choice.sparsest]
    if sparsest["stability"] < STABLE - ROUNDING:
        if choice.recommended == choice.sparsest:
            own = "" if choice.own is None else ", and the learner's own setting is no steadier"
            told.append(f"Its stability is below the {STABLE} that is asked for{own}.")
        told.append(
            "Where edges change with the rows, their directions are often wrong, as they are in "
            "columns that were standardised."
        )
    if "lambda1" in table and choice.recommended != choice.own:
        lambdas, chosen = table["lambda1"], table["lambda1"].iloc[choice.recommended]
        if chosen == lambdas.min() < lambdas.max():
            told.append("It is the least lambda1 tried: try smaller ones too.")
        if chosen == lambdas.max() > lambdas.min():
            told.append("It is the largest lambda1 tried: try larger ones too.")
    failed, fits = (table.attrs.get(name, 0) for name in ("not_converged", "fits"))
    return [*told, f"{failed} of {fits} fits did not converge."] if failed else told


def _setting(point: Any, names: list[str]) -> str:
    return ", ".join(f"{name} = {point[name]:g}" for name in names)


def _measured(point: Any) -> str:
    count = int(point["edges"])
    return (
        f"{count} edge{'s' * (count != 1)}, held-out log-likelihood "
        f"{point['log_likelihood']:.4g}, stability {point['stability']:.2f}"
    )


def draw_path(table: pd.DataFrame) -> "Figure":
    """Likelihood, stability and edges over the threshold, a line for each λ; the choice ringed.

    A figure that touches neither pyplot nor its settings.

    Examples
    --------
    >>> points = {"threshold": [0.0, 0.3], "edges": [3, 1], "stability": [0.5, 1.0]}
    >>> more = {"log_likelihood": [-1.0, -1.2], "recommended": [False, True]}
    >>> len(draw_path(pd.DataFrame(points | more)).axes)
    3
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(7.2, 7.4), layout="constrained", facecolor=PAPER)
    panels = figure.subplots(len(PANELS), 1, sharex=True)
    for axes, (name, title) in zip(panels, PANELS.items(), strict=True):
        _draw_lines(axes, table, name)
        _plain(axes, title)
    panels[1].set_ylim(-0.03, 1.05)
    panels[2].yaxis.set_major_locator(MaxNLocator(integer=True))
    positive = table["threshold"][table["threshold"] > 0]
    if len(positive):  # zero has a place of its own on an otherwise logarithmic scale
        least, largest = float(positive.min()), float(positive.max())
        panels[-1].set_xscale("symlog", linthresh=least, linscale=0.4)
        panels[-1].set_xlim(-0.2 * least, 1.2 * largest)
        panels[-1].xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panels[-1].set_xlabel("threshold", fontsize=8, color=INK)
    panels[0].legend(loc="lower left", fontsize=8, frameon=False, labelcolor=INK)
    return figure


def _draw_lines(axes: "Axes", table: pd.DataFrame, name: str) -> None:
    lines: list[tuple[Any, pd.DataFrame]] = (
        list(table.groupby("lambda1")) if "lambda1" in table else [(None, table)]
    )
    for place, (lambda1, line) in enumerate(lines):
        label = "all thresholds" if lambda1 is None else f"λ = {lambda1:g}"
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(
            line["threshold"], line[name], color=colour, marker="o", markersize=3.5, linewidth=1.3,
            label=label,
        )  # fmt: skip
    chosen = table[table["recommended"]]
    axes.scatter(
        chosen["threshold"], chosen[name], s=110, facecolors="none", edgecolors=INK, linewidths=1.6,
        zorder=5, label="recommended",
    )  # fmt: skip


def _plain(axes: "Axes", title: str) -> None:
    """Axes with as little ink as possible."""
    axes.set_title(title, fontsize=9, loc="left", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(labelsize=8, colors=INK, length=3)
    axes.grid(True, color="#e6e9ee", linewidth=0.6)
    axes.set_axisbelow(True)
