"""From a table with gaps and categories to complete numbers, and a receipt of what was done."""

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.tables.missing import completed
from rescore.tables.table import Table, as_table, group_codes, row_labels
from rescore.text import listing, printable
from rescore.validation import check_choice

REFUSE, DROP, EM, EXOGENOUS = "refuse", "drop", "em", "exogenous"
MISSING_CHOICES = (REFUSE, DROP, EM)
CATEGORY_CHOICES = (REFUSE, DROP, EXOGENOUS)
ABSENT = "(missing)"  # the level of a category's missing cells, where cells are filled in
LARGEST_SHARE = 1 / 3  # of the rows, that may be different levels


@dataclass(frozen=True)
class Opening:
    """What is done about missing cells and categories before a fit.

    ``missing``: "refuse"; "drop", rows with gaps count nothing; "em", gaps are filled in.
    ``categories``: "refuse"; "drop", columns of words are left out; "exogenous", they and columns
    of two values may cause and are not caused.

    Examples
    --------
    >>> X = pd.DataFrame({"a": [1.0, None, 3.0, 4.0], "sex": ["f", "m", "f", "f"]})
    >>> table, weight = Opening("drop", "exogenous").of(X)
    >>> table.levels, weight.tolist(), table.values[:, 1].tolist()
    ({'sex': ('f', 'm')}, [1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 0.0])
    >>> table.receipt["missing"]
    {'how': 'drop', 'rows': 1, 'cells': {'a': 1}}
    """

    missing: str = REFUSE
    categories: str = REFUSE
    seed: int = 0

    def of(self, X: Any, sample_weight: Any = None, groups: Any = None) -> tuple[Table, Any]:
        """The table, and the row weights: zero for rows that are left out."""
        missing = check_choice("missing", self.missing, MISSING_CHOICES)
        categories = check_choice("categories", self.categories, CATEGORY_CHOICES)
        if isinstance(X, Table):
            return X, sample_weight
        if missing == categories == REFUSE:
            return as_table(X, copy=False), sample_weight
        frame = _frame(X)
        if frame is None:
            return as_table(X, copy=False), sample_weight
        frame, levels, dropped = _coded(frame, categories, missing)
        receipt: dict[str, Any] = {"dropped": [str(name) for name in dropped]} if dropped else {}
        if levels:
            receipt["categories"] = {str(name): list(map(str, k)) for name, k in levels.items()}
        values, gaps = _numbers(frame)
        if missing == REFUSE or not gaps.any():
            table = as_table(frame, copy=False)
            return replace(table, levels=levels, receipt=receipt), sample_weight
        _refuse_empty(frame, gaps)
        out = np.asarray(gaps.any(axis=1) if missing == DROP else gaps.all(axis=1))
        receipt["missing"] = _receipt(missing, frame, gaps, out)
        weight = _without(sample_weight, out)
        filled = _filled(values, gaps, out, weight, groups, frame, levels, self.seed, missing)
        table = as_table(pd.DataFrame(filled, frame.index, frame.columns), copy=False)
        return replace(table, levels=levels, receipt=receipt), weight


STRICT = Opening()


def opened(frame: pd.DataFrame) -> Table:
    """A complete table whose categories pandas knows as such.

    Examples
    --------
    >>> opened(pd.DataFrame({"c": pd.Categorical(["u", "v"]), "a": [1.0, 2.0]})).levels
    {'c': ('u', 'v')}
    """
    known = [n for n in frame.columns if isinstance(frame[n].dtype, pd.CategoricalDtype)]
    numbers = frame.copy(deep=False)
    for name in known:
        numbers[name] = frame[name].cat.codes.astype(np.float64)
    table = as_table(numbers, copy=False)
    return replace(table, levels={name: tuple(frame[name].cat.categories) for name in known})


