"""A finished fit with what is known around it: all that a report can tell, kept as ``run.json``.

The file is plain data, and read as such.
"""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rescore.exchange.saving import fingerprint, read_model, saved_fingerprint
from rescore.learners.base import StructureLearner
from rescore.metrics import Scores
from rescore.staging import settled
from rescore.studies.edge_shares import Stability
from rescore.studies.units import MADE, ONLY_STANDARDISED, PROOF, Units
from rescore.tables.findings import Finding
from rescore.text import printable
from rescore.verdicts import Shares, edges, shares_of

__all__ = [
    "ABOUT_FILE",
    "Run",
    "Sample",
    "about",
    "read_run",
    "some_rows",
    "units_as_json",
    "units_from_json",
    "versions_here",
]

DECISIVE = ("jax", "numpy", "scipy", "scikit-learn", "pandas")  # of what a result may depend on
SCHEMA = 1
MOST_DOTS, FEWEST_DOTS, MOST_NUMBERS = 400, 60, 40_000  # of the rows that pictures of edges show
ABOUT_FILE = "run.json"
FAULTS = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)
UNIT_COLUMNS = ["cause", "effect", "verdict", "share", "changes"]


def versions_here() -> dict[str, str]:
    """The versions of this program, Python and the libraries that compute.

    Examples
    --------
    >>> list(versions_here())[:3]
    ['rescore', 'Python', 'jax']
    """
    from rescore import __version__

    ours = {"rescore": __version__, "Python": platform.python_version()}
    return ours | {name: version(name) for name in DECISIVE}


class Sample(NamedTuple):
    """Some rows of a table: where they are in it, and their values, to four digits."""

    places: list[int]
    values: list[list[float]]  # a list for each variable


