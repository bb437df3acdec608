"""The other units: deviation one, and random rescalings."""

import zlib
from collections.abc import Hashable

import numpy as np
import pandas as pd

from rescore.moments import Matrix
from rescore.tables.table import Table

__all__ = ["STANDARDISED", "changed_units"]

STANDARDISED = "standardised"
DECADES = 1  # a rescaling multiplies by anything between a tenth and ten


def changed_units(table: Table, prior: Matrix, count: int, seed: int) -> pd.DataFrame:
    """What each column is multiplied by, one row per change of units.

    Examples
    --------
    >>> from rescore.tables.table import as_table
    >>> changed_units(as_table([[0.0], [4.0]]), np.full(2, 0.5), count=0, seed=0)
                   x0
    standardised  0.5
    """
    random = np.column_stack([_drawn(name, count, seed) for name in table.names])
    changes = [STANDARDISED, *(f"rescaling {k + 1}" for k in range(count))]
    names = pd.Index(list(table.names), tupleize_cols=False)
    return pd.DataFrame(np.vstack([_to_deviation_one(table, prior), random]), changes, names)


def _drawn(name: Hashable, count: int, seed: int) -> Matrix:
    rng = np.random.default_rng([seed, zlib.crc32(str(name).encode(errors="replace"))])
    return 10 ** rng.uniform(-DECADES, DECADES, size=count)


def _to_deviation_one(table: Table, prior: Matrix) -> Matrix:
    """One over the weighted standard deviation of each column, (d,); 1 for a constant one."""
    largest = np.maximum(np.abs(table.values).max(axis=0), np.finfo(float).tiny)
    Z = table.values / largest  # squares stay within float64, whatever the units
    deviation = np.sqrt(prior @ np.square(Z - prior @ Z))
    varies = deviation > 1e-12
    return np.where(varies, 1 / np.where(varies, deviation, 1.0) / largest, 1.0)
