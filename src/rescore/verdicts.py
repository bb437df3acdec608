"""One line and one word for every edge: what speaks for it, and how far it can be trusted.

Everything that shows edges (Python, terminal, page, files) asks here, so that two places cannot
contradict each other.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.graph.dag import cpdag, open_edges
from rescore.known_edges import edge_masks
from rescore.moments import Cells, Matrix, Regression, Rows, Weights
from rescore.protocols import Problem
from rescore.solvers.noise import EQUAL, GROUPED, SHAPED

if TYPE_CHECKING:
    from rescore.learners.base import StructureLearner
    from rescore.studies.edge_shares import Stability
    from rescore.studies.units import Units

__all__ = ["Evidence", "Shares", "edges", "judged", "regression_evidence", "shares_of", "trust"]

FIRM, OPEN, FRAGILE, MADE = "firm", "direction open", "fragile", "made by the units"
WORDS = (FIRM, OPEN, FRAGILE, MADE)
STEADY = 0.9  # share of resamples below which an edge or its direction is not to be relied on
NORMAL_90 = 1.6448536269514722  # a coefficient's interval has 90 %, as the quantiles of resamples
TINY = 1e-300
MOST_ROWS = 20_000  # of which standard errors are computed; with more, every k-th row stands in

BY_NOISE = {EQUAL: "equal noise", SHAPED: "non-Gaussian noise", GROUPED: "groups"}
EQUAL_NOISE, KNOWN, CLASS = BY_NOISE[EQUAL], "known", "v-structures"
BENT, LEARNER = "bent functions", "the learner"
REMEDIES = {
    OPEN: "a direction that is open needs knowledge (required or forbidden edges), rows under "
    "interventions, or groups whose noise differs",
    FRAGILE: "a fragile edge needs more rows",
    MADE: "an edge made by the units needs knowledge of its direction, or a reason why noise of "
    "one size in these units is to be expected",
}


class Shares(NamedTuple):
    """What resamples say: share of them with each edge (d, d), bounds of its coefficient."""

    edges: Matrix
    low: Matrix | None = None
    high: Matrix | None = None
    summary: str = ""


@dataclass(frozen=True)
class Evidence:
    """All that is known about one edge; None where nobody has asked.

    Examples
    --------
    >>> judged(Evidence(by="v-structures", repeated=0.99))
    'firm'
    >>> judged(Evidence(by="v-structures", repeated=0.99, survives=False))
    'made by the units'
    """

    by: str = ""  # what tells the direction; empty if it is open
    required: bool = False  # by the user: it was not found but given
    repeated: float | None = None  # chance that another table as large would show it too
    stability: float | None = None  # share of resamples with it, either way if it is open
    direction: float | None = None  # share of those that join the two in which it points so
    survives: bool | None = None  # every change of units that was tried
    changes: str = ""  # what became of it in those that it does not survive

    @property
    def doubts(self) -> dict[str, str]:
        """Each word but `firm` for which there is a reason, with the reason."""
        if self.required:
            return {}
        found = {}
        if self.survives is False:
            found[MADE] = f"in other units {self.changes or 'it is another edge'}"
        elif self.by == EQUAL_NOISE and self.survives is None:
            found[MADE] = "its direction is told by noise of one size, in these units alone"
        if self.stability is not None and self.stability < STEADY:
            found[FRAGILE] = f"in {_percent(self.stability)} of the resamples"
        elif self.stability is None and self.repeated is not None and self.repeated < STEADY:
            found[FRAGILE] = "its coefficient hardly exceeds its error"
        elif self.by and self.direction is not None and self.direction < STEADY:
            found[FRAGILE] = f"points this way in {_percent(self.direction)} of the resamples"
        if not self.by:
            found[OPEN] = "the data fit either way"
        return found


def judged(evidence: Evidence) -> str:
    """The verdict on an edge, from all the evidence there is: the first of these that applies.

    `made by the units`: it is lost, turned or left open in other units; or what tells its
    direction is noise of one size in all variables, and nobody has tried other units.
    `fragile`: fewer than 90 % of the resamples have it, or have it this way; without resamples,
    its coefficient is so near its error that another table as large would show it with a chance
    below 90 %.  `direction open`: ``cpdag_`` leaves the direction open.  `firm`: none of these;
    also an edge that the user requires, which nothing could remove.

    Examples
    --------
    >>> judged(Evidence(by="", stability=1.0)), judged(Evidence(by="groups", stability=0.6))
    ('direction open', 'fragile')
    """
    return next(iter(evidence.doubts), FIRM)


def edges(
    model: "StructureLearner",
    *,
    stability: "Stability | Shares | None" = None,
    units: "Units | None" = None,
) -> pd.DataFrame:
    """The edges of a fitted model, the strongest first, each with its evidence and a verdict.

    `judged` says how the verdict follows from the evidence.  ``model.edges_`` is the same from the
    fit alone; what `bootstrap` and `units` found joins in here.

    Parameters
    ----------
    model : estimator
        A fitted one.
    stability : Stability, optional
        What `bootstrap` found.
    units : Units, optional
        What `units` found.

    Returns
    -------
    DataFrame
        ``cause``, ``effect``, ``coefficient`` and its 90 % interval (``low``, ``high``: quantiles
        of the resamples, or the standard errors of the fit); ``explains``, the share of the
        effect's variance that is lost without this edge; ``directed``, and ``by`` what: "known",
        "v-structures", "equal noise", "non-Gaussian noise", "groups", "bent functions", or "the
        learner", whose word it is; ``stability``, the share of resamples with the edge (either way
        if its direction is open), and ``direction``, of those that join the two the share in which
        it points so; ``survives``, all changes of units that were tried; ``known``, "required" or
        "reverse forbidden"; the ``verdict``, ``why``, and what it ``rests_on``.  What is not known
        is NaN or None.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import rescore as rs
    >>> rng = np.random.default_rng(0)
    >>> rain, sprinkler, wind = rng.normal(size=(3, 500))
    >>> grass = rain + 2 * sprinkler + 3 * wind
    >>> X = pd.DataFrame({"rain": rain, "sprinkler": sprinkler, "grass": grass})
    >>> model = rs.Linear().fit(X)
    >>> edges(model)[["cause", "effect", "by", "verdict"]]
           cause effect            by verdict
    0  sprinkler  grass  v-structures    firm
    1       rain  grass  v-structures    firm
    """
    W, names = model.adjacency_matrix_.to_numpy(), list(model.adjacency_matrix_.columns)
    places = sorted(np.argwhere(W != 0).tolist(), key=lambda edge: -abs(W[tuple(edge)]))
    shares = stability if isinstance(stability, Shares | None) else shares_of(stability)
    known = _known(model)
    by = _told_by(model, known)
    survival = _survival(units)
    rests_on = _rests_on(shares, units)
    lines = []
    for i, j in places:
        text = str(names[i]), str(names[j])
        evidence = Evidence(
            by[i, j],
            known[i, j] == "required",
            _repeated(model, i, j),
            *_steadiness(shares, i, j, bool(by[i, j])),
            *survival.get(text, (None, "")),
        )
        lines.append(
            {
                "cause": names[i],
                "effect": names[j],
                "coefficient": float(W[i, j]),
                **_interval(model, shares, i, j),
                "explains": _of(model, "explained_", i, j),
                "directed": bool(by[i, j]),
                "by": by[i, j],
                "stability": evidence.stability,
                "direction": evidence.direction,
                "survives": evidence.survives,
                "known": known[i, j],
                "verdict": judged(evidence),
                "why": _why(evidence),
                "rests_on": rests_on,
            }
        )
    return _typed(pd.DataFrame(lines, columns=COLUMNS))


COLUMNS = [
    "cause", "effect", "coefficient", "low", "high", "explains", "directed", "by", "stability",
    "direction", "survives", "known", "verdict", "why", "rests_on",
]  # fmt: skip


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers as numbers also where the column is empty or nobody has asked."""
    numbers = ["coefficient", "low", "high", "explains", "stability", "direction"]
    return table.astype(dict.fromkeys(numbers, float) | {"directed": bool, "survives": object})


