"""Running one trial: a pure function from its words to its record."""

import time
import warnings
from typing import Any

import numpy as np

from rescore.experiments.building import dataset, learner, split
from rescore.experiments.store import Record
from rescore.experiments.trial import Trial
from rescore.metrics import evaluate
from rescore.protocols import Status

__all__ = ["run_trial"]

DIGITS = 6  # of numbers that are kept for every row


class OutOfTimeError(Exception):
    """A trial used more seconds than it may."""


def run_trial(trial: Trial, limit: float = 3600.0) -> Record:
    """The record of a trial: what was measured, or why there is nothing to count.

    Its status is "ok", "not converged", "failed" or "timed out" (after ``limit`` seconds); only
    "ok" is a result.  Whatever the trial raises ends in the record.

    Examples
    --------
    >>> data = {"source": "simulate", "nodes": 5, "samples": 500}
    >>> record = run_trial(Trial(data, {"learner": "Linear"}, seed=0))
    >>> record["status"], record["result"]["shd"]
    ('ok', 0)
    """
    record: Record = {"key": trial.key, "trial": trial.content}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return record | _measured(trial, limit)
    except OutOfTimeError:
        return record | {"status": "timed out", "error": f"It took more than {limit:g} seconds."}
    except Exception as error:
        return record | {"status": "failed", "error": f"{type(error).__name__}: {error}"}


def _measured(trial: Trial, limit: float) -> Record:
    options = dict(trial.data)
    share = options.pop("hold", 0.0)
    data, held_out = split(dataset(options, trial.seed), share, trial.seed)
    model = learner(trial.method, trial.seed)
    known = {"groups": data.groups} if model.needs_groups else {}
    began, deadline = time.process_time(), time.monotonic() + limit

    def on_step(record: Any) -> None:
        if time.monotonic() > deadline:
            raise OutOfTimeError

    model.fit(data.X, on_step=on_step, **known)
    seconds = time.process_time() - began
    result = _scores(data, model) | {"cpu_seconds": round(seconds, 4)} | _weights(data, model)
    if held_out is not None:
        result["held_out"] = round(model.score(held_out), DIGITS)
    if trial.method.get("keep") == "rows":
        result["rows"] = _rows(data, model)
    status = "ok" if model.status_ is Status.CONVERGED else "not converged"
    return {"status": status, "result": result}


def _scores(data: Any, model: Any) -> dict[str, Any]:
    found = evaluate(data.truth, model)
    return {
        **{name: _number(getattr(found, name)) for name in ("shd", "sid", "tpr", "fdr")},
        "edges": int((model.adjacency_matrix_.to_numpy() != 0).sum()),
        "steps": len(model.history_),
    }


def _weights(data: Any, model: Any) -> dict[str, Any]:
    rows = round(float(model.diagnostics_["effective_rows"]), 1)
    if data.groups is None:
        return {"effective_rows": rows}
    w = model.sample_weight_.reset_index(drop=True)
    by_group = [(series, data.groups.to_numpy()) for series in (w, w.rank(ascending=False))]
    mass, rank = (series.groupby(groups) for series, groups in by_group)
    return {
        "effective_rows": rows,
        "group_weight": {str(group): _short(value) for group, value in mass.sum().items()},
        "group_rank": {str(group): _short(value) for group, value in rank.mean().items()},
    }


def _rows(data: Any, model: Any) -> dict[str, list[Any]]:
    """What a figure of weights against losses needs."""
    n = len(model.sample_weight_)
    columns = {"weight": model.sample_weight_ * n, "loss": model.row_losses_}
    rows = {name: [_short(value) for value in column] for name, column in columns.items()}
    return rows if data.groups is None else rows | {"group": data.groups.astype(str).tolist()}


def _number(value: Any) -> float | None:
    """What is not defined, such as the TPR of a graph without edges, is None."""
    return None if value is None else round(value, DIGITS)


def _short(value: Any) -> float:
    return float(np.format_float_positional(value, precision=DIGITS, fractional=False))
