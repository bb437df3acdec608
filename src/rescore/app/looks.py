"""A table and the rows of a fit as data for a page: histograms, weights, what sets rows apart."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.app.recipe import Recipe
from rescore.moments import Matrix
from rescore.studies.table_input import FileFormat, Input, everything_wrong, in_ranges, row_numbers
from rescore.tables.files import Source, is_text, read_table
from rescore.tables.survey import CATEGORY, NUMBERS, Column
from rescore.text import printable

if TYPE_CHECKING:
    from rescore.reports.run import Run

__all__ = [
    "MOST_COLUMNS",
    "apart",
    "columns_of",
    "doubts_told",
    "edges_told",
    "fit_told",
    "json_of",
    "likelihood_of",
    "listed",
    "refuse_wide",
    "rows_shown",
    "selected",
]

MOST_COLUMNS = 1000  # that the workbench shows
BINS = 24
SKEWED = 50  # how many times as far the largest may be as the median, before bars are logarithmic
MOST_LEVELS = 12  # bars of a category
MOST_ROWS, FEW_ROWS = 4000, 400  # in the picture of weights, and in that of a first answer
MOST_LISTED = 200  # rows with their values
Rows = NDArray[np.bool_]


def columns_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """Every column of a file, those left out too: kind, histogram, missing cells.

    The file is read as it is written, and if that cannot be in the way that its faults suggest.
    """
    path, given = params["data"], FileFormat.of(params)
    if not is_text(path) and path.suffix == ".parquet":
        return _of_frame(read_table(path, as_found=True))
    try:
        return _of_frame(read_table(path, **vars(given)))
    except (ValueError, TypeError):
        wrong = everything_wrong({**params, "drop": [], "groups": None})
        settings = {} if wrong is None else dict(wrong.settings)
        known = {name: settings[name] for name in vars(given) if name in settings and name != "na"}
        written = replace(given, **known)
        text = Source(path, **vars(written)).text()
        columns = [
            _of_column(Column.of(name, text.column(j), written.decimal, written.thousands,
                                 written.na))
            for j, name in enumerate(text.names)
        ]  # fmt: skip
        return {"rows": len(text.rows), "columns": columns}


def refuse_wide(params: Mapping[str, Any]) -> None:
    """A header of very many names is refused before anything is made of it."""
    if not is_text(params["data"]):
        return
    source = Source(params["data"], encoding=params["encoding"])
    first = source.raw[: source.raw.find(b"\n") + 1 or len(source.raw)]
    wide = 1 + max(first.count(mark) for mark in (b",", b";", b"\t"))
    if wide > MOST_COLUMNS:
        raise ValueError(
            f"The table has about {wide:,} columns; the workbench shows up to {MOST_COLUMNS:,}. "
            "Choose some of them, or use `rescore fit`."
        )


def _of_frame(frame: pd.DataFrame) -> dict[str, Any]:
    if frame.shape[1] > MOST_COLUMNS:
        raise ValueError(f"The table has {frame.shape[1]:,} columns; give up to {MOST_COLUMNS:,}.")
    columns = []
    for name in frame.columns:
        cells = frame[name]
        if pd.api.types.is_numeric_dtype(cells.dtype):
            values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
            columns.append(_numbers(str(name), values, int(np.isnan(values).sum())))
        else:
            gone = cells.isna()
            columns.append(_words(str(name), CATEGORY, cells[~gone].astype(str), int(gone.sum())))
    return {"rows": len(frame), "columns": columns}


def _of_column(column: Column) -> dict[str, Any]:
    missing = int(column.missing.sum())
    if column.kind == NUMBERS:
        return _numbers(column.name, column.values, missing, int(column.faulty.sum()))
    words = pd.Series(column.words()).dropna()
    return _words(column.name, column.kind, words, missing)


def _numbers(name: str, values: Matrix, missing: int, faulty: int = 0) -> dict[str, Any]:
    there = values[np.isfinite(values)]
    told = {"name": name, "kind": NUMBERS, "missing": missing, "faulty": faulty}
    if not len(there):
        return told | {"bars": []}
    low, high = float(there.min()), float(there.max())
    skewed = low > 0 and high - low > SKEWED * (float(np.median(there)) - low) > 0
    ends = (low, high) if high > low else (low - 0.5, low + 0.5)
    drawn, ends = (np.log(there), (np.log(low), np.log(high))) if skewed else (there, ends)
    return told | {
        "bars": np.histogram(drawn, BINS, ends)[0].tolist(), "logarithmic": bool(skewed),
        "low": low, "high": high, "mean": float(there.mean()),
        "different": int(min(len(np.unique(there)), 10_000)),
        "positive": bool(low > 0), "whole": bool((there == np.round(there)).all()),
    }  # fmt: skip


def _words(name: str, kind: str, words: pd.Series, missing: int) -> dict[str, Any]:
    counts = words.value_counts()
    shown = counts.head(MOST_LEVELS)
    return {
        "name": name, "kind": kind, "missing": missing, "faulty": 0, "different": len(counts),
        "bars": [int(count) for count in shown],
        "levels": [printable(level, 40) for level in shown.index],
    }  # fmt: skip


def rows_shown(
    weight: Matrix, loss: Matrix, group: NDArray[Any] | None, used: Rows, most: int = MOST_ROWS
) -> dict[str, Any]:
    """Weights × n, losses and groups of the rows that a picture shows: the heaviest, and others.

    Examples
    --------
    >>> one = np.ones(3)
    >>> rows_shown(one / 3, one, None, one > 0)["weight"]
    [1.0, 1.0, 1.0]
    """
    n = len(weight)
    places = np.arange(n)
    if n > most:
        heavy = np.argsort(-weight, kind="stable")[: most // 2]
        evenly = np.linspace(0, n - 1, most // 2).astype(int)
        places = np.union1d(heavy, evenly)
    relative = weight * used.sum()
    digits = [float(f"{x:.4g}") for x in relative[places]]
    return {
        "of": n, "used": int(used.sum()), "place": places.tolist(), "weight": digits,
        "loss": [None if x != x else float(f"{x:.4g}") for x in loss[places]],
        "group": None if group is None else group[places].tolist(),
        "out": np.flatnonzero(~used[places]).tolist(),
    }  # fmt: skip


def selected(
    choice: Mapping[str, Any],
    weight: Matrix,
    loss: Matrix,
    group: NDArray[Any] | None,
    labels: NDArray[Any] | None,
    used: Rows,
) -> Rows:
    """The rows that a choice means, of those that are not left out.

    Examples
    --------
    >>> w, rows = np.array([0.1, 0.6, 0.3]), np.ones(3, dtype=bool)
    >>> selected({"heaviest": 0.34}, w, w, None, None, rows)
    array([False,  True, False])
    """
    n = len(weight)
    out = np.zeros(n, dtype=bool)
    if "rows" in choice:
        rows = [row for row in row_numbers(str(choice["rows"])) if row < n]
        out[rows] = True
    elif "group" in choice and group is not None:
        out = np.asarray(group == int(choice["group"]))
    elif "label" in choice and labels is not None:
        out = np.asarray(labels == str(choice["label"]))
    else:
        by = {"heaviest": weight, "lightest": -weight, "worst": np.nan_to_num(loss)}
        name = next((word for word in by if word in choice), None)
        if name is None:
            raise ValueError("Rows are chosen by weight, loss, group, label or number.")
        share = min(max(float(choice[name]), 0.0), 1.0)
        order = np.argsort(-np.where(used, by[name], -np.inf), kind="stable")
        out[order[: max(1, round(share * used.sum()))]] = True
    return np.asarray(out & used)


def apart(
    values: Matrix, names: tuple[Any, ...], losses: Matrix, chosen: Rows, used: Rows
) -> list[dict[str, Any]]:
    """For every variable how the chosen rows differ from the others, what differs most first.

    ``level``: the difference of the means, in standard deviations of all rows.  ``noise``: the
    deviation of what the graph leaves unexplained, as a multiple of that of the others.

    Examples
    --------
    >>> x = np.array([[0.0], [0.1], [-0.1], [9.0]])
    >>> rows = np.ones(4, dtype=bool)
    >>> [bar] = apart(x, ("a",), np.ones((4, 1)), x[:, 0] > 5, rows)
    >>> bar["name"], round(bar["level"], 1), bar["noise"]
    ('a', 2.3, 1.0)
    """
    rest = used & ~chosen
    if not chosen.any() or not rest.any():
        return []
    bars = [  # column by column: of a large table there is no room for a second one
        _apart(values[:, j], losses[:, j], chosen, rest, used) | {"name": str(names[j])}
        for j in range(len(names))
    ]
    return sorted(bars, key=lambda bar: -max(abs(bar["level"]), abs(np.log2(bar["noise"]))))


def _apart(x: Matrix, loss: Matrix, chosen: Rows, rest: Rows, used: Rows) -> dict[str, Any]:
    mean, others, deviation = x[chosen].mean(), x[rest].mean(), x[used].std()
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = np.sqrt(np.nanmean(loss[chosen]) / np.nanmean(loss[rest]))
    return {
        "level": float((mean - others) / (deviation if deviation > 0 else 1.0)),
        "noise": float(noise) if np.isfinite(noise) and noise > 0 else 1.0,
        "mean": float(mean), "others": float(others),
    }  # fmt: skip


def listed(values: Matrix, weight: Matrix, loss: Matrix, chosen: Rows, n: int) -> dict[str, Any]:
    """The heaviest of the chosen rows with their values, and all of them as a text."""
    places = np.flatnonzero(chosen)
    first = places[np.argsort(-weight[places], kind="stable")][:MOST_LISTED]
    return {
        "count": len(places),
        "rows": in_ranges(places.tolist()),
        "listed": [
            {"row": int(i), "weight": float(f"{n * weight[i]:.3g}"),
             "loss": None if loss[i] != loss[i] else float(f"{loss[i]:.3g}"),
             "values": [float(f"{x:.4g}") for x in values[i]]}
            for i in first
        ],
    }  # fmt: skip


def likelihood_of(model: Any, table: Input) -> float:
    """Of all rows that count, each as much as the fit weighed it, in nats."""
    w = model.sample_weight_.to_numpy()
    return float((~np.isnan(model.row_losses_.to_numpy())).sum() * model.score(table.X, None, w))


def fit_told(
    recipe: Recipe, model: Any, table: Input, seconds: float, rows: Any = None, before: Any = None
) -> dict[str, Any]:
    """The graph and the figures of a fit, for the page; variables stay where they were before."""
    from rescore.reports.page import graph_data
    from rescore.reports.run import Run
    from rescore.verdicts import trust

    run = Run(model, rows=rows)
    diagnostics = model.diagnostics_
    used = np.ones(len(table.X.values), bool)
    if table.sample_weight is not None:
        used = np.asarray(table.sample_weight) > 0
    weighting = dict(diagnostics["weighting"])
    group = weighting.pop("membership", None)
    w, loss = model.sample_weight_.to_numpy(), model.row_losses_.to_numpy()
    many = MOST_ROWS if rows is not None else FEW_ROWS
    return {
        "graph": graph_data(run, before["graph"] if before else None),
        "likelihood": likelihood_of(model, table),
        "edges": len(run.edges),
        "seconds": round(seconds, 3),
        "status": diagnostics["status"],
        "converged": diagnostics["converged"],
        "trust": trust(run.edges),
        "noise": (diagnostics.get("noise") or {}).get("summary", ""),
        "hypothesis": (diagnostics.get("noise") or {}).get("hypothesis"),
        "weighting": json.loads(json_of(weighting)),
        "effective": diagnostics["effective_rows"],
        "warnings": [printable(one["message"], 500) for one in diagnostics["warnings"]],
        "learner": recipe.learner,
        "rows": rows_shown(w, loss, None if group is None else np.asarray(group), used, many),
        "labels": _labels(table),
    }


def _labels(table: Input) -> list[str] | None:
    if table.groups is None:
        return None
    found = list(dict.fromkeys(str(label) for label in table.groups))
    return found[:50]


def doubts_told(run: "Run", done: int, asked: int) -> dict[str, Any]:
    """What resamples say of every edge, and of pairs that the graph has not."""
    from rescore.verdicts import trust

    shares = np.asarray(run.stability)
    names = [str(name) for name in run.model.adjacency_matrix_.columns]
    seen = [
        [names[i], names[j], round(float(shares[i, j]), 4)]
        for i, j in np.argwhere(shares > 0.05).tolist()
    ]
    wanted = ["cause", "effect", "stability", "direction", "verdict", "why"]
    lines = run.edges[wanted].to_dict("records")
    lines = [{k: None if v != v else v for k, v in line.items()} for line in lines]
    return {"done": done, "of": asked, "edges": lines, "shares": seen, "trust": trust(run.edges)}


def edges_told(model: Any) -> list[list[Any]]:
    """Every edge: cause, effect, coefficient, and whether its direction is known."""
    W, known = model.adjacency_matrix_, model.cpdag_.to_numpy()
    names = [str(name) for name in W.columns]
    return [
        [names[i], names[j], float(W.iloc[i, j]), not bool(known[i, j] and known[j, i])]
        for i, j in np.argwhere(W.to_numpy() != 0).tolist()
    ]


def json_of(data: Any) -> str:
    """As JSON, what is no number as none, numbers of numpy as those of Python."""
    return json.dumps(_plain(data), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(each) for each in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value if value is None or isinstance(value, str) else str(value)