def _frame(X: Any) -> pd.DataFrame | None:
    """X as a pandas table; None if it is no table whose columns can be told apart."""
    if isinstance(X, pd.DataFrame):
        return X if X.columns.is_unique and X.columns.nlevels == 1 else None
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True).to_pandas()
        return frame if isinstance(frame, pd.DataFrame) else None
    if hasattr(X, "todense") or isinstance(X, np.ma.MaskedArray | str | bytes):
        return None
    values = np.asarray(X)
    if values.ndim != 2:
        return None
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
    return frame.infer_objects() if values.dtype == object else frame


def _coded(
    frame: pd.DataFrame, categories: str, missing: str
) -> tuple[pd.DataFrame, dict[Hashable, tuple[Hashable, ...]], list[Hashable]]:
    """Words as numbers of their levels; the levels; and the columns that were left out."""
    words: list[Hashable] = [name for name in frame.columns if _is_words(frame[name])]
    if categories == DROP:
        return frame.drop(columns=words), {}, words
    if categories == REFUSE:
        return frame, {}, []
    out = frame.copy(deep=False)
    levels: dict[Hashable, tuple[Hashable, ...]] = {}
    for name in frame.columns:
        cells = frame[name]
        binary = name not in words and _is_number(cells) and cells.nunique() == 2
        if name not in words and not binary:
            continue
        gaps = cells.isna().to_numpy()
        if gaps.any() and missing == EM:
            cells = cells.astype(object).where(~gaps, ABSENT)
        known = _levels(cells)
        _refuse_many(name, len(known), len(cells))
        place = {level: k for k, level in enumerate(known)}
        out[name] = np.array([place.get(x, np.nan) for x in cells.astype(object)], dtype=np.float64)
        if len(known) > 1:
            levels[name] = tuple(known)
    return out, levels, []


