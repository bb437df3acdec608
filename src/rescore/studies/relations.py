"""Whether the relations in a table look linear, additive or joint, and what learners would cost.

A graph of smooth additive functions is searched first, and one of straight lines whose noise may
have any shape, which in the wrong direction looks like a bend; the likelier of the two counts.
Whether a variable depends on several causes together is asked of what the functions leave: does a
Gaussian process of the causes, jointly, explain it beyond noise?
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rescore.fitting import Preparation
from rescore.graph.dag import topological_order
from rescore.moments import Matrix, evenly_spaced, standardised
from rescore.protocols import Problem
from rescore.solvers.noise import Sample, explanations, shape_gains
from rescore.solvers.order_search import Ordered
from rescore.solvers.smooth_features import FEATURES, Basis
from rescore.solvers.smooth_search import SmoothSearch
from rescore.tables.findings import Finding
from rescore.tables.table import Table

FEWEST_ROWS = 50
MOST_ROWS, MOST_COLUMNS = 2_000, 30  # looked at, evenly spaced
PROCESS_ROWS = 500  # of them, for the Gaussian processes
MOST_INPUTS = 6  # of a Gaussian process: the strongest causes, then others that come before
WIDTHS, SIZES = (1.0, 2.0, 4.0), (0.1, 1.0)  # of kernels, in deviations and in noise variances
CERTAIN = 5.0  # in log-likelihood: odds of 150 to 1
MANY_BENT, MANY_JOINT = 1 / 5, 1 / 8  # shares of the variables with causes that make a kind
# CPU seconds on one thread for 2,000 rows of 20 columns, and how they grow with rows and columns.
COSTS = {
    "Linear": (0.1, 0.0, 3.0),
    "Additive": (0.3, 0.1, 2.5),
    "NotearsMLP": (1.9, 1.0, 2.0),
    "GranDAG": (13.0, 1.0, 2.0),
    "GaussianProcess": (110.0, 2.0, 2.3),
}
MOST_ROWS_USED = {"GaussianProcess": 2_000}  # by learners that leave the others out
REMEDIES = {
    "linear": "Begin with rs.Linear(), in rs.ReScore() where rows may differ.",
    "additive": "Begin with rs.Additive(); rs.Linear() would miss what is bent.",
    "joint": "Begin with rs.GaussianProcess(), or rs.NotearsMLP() in seconds; additive and linear "
    "learners would miss what acts together.",
}


@dataclass(frozen=True)
class Relations:
    """How many variables have causes in a first graph, bent functions, and joint ones.

    Examples
    --------
    >>> Relations(caused=10, bent=8, joint=1).kind
    'additive'
    """

    caused: int
    bent: int
    joint: int

    @property
    def kind(self) -> str:
        """The least general of "linear", "additive" and "joint" that does for most variables."""
        if self.joint > MANY_JOINT * self.caused:
            return "joint"
        return "additive" if self.bent > MANY_BENT * self.caused else "linear"

    @property
    def sentence(self) -> str:
        """What was seen.

        Examples
        --------
        >>> Relations(caused=2, bent=0, joint=0).sentence
        'Relations look linear: of 2 variables with causes 0 have bent functions and 0 joint ones.'
        """
        return (
            f"Relations look {self.kind}: of {self.caused} variables with causes {self.bent} have "
            f"bent functions and {self.joint} joint ones."
        )


def of_relations(table: Table, prior: Matrix, count: float) -> Iterator[Finding]:
    """What the relations look like, with the learner to begin with and what learners cost.

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> x, e = np.random.default_rng(0).normal(size=(2, 500))
    >>> table = as_table(np.c_[x, np.sin(2 * x) + 0.3 * e])
    >>> print(next(of_relations(table, np.full(500, 1 / 500), 500)).message)
    Relations look additive: of 1 variables with causes 1 have bent functions and 0 joint ones. ...
    """
    n, d = table.values.shape
    table = table.part(table.spread.varying)
    if n < FEWEST_ROWS or len(table.names) < 2 or n <= len(table.names):
        return
    rows = evenly_spaced(n, MOST_ROWS)
    some = table.part(evenly_spaced(len(table.names), MOST_COLUMNS).tolist()).rows(
        np.isin(range(n), rows)
    )
    w = prior[rows] / prior[rows].sum()
    found = relations(Preparation().prepared(some, w, count * len(rows) / n).problem)
    if found.caused:
        remedy = f"{REMEDIES[found.kind]} {costs(n, d)}"
        yield Finding("relations", found.sentence, remedy=remedy, severity="note")


def costs(n: int, d: int) -> str:
    """About what each learner would take for a table of n rows and d columns.

    Examples
    --------
    >>> costs(2000, 20)
    'CPU seconds of a fit, about: Linear 0.1, Additive 0.3, NotearsMLP 2, GranDAG 13, ...'
    """
    each = {
        name: seconds
        * max(min(n, MOST_ROWS_USED.get(name, n)) / 2000, 0.1) ** by_rows
        * (d / 20) ** by_columns
        for name, (seconds, by_rows, by_columns) in COSTS.items()
    }
    told = ", ".join(f"{name} {_rounded(seconds)}" for name, seconds in each.items())
    return f"CPU seconds of a fit, about: {told}."


def relations(problem: Problem) -> Relations:
    """What the relations of a problem look like.

    Examples
    --------
    >>> a, b, e = np.random.default_rng(0).normal(size=(3, 500))
    >>> both = np.sin(a) * np.cos(b) + np.cos(a)
    >>> relations(Problem.unconstrained(np.c_[a, b, both + 0.3 * e])).kind
    'joint'
    """
    basis = Basis.of(problem)
    search = SmoothSearch.of(problem, basis, problem.prior, 0.0)
    graph = search.best(starts=1)
    sample, Phi = Sample.of(problem, problem.prior, 0.0), basis.features(problem.rows.matrix())
    lines = min(explanations(sample, 1), key=lambda one: one.cost)
    straight = lines.cost <= _cost(search, graph, sample, basis, Phi)
    if straight:
        order = np.array(topological_order(lines.W), dtype=np.int64)
        graph = Ordered(lines.cost, lines.W != 0, order)
    left = _left(search, graph, Phi)[evenly_spaced(len(Phi), PROCESS_ROWS)]
    inputs = Phi[evenly_spaced(len(Phi), PROCESS_ROWS), ::FEATURES]
    bent, joint = np.zeros((2, len(graph.edges)), dtype=bool)
    for j in np.flatnonzero(graph.edges.any(axis=0)):
        codes = search.local(int(j), np.flatnonzero(graph.edges[:, j]))[1]
        bent[j] = not straight and (codes >= len(graph.edges)).any()
        causes = _inputs(search, graph, int(j))
        joint[j] = len(causes) > 1 and process_gain(inputs[:, causes], left[:, j]) > CERTAIN
    return Relations(int(graph.edges.any(axis=0).sum()), int(bent.sum()), int(joint.sum()))


def _left(search: SmoothSearch, graph: Ordered, Phi: Matrix) -> Matrix:
    """What the functions of a graph leave of every variable, in its deviations, (n, d)."""
    return np.asarray(Phi[:, ::FEATURES] - Phi @ search.functions(graph.edges)[0])


def _cost(search: SmoothSearch, graph: Ordered, sample: Sample, basis: Basis, Phi: Matrix) -> float:
    """Minus log-likelihood plus the price of all parameters, comparable with that of lines.

    The noise may have any shape here too.
    """
    R = _left(search, graph, Phi)
    R /= np.sqrt(np.maximum(sample.w @ np.square(R), np.finfo(float).tiny))
    gain, parameters = shape_gains(R, sample.w, sample.rows)
    noise = 0.5 * np.log(sample.rows) * (len(gain) + parameters.sum()) - gain.sum()
    constant = 0.5 * len(gain) * (1 + np.log(2 * np.pi)) + np.log(basis.deviation).sum()
    return float(graph.score + sample.rows * constant + noise)


def _inputs(search: SmoothSearch, graph: Ordered, j: int) -> Matrix:
    """The causes of j, the strongest first, then what comes before and is most related."""
    S = search.S[0, j * FEATURES].reshape(-1, FEATURES)
    related = np.square(S).sum(axis=1)
    before = graph.order[: int(np.flatnonzero(graph.order == j)[0])]
    rank = np.lexsort((-related[before], ~graph.edges[before, j]))
    return np.asarray(before[rank][:MOST_INPUTS])


def process_gain(Z: Matrix, left: Matrix) -> float:
    """How much likelier ``left`` (n,) is as noise plus a Gaussian process of Z (n, p), in logs.

    Examples
    --------
    >>> Z = np.random.default_rng(0).normal(size=(200, 2))
    >>> bool(process_gain(Z, Z[:, 0] * Z[:, 1]) > 100)
    True
    """
    from scipy.linalg import cho_solve, cholesky
    from scipy.spatial.distance import pdist, squareform

    n = len(left)
    r = left - left.mean()
    Z = standardised(Z, np.full(n, 1 / n)).values
    apart = squareform(pdist(Z, "sqeuclidean"))
    best = -np.inf
    for width in WIDTHS:
        K = np.exp(-apart / (2 * width**2))
        for size in SIZES:
            L = cholesky(size * K + np.eye(n), lower=True, check_finite=False)
            share = r @ cho_solve((L, True), r, check_finite=False) / (r @ r)
            best = max(best, -0.5 * n * np.log(share) - np.log(np.diag(L)).sum())
    return float(best - np.log(len(WIDTHS) * len(SIZES)))


def _rounded(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 1 else f"{seconds:,.0f}"
