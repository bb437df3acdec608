"""Running one trial, from its words to its record, and searching settings by such trials.

A search (with optuna) lives in the records alone.  The sampler's seed is fixed, so that a search
that is run again asks for the same settings in the same order: what has a record is only read, and
the search goes on from there.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from rescore.data import Dataset, load_sachs
from rescore.data.simulate import simulate
from rescore.experiments import Case, Experiment, Trial, assign, flat
from rescore.experiments.store import Record, Store
from rescore.learners import LEARNERS, load_learner
from rescore.learners.rescore import ReScore
from rescore.metrics import HEADINGS, evaluate
from rescore.protocols import Status
from rescore.text import listing
from rescore.validation import check_choice, check_number

__all__ = [
    "dataset",
    "failed",
    "learner",
    "out_of_time",
    "run_trial",
    "search",
    "searched",
    "split",
]

DIGITS = 6  # of numbers that are kept for every row
WORST = 1e9  # what a setting counts whose trials came to nothing

Run = Callable[[list[Trial]], None]  # runs those trials that have no record yet


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
            record |= _measured(trial, limit)
        json.dumps(record, allow_nan=False)
    except OutOfTimeError:
        return out_of_time(trial, limit)
    except Exception as error:
        return failed(trial, f"{type(error).__name__}: {error}")
    return record


def out_of_time(trial: Trial, limit: float) -> Record:
    """The record of a trial that was stopped."""
    error = f"It took more than {limit:g} seconds."
    return {"key": trial.key, "trial": trial.content, "status": "timed out", "error": error}


def failed(trial: Trial, error: str) -> Record:
    """The record of a trial that came to nothing."""
    return {"key": trial.key, "trial": trial.content, "status": "failed", "error": error}


def dataset(spec: Mapping[str, Any], seed: int) -> Dataset:
    """The data of a trial; the same for every method that has the same seed.

    Examples
    --------
    >>> dataset({"source": "simulate", "nodes": 5, "samples": 50}, seed=3)
    Dataset(n=50, d=5, names=('x0', 'x1', 'x2', 'x3', …), edges=10, ...)
    """
    return _made(json.dumps(spec, sort_keys=True), seed)


def split(data: Dataset, share: float, seed: int) -> tuple[Dataset, pd.DataFrame | None]:
    """The data without a random share of the rows, and those rows, for a choice without the truth.

    Examples
    --------
    >>> data = dataset({"source": "simulate", "nodes": 5, "samples": 50}, seed=3)
    >>> fitted, held_out = split(data, 0.2, seed=3)
    >>> fitted.n, len(held_out)
    (40, 10)
    """
    if not check_number("hold", share, at_least=0, below=1):
        return data, None
    held = np.zeros(data.n, dtype=bool)
    held[np.random.default_rng([seed, 1]).permutation(data.n)[: round(share * data.n)]] = True
    groups = None if data.groups is None else data.groups[~held]
    kept = Dataset.from_arrays(data.X[~held], truth=data.truth, groups=groups, source=data.source)
    return kept, data.X[held]


def learner(spec: Mapping[str, Any], seed: int) -> Any:
    """The estimator of a trial; what draws at random draws from the trial's seed.

    Examples
    --------
    >>> learner({"learner": "Notears", "parameters": {"lambda1": 0.2}, "rescore": {}}, seed=0)
    ReScore(estimator=Notears(lambda1=0.2, random_state=0))
    """
    kind = load_learner(check_choice("learner", spec["learner"], LEARNERS))
    parameters = _tuples(spec.get("parameters", {}))
    known = kind._get_param_names()
    unknown = set(parameters) - set(known)
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {listing(sorted(unknown))}.")
    if "random_state" in known:
        parameters = {"random_state": seed} | parameters
    inner = kind(**parameters)
    if "released" in spec:
        from rescore.experiments.released import as_released  # which one experiment needs

        inner = as_released(inner, spec["released"], seed)
    if "rescore" not in spec:
        return inner
    around = dict(spec["rescore"])
    if "neural" in around:
        from rescore.weightings.neural import Neural  # and with it JAX, which few trials need

        around["weighting"] = Neural(**{"seed": seed} | _tuples(around.pop("neural")))
    return ReScore(inner, **around)


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
    for name in CUTS.keys() & trial.method.keys():
        result["cut_offs"] = [
            _at_cut_off(data, CUTS[name](data, model, cut), cut) for cut in trial.method[name]
        ]
    status = "ok" if model.status_ is Status.CONVERGED else "not converged"
    return {"status": status, "result": result}


def _scores(data: Any, model: Any) -> dict[str, Any]:
    found = evaluate(data.truth, model)
    return {name: _number(found[name]) for name in HEADINGS} | {"steps": len(model.history_)}


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


def _without_weak(_: Any, model: Any, least: float) -> pd.DataFrame:
    W: pd.DataFrame = model.adjacency_matrix_
    return W.where(W.abs() >= least, 0.0)


def _without_needless(data: Any, model: Any, most: float) -> pd.DataFrame:
    """CAM's pruning as published, on the rows as they are: p-values at most so large."""
    from rescore.pruning.cam import cam_prune

    pruned: pd.DataFrame = cam_prune(data.X, model, most)
    return pruned


# Graphs of one fit at several cut-offs, by the name of their list in a declaration.
CUTS = {"cut_offs": _without_weak, "cam_cut_offs": _without_needless}


def _at_cut_off(data: Any, W: pd.DataFrame, cut: float) -> dict[str, Any]:
    """The scores of a graph at a cut-off."""
    found = evaluate(data.truth, W)
    return {"cut_off": cut} | {name: _number(found[name]) for name in HEADINGS}


