"""Rows drawn by their weights, for learners that know no weights."""

import numpy as np
from numpy.typing import NDArray

from rescore.moments import Matrix

ROUNDING = 1e-9  # a sum of weights this close to a whole number is one


def systematic_counts(w: Matrix, draws: int, offset: float) -> NDArray[np.intp]:
    """How often each row is drawn: ``draws·w_i`` rounded up or down, ``draws`` in all.

    Systematic resampling: equally spaced marks, the first at ``offset`` in [0, 1), on a line along
    which row i occupies the length ``draws·w_i``.  Over all offsets the mean count is that length;
    where the lengths are whole numbers, as with equal weights, so are the counts whatever the
    offset.

    Examples
    --------
    >>> systematic_counts(np.full(4, 1 / 4), 4, offset=0.3)
    array([1, 1, 1, 1])
    >>> systematic_counts(np.array([0.5, 0.125, 0.125, 0.25]), 4, offset=0.3)
    array([2, 1, 0, 1])
    """
    ends = whole_where_near(draws * np.cumsum(w))
    ends[-1] = draws  # the weights sum to one
    whole = np.floor(ends)
    marks_before = whole + (ends - whole > offset)  # mark k is at k + offset
    return np.diff(marks_before, prepend=0.0).astype(np.intp)


def whole_where_near(values: Matrix) -> Matrix:
    """The values with those that are whole numbers but for rounding made whole.

    Examples
    --------
    >>> whole_where_near(np.array([49 * (1 / 49), 0.5]))
    array([1. , 0.5])
    """
    nearest = np.rint(values)
    return np.where(np.abs(values - nearest) <= ROUNDING * np.maximum(nearest, 1), nearest, values)
