"""What surrounds a saved model, as ``run.json``: plain data, and read as such."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rescore.metrics.scores import Scores
from rescore.report.run import Run
from rescore.report.units import units_as_json, units_from_json
from rescore.saving import load
from rescore.tables.findings import Finding
from rescore.text import printable

__all__ = ["ABOUT_FILE", "about", "read_run"]

SCHEMA = 1
ABOUT_FILE = "run.json"


def about(run: Run) -> str:
    """All of a run but its model, as JSON text.

    Examples
    --------
    >>> from rescore import Notears
    >>> json.loads(about(Run(Notears().fit([[0.0], [1.0]]), source="two rows")))["source"]
    'two rows'
    """
    data = {
        "schema": SCHEMA,
        "command": run.command,
        "source": run.source,
        "versions": dict(run.versions),
        "warnings": list(run.warnings),
        "scores": None if run.scores is None else _from_scores(run.scores),
        "baselines": {name: _from_scores(scores) for name, scores in run.baselines.items()},
        "plain": _from_matrix(run.plain),
        "stability": _from_matrix(run.stability),
        "resampled": run.resampled,
        "units": None if run.units is None else units_as_json(run.units),
        "findings": [_from_finding(finding) for finding in run.findings],
        "groups": _from_labels(run.groups),
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
    model, path = load(folder), Path(folder) / ABOUT_FILE
    if not path.is_file():
        return Run(model)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise ValueError(f"its schema is {data['schema']!r}, and this version reads {SCHEMA}")
        return _run(model, data)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(
            f"'{printable(path, 200)}' cannot be used: {printable(error, 300)}. Fit again."
        ) from None


def _run(model: Any, data: dict[str, Any]) -> Run:
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
    )


def _from_finding(finding: Finding) -> dict[str, Any]:
    return asdict(finding) | {"columns": [str(name) for name in finding.columns]}


def _to_finding(data: dict[str, Any]) -> Finding:
    columns = tuple(str(name) for name in data["columns"])
    texts = {name: str(data[name]) for name in ("code", "seen", "remedy", "severity")}
    return Finding(**texts, columns=columns)


def _from_scores(scores: Scores) -> dict[str, Any]:
    return {**scores.as_dict(), "undefined": dict(scores.undefined)}


def _from_matrix(matrix: Any) -> list[list[Any]] | None:
    """Its entries other than zero, each as row, column, value."""
    if matrix is None:
        return None
    values = np.asarray(matrix, dtype=float)
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
