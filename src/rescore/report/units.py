"""What other units would change, as plain data, and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rescore.units_changed import MADE, ONLY_STANDARDISED, PROOF, Units

__all__ = ["units_as_json", "units_from_json"]

COLUMNS = ["cause", "effect", "verdict", "share", "changes"]


def units_as_json(units: Units) -> dict[str, Any]:
    """The table, the factors and what did not converge; names as text.

    Examples
    --------
    >>> edge = pd.DataFrame([["a", "b", "unit-proof", 1.0, ""]], columns=COLUMNS)
    >>> factors = pd.DataFrame({"a": [2.0], "b": [0.5]}, index=["standardised"])
    >>> units_as_json(Units(edge, factors, ()))["factors"]
    {'standardised': [2.0, 0.5]}
    """
    lines = [
        [str(cause), str(effect), verdict, float(share), changes]
        for cause, effect, verdict, share, changes in units.table[COLUMNS].to_numpy().tolist()
    ]
    return {
        "table": [dict(zip(COLUMNS, line, strict=True)) for line in lines],
        "columns": [str(name) for name in units.factors.columns],
        "factors": {str(change): list(row) for change, *row in units.factors.itertuples()},
        "not_converged": list(units.not_converged),
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
    table = pd.DataFrame([[line[name] for name in COLUMNS] for line in data["table"]],
                         columns=COLUMNS)  # fmt: skip
    if not table["verdict"].isin([PROOF, MADE, ONLY_STANDARDISED]).all():
        raise ValueError("it has verdicts on units that this version does not know")
    table = table.astype({"share": float, **dict.fromkeys(["cause", "effect", "changes"], str)})
    values = np.array(list(data["factors"].values()), dtype=float)
    factors = pd.DataFrame(values, [str(c) for c in data["factors"]], data["columns"])
    return Units(table, factors, tuple(str(change) for change in data["not_converged"]))
