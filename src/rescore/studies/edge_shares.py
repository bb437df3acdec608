"""What resamples say about a graph, in tables and in words: shares, coefficients, row weights."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.moments import Matrix
from rescore.protocols import Status

MOST_SHOWN = 20
LOW, HIGH = 0.05, 0.95
STRETCHES = "stretches of rows"  # drawn in the place of rows that are read in passes
CHUNK = 2**14  # rows at a time
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one resample gave."""

    W: Matrix  # (d, d)
    counts: Counts  # (n,), how often each row was drawn
    status: Status
    weight: Matrix | None = None  # (n,), relative to equal weights; NaN, not drawn; None, all one


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """What `bootstrap` found.

    Attributes
    ----------
    edges : DataFrame (d, d)
        ``.loc[a, b]``: the share of resamples whose graph has a → b.
    adjacent : DataFrame (d, d)
        The share with an edge between a and b, whichever way it points.
    table : DataFrame
        A line for every edge found at least once, the most probable first: ``cause``, ``effect``,
        ``probability`` of the edge, probability that the two are ``adjacent``, probability of this
        ``direction`` given that they are; mean ``coefficient`` and its 5 % and 95 % quantiles
        (``low``, ``high``) over the resamples that have the edge.
    row_weights : DataFrame (n, 4)
        On the index of X: the row's weight times the number of rows, relative to its own
        ``sample_weight`` where there is one, so that 1 counts as in the plain learner; its
        ``mean``, ``low`` (5 %) and ``high`` (95 %) over the resamples in which it was drawn, and
        how often it was ``drawn`` in all.
    resamples : int
        How many there were.
    scheme : str
        How they were drawn.
    statuses : dict
        How many fits ended with each `Status`, by its name.  All of them count, converged or not.
    interrupted : bool
        Whether Ctrl-C kept it from drawing as many as were asked for.

    Examples
    --------
    >>> from rescore import Linear, bootstrap, simulate
    >>> X = simulate(nodes=3, degree=1, samples=200, random_state=100).X
    >>> bootstrap(Linear(), X, resamples=50).statuses
    {'CONVERGED': 50}
    """

    edges: pd.DataFrame
    adjacent: pd.DataFrame
    table: pd.DataFrame
    row_weights: pd.DataFrame
    resamples: int
    scheme: str
    statuses: Mapping[str, int]
    interrupted: bool = False

    @property
    def not_converged(self) -> int:
        """How many fits did not converge."""
        return self.resamples - self.statuses.get(Status.CONVERGED.name, 0)

    @property
    def weights_vary(self) -> bool:
        """Whether any row was weighed other than in the plain learner."""
        values = self.row_weights[["low", "high"]].to_numpy()
        return bool(((values != 1) & ~np.isnan(values)).any())

    @property
    def summary(self) -> str:
        """How the resamples were drawn and how their fits ended, as a sentence."""
        what = STRETCHES if self.row_weights.index.name == STRETCHES else "rows"
        many = f"{len(self.row_weights):,} {what}"
        how = (
            f"{'bootstrap resamples' if self.scheme == 'bootstrap' else 'random halves'} of {many}"
        )
        failed = self.not_converged
        ends = f"{failed} fit(s) did not converge and count too" if failed else "all fits converged"
        stopped = " Stopped by Ctrl-C before all were drawn." if self.interrupted else ""
        return f"{self.resamples} {how}; {ends}.{stopped}"

    def __repr__(self) -> str:
        if self.table.empty:
            return f"{self.summary}\nNo resample has an edge."
        shown = readable(self.table.head(MOST_SHOWN)).to_string(index=False)
        left = len(self.table) - MOST_SHOWN
        more = f"\n... and {left} more edge(s), all in .table" if left > 0 else ""
        return f"{self.summary}\n\n{shown}{more}"


def summarised(
    outcomes: Sequence[Outcome], X: pd.DataFrame, scheme: str, interrupted: bool
) -> Stability:
    """All that the outcomes say about the variables and the rows of X."""
    graphs = np.stack([outcome.W for outcome in outcomes])
    share = (graphs != 0).mean(axis=0)
    edges = pd.DataFrame(share, index=X.columns, columns=X.columns)
    return Stability(
        edges,
        edges + edges.T,
        edge_table(graphs, X.columns),
        row_table(outcomes, X.index),
        len(outcomes),
        scheme,
        dict(Counter(outcome.status.name for outcome in outcomes)),
        interrupted,
    )


