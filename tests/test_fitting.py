"""The path of one fit, from table to result: everything is computed once."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from rescore import Linear, Notears, ReScore, check
from rescore.fitting import _leading
from rescore.tables import table as tables

X = np.random.default_rng(0).normal(size=(200, 3))
X[:, 1] += 2 * X[:, 0]


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[Any]:
    """The calls of a function from now on."""
    calls: list[Any] = []
    function = getattr(owner, name)

    def call(*arguments: Any) -> Any:
        calls.append(arguments)
        return function(*arguments)

    monkeypatch.setattr(owner, name, call)
    return calls


@pytest.mark.parametrize("model", [Linear(), Linear(standardize=True), ReScore(Notears())])
@pytest.mark.parametrize("weight", [None, np.arange(200)])
def test_the_spread_of_a_table_is_computed_once(
    monkeypatch: pytest.MonkeyPatch, model: Any, weight: Any
) -> None:
    calls = counted(monkeypatch, tables, "spread")
    model.fit(X, sample_weight=weight)
    assert len(calls) == 1


def test_a_check_computes_the_spread_of_a_table_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, tables, "spread")
    check(X)
    assert len(calls) == 1


@pytest.mark.parametrize("rows", [3, 10, 11, 300])
@pytest.mark.parametrize("weights", [1, 3, 1000])
@pytest.mark.parametrize("losses", [1, 4, 1000])
def test_the_heaviest_rows_are_those_of_a_full_sort(rows: int, weights: int, losses: int) -> None:
    """With few different weights or losses there are ties, which go by position."""
    rng = np.random.default_rng(rows + weights + losses)
    w, loss = rng.integers(weights, size=rows) / 1e3, rng.integers(losses, size=rows) / 1e3
    leading = _leading(w, loss, min(10, rows))
    order = leading[np.lexsort((-loss[leading], -w[leading]))][:10]
    assert order.tolist() == np.lexsort((-loss, -w))[:10].tolist()


@pytest.mark.parametrize("model", [Linear(), ReScore(Notears())])
def test_a_checked_table_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch, model: Any) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(200) * 2)
    expected = clone(model).fit(frame)
    predicted = expected.predict(frame)
    table = tables.as_table(frame)
    monkeypatch.setattr(tables, "unpack", pytest.fail)
    found = model.fit(table)
    pd.testing.assert_frame_equal(found.adjacency_matrix_, expected.adjacency_matrix_)
    pd.testing.assert_series_equal(found.row_losses_, expected.row_losses_)
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    pd.testing.assert_frame_equal(found.predict(table), predicted)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_table_of_floats_is_read_without_changing_it(order: str) -> None:
    values = np.array(X, order=order)
    frame = pd.DataFrame(values)
    for copy in (True, False):
        table = tables.as_table(frame, copy=copy)
        np.testing.assert_array_equal(table.values, X)
        assert table.values.flags.c_contiguous
        assert not table.values.flags.writeable
    kept = tables.as_table(frame)
    frame.iloc[0, 0] = 9.0
    np.testing.assert_array_equal(kept.values, X)