def _number(value: Any) -> float | None:
    """What is not defined, such as the TPR of a graph without edges, is None."""
    return None if value is None else round(value, DIGITS)


def _short(value: Any) -> float:
    return float(np.format_float_positional(value, precision=DIGITS, fractional=False))


@lru_cache(maxsize=2)  # methods take turns on the same data, which can cost more than a fit
def _made(words: str, seed: int) -> Dataset:
    options = json.loads(words)
    source = SOURCES[check_choice("source", options.pop("source"), SOURCES)]
    try:
        return source(seed=seed, **options)
    except TypeError as error:
        raise ValueError(f"The data of this experiment have a setting too many: {error}.") from None


def _simulated(seed: int, **options: Any) -> Dataset:
    return simulate(**_tuples(options), random_state=seed)


def _chain(seed: int, nodes: int = 3, **options: Any) -> Dataset:
    """Each variable causes the next."""
    return simulate(np.eye(nodes, k=1, dtype=int), **_tuples(options), random_state=seed)


def _sachs(
    seed: int,
    scale: str = "raw",
    without: int | None = None,
    rows: int = 500,
    samples: int | None = None,
) -> Dataset:
    """The Sachs data, or their logarithms; ``without`` so many random rows of that condition.

    With ``samples``, only so many rows, evenly spread over the table.
    """
    data = load_sachs()
    groups = pd.Series(data.groups)
    kept = np.arange(data.n)
    if without is not None:
        group = np.flatnonzero(groups == groups.unique()[without])
        kept = np.delete(kept, np.random.default_rng(seed).choice(group, rows, replace=False))
    if samples is not None:
        kept = kept[np.linspace(0, len(kept) - 1, samples, dtype=int)]
    X, groups = data.X.iloc[kept], groups.iloc[kept]
    if check_choice("scale", scale, ("raw", "log")) == "log":
        X = X.transform(np.log)
    return Dataset.from_arrays(X, truth=data.truth, groups=groups, source=data.source)


def _tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with tuples for lists: TOML and JSON know lists alone."""
    return {n: tuple(v) if isinstance(v, list) else v for n, v in options.items()}


SOURCES: dict[str, Callable[..., Dataset]] = {
    "simulate": _simulated,
    "chain": _chain,
    "sachs": _sachs,
}


def search(
    experiment: Experiment, store: Store, asks: int, run: Run, size: str = "full"
) -> dict[str, dict[str, Any]]:
    """The best setting of each method that declares a ``search`` table, and what it reached.

    The honest protocol lowers the loss of rows held out (``hold`` in the data), the oracle's the
    mean SHD against the truth.
    """
    found = {}
    for block in experiment.methods:
        if "search" in block:
            found[block["name"]] = _study(experiment, block, store, asks, run, size)
    return found


def searched(
    experiment: Experiment, records: Mapping[str, Record], size: str = "full"
) -> Iterator[Case]:
    """What the records hold of the experiment's searches: all settings tried so far."""
    blocks = [block for block in experiment.methods if "search" in block]
    trials = [Trial(**record["trial"]) for record in records.values()] if blocks else []
    for block in blocks:
        plain = experiment.with_methods({k: v for k, v in block.items() if k != "search"})
        for case in plain.cases(size):
            yield from (Case(block["name"], t) for t in trials if _tried(t, case, block["search"]))


def _tried(trial: Trial, fixed: Case, space: Mapping[str, Any]) -> bool:
    """Whether the trial is the fixed one with values for all of the space."""
    method = flat(trial.method)
    rest = {name: value for name, value in method.items() if name not in space}
    return (
        rest == flat(fixed.trial.method)
        and set(space) <= set(method)
        and (trial.seed, trial.version) == (fixed.trial.seed, fixed.trial.version)
        and dict(trial.data) == dict(fixed.trial.data)
    )


def _study(
    experiment: Experiment, block: Mapping[str, Any], store: Store, asks: int, run: Run, size: str
) -> dict[str, Any]:
    try:
        import optuna
    except ImportError:
        raise ImportError('A search needs optuna: pip install "rescore[optuna]"') from None

    study = _quiet_study(optuna)
    for _ in range(asks):
        asked = study.ask()
        spec = deepcopy({k: v for k, v in block.items() if k != "search"})
        for path, space in block["search"].items():
            assign(spec, path, _suggested(asked, path, space))
        cases = experiment.with_methods(spec).cases(size)
        run([case.trial for case in cases])
        study.tell(asked, _value(cases, store, experiment.protocol))
    return {"value": study.best_value, **study.best_params}


def _quiet_study(optuna: Any) -> Any:
    """A study in memory, without the line that optuna logs about it."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    finally:
        optuna.logging.set_verbosity(level)


def _suggested(asked: Any, path: str, space: Any) -> Any:
    """A list holds choices; a table a range: {low, high, log}."""
    if isinstance(space, list):
        return asked.suggest_categorical(path, space)
    return asked.suggest_float(path, space["low"], space["high"], log=space.get("log", False))


def _value(cases: list[Case], store: Store, protocol: str) -> float:
    """The mean over the trials; none may be left out, or the easiest would win."""
    records = store.read()
    name, sign = ("shd", 1.0) if protocol == "oracle" else ("held_out", -1.0)
    values = []
    for case in cases:
        record = records[case.trial.key]
        if record["status"] != "ok":
            return WORST
        if name not in record["result"]:
            raise ValueError(
                "An honest search compares rows held out: give the data of this experiment a "
                "share to hold out, for example hold = 0.2."
            )
        values.append(sign * record["result"][name])
    return sum(values) / len(values)
