"""From the words of a trial to its data set and its learner."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from rescore import estimators
from rescore.checking import check_choice, check_number
from rescore.dataset import Dataset
from rescore.datasets.sachs import load_sachs
from rescore.simulation import simulate
from rescore.text import listing
from rescore.weightings.neural import Neural

__all__ = ["dataset", "learner", "split"]


def dataset(spec: Mapping[str, Any], seed: int) -> Dataset:
    """The data of a trial; the same for every method that has the same seed.

    Examples
    --------
    >>> dataset({"source": "simulate", "nodes": 5, "samples": 50}, seed=3)
    Dataset(n=50, d=5, names=('x0', 'x1', 'x2', 'x3', …), edges=10, ...)
    """
    return _made(json.dumps(spec, sort_keys=True), seed)


@lru_cache(maxsize=2)  # methods take turns on the same data, which can cost more than a fit
def _made(words: str, seed: int) -> Dataset:
    options = json.loads(words)
    source = SOURCES[check_choice("source", options.pop("source"), SOURCES)]
    try:
        return source(seed=seed, **options)
    except TypeError as error:
        raise ValueError(f"The data of this experiment have a setting too many: {error}.") from None


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
    kind = getattr(estimators, check_choice("learner", spec["learner"], estimators.__all__))
    parameters = _tuples(spec.get("parameters", {}))
    known = kind._get_param_names()
    unknown = set(parameters) - set(known)
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {listing(sorted(unknown))}.")
    if "random_state" in known:
        parameters = {"random_state": seed} | parameters
    inner = kind(**parameters)
    if "rescore" not in spec:
        return inner
    around = dict(spec["rescore"])
    if "neural" in around:
        around["weighting"] = Neural(**{"seed": seed} | _tuples(around.pop("neural")))
    return estimators.ReScore(inner, **around)


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

    With ``samples``, only about so many rows, evenly spread over the table.
    """
    data = load_sachs()
    groups = pd.Series(data.groups)
    X = np.log(data.X) if check_choice("scale", scale, ("raw", "log")) == "log" else data.X
    kept = np.ones(len(X), dtype=bool)
    if without is not None:
        group = np.flatnonzero(groups == groups.unique()[without])
        kept[np.random.default_rng(seed).choice(group, rows, replace=False)] = False
    if samples is not None:
        kept[np.arange(len(X)) % (len(X) // samples) != 0] = False
    return Dataset.from_arrays(X[kept], truth=data.truth, groups=groups[kept], source=data.source)


SOURCES: dict[str, Callable[..., Dataset]] = {
    "simulate": _simulated,
    "chain": _chain,
    "sachs": _sachs,
}


def _tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with tuples for lists: TOML and JSON know lists alone."""
    return {n: tuple(v) if isinstance(v, list) else v for n, v in options.items()}
