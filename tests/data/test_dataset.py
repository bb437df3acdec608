"""A Dataset keeps what it was given, checks it, and cannot be changed from outside."""

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rescore.data import Dataset

X = np.arange(12.0).reshape(4, 3) ** 2
CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_what_goes_in_comes_out() -> None:
    frame = pd.DataFrame(X, index=[7, 7, "z", None], columns=["a", "b", "c"])
    data = Dataset.from_arrays(frame, truth=CHAIN, groups=[1, "one", 1, "one"], source="here")
    pd.testing.assert_frame_equal(data.X, frame)
    assert data.groups is not None
    assert data.groups.tolist() == [1, "one", 1, "one"]  # numbers stay numbers
    assert data.groups.index.equals(frame.index)
    assert (data.names, data.n, data.d, data.source) == (("a", "b", "c"), 4, 3, "here")


def test_nothing_but_rows() -> None:
    data = Dataset.from_arrays(X)
    assert data.truth is None
    assert data.groups is None
    assert data.names == ("x0", "x1", "x2")
    assert data.X.index.equals(pd.RangeIndex(4))


def test_neither_the_giver_nor_the_taker_can_change_it() -> None:
    rows, truth, groups = X.copy(), CHAIN.copy(), np.array(list("uuvv"))
    data = Dataset.from_arrays(rows, truth=truth, groups=groups)
    rows[:], truth[:], groups[:] = -1, 0, "w"
    for frame in (data.X, data.truth):
        frame.iloc[0, 1] = 99
    taken = data.groups
    taken.iloc[0] = "w"
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.truth, CHAIN)
    assert data.groups.tolist() == list("uuvv")
    with pytest.raises(FrozenInstanceError):
        data.source = "elsewhere"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        data.table.values[0, 0] = 1


def test_truth_is_zero_one_row_to_column() -> None:
    data = Dataset.from_arrays(X, names="abc", truth=CHAIN * [[-0.5], [2.0], [0.0]])
    assert data.truth.dtypes.tolist() == [np.dtype("int8")] * 3
    assert data.truth.loc["a", "b"] == 1
    assert data.truth.loc["b", "a"] == 0
    assert np.array_equal(data.truth, CHAIN)


def test_truth_is_aligned_by_names() -> None:
    shuffled = pd.DataFrame(CHAIN, list("abc"), list("abc")).loc[list("cab"), list("bca")]
    data = Dataset.from_arrays(X, names="abc", truth=shuffled)
    assert np.array_equal(data.truth, CHAIN)
    assert list(data.truth.index) == list(data.truth.columns) == list("abc")


def test_truth_may_have_a_cycle() -> None:
    assert Dataset.from_arrays(X[:, :2], truth=[[0, 1], [1, 0]]).truth.to_numpy().sum() == 2


def test_integer_names_align_too() -> None:
    truth = pd.DataFrame(CHAIN, columns=[0, 1, 2]).loc[[2, 1, 0]]
    assert np.array_equal(Dataset.from_arrays(pd.DataFrame(X), truth=truth).truth, CHAIN)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "truth not square": ({"truth": CHAIN[:2]}, r"\(3, 3\); its shape is \(2, 3\)"),
    "truth of another size": ({"truth": np.zeros((2, 2))}, r"shape is \(2, 2\)"),
    "truth with NaN": ({"truth": CHAIN * np.nan}, "finite numbers"),
    "truth of text": ({"truth": CHAIN.astype(str)}, "finite numbers"),
    "truth with a self-loop": ({"truth": np.eye(3)}, "'x0', 'x1', 'x2' to itself"),
    "truth with other names": (
        {"truth": pd.DataFrame(CHAIN, list("abc"), list("abc"))},
        "not in both: 'a', 'b', 'c', 'x0', 'x1'",
    ),
    "truth with a name twice": (
        {"truth": pd.DataFrame(CHAIN, ["x0", "x1", "x1"], ["x0", "x1", "x2"])},
        "rows of truth",
    ),
    "groups too short": ({"groups": [1, 2]}, "each of the 4 rows"),
    "groups in two columns": ({"groups": X}, r"shape is \(4, 3\)"),
    "groups with a missing label": ({"groups": ["u", None, "v", "v"]}, "1 missing label"),
    "groups on another index": ({"groups": pd.Series(range(4), index=list("abcd"))}, "index"),
    "too few names": ({"names": ["a"]}, r"1 name\(s\) were given for 3"),
    "names twice": ({"names": "aab"}, "'a' occur"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Dataset.from_arrays(X, **given)


def test_polars_and_categories_as_groups() -> None:
    data = Dataset.from_arrays(pl.DataFrame(X), groups=pl.Series(["u", "u", "v", "v"]))
    assert data.groups.tolist() == ["u", "u", "v", "v"]
    data = Dataset.from_arrays(X, groups=pd.Categorical(list("uuvv")))
    assert data.groups.tolist() == ["u", "u", "v", "v"]


def test_repr_is_one_short_harmless_line() -> None:
    names = ["\x1b[2J", "a\nb", "x" * 10_000]
    text = repr(Dataset.from_arrays(X, names=names, truth=CHAIN, groups=list("uvuv"), source="\0"))
    assert text.isprintable()
    assert len(text) < 300
    assert "n=4, d=3" in text
    assert "edges=2, groups=2" in text


def test_read_passes_its_options_on(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id;a\nu;1,5\nv;2\n")
    data = Dataset.read(tmp_path / "t.csv", delimiter=";", decimal=",", drop=["id"])
    assert data.X.to_numpy().tolist() == [[1.5], [2.0]]
    assert data.source == str(tmp_path / "t.csv")
