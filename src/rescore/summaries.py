"""Learning from a covariance and a number of rows, where the rows themselves are not at hand."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rescore.algorithm import Record, rescore
from rescore.checking import check_number
from rescore.fitting import Fitted, Preparation, noticed
from rescore.moments import Matrix, Summary
from rescore.protocols import Backbone
from rescore.tables.table import Table, as_table
from rescore.weightings.exact import likelihood_units
from rescore.weightings.uniform import Uniform

ALL_ROWS = pd.Index(["all rows"])
ROWWISE = {"few_rows", "outlying"}  # findings about rows that nobody has seen
ROUNDING = 1e-8  # relative asymmetry, or negative share of variance, of a rounded covariance


def learn_moments(
    covariance: Any,
    n_rows: Any,
    mean: Any,
    backbone: Backbone,
    preparation: Preparation,
    *,
    max_steps: int = 100,
    on_step: Callable[[Record], Any] | None = None,
) -> Fitted:
    """What `learn` would find on ``n_rows`` rows with this covariance; one row stands for all."""
    count = check_number("n_rows", n_rows, above=1)
    table = as_table(covariance)
    S = _checked(table, covariance)
    stand_ins = replace(table, values=Summary.of(_mean(mean, len(S)), S).values)
    stand_ins = replace(stand_ins, index=pd.RangeIndex(len(stand_ins.values)))
    prior = np.full(2 * len(S), 1 / (2 * len(S)))
    problem = preparation.problem(stand_ins, prior, count)
    problem = replace(problem, rows=Summary(problem.rows.values))
    found = rescore(problem, backbone, Uniform(), max_steps=max_steps, on_step=on_step)
    losses = (prior @ found.losses)[None]
    result = replace(found, sample_weight=np.ones(1), losses=losses)
    told = [f for f in noticed(stand_ins, prior, found, preparation) if f.code not in ROWWISE]
    one_row = Table(prior[None] @ stand_ins.values, table.names, ALL_ROWS)
    row_losses = likelihood_units(losses, np.ones(1))
    equations = preparation.equations(stand_ins, prior, found)
    obeyed = preparation.receipts(table, found)
    return Fitted(one_row, stand_ins, result, row_losses, tuple(told), *equations, obeyed)


def _checked(table: Table, covariance: Any) -> Matrix:
    """The covariance as an exactly symmetric matrix; or a sentence why it cannot be one."""
    S = table.values
    if S.shape[0] != S.shape[1]:
        raise ValueError(f"A covariance must be square, got the shape {S.shape}.")
    if isinstance(covariance, pd.DataFrame) and list(covariance.index) != list(table.names):
        raise ValueError("The rows and columns of a covariance must have the same names.")
    deviations = np.sqrt(np.maximum(np.diag(S), 0.0))
    units = np.outer(deviations, deviations)
    if (np.abs(S - S.T) > ROUNDING * units).any():
        raise ValueError("A covariance must be symmetric. Use for example X.cov().")
    units = np.where(units > 0, units, 1.0)
    if (np.diag(S) < 0).any() or np.linalg.eigvalsh(S / units).min() < -ROUNDING * len(S):
        raise ValueError(
            "This matrix is no covariance: some combination of its variables would have a "
            "negative variance. Was it put together from rows with missing values?"
        )
    return (S + S.T) / 2


def _mean(mean: Any, d: int) -> Matrix:
    if mean is None:
        return np.zeros(d)
    values = np.asarray(mean, dtype=np.float64)
    if values.shape != (d,) or not np.isfinite(values).all():
        raise ValueError(f"mean must hold {d} finite numbers, one for each variable.")
    return values
