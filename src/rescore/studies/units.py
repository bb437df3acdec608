"""Would other units give another graph?  The same model on the same rows, measured otherwise."""

import zlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rescore.learners.base import StructureLearner
from rescore.learners.custom import as_learner
from rescore.learners.linear import Linear
from rescore.moments import Matrix
from rescore.protocols import Mask
from rescore.solvers.noise import EQUAL
from rescore.studies import Given, Refits, check_groups, converged, opening_of, refit
from rescore.tables.table import TableLike
from rescore.validation import check_integer

PROOF, MADE, ONLY_STANDARDISED = "unit-proof", "unit-made", "only standardised"
STANDARDISED = "standardised"
COLUMNS = ["cause", "effect", "verdict", "share", "changes"]
DECADES = 1  # a rescaling multiplies by anything between a tenth and ten


@dataclass(frozen=True, eq=False, repr=False)
class Units:
    """What `units` found.

    Attributes
    ----------
    table : DataFrame
        One row per edge: cause, effect, ``verdict``, the ``share`` of refits that have it, and
        ``changes``: under which changes of units it is lost, turned or left without a direction
        (``cpdag_``).  The verdict is "unit-proof" if every refit has the edge as the fit has it,
        "unit-made" if one has not, and "only standardised" for an edge that the fit lacks and the
        standardised one has.
    factors : DataFrame
        One row per change of units: what each column was multiplied by.
    not_converged : tuple of str
        The changes whose refit did not converge; they count like the others.
    untested : str
        Why other units could only give the same graph, and what tells its directions instead; then
        there were no refits, and the table is empty.

    Examples
    --------
    >>> edges = {"verdict": ["unit-proof", "unit-made"], "changes": ["", "turned: standardised"]}
    >>> factors = pd.DataFrame({"a": [1.0]}, index=["standardised"])
    >>> Units(pd.DataFrame(edges), factors, ()).sentence
    '1 of 2 edges survives every change of units (standardising): 1 is made by the units, in
    direction alone.'
    """

    table: pd.DataFrame
    factors: pd.DataFrame
    not_converged: tuple[str, ...]
    untested: str = ""

    @property
    def sentence(self) -> str:
        """How many edges survive, or why that was not tested."""
        return self.untested or self._counted()

    def _counted(self) -> str:
        count = self.table["verdict"].value_counts()
        proof, made, only = (int(count.get(v, 0)) for v in (PROOF, MADE, ONLY_STANDARDISED))
        how = f"every change of units ({_described(self.factors)})"
        if proof + made == 0:
            said = f"There is no edge that could hang on the units ({_described(self.factors)})"
        elif made == 0:
            said = f"All {proof} edges survive {how}" if proof > 1 else f"The edge survives {how}"
        else:
            said = f"{proof} of {proof + made} edges survive{'s' * (proof == 1)} {how}: "
            said += f"{made} {'is' if made == 1 else 'are'} made by the units{self._turned()}"
        more = f"; standardised columns add {only}" if only else ""
        failed = len(self.not_converged)
        ended = f" {failed} of {len(self.factors)} refits did not converge." if failed else ""
        return f"{said}{more}.{ended}"

    def _turned(self) -> str:
        """How many unit-made edges join their pair under every change, though not this way."""
        made = self.table["changes"][self.table["verdict"] == MADE]
        turned = sum("lost" not in text for text in made)
        some = f"{turned} of them " if turned < len(made) else "all of them " * (turned > 1)
        return f", {some}in direction alone" if turned else ""

    def __repr__(self) -> str:
        shown = "" if self.table.empty else f"{self.table.round(2).to_string(index=False)}\n\n"
        return shown + self.sentence


def units(
    model: Any,
    X: "TableLike",
    *,
    sample_weight: "ArrayLike | None" = None,
    groups: "ArrayLike | None" = None,
    rescalings: int = 3,
    random_state: int = 0,
    on_fit: Callable[[int], Any] | None = None,
) -> Units:
    """Fit a model again in other units, and say which of its edges would still be there.

    The columns are divided by their standard deviations, and then multiplied, in each of a few
    rescalings, by random numbers of their own between 1/10 and 10 (log-uniform).  Nothing else
    changes, λ and thresholds included.  Where units cannot matter there is nothing to test, and
    no refit: for standardised columns, and for `Linear` where the rows do not support noise of
    one size.  Agreement would be there by construction, and prove nothing about the edges.

    Parameters
    ----------
    model : estimator, or whatever `ReScore` takes
        Fitted to X, or still to fit; it stays as it is.
    X : table
        The rows of the fit.
    sample_weight, groups : array (n,), optional
        As in the fit.
    rescalings : int
        How many, besides standardising.
    random_state : int
        Seed of the rescalings; a column's numbers depend on its name, not on its place.
    on_fit : callable, optional
        Called with the number of refits done, after each.

    Examples
    --------
    >>> from rescore import Linear
    >>> rain = np.random.default_rng(0).normal(size=500)
    >>> X = pd.DataFrame({"rain": rain, "grass": 2 * rain + rain[::-1]})
    >>> units(Linear(), X).table[["cause", "effect", "verdict"]]
        cause effect            verdict
    0    rain  grass          unit-made
    """
    model = model if isinstance(model, StructureLearner) else as_learner(model)
    given = Given.of(X, sample_weight, groups, opening_of(model))
    check_groups(model, groups)
    count = check_integer("rescalings", rescalings, at_least=0)
    seed = check_integer("random_state", random_state, at_least=0)
    fitted = _fitted(model, given)
    if reason := nothing_to_test(fitted):
        return Units(
            pd.DataFrame(columns=COLUMNS), pd.DataFrame(columns=given.X.columns), (), reason
        )
    edges = _edges(fitted)
    factors = changed_units(given, count, seed)
    changes = list(factors.index)
    in_units = (given.in_units(factors.loc[change].to_numpy()) for change in changes)
    refits = Refits(1, on_fit).counted(refit(model, each) for each in in_units)
    found = dict(zip(changes, refits, strict=True))
    failed = tuple(change for change, each in found.items() if not converged(each))
    classes = {change: each.cpdag_.to_numpy() != 0 for change, each in found.items()}
    table = _table(edges, fitted.cpdag_.to_numpy() != 0, classes, list(given.X.columns))
    return Units(table, factors, failed)


