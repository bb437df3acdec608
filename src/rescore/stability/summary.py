"""From the outcomes of all resamples to tables: probabilities, coefficients, row weights."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rescore.moments import Matrix
from rescore.stability.drawing import Counts
from rescore.stability.fits import Outcome

__all__ = ["edge_table", "readable", "row_table", "shares"]

LOW, HIGH = 0.05, 0.95
CHUNK = 2**14  # rows at a time


def shares(graphs: Matrix, names: pd.Index) -> pd.DataFrame:
    """The share of the graphs (B, d, d) that have each edge, (d, d).

    Examples
    --------
    >>> shares(np.array([[[0, 1], [0, 0]], [[0, 0], [1, 0]]]), pd.Index(["a", "b"]))
         a    b
    a  0.0  0.5
    b  0.5  0.0
    """
    return pd.DataFrame((graphs != 0).mean(axis=0), index=names, columns=names)


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