def edge_table(graphs: Matrix, names: pd.Index) -> pd.DataFrame:
    """A line for every edge of any graph, the most probable first; coefficients where it is there.

    Examples
    --------
    >>> graphs = np.array([[[0, 2.0], [0, 0]], [[0, 0], [1.0, 0]]])
    >>> edge_table(graphs, pd.Index(["a", "b"])).values[0].tolist()
    ['a', 'b', 0.5, 1.0, 0.5, 2.0, 2.0, 2.0]
    """
    share = (graphs != 0).mean(axis=0)
    i, j = np.nonzero(share)
    mean, low, high = _spread(np.where(graphs[:, i, j] != 0, graphs[:, i, j], np.nan))
    table = pd.DataFrame(
        {
            "cause": names[i],
            "effect": names[j],
            "probability": share[i, j],
            # No graph has both directions of an edge.
            "adjacent": share[i, j] + share[j, i],
            "direction": share[i, j] / (share[i, j] + share[j, i]),
            "coefficient": mean,
            "low": low,
            "high": high,
        }
    )
    order = np.lexsort((-np.abs(mean), -share[i, j]))
    return table.iloc[order].reset_index(drop=True)


def row_table(outcomes: Sequence[Outcome], index: pd.Index) -> pd.DataFrame:
    """Weight of every row over the resamples with it, and how often it was drawn.

    Examples
    --------
    >>> from rescore.protocols import Status
    >>> drawn, weight = np.array([2, 0]), np.array([1.5, np.nan])
    >>> row_table([Outcome(np.eye(1), drawn, Status.CONVERGED, weight)], pd.Index(["u", "v"]))
       mean  low  high  drawn
    u   1.5  1.5   1.5      2
    v   NaN  NaN   NaN      0
    """
    n = len(index)
    parts = [_row_spread(outcomes, slice(at, at + CHUNK)) for at in range(0, n, CHUNK)]
    mean, low, high = (np.concatenate(each) for each in zip(*parts, strict=True))
    times: Counts = sum((outcome.counts for outcome in outcomes), np.zeros(n, dtype=np.int64))
    return pd.DataFrame({"mean": mean, "low": low, "high": high, "drawn": times}, index=index)


def _row_spread(outcomes: Sequence[Outcome], part: slice) -> tuple[Matrix, Matrix, Matrix]:
    if all(outcome.weight is None for outcome in outcomes):
        seen = np.any([outcome.counts[part] > 0 for outcome in outcomes], axis=0)
        one = np.where(seen, 1.0, np.nan)
        return one, one, one
    return _spread(
        np.stack(
            [
                np.where(each.counts[part] > 0, 1.0, np.nan)
                if each.weight is None
                else each.weight[part]
                for each in outcomes
            ]
        )
    )


def _spread(values: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Mean and both quantiles over the first axis, of what is not NaN; NaN if nothing is."""
    ordered = np.sort(values, axis=0)  # NaN last
    count = (~np.isnan(values)).sum(axis=0)
    total = np.where(np.isnan(values), 0.0, values).sum(axis=0)
    mean = np.divide(total, count, out=np.full(values.shape[1:], np.nan), where=count > 0)
    return mean, _quantile(ordered, count, LOW), _quantile(ordered, count, HIGH)


def _quantile(ordered: Matrix, count: Counts, q: float) -> Matrix:
    """Between the two nearest of the first ``count`` values of each column, as numpy's."""
    at = q * np.maximum(count - 1, 0)
    below = np.floor(at).astype(int)
    above = np.minimum(below + 1, np.maximum(count - 1, 0))
    every = np.arange(ordered.shape[1])
    start, end = ordered[below, every], ordered[above, every]
    return start + (at - below) * (end - start)


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """The edges as text: probabilities in percent, the coefficient with its range.

    Examples
    --------
    >>> table = edge_table(np.array([[[0, 2.0], [0, 0]]]), pd.Index(["a", "b"]))
    >>> readable(table).iloc[0].tolist()
    ['a', 'b', '100 %', '100 %', '100 %', '2 [2, 2]']
    """
    percent = {
        heading: [f"{100 * share:.0f} %" for share in table[name]]
        for heading, name in (
            ("edge", "probability"), ("adjacent", "adjacent"), ("direction", "direction"),
        )
    }  # fmt: skip
    numbers = zip(table["coefficient"], table["low"], table["high"], strict=True)
    shown = [f"{mean:.3g} [{low:.3g}, {high:.3g}]" for mean, low, high in numbers]
    ends = {"cause": table["cause"], "effect": table["effect"]}
    return pd.DataFrame(ends | percent | {"coefficient": shown}, index=table.index)