def trust(table: pd.DataFrame) -> str:
    """How many of the edges are firm, what the others lack, and what the verdicts rest on.

    Examples
    --------
    >>> trust(pd.DataFrame({"verdict": ["firm", "fragile"], "rests_on": ["the fit alone"] * 2}))
    '1 of 2 edges is firm, 1 fragile. What would change that: a fragile edge needs more rows.
    This rests on the fit alone.'
    """
    if table.empty:
        return "There is no edge."
    count, total = Counter(table["verdict"]), len(table)
    firm = count[FIRM]
    others = [f"{count[word]} {_in_words(word, count[word])}" for word in WORDS[1:] if count[word]]
    first = f"{firm} of {total} edge{'s' * (total != 1)} {'is' if firm == 1 else 'are'} firm"
    told = ", ".join([first, *others]) + "."
    lacking = [REMEDIES[word] for word in WORDS[1:] if count[word]]
    more = f" What would change that: {'; '.join(lacking)}." if lacking else ""
    return f"{told}{more} This rests on {table['rests_on'].iloc[0]}."


def _in_words(word: str, count: int) -> str:
    if word != OPEN:
        return word
    return "with an open direction" if count == 1 else "with open directions"


def regression_evidence(
    problem: Problem, W: Matrix, w: Weights
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Standard errors of the coefficients of a linear graph, and what each edge explains, (d, d).

    Each variable is regressed on its parents under its own weights.  The errors are right also
    where the noise differs between rows (sandwich).  What an edge explains is the share of the
    effect's variance that no other parent could take over: what is lost without it.

    Examples
    --------
    >>> x, e = np.random.default_rng(0).normal(size=(2, 1000))
    >>> problem = Problem.unconstrained(np.c_[x, x + e])
    >>> W = np.array([[0.0, 1.0], [0.0, 0.0]])
    >>> errors, explained = regression_evidence(problem, W, problem.prior)
    >>> round(errors[0, 1], 2), round(explained[0, 1], 1)
    (np.float64(0.03), np.float64(0.5))
    """
    rows, every, counts = _sampled(problem, w)
    errors, explained = np.full(W.shape, np.nan), np.full(W.shape, np.nan)
    for j in np.flatnonzero((W != 0).any(axis=0)):
        own = every if every.ndim == 1 else every[:, j]
        parents = np.flatnonzero(W[:, j])
        if (total := own.sum()) > 0:
            found = _on_parents(rows, np.array([*parents, j]), own / total, counts)
            errors[parents, j], explained[parents, j] = found
    return errors, explained


def _on_parents(
    rows: Rows, columns: NDArray[np.intp], w: Matrix, counts: Matrix
) -> tuple[Matrix, Matrix]:
    """Of the last column on the others: errors of the coefficients, and what each explains."""
    part, k = rows.only(columns), len(columns) - 1
    moments = part.moments(w)
    S = moments.covariance
    C: Matrix = np.asarray(np.linalg.pinv(S[:k, :k], hermitian=True), dtype=np.float64)
    b = C @ S[:k, k]
    regression = Regression(k, np.arange(k), b, C)
    (variance,) = part.coefficient_variances([regression], w, counts, moments)
    scale = np.diag(C) * S[k, k]
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = np.where(scale > 0, np.square(b) / scale, np.nan)
    return np.sqrt(np.maximum(variance, 0.0)), explained


def _sampled(problem: Problem, w: Weights) -> tuple[Rows, Matrix, Matrix]:
    """At most so many rows, without the levels of their groups, their weights, and their counts."""
    rows, counts = problem.rows, problem.row_counts()
    step = -(-rows.shape[0] // MOST_ROWS) if rows.individual else 1
    if isinstance(w, Cells):
        members = w.membership[::step]
        share = members / np.maximum(members.sum(axis=1, keepdims=True), TINY)
        level = share @ rows.group_moments(w.membership).mean
        rows, every = Rows(rows.matrix()[::step] - level), members @ w.precision
    else:
        rows, every = (Rows(rows.matrix()[::step]) if step > 1 else rows), w[::step]
    # Errors of fewer rows are larger: each of these stands for `step` times as many.
    return rows, every, counts[::step] * step


def shares_of(stability: "Stability") -> Shares:
    """What `bootstrap` found as matrices in the order of the variables."""
    place = {name: k for k, name in enumerate(stability.edges.columns)}
    low, high = np.full((2, len(place), len(place)), np.nan)
    found = stability.table[["cause", "effect", "low", "high"]]
    for cause, effect, least, largest in found.itertuples(index=False, name=None):
        low[place[cause], place[effect]], high[place[cause], place[effect]] = least, largest
    return Shares(stability.edges.to_numpy(), low, high, stability.summary)


def _known(model: "StructureLearner") -> Any:
    """What the user said of every pair, (d, d): "required", "reverse forbidden" or nothing."""
    names = list(model.adjacency_matrix_.columns)
    given: dict[str, Any] = getattr(model.plain, "known_edges", dict)()
    try:
        allowed, required = edge_masks(names, **given)
    except ValueError:  # a saved model may have its names as text alone
        pairs = {key: [(str(a), str(b)) for a, b in said or ()] for key, said in given.items()}
        allowed, required = edge_masks([str(name) for name in names], **pairs)
    exogenous = {str(name) for name in getattr(model, "categories_", None) or ()}  # never caused
    back = ~allowed.T | np.array([str(name) in exogenous for name in names])[:, None]
    back &= ~np.eye(len(names), dtype=bool)
    return np.where(required, "required", np.where(back, "reverse forbidden", "")).astype(object)


def _told_by(model: "StructureLearner", known: Any) -> Any:
    """What tells the direction of every edge, (d, d); empty where it is open, or no edge is."""
    W, directions = model.adjacency_matrix_.to_numpy(), model.cpdag_.to_numpy()
    noise: Mapping[str, Any] = model.diagnostics_.get("noise") or {}
    left_open, compelled = open_edges(W, directions), ~open_edges(W, cpdag(W))
    by: Any = np.where(compelled, CLASS, _beyond_class(noise, bool((known != "").any())))
    by = np.where(known != "", KNOWN, by)
    return np.where((W == 0) | left_open, "", by).astype(object)


def _beyond_class(noise: Mapping[str, Any], some_known: bool) -> str:
    """What tells directions that other graphs of the class turn round."""
    if noise.get("bent_edges"):
        return BENT
    if noise.get("hypothesis") in BY_NOISE:
        return BY_NOISE[noise["hypothesis"]]
    return KNOWN if noise and some_known else LEARNER  # what is known settles others


def _survival(units: "Units | None") -> dict[tuple[str, str], tuple[bool, str]]:
    """Whether each edge survives all changes of units, and else what becomes of it."""
    if units is None or units.untested:
        return {}
    table = units.table[["cause", "effect", "changes"]].astype(str)
    return {
        (cause, effect): (changes == "", changes)
        for cause, effect, changes in table.itertuples(index=False, name=None)
    }


def _repeated(model: "StructureLearner", i: int, j: int) -> float | None:
    """The chance that another table of as many rows would show the edge: `Φ(|t| − √log n)`.

    An edge is worth its place where ``t²`` exceeds ``log n`` (BIC); on another table t varies by
    one around what it is here.
    """
    from scipy.stats import norm

    error = _of(model, "standard_errors_", i, j)
    if not error > 0:
        return None
    t = abs(float(model.adjacency_matrix_.to_numpy()[i, j])) / error
    rows = max(float(model.diagnostics_.get("effective_rows") or 2.0), 2.0)
    return float(norm.cdf(t - np.sqrt(np.log(rows))))


def _of(model: "StructureLearner", name: str, i: int, j: int) -> float:
    """An entry of what the fit knows of its coefficients; NaN of models that lack it."""
    found = getattr(model, name, None)
    return float("nan") if found is None else float(found.to_numpy()[i, j])


def _steadiness(
    shares: Shares | None, i: int, j: int, directed: bool
) -> tuple[float | None, float | None]:
    if shares is None:
        return None, None
    there, back = float(shares.edges[i, j]), float(shares.edges[j, i])
    either = min(there + back, 1.0)
    return (there if directed else either), (there / either if either else 0.0)


def _interval(model: "StructureLearner", shares: Shares | None, i: int, j: int) -> dict[str, float]:
    if shares is not None and shares.low is not None and shares.high is not None:
        low, high = float(shares.low[i, j]), float(shares.high[i, j])
        if low == low:
            return {"low": low, "high": high}
    reach = NORMAL_90 * _of(model, "standard_errors_", i, j)
    middle = float(model.adjacency_matrix_.to_numpy()[i, j])
    return {"low": middle - reach, "high": middle + reach}


def _rests_on(shares: Shares | None, units: "Units | None") -> str:
    """Which evidence there was, so that what nobody asked is not taken for an answer."""
    asked = [] if shares is None else [_resamples(shares.summary)]
    if units is not None:
        asked.append(
            "units that cannot matter by construction"
            if units.untested
            else f"{len(units.factors)} changes of units"
        )
    return f"the fit and {' and '.join(asked)}" if asked else "the fit alone"


def _resamples(summary: str) -> str:
    return summary.split(";")[0] or "resamples"


def _why(evidence: Evidence) -> str:
    if evidence.required:
        return "required by you"
    kept = ", and kept in other units" if evidence.survives else ""
    told = KNOWN if evidence.by == KNOWN else f"told by {evidence.by}"
    return "; ".join(evidence.doubts.values()) or f"direction {told}{kept}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
