"""Groups of rows: a label for each row, or a number for each group."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.text import listing

__all__ = ["group_codes", "row_labels"]

FEWEST_ROWS = 2  # of a group: one row alone has no spread


def row_labels(groups: Any, index: pd.Index) -> NDArray[Any]:
    """One group label per row, checked against the rows of X.

    Examples
    --------
    >>> row_labels(["u", "v"], pd.RangeIndex(2))
    array(['u', 'v'], dtype=object)
    """
    if isinstance(groups, pd.Series) and not groups.index.equals(index):
        raise ValueError(
            "groups is a Series on another index than X. Reindex it, or give groups.to_numpy() if "
            "it is already in the order of the rows."
        )
    if np.shape(groups) != (len(index),):
        raise ValueError(
            f"groups must hold one label for each of the {len(index)} rows; its shape is "
            f"{np.shape(groups)}."
        )
    labels = pd.Series(list(groups)).to_numpy(copy=True)  # numpy alone would turn 1 into '1'
    if pd.isna(labels).any():
        raise ValueError(
            f"groups has {int(pd.isna(labels).sum())} missing label(s); name the group of every "
            "row, for example with fillna('unknown')."
        )
    labels.flags.writeable = False
    return labels


def group_codes(labels: NDArray[Any]) -> NDArray[np.intp]:
    """The groups numbered by their first row, (n,); each must have two rows or more.

    Examples
    --------
    >>> group_codes(np.array(["v", "u", "u", "v"]))
    array([0, 1, 1, 0])
    """
    codes, names = pd.factorize(labels)
    small = names[np.bincount(codes) < FEWEST_ROWS]
    if len(small):
        raise ValueError(
            f"The group(s) {listing(small)} have fewer than {FEWEST_ROWS} rows, too few to learn "
            "from. Merge them with others, or leave these rows out."
        )
    return codes
