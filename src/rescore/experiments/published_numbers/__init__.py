"""The paper's own numbers, as tables with a row for each.

They were chosen with the true graph in sight (the best over grids of settings), so they are an
optimistic reference.  Costs are seconds on the authors' graphics card.
"""

from importlib.resources import files

import pandas as pd

from rescore.data import CONDITIONS
from rescore.validation import check_choice

__all__ = ["PUBLISHED", "published"]

MECHANISM = {"linear": ["linear"], "nonlinear": ["gp"], "any": ["linear", "gp"]}
CORRUPTED = {
    "NOTEARS-MLP": "NOTEARS-MLP",
    "ReScore_tau_to_0": "NOTEARS-MLP + ReScore (τ → 0)",
    "ReScore_best_tau": "NOTEARS-MLP + ReScore",
}


def published(name: str) -> pd.DataFrame:
    """A table of the paper, a row for each number: where it belongs, metric, mean and std.

    Examples
    --------
    >>> table = published("synthetic")
    >>> row = table.query("graph == 'ER' and degree == 2 and nodes == 10 and metric == 'shd'")
    >>> row.set_index("method")["mean"].loc[["NOTEARS", "NOTEARS + ReScore"]].tolist()
    [5.8, 4.6]
    """
    return PUBLISHED[check_choice("published", name, PUBLISHED)]()


def _read(name: str) -> pd.DataFrame:
    with (files("rescore.experiments") / "published_numbers" / f"{name}.csv").open() as file:
        return pd.read_csv(file)


def _spaced(method: pd.Series) -> pd.Series:
    """NOTEARS+ReScore as NOTEARS + ReScore."""
    return method.str.replace("+", " + ", regex=False)


def _synthetic() -> pd.DataFrame:
    table = _read("synthetic")
    table["mechanism"] = table.pop("family").map(MECHANISM)
    table = table.explode("mechanism", ignore_index=True)
    table["method"] += table.pop("rescore").map({0: "", 1: " + ReScore"})
    return table


def _heterogeneous() -> pd.DataFrame:
    table = _read("heterogeneous")
    table["mechanism"] = table.pop("family").map({"linear": "linear", "nonlinear": "gp"})
    table["method"] = _spaced(table["method"])
    return table.melt(["mechanism", "method"], var_name="metric", value_name="mean")


def _sachs() -> pd.DataFrame:
    table = _read("sachs")
    table["method"] = _spaced(table["method"])
    return table.melt(["method"], var_name="metric", value_name="mean").dropna()


def _groups() -> pd.DataFrame:
    """Without rows of a condition, which the paper numbers."""
    names = {"group": "without", "shd_without": "shd", "tpr_without": "tpr"}
    table = _read("sachs_groups").rename(columns=names).assign(method="NOTEARS-MLP")
    table["group"] = table["without"].map(dict(enumerate(CONDITIONS)))
    return table.melt(["without", "group", "method"], var_name="metric", value_name="mean")


def _corrupted() -> pd.DataFrame:
    table = _read("corrupted").rename(columns={"fraction": "corrupt"} | CORRUPTED)
    return table.melt(["corrupt"], var_name="method", value_name="mean").assign(metric="shd")


def _cost() -> pd.DataFrame:
    table = _read("cost_sachs").rename(columns={"seconds_total": "seconds"})
    table["method"] = _spaced(table["method"])
    return table.melt(["method"], var_name="metric", value_name="mean")


PUBLISHED = {
    "synthetic": _synthetic,
    "heterogeneous": _heterogeneous,
    "sachs": _sachs,
    "sachs_groups": _groups,
    "corrupted": _corrupted,
    "cost_sachs": _cost,
}