def _levels(cells: pd.Series) -> list[Any]:
    """The levels of a category: as it knows them, or in the order of their words."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return list(cells.dtype.categories)
    return sorted(cells.dropna().unique().tolist(), key=lambda x: (isinstance(x, str), x))


def _is_words(cells: pd.Series) -> bool:
    """Whether a column holds words; dates and other objects are left to `as_table` to refuse."""
    if isinstance(cells.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(cells.dtype):
        return True
    if not (cells.dtype == object or pd.api.types.is_string_dtype(cells.dtype)):
        return False
    there = cells.dropna()
    return len(there) > 0 and all(isinstance(cell, str | bool) for cell in there)


def _is_number(cells: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(cells.dtype))


def _refuse_many(name: Hashable, levels: int, n: int) -> None:
    if levels > max(LARGEST_SHARE * n, 2):
        raise ValueError(
            f"Column '{printable(name)}' has {levels} levels in {n} rows, too many for a category. "
            f"Leave it out, drop=['{printable(name)}'], or merge levels."
        )


def _numbers(frame: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The cells as float64 and where they are missing; what cannot be is left to `as_table`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
        except (ValueError, TypeError):
            as_table(frame, copy=False)
            raise
    gaps = np.isnan(values)
    if np.isinf(values).any() or gaps.any():  # the finite part is checked as ever
        as_table(frame.where(~gaps, 0.0).astype(np.float64), copy=False)
    return values, gaps


def _refuse_empty(frame: pd.DataFrame, gaps: NDArray[np.bool_]) -> None:
    empty = [name for name, gone in zip(frame.columns, gaps.T, strict=True) if (~gone).sum() < 2]
    if empty:
        raise ValueError(
            f"{listing(empty)} hold(s) fewer than two values, so that nothing can be learned from "
            f"the rest. Leave out: drop={[str(name) for name in empty]!r}."
        )
    if (~gaps.any(axis=1)).sum() == 0 and gaps.mean() > LARGEST_SHARE * 2:
        raise ValueError("More than two thirds of all cells are missing; nothing can be learned.")


def _receipt(
    how: str, frame: pd.DataFrame, gaps: NDArray[np.bool_], out: NDArray[np.bool_]
) -> dict[str, Any]:
    counted = gaps if how == DROP else gaps[~out]
    sums = counted.sum(axis=0).tolist()
    cells = {str(name): count for name, count in zip(frame.columns, sums, strict=True)}
    return {"how": how, "rows": int(out.sum()), "cells": {k: c for k, c in cells.items() if c}}


def _without(sample_weight: Any, out: NDArray[np.bool_]) -> Any:
    """The weights with zero for rows that are left out."""
    if not out.any():
        return sample_weight
    if out.sum() > len(out) - 2:
        raise ValueError(
            f"Without the rows that have gaps {len(out) - int(out.sum())} of {len(out)} rows are "
            "left. Fill the gaps in with missing='em', or leave out the columns that have most."
        )
    weight = np.ones(len(out)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return np.where(out, 0.0, weight)


def _filled(
    values: NDArray[np.float64],
    gaps: NDArray[np.bool_],
    out: NDArray[np.bool_],
    weight: Any,
    groups: Any,
    frame: pd.DataFrame,
    levels: Mapping[Hashable, tuple[Hashable, ...]],
    seed: int,
    how: str,
) -> NDArray[np.float64]:
    """Complete rows: gaps filled in, those of rows that count nothing by any number."""
    means = np.nanmean(values, axis=0)
    filled = np.where(gaps, means, values)
    if how == DROP:
        return filled
    used = ~out if weight is None else ~out & (np.broadcast_to(weight, len(out)) > 0)
    w = used / used.sum() if weight is None else np.where(used, weight, 0.0) / np.sum(weight)
    codes = None if groups is None else group_codes(row_labels(groups, frame.index)[used])
    names = list(frame.columns)
    numeric = [j for j, name in enumerate(names) if name not in levels]
    vary = [j for j in numeric if np.nanstd(values[used, j]) > 0]
    known = dummies(values, names, levels)
    whole = completed(np.column_stack([values[:, vary], known])[used], w[used], codes, seed)
    filled[np.ix_(np.flatnonzero(used), np.array(vary, dtype=np.intp))] = whole[:, : len(vary)]
    return filled


def dummies(
    values: NDArray[np.float64], names: Any, levels: Mapping[Hashable, tuple[Hashable, ...]]
) -> NDArray[np.float64]:
    """For every category a column of 0 and 1 for each of its levels but the first, (n, L).

    Examples
    --------
    >>> dummies(np.array([[0.0], [2.0], [1.0]]), ["c"], {"c": ("u", "v", "w")})
    array([[0., 0.],
           [0., 1.],
           [1., 0.]])
    """
    columns = [
        (values[:, j] == k).astype(np.float64)
        for j, name in enumerate(names)
        for k in range(1, len(levels.get(name, ())))
    ]
    return np.column_stack(columns) if columns else np.empty((len(values), 0))


def numbered(X: Any, levels: Mapping[Hashable, tuple[Hashable, ...]]) -> Any:
    """New rows with the numbers of their levels in the place of categories.

    Examples
    --------
    >>> numbered(pd.DataFrame({"sex": ["m", "f"]}), {"sex": ("f", "m")})["sex"].tolist()
    [1.0, 0.0]
    """
    if isinstance(X, Table):
        return X
    frame = _frame(X)
    if frame is None:
        return X
    frame = frame.copy(deep=False)
    for name, words in levels.items():
        if name in frame.columns:
            codes = {word: number_of(name, word, words) for word in frame[name].unique()}
            frame[name] = [codes[word] for word in frame[name]]
    return frame


def number_of(name: Hashable, level: Any, levels: tuple[Hashable, ...]) -> float:
    """Which of the levels of a category one is.

    Examples
    --------
    >>> number_of("sex", "m", ("f", "m"))
    1.0
    """
    if level not in levels:
        raise ValueError(
            f"{listing([level])} is not among the levels of '{printable(name)}' in the fit: "
            f"{listing(levels)}."
        )
    return float(levels.index(level))
