"""The published number that belongs to each of our cells."""

import numpy as np
import pandas as pd

from rescore.experiments.published import published
from rescore.experiments.spec import Experiment

__all__ = ["beside", "published_for"]


def published_for(experiment: Experiment, varying: list[str]) -> pd.DataFrame:
    """The numbers that belong to this experiment's data; ``varying`` are its settings that do."""
    if experiment.published is None:
        return pd.DataFrame(columns=["method", "metric", "mean"])
    table = published(experiment.published)
    fixed = {k: v for block in experiment.data for k, v in block.items() if k in table}
    for name, value in fixed.items():
        if name not in varying:
            table = table[table[name] == value]
    return table


def beside(ours: pd.DataFrame, theirs: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Mean and std of the published cells, a row for each of ours, NaN where there is none.

    Examples
    --------
    >>> theirs = pd.DataFrame({"method": ["A"], "metric": ["shd"], "mean": [3.0], "std": [1.0]})
    >>> beside(pd.DataFrame({"method": ["A", "B"]}), theirs, "shd")["mean"].tolist()
    [3.0, nan]
    """
    there = theirs[theirs["metric"] == metric]
    keys = [name for name in there.columns if name in ours and name not in {"mean", "std"}]
    cells = {
        tuple(row[k] for k in keys): (row["mean"], row.get("std", np.nan))
        for _, row in there.iterrows()
    }
    nothing = (np.nan, np.nan)
    found = [cells.get(tuple(row[k] for k in keys), nothing) for _, row in ours.iterrows()]
    return pd.DataFrame(found, index=ours.index, columns=["mean", "std"])
