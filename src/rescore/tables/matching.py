"""New rows for what was learned from a table: the same columns, checked in the same way."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rescore.tables.containers import unpack
from rescore.tables.table import Table, as_table
from rescore.text import listing

__all__ = ["rows_like"]


def rows_like(X: Any, names: tuple[Hashable, ...], learner: str) -> Table:
    """New rows for a learner of the columns ``names``: matched by name, or by position if unnamed.

    Examples
    --------
    >>> rows_like(pd.DataFrame({"b": [1.0], "a": [2.0]}), ("a", "b"), "Linear").values
    array([[2., 1.]])
    >>> rows_like(pd.DataFrame({"a": [1.0], "c": [2.0]}), ("a", "b"), "Linear")
    Traceback (most recent call last):
        ...
    ValueError: The columns of X are not those of the fit: 'b' missing, 'c' unknown. ...
    """
    table = _some_rows(X)
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        _refuse_other_names(table.names, names)
        at = {name: j for j, name in enumerate(table.names)}
        return replace(table, values=table.values[:, [at[name] for name in names]], names=names)
    if len(table.names) != len(names):
        raise ValueError(
            f"X has {len(table.names)} features, but {learner} is expecting {len(names)} features "
            "as input. Give the columns of the fit, in their order."
        )
    return replace(table, names=names)


def _some_rows(X: Any) -> Table:
    """X checked as for a fit, which takes two rows; here one will do."""
    raw = unpack(X)
    if raw.shape[0] != 1:
        return as_table(X, copy=False)
    names = pd.Index(list(raw.names), tupleize_cols=False)
    values = np.vstack([raw.to_float64(), np.zeros(len(names))])
    two = as_table(pd.DataFrame(values, columns=names))
    return replace(two, values=two.values[:1], index=raw.index)


def _refuse_other_names(got: tuple[Hashable, ...], names: tuple[Hashable, ...]) -> None:
    missing = [name for name in names if name not in got]
    unknown = [name for name in got if name not in names]
    if missing or unknown:
        parts = [f"{listing(missing)} missing"] if missing else []
        parts += [f"{listing(unknown)} unknown"] if unknown else []
        raise ValueError(
            f"The columns of X are not those of the fit: {', '.join(parts)}. Rename or select "
            "columns, or pass an array to match them by position."
        )