def some_rows(X: Any) -> Sample:
    """Evenly spaced rows of a table (n, d), few enough for a page to carry.

    Examples
    --------
    >>> some_rows(np.array([[1.23456, 7.0]]))
    Sample(places=[0], values=[[1.235], [7.0]])
    """
    values = np.asarray(X, dtype=float)
    n, d = values.shape
    many = max(FEWEST_DOTS, min(MOST_DOTS, MOST_NUMBERS // max(d, 1)))
    places = np.unique(np.linspace(0, n - 1, min(n, many)).round().astype(int))
    columns = [[float(f"{x:.4g}") for x in column] for column in values[places].T.tolist()]
    return Sample(places.tolist(), columns)


@dataclass(frozen=True, eq=False)
class Run:
    """A fitted model, and optionally what surrounds it.

    ``groups`` is a label per row, which the learner never saw.  ``scores`` are the model's against
    a true graph, ``baselines`` those of other fits to compare with, by name.  ``command`` and
    ``source`` say how the fit came about and where its rows are from.  ``plain`` is the graph of
    the same learner without row weights, and ``stability`` the share of resamples with each edge,
    both in the order of the model's variables.  ``resampled`` says how these were drawn, and
    ``bounds`` are the 5 % and 95 % quantiles of the coefficients in them.  ``rows`` are some of
    the table, as `some_rows` takes them, for pictures of single edges.
    ``units`` is what other units would change, ``findings`` what a check of the table showed.

    Examples
    --------
    >>> from rescore import Linear
    >>> Run(Linear().fit([[0.0], [1.0]])).warnings
    ()
    """

    model: StructureLearner
    groups: Any = None  # (n,)
    scores: Scores | None = None
    baselines: Mapping[str, Scores] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    command: str = ""
    source: str = ""
    plain: Any = None  # (d, d)
    stability: Any = None  # (d, d)
    versions: Mapping[str, str] = field(default_factory=versions_here)
    units: Units | None = None
    resampled: str = ""
    findings: tuple[Finding, ...] = ()
    bounds: tuple[Any, Any] | None = None  # (d, d) each
    rows: Sample | None = None

    def __post_init__(self) -> None:
        d = len(self.model.adjacency_matrix_)
        for name, matrix in (("plain", self.plain), ("stability", self.stability)):
            if matrix is not None and np.shape(matrix) != (d, d):
                raise ValueError(
                    f"{name} must have a row and a column for each of the {d} variables; got the "
                    f"shape {np.shape(matrix)}."
                )
        if self.stability is not None and not np.all(
            np.abs(2 * np.asarray(self.stability) - 1) <= 1
        ):
            raise ValueError("stability must hold shares between 0 and 1.")

    @cached_property
    def edges(self) -> pd.DataFrame:
        """The edges with all that is known of each, as `rescore.edges` describes; names as text.

        Every page, terminal and file shows this table, or a part of it.
        """
        shares = None
        if self.stability is not None:
            low, high = self.bounds or (None, None)
            shares = Shares(np.asarray(self.stability, dtype=float), low, high, self.resampled)
        table = edges(self.model, stability=shares, units=self.units)
        return table.astype({"cause": str, "effect": str})

    def with_stability(self, stability: Stability) -> "Run":
        """The same run, and what resamples say about it."""
        found = shares_of(stability)
        return replace(
            self, stability=found.edges, resampled=found.summary, bounds=(found.low, found.high)
        )


def about(run: Run) -> str:
    """All of a run but its model, as JSON text.

    Examples
    --------
    >>> from rescore import Linear
    >>> json.loads(about(Run(Linear().fit([[0.0], [1.0]]), source="two rows")))["source"]
    'two rows'
    """
    data = {
        "schema": SCHEMA,
        "arrays": fingerprint(run.model),  # the numbers that all of this is about
        "command": run.command,
        "source": run.source,
        "versions": dict(run.versions),
        "warnings": list(run.warnings),
        "scores": None if run.scores is None else run.scores.as_json(),
        "baselines": {name: scores.as_json() for name, scores in run.baselines.items()},
        "plain": _from_matrix(run.plain),
        "stability": _from_matrix(run.stability),
        "resampled": run.resampled,
        "bounds": None if run.bounds is None else [_from_matrix(each) for each in run.bounds],
        "units": None if run.units is None else units_as_json(run.units),
        "findings": [_from_finding(finding) for finding in run.findings],
        "groups": _from_labels(run.groups),
        "rows": None if run.rows is None else run.rows._asdict(),
    }
    return json.dumps(data, allow_nan=False) + "\n"


def read_run(folder: str | os.PathLike[str]) -> Run:
    """The run that `write_run` left in ``folder``; of a model alone, that and nothing around it.

    Examples
    --------
    >>> read_run("nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: There is no saved model in 'nowhere': model.json is missing.
    """
    with settled(folder) as place:
        model, path = read_model(place), place(ABOUT_FILE)
        if not path.is_file():
            return Run(model)
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["schema"] != SCHEMA:
                raise ValueError(
                    f"its schema is {data['schema']!r}, and this version reads {SCHEMA}"
                )
            run = _run_of(model, data)
            if data["arrays"] != saved_fingerprint(place):
                raise ValueError("it is about another fit than model.json")
        except FAULTS as error:
            raise ValueError(
                f"'{printable(path, 200)}' cannot be used: {printable(error, 300)}. Fit again."
            ) from None
    return run


def units_as_json(units: Units) -> dict[str, Any]:
    """The table, the factors, what did not converge and why nothing was tested; names as text.

    Examples
    --------
    >>> edge = pd.DataFrame([["a", "b", "unit-proof", 1.0, ""]], columns=UNIT_COLUMNS)
    >>> factors = pd.DataFrame({"a": [2.0], "b": [0.5]}, index=["standardised"])
    >>> units_as_json(Units(edge, factors, ()))["factors"]
    {'standardised': [2.0, 0.5]}
    """
    lines = [
        [str(cause), str(effect), verdict, float(share), changes]
        for cause, effect, verdict, share, changes in units.table[UNIT_COLUMNS].to_numpy().tolist()
    ]
    return {
        "table": [dict(zip(UNIT_COLUMNS, line, strict=True)) for line in lines],
        "columns": [str(name) for name in units.factors.columns],
        "factors": {str(change): list(row) for change, *row in units.factors.itertuples()},
        "not_converged": list(units.not_converged),
        "untested": units.untested,
    }


def units_from_json(data: Mapping[str, Any]) -> Units:
    """What `units_as_json` wrote; ValueError or KeyError if it is something else.

    Examples
    --------
    >>> units_from_json({"table": [], "columns": ["a"], "factors": {"standardised": [2.0]},
    ...     "not_converged": []}).factors
                    a
    standardised  2.0
    """
    table = pd.DataFrame([[line[name] for name in UNIT_COLUMNS] for line in data["table"]],
                         columns=UNIT_COLUMNS)  # fmt: skip
    if not table["verdict"].isin([PROOF, MADE, ONLY_STANDARDISED]).all():
        raise ValueError("it has verdicts on units that this version does not know")
    table = table.astype({"share": float, **dict.fromkeys(["cause", "effect", "changes"], str)})
    values = np.array(list(data["factors"].values()), dtype=float)
    values = values.reshape(len(data["factors"]), len(data["columns"]))
    factors = pd.DataFrame(values, [str(c) for c in data["factors"]], data["columns"])
    failed = tuple(str(change) for change in data["not_converged"])
    return Units(table, factors, failed, str(data.get("untested", "")))


def _run_of(model: Any, data: dict[str, Any]) -> Run:
    d, n = len(model.adjacency_matrix_), len(model.sample_weight_)
    return Run(
        model,
        _to_labels(data["groups"], n),
        None if data["scores"] is None else Scores(**data["scores"]),
        {str(name): Scores(**scores) for name, scores in data["baselines"].items()},
        tuple(str(text) for text in data["warnings"]),
        str(data["command"]),
        str(data["source"]),
        _to_matrix(data["plain"], d),
        _to_matrix(data["stability"], d),
        {str(name): str(version) for name, version in data["versions"].items()},
        units=None if data.get("units") is None else units_from_json(data["units"]),
        resampled=str(data.get("resampled", "")),  # missing from what earlier versions wrote
        findings=tuple(_to_finding(each) for each in data.get("findings", [])),
        bounds=_to_bounds(data.get("bounds"), d),
        rows=_to_sample(data.get("rows"), n, d),
    )


def _from_finding(finding: Finding) -> dict[str, Any]:
    return asdict(finding) | {"columns": [str(name) for name in finding.columns]}


def _to_finding(data: dict[str, Any]) -> Finding:
    columns = tuple(str(name) for name in data["columns"])
    code, seen, remedy, severity = (
        str(data[name]) for name in ("code", "seen", "remedy", "severity")
    )
    return Finding(code, seen, columns, remedy, severity)


def _to_sample(data: Any, n: int, d: int) -> Sample | None:
    if data is None:
        return None
    places = [int(place) for place in data["places"]]
    values = [[float(x) for x in column] for column in data["values"]]
    if len(values) != d or any(len(column) != len(places) for column in values):
        raise ValueError("its rows do not belong to its variables")
    if any(not 0 <= place < n for place in places):
        raise ValueError(f"it shows rows beyond the {n} of the fit")
    return Sample(places, values)


def _to_bounds(data: Any, d: int) -> tuple[Any, Any] | None:
    if data is None:
        return None
    low, high = (_to_matrix(entries, d) for entries in data)
    nothing = (low == 0) & (high == 0)
    return np.where(nothing, np.nan, low), np.where(nothing, np.nan, high)


def _from_matrix(matrix: Any) -> list[list[Any]] | None:
    """Its entries other than zero and NaN, each as row, column, value."""
    if matrix is None:
        return None
    values = np.nan_to_num(np.asarray(matrix, dtype=float))
    return [[i, j, float(values[i, j])] for i, j in np.argwhere(values != 0).tolist()]


def _to_matrix(entries: Any, d: int) -> Any:
    if entries is None:
        return None
    matrix = np.zeros((d, d))
    for i, j, value in entries:
        matrix[i, j] = float(value)
    return matrix


def _from_labels(groups: Any) -> dict[str, Any] | None:
    """Each label once, and its number in every row: rows are many and labels few."""
    if groups is None:
        return None
    labels = [str(label) for label in np.asarray(groups, dtype=object)]
    number = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    return {"labels": list(number), "rows": [number[label] for label in labels]}


def _to_labels(groups: Any, n: int) -> list[str] | None:
    if groups is None:
        return None
    if len(groups["rows"]) != n:
        raise ValueError(f"it has {len(groups['rows'])} group labels for {n} rows")
    return [str(groups["labels"][k]) for k in groups["rows"]]
