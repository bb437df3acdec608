"""What keeps a table from being read, column by column, so that all of it is told at once."""

import re
import warnings
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from rescore.tables.findings import Finding
from rescore.tables.table import DataWarning, Table, as_table

__all__ = ["read", "refusal"]

REFUSED = (ValueError, TypeError)


def read(X: Any) -> tuple[Table | None, list[Finding]]:
    """The columns of X that can be read, if any, and why the others cannot.

    Examples
    --------
    >>> table, found = read(pd.DataFrame({"a": [1, 2], "b": ["u", "v"]}))
    >>> table.names, found[0].columns
    (('a',), ('b',))
    """
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", DataWarning)
        table, found = _read(X)
    told = dict.fromkeys(str(each.message) for each in noted)
    return table, [*found, *(_split("rounded", text, "warning") for text in told)]


def refusal(error: Exception, code: str = "unreadable", *columns: Hashable) -> Finding:
    """What an error says, as a finding.

    Examples
    --------
    >>> refusal(ValueError("The file is empty. Write something into it.")).remedy
    'Write something into it.'
    """
    return _split(code, str(error), "error", columns)


def _split(code: str, text: str, severity: str, columns: tuple[Hashable, ...] = ()) -> Finding:
    """The first sentence says what was seen, the others what to do."""
    seen, _, remedy = re.sub(r"(?<=\.) (?=[A-Z])", "\0", text, count=1).partition("\0")
    return Finding(code, seen, columns, remedy, severity)


def _read(X: Any) -> tuple[Table | None, list[Finding]]:
    try:
        return as_table(X, copy=False), []
    except REFUSED as error:
        whole = refusal(error)
    frame = _frame(X)
    if frame is None:
        return None, [whole]
    faults = {j: fault for j in range(frame.shape[1]) if (fault := _fault(frame.iloc[:, [j]]))}
    missing = [j for j, fault in faults.items() if fault.code == "missing"]
    found = [fault for fault in faults.values() if fault.code != "missing"]
    if missing:  # one sentence for all of them
        found.insert(0, _fault(frame.iloc[:, missing]) or whole)
    good = [j for j in range(frame.shape[1]) if j not in faults]
    table = as_table(frame.iloc[:, good]) if good else None
    return table, found or [whole]


def _frame(X: Any) -> pd.DataFrame | None:
    """X as a table whose columns can be looked at one by one; None if it is no such table."""
    if isinstance(X, np.ndarray) and X.ndim == 2 and not isinstance(X, np.ma.MaskedArray):
        X = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    usable = isinstance(X, pd.DataFrame) and X.columns.is_unique and X.columns.nlevels == 1
    return X if usable and len(X) > 1 else None


def _fault(column: pd.DataFrame) -> Finding | None:
    try:
        as_table(column, copy=False)
    except REFUSED as error:
        kinds = {dtype.kind for dtype in column.dtypes}
        numbers = kinds <= set("biuf")
        gaps = numbers and not np.isfinite(column.to_numpy(np.float64, na_value=np.nan)).all()
        code = "missing" if gaps else "unreadable" if numbers else "not_numbers"
        return refusal(error, code, *column.columns)
    return None
