"""From the records of all resamples to a table and a sentence: what differs from plain fits."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t as student

from rescore.moments import Matrix
from rescore.protocols import Mask

PLAIN = "plain"
RANDOM = "random"
Cells = Mapping[Hashable, Mapping[Hashable, Any]]  # by method and column
CHANGES = ("changed", "turned")  # pairs joined otherwise than in the plain graph of the same rows
OUT_OF_BAG = np.exp(-1) / (1 - np.exp(-1))  # rows left out over distinct rows drawn, on average


class Measure(NamedTuple):
    """What is compared: in words, as a heading, and whether more of it is better."""

    words: str
    heading: str
    more_is_better: bool


MEASURES = {
    "shd": Measure("SHD", "SHD", False),
    "sid": Measure("SID", "SID", False),
    "graph_log_likelihood": Measure(
        "held-out log-likelihood of the graph", "log-lik. (graph)", True
    ),
    "log_likelihood": Measure("held-out log-likelihood", "log-lik.", True),
    "stability": Measure("stability of the edges", "stability", True),
}


def stabilities(graphs: Sequence[Mask]) -> list[float]:
    """Of each graph (d, d), the mean agreement with the others.

    Two graphs agree in the share of the pairs adjacent in either of them that have the same edge,
    direction included, in both; two empty graphs agree fully.

    Examples
    --------
    >>> one, other = np.eye(3, k=1) > 0, np.eye(3, k=2) > 0
    >>> stabilities([one, one, other])
    [0.5, 0.5, 0.0]
    """
    agreement = np.array([[_agreement(a, b) for b in graphs] for a in graphs])
    return ((agreement.sum(axis=1) - 1) / (len(graphs) - 1)).tolist()


def _agreement(a: Mask, b: Mask) -> float:
    differ, either = a != b, a | b
    pairs = np.triu(either | either.T).sum()
    return 1.0 - float(np.triu(differ | differ.T).sum() / pairs) if pairs else 1.0


def changes(graph: Mask, plain: Mask) -> dict[str, int]:
    """How many pairs two graphs (d, d) join otherwise, and how many of these in direction alone.

    Examples
    --------
    >>> changes(np.array([[0, 1], [0, 0]]) > 0, np.array([[0, 0], [1, 0]]) > 0)
    {'changed': 1, 'turned': 1}
    """
    differ = graph != plain
    turned = graph & plain.T & ~plain
    return {"changed": int(np.triu(differ | differ.T).sum()), "turned": int(turned.sum())}


def interval(differences: Matrix, level: float) -> tuple[float, float]:
    """An interval for the mean of paired differences over resamples of the same rows.

    A t-interval whose variance is ``(1/J + left out/drawn) s²`` (Nadeau and Bengio 2003) rather
    than ``s²/J``: resamples share rows, so that more of them do not make more data.

    Examples
    --------
    >>> low, high = interval(np.array([1.0, 2.0, 3.0]), 0.95)
    >>> round(low, 1), round(high, 1)
    (-2.1, 6.1)
    """
    J = len(differences)
    spread = np.sqrt((1 / J + OUT_OF_BAG) * differences.var(ddof=1))
    half = float(student.ppf((1 + level) / 2, J - 1) * spread)
    return float(differences.mean()) - half, float(differences.mean()) + half


def summary(records: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """One row per method: means, paired differences to plain with their intervals, and costs."""
    methods = list(dict.fromkeys(records["method"]))
    table = pd.DataFrame(index=pd.Index(methods, name="method"))
    for measure in measures_in(records):
        values = records.pivot(index="resample", columns="method", values=measure)[methods]
        differences = values.sub(values[PLAIN], axis=0)
        bounds = [interval(differences[method].to_numpy(float), level) for method in methods]
        table[measure] = values.mean()
        table[f"{measure}_difference"] = differences.mean()
        table[f"{measure}_low"], table[f"{measure}_high"] = zip(*bounds, strict=True)
    by_method = records.groupby("method")
    for name in ("edges", *CHANGES, "effective_rows", "converged"):
        if name in records:
            table[name] = by_method[name].mean()
    table["cpu_seconds"] = by_method["cpu_seconds"].median()  # the first fit may compile
    return table


def readable(table: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """The table as text: for each measure its mean, and the difference to plain with its interval.

    Examples
    --------
    >>> table = pd.DataFrame({"shd": [4.0], "shd_difference": [-2.0], "shd_low": [-3.0],
    ...     "shd_high": [-1.0], "edges": [9.0], "cpu_seconds": [0.5]}, index=["auto"])
    >>> readable(table, ["shd"]).loc["auto"].tolist()
    ['4', '-2 [-3, -1]', '9.0', '0.50']
    """
    shown = {}
    for measure in measures:
        heading = MEASURES[measure].heading
        parts = [table[f"{measure}_{end}"] for end in ("difference", "low", "high")]
        changes = [f"{d:+.2g} [{a:+.2g}, {b:+.2g}]" for d, a, b in zip(*parts, strict=True)]
        shown[heading] = [f"{mean:.4g}" for mean in table[measure]]
        shown[f"{heading} - plain"] = [
            "" if method == PLAIN else change
            for method, change in zip(table.index, changes, strict=True)
        ]
    shown["edges"] = [f"{mean:.1f}" for mean in table["edges"]]
    shown["CPU s"] = [f"{median:.2f}" for median in table["cpu_seconds"]]
    return pd.DataFrame(shown, index=table.index)


def measures_in(records: pd.DataFrame) -> list[str]:
    """The measures that were taken, the most telling first."""
    return [name for name in MEASURES if name in records]


def deciding(records: pd.DataFrame) -> list[str]:
    """SHD if the truth is known; otherwise likelihood, of the graph if possible, and stability."""
    taken = measures_in(records)
    return taken[:1] if taken[0] == "shd" else [taken[0], "stability"]


def answer(records: pd.DataFrame) -> str:
    """Whether a weighting beats the plain learner, as a sentence.

    A difference counts if its interval excludes zero at a level of 95 % for all methods and
    measures together (Bonferroni).  Without a truth nothing measured can see which way edges point,
    so that "no gain" alone is said only where the weights leave the graphs as they are.
    """
    measures = deciding(records)
    asked = [method for method in dict.fromkeys(records["method"]) if method != PLAIN]
    comparisons = len(asked) * len(measures)
    cells = summary(records, level=1 - 0.05 / comparisons).to_dict("index")
    basis = (
        f"{records['resample'].nunique()} resamples of the rows, intervals corrected for "
        f"{comparisons} comparisons"
    )
    gains = {m: _gain(cells, m, asked) for m in measures}
    found = [gains[m] or _no_gain(cells, m, asked) for m in measures]
    unseen = "" if measures[0] == "shd" else _unseen(cells, asked)
    if not any(gains.values()):
        where = "in likelihood and stability" if unseen else ""
        found[0] = f"No gain beyond chance{f' {where}' if where else ''}: {found[0]}"
    return f"{'; '.join(found)} ({basis}).{unseen}"


def _unseen(cells: Cells, asked: list[str]) -> str:
    """What the weights do to the graph that no likelihood can judge; empty if they do nothing."""
    method = next(name for name in asked if name != RANDOM)
    changed, turned = (cells[method].get(name, 0.0) for name in CHANGES)
    if not changed:
        return ""
    return (
        f" These measures cannot see which way edges point: {method} weights join {changed:.3g} "
        f"pairs otherwise than the plain fit, {turned:.3g} of them turned round, and only a known "
        "graph or the verdicts on the edges (edges_) can say which is right."
    )


def _gain(cells: Cells, measure: str, asked: list[str]) -> str:
    """The best improvement and who shares it; empty if there is none but of random weights."""
    better = [method for method in asked if _better(cells, method, measure) > 0]
    candidates = [method for method in better if method != RANDOM]
    if not candidates:
        return ""
    best = _best(cells, measure, candidates)
    text = f"Gain: {_change(cells, measure, best)}"
    others = [method for method in candidates if method != best]
    text += f", {' and '.join(others)} too" if others else ""
    if RANDOM in better:
        text += ", but random weights do as well, so which rows are heavy may not matter"
    return text


def _no_gain(cells: Cells, measure: str, asked: list[str]) -> str:
    """The most favourable difference, and who is worse than plain."""
    candidates = [method for method in asked if method != RANDOM]
    text = _change(cells, measure, _best(cells, measure, candidates)) + " at best"
    worse = [method for method in asked if _better(cells, method, measure) < 0]
    return text + (f", and {' and '.join(worse)} weights make it worse" if worse else "")


def _best(cells: Cells, measure: str, methods: list[str]) -> str:
    sign = 1 if MEASURES[measure].more_is_better else -1
    return max(methods, key=lambda method: sign * cells[method][f"{measure}_difference"])


def _change(cells: Cells, measure: str, method: str) -> str:
    before, after = cells[PLAIN][measure], cells[method][measure]
    low, high = (cells[method][f"{measure}_{end}"] for end in ("low", "high"))
    return (
        f"{method} weights take the {MEASURES[measure].words} from {before:.3g} to {after:.3g}, "
        f"a difference between {low:+.2g} and {high:+.2g}"
    )


def _better(cells: Cells, method: str, measure: str) -> int:
    """1 if the method is better than plain beyond its interval, -1 if worse, otherwise 0."""
    low, high = (cells[method][f"{measure}_{end}"] for end in ("low", "high"))
    more = int(low > 0) - int(high < 0)
    return more if MEASURES[measure].more_is_better else -more
