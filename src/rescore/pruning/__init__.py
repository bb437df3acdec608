"""Fewer edges: candidates before a learner, by trees; after it, parents that explain something."""

from typing import Any

import numpy as np
import pandas as pd

from rescore.moments import Matrix
from rescore.protocols import Mask
from rescore.tables.table import as_table, names_index
from rescore.validation import check_integer, check_number
from rescore.weight_box import prior_weights

TREES = 20
MOST_ROWS = 2000  # that a forest grows on: more cost time and hardly change which inputs matter
# Trees grown to single rows spread importance over everything that can explain noise.
SMALLEST_LEAF = 0.0025  # share of the rows' weight


def select_neighbours(
    X: Any, sample_weight: Any = None, multiple: float = 0.75, random_state: int = 0
) -> Any:
    """Boolean (d, d), ``[i, j]`` where i may be a parent of j: the rest need not be looked at.

    Each variable is regressed on all others by extremely randomised trees, and those whose
    importance is above ``multiple`` times the mean importance remain, as in GraN-DAG (Lachapelle
    et al. 2020).  Causes, effects and causes of effects all help to predict, so this says nothing
    about direction.  Where a variable has many parents the weaker ones may be lost: of additive
    functions in graphs with four edges a node, 0.75 kept 76 to 86 % of the parents, 0.5 88 to 92 %.

    Parameters
    ----------
    X
        Rows of numbers: an array, a list of rows, or a table of pandas, polars or pyarrow.
    sample_weight
        One weight per row.
    multiple
        Higher selects fewer; 0 selects all that any tree used.
    random_state
        The seed of the trees and, beyond 2,000 rows, of those they grow on.

    Returns
    -------
    DataFrame or ndarray
        A table with the names of X if X is a table, else an array.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> X[:, 2] += np.sin(2 * X[:, 0])
    >>> select_neighbours(X)[:, 2]
    array([ True, False, False])
    """
    multiple = check_number("multiple", multiple, at_least=0)
    seed = check_integer("random_state", random_state, at_least=0)
    table = as_table(X)
    w = prior_weights(sample_weight, len(table.values))
    found = neighbours(table.values, w, multiple, seed)
    if isinstance(X, np.ndarray | list | tuple):
        return found
    names = names_index(table.names)
    return pd.DataFrame(found, index=names, columns=names)


def neighbours(X: Matrix, w: Matrix, multiple: float = 0.75, seed: int = 0) -> Mask:
    """`select_neighbours` of rows X (n, d) whose weights ``w`` (n,) sum to one.

    Of weights of cells (n, d) every column does, and counts the rows for its own variable.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> neighbours(X, np.full(300, 1 / 300))
    array([[False,  True],
           [ True, False]])
    """
    d = X.shape[1]
    draw, *seeds = np.random.SeedSequence(seed).spawn(d + 1)
    found = np.zeros((d, d), dtype=bool)
    for j in range(d if d > 1 else 0):
        if j == 0 or w.ndim == 2:
            own = w if w.ndim == 1 else w[:, j]
            rows, v = _fewer_rows(X[own > 0], own[own > 0], np.random.default_rng(draw))
            rows = _unit_range(rows)
        others = np.delete(np.arange(d), j)
        importance = _importance(rows[:, others], rows[:, j], v, int(seeds[j].generate_state(1)[0]))
        found[others, j] = importance > multiple * importance.mean()
    return found


def _importance(inputs: Matrix, y: Matrix, w: Matrix, seed: int) -> Matrix:
    """The share of the weighted squared error that splits on each input remove, (d − 1,).

    The trees of an `ExtraTreesRegressor` with this seed, without what it does around each of them,
    which on few rows takes longer than the tree.
    """
    from sklearn import config_context
    from sklearn.tree import ExtraTreeRegressor

    rng, Z = np.random.RandomState(seed), np.ascontiguousarray(inputs, dtype=np.float32)
    shares = []
    with config_context(skip_parameter_validation=True):
        for one in rng.randint(np.iinfo(np.int32).max, size=TREES):
            tree = ExtraTreeRegressor(
                max_features=1.0, min_weight_fraction_leaf=SMALLEST_LEAF, random_state=one
            ).fit(Z, y, sample_weight=w, check_input=False)
            shares += [tree.feature_importances_] * (tree.tree_.node_count > 1)
    # Trees that found nothing to split have no shares.
    return np.mean(shares, axis=0) / np.sum(np.mean(shares, axis=0)) if shares else 0 * inputs[0]


def _unit_range(X: Matrix) -> Matrix:
    """Every column from 0 to 1, constants at 0: the trees of scikit-learn hold float32."""
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / np.where(high > low, high - low, 1.0)


def _fewer_rows(X: Matrix, w: Matrix, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """At most 2,000 rows, drawn one from each slice of equal weight; they then weigh alike."""
    if len(X) <= MOST_ROWS:
        return X, w
    at = (np.arange(MOST_ROWS) + rng.random(MOST_ROWS)) / MOST_ROWS
    rows = np.minimum(np.searchsorted(np.cumsum(w), at, side="right"), len(X) - 1)
    return X[rows], np.full(MOST_ROWS, 1 / MOST_ROWS)
