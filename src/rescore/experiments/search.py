"""Searching a method's settings with optuna; the study lives in the records alone.

The sampler's seed is fixed, so that a search that is run again asks for the same settings in the
same order: what has a record is only read, and the search goes on from there.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from rescore.experiments import Case, Experiment, Trial, assign, flat
from rescore.experiments.store import Record, Store

__all__ = ["search", "searched"]

WORST = 1e9  # what a setting counts whose trials came to nothing

Run = Callable[[list[Trial]], None]  # runs those trials that have no record yet


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