def nothing_to_test(model: StructureLearner) -> str:
    """Why a fitted model gives the same graph in all units, and what tells its directions; or "".

    Examples
    --------
    >>> from rescore import simulate
    >>> X = simulate(nodes=3, degree=1, samples=200, random_state=100).X
    >>> nothing_to_test(Linear().fit(X))
    ''
    >>> print(nothing_to_test(Linear(standardize=True).fit(X)).split(".")[0])
    The columns were standardised, so other units give this graph by construction, and nothing was
    tested
    """
    learner, noise = model.plain, model.diagnostics_["noise"]
    if getattr(learner, "standardize", False):
        why = "The columns were standardised"
    elif isinstance(learner, Linear) and noise["hypothesis"] != EQUAL and learner.threshold == 0:
        why = "The search compares no variances of different variables"
    else:
        return ""
    said = f"{why}, so other units give this graph by construction, and nothing was tested."
    return f"{said} {noise['summary']}" if noise else said


def _fitted(model: StructureLearner, given: Given) -> StructureLearner:
    """The model if it is the fit of these rows, otherwise a fit of it."""
    if not hasattr(model, "adjacency_matrix_"):
        return refit(model, given)
    names, n = list(model.adjacency_matrix_.columns), len(model.sample_weight_)
    if names != list(given.X.columns) or n != len(given.X):
        raise ValueError(
            f"The model was fitted to {n} rows of {len(names)} variables, and these are "
            f"{given.X.shape[0]} rows of {given.X.shape[1]}, or named or ordered otherwise. Give "
            "the table of the fit, or a model that is not fitted yet."
        )
    return model


def _edges(model: StructureLearner) -> Mask:
    return model.adjacency_matrix_.to_numpy() != 0


def _table(
    edges: Mask, own: Mask, found: dict[str, Mask], names: Sequence[Hashable]
) -> pd.DataFrame:
    """A line for each edge of the fit, and for those that only the standardised one has.

    ``own`` and ``found`` have both directions of an edge that could as well be turned.
    """
    only = found[STANDARDISED] & ~edges & ~edges.T  # a turned edge is listed as it was
    only &= ~(only.T & _later(names))  # an open one once, whatever the order of the columns
    lines = [
        (names[i], names[j], *_judged((i, j), own, found, bool(edges[i, j])))
        for i, j in [*np.argwhere(edges).tolist(), *np.argwhere(only).tolist()]
    ]
    return pd.DataFrame(lines, columns=COLUMNS)


def _later(names: Sequence[Hashable]) -> Mask:
    """Pairs whose first name is the later one, (d, d)."""
    text = np.array([str(name) for name in names])
    return np.asarray(text[:, None] > text)


def _judged(
    edge: tuple[int, int], own: Mask, found: dict[str, Mask], fitted: bool
) -> tuple[str, float, str]:
    """Verdict, share of the refits with this edge, and what became of it in the others."""
    became = {change: _became(edge, own, refitted) for change, refitted in found.items()}
    share = sum(way == "" for way in became.values()) / len(found)
    if not fitted:
        return ONLY_STANDARDISED, share, ""
    ways = ("lost", "turned", "left open")
    kinds = {way: [change for change, each in became.items() if each == way] for way in ways}
    told = [f"{way}: {', '.join(changes)}" for way, changes in kinds.items() if changes]
    return MADE if told else PROOF, share, "; ".join(told)


def _became(edge: tuple[int, int], own: Mask, refitted: Mask) -> str:
    """What a refit made of an edge; nothing if it is as it was, or as it could have been."""
    there, back = refitted[edge], refitted.T[edge]
    if not there:
        return "turned" if back else "lost"
    return "left open" if back and own[edge] and not own.T[edge] else ""


def _described(factors: pd.DataFrame) -> str:
    count = len(factors) - 1
    random = f" and {count} random rescaling{'s' * (count != 1)}" if count else ""
    return f"standardising{random}"


def changed_units(given: Given, count: int, seed: int) -> pd.DataFrame:
    """What each column is multiplied by, one row per change of units.

    Examples
    --------
    >>> changed_units(Given.of([[0.0], [4.0]]), count=0, seed=0)
                   x0
    standardised  0.5
    """
    random = np.column_stack([_drawn(name, count, seed) for name in given.X])
    changes = [STANDARDISED, *(f"rescaling {k + 1}" for k in range(count))]
    factors = np.vstack([_to_deviation_one(given.values, given.prior), random])
    return pd.DataFrame(factors, changes, given.X.columns)


def _drawn(name: Hashable, count: int, seed: int) -> Matrix:
    rng = np.random.default_rng([seed, zlib.crc32(str(name).encode(errors="replace"))])
    return 10 ** rng.uniform(-DECADES, DECADES, size=count)


def _to_deviation_one(X: Matrix, prior: Matrix) -> Matrix:
    """One over the weighted standard deviation of each column, (d,); 1 for a constant one."""
    largest = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
    Z = X / largest  # squares stay within float64, whatever the units
    deviation = np.sqrt(prior @ np.square(Z - prior @ Z))
    varies = deviation > 1e-12
    return np.where(varies, 1 / np.where(varies, deviation, 1.0) / largest, 1.0)
