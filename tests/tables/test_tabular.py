"""Values and containers that no fit can use are refused; what is only doubtful is a warning."""

import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from rescore.tables.convert import DataWarning
from rescore.tables.findings import Finding, findings
from rescore.tables.table import Table, as_table
from rescore.text import printable

GOOD = np.random.default_rng(0).normal(size=(30, 3))


def with_cell(value: object, column: int = 1) -> pd.DataFrame:
    cells = GOOD.astype(object)
    cells[4, column] = value
    return pd.DataFrame(cells, columns=["a", "b", "c"])


def odd(X: object) -> list[Finding]:
    """What is odd about a table, but that its rows are few."""
    return [finding for finding in findings(as_table(X)) if finding.code != "small_sample"]


def codes(X: object) -> list[str]:
    return [finding.code for finding in odd(X)]


REFUSED_VALUES = {
    "NaN": (pd.DataFrame({"a": [1, np.nan, np.nan], "b": [1, 2, 3]}), r"'a' \(2 NaN\)"),
    "+inf": (np.array([[1, 2], [np.inf, 3]]), r"infinite: column 'x0' \(1 inf\)"),
    "-inf": (np.array([[1, 2], [-np.inf, 3]]), r"infinite: column 'x0' \(1 inf\)"),
    "NaN and inf in one column": (
        np.array([[1, np.nan], [np.inf, np.inf], [np.nan, 1]]),
        r"X has 4 cell.* 'x0' \(1 NaN, 1 inf\), column 'x1' \(1 NaN, 1 inf\)",
    ),
    "pd.NA in Int64": (pd.DataFrame({"a": pd.array([1, None], "Int64")}), r"'a' \(1 NaN\)"),
    "pd.NA in boolean": (pd.DataFrame({"a": pd.array([True, None], "boolean")}), r"\(1 NaN\)"),
    "pd.NA in objects": (with_cell(pd.NA), r"'b' \(1 NaN\)"),
    "None in objects": (with_cell(None), r"'b' \(1 NaN\)"),
    "null in polars": (pl.DataFrame({"a": [1, None, 3]}), r"'a' \(1 NaN\)"),
    "null in arrow": (pa.table({"a": [True, None, False]}), r"'a' \(1 NaN\)"),
    "finite but so large that squares overflow": (
        np.array([[1.0, 2.0], [3.0, -1e151]]),
        r"Column 'x1' holds 1e\+151",
    ),
    "an integer beyond float64": ([[1, 2], [10**400, 3]], "integer too large"),
    "a long double beyond float64": (np.array([[1, 2], [3, 4]], np.longdouble) * 10**400, "inf"),
    "n = 1": (np.ones((1, 3)), r"1 sample\(s\).*minimum of 2 is required"),
    "n = 0": (np.ones((0, 3)), r"0 sample\(s\).*minimum of 2 is required"),
    "d = 0": (
        np.ones((12, 0)),
        r"0 feature\(s\) \(shape=\(\d*, 0\)\) while a minimum of \d* is required.",
    ),
    "many columns: shortened": (np.full((2, 9), np.nan), "and 4 more column"),
}


@pytest.mark.parametrize(("X", "message"), REFUSED_VALUES.values(), ids=REFUSED_VALUES)
def test_values_refused(X: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_table(X)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "float16", "float32", "int64"])
def test_small_types_become_float64_before_any_arithmetic(dtype: str) -> None:
    X = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype) * np.array(1, dtype)
    table = as_table(X)
    assert table.values.dtype == np.float64
    assert np.array_equal(table.values, X.astype(float))
    assert table.spread.mean == pytest.approx([2 / 3, 2 / 3], rel=1e-12)


def test_int8_sums_do_not_wrap() -> None:
    table = as_table(np.full((300, 2), 127, dtype=np.int8) - np.eye(300, 2, dtype=np.int8))
    assert table.spread.mean == pytest.approx(127 - 1 / 300)


def test_denormals_survive() -> None:
    X = np.array([[5e-324, 1e-310], [1e-323, 3e-310], [0, 0]])
    assert np.array_equal(as_table(X).values, X)
    assert (as_table(X).spread.deviation > 0).all()
    assert "constant" not in codes(X)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_int64_above_2_53_warns_exactly_when_a_value_changes(
    dtype: str, data: st.DataObject
) -> None:
    info = np.iinfo(dtype)
    bits = st.integers(int(info.min), int(info.max))
    shifted = st.builds(lambda k, s: (k >> s) << s, bits, st.integers(0, 20))
    X = np.array(data.draw(st.lists(shifted, min_size=2, max_size=4)), dtype=dtype).reshape(-1, 1)
    changed = any(int(float(int(value))) != int(value) for value in X[:, 0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        as_table(pd.DataFrame(X, columns=["big"]))
    assert changed == bool(caught)
    assert all(w.category is DataWarning and "'big'" in str(w.message) for w in caught)


def test_only_the_column_that_lost_digits_is_named() -> None:
    X = np.array([[1, 2**53 + 1], [2**60, 5]])
    with pytest.warns(DataWarning, match=r"1 number\(s\) in 'x1' have"):
        as_table(X)


REFUSED_CONTAINERS = {
    "numeric strings": (pd.DataFrame({"a": ["1", "2"]}), TypeError, "olumn 'a'.*number"),
    "numeric strings, numpy": (np.array([["1", "2"], ["3", "4"]]), TypeError, "text"),
    "numeric strings, list": ([[1, "2"], [3, 4]], TypeError, "text"),
    "numeric strings, polars": (pl.DataFrame({"a": ["1", "2"]}), TypeError, "Column 'a'.*String"),
    "numeric strings, objects": (with_cell("7"), TypeError, "Row 4 of column 'b' holds '7'"),
    "text": (with_cell("seven"), TypeError, "'seven' of type str"),
    "bytes": (np.array([[b"1"], [b"2"]]), TypeError, "bytes"),
    "category": (pd.DataFrame({"a": pd.Categorical([1, 2])}), TypeError, "'a' holds category"),
    "category, polars": (
        pl.DataFrame({"a": ["u", "v"]}, schema={"a": pl.Categorical}),
        TypeError,
        "Categorical",
    ),
    "datetime": (pd.DataFrame({"a": pd.to_datetime(["2020", "2021"])}), TypeError, "'a'.*dates"),
    "datetime with zone": (
        pd.DataFrame({"a": pd.to_datetime(["2020", "2021"], utc=True)}),
        TypeError,
        "'a' holds datetime64",
    ),
    "datetime, arrow": (pa.table({"a": pa.array([0, 1], pa.date32())}), TypeError, "Date"),
    "timedelta": (np.array([[1], [2]], "m8[s]"), TypeError, "durations"),
    "mixed objects": (with_cell([1, 2]), TypeError, "of type list"),
    "a dict in objects": (
        with_cell({"foo": "bar"}).to_numpy(),
        TypeError,
        "argument must be .* string.* number",
    ),
    "Decimal objects": (with_cell(Decimal("1.5")), TypeError, "type Decimal"),
    "records": (np.zeros(2, dtype=[("a", float)]).reshape(2, 1), TypeError, "records"),
    "complex": (GOOD + 1j, ValueError, "Complex data not supported"),
    "complex, pandas": (pd.DataFrame({"a": [1j, 2j]}), ValueError, "Complex.*Column 'a'"),
    "complex objects": (with_cell(1j), ValueError, "Complex data not supported.*'b'"),
    "sparse": (sparse.csr_array(GOOD), TypeError, "sparse input is not supported"),
    "sparse matrix": (sparse.coo_matrix(GOOD), TypeError, "sparse"),
    "sparse, pandas": (
        pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0])}),
        TypeError,
        "Column 'a' is sparse",
    ),
    "ragged lists": ([[1, 2], [3, 4], [5]], ValueError, r"Row 2 of X has 1 cell.*row 0 has 2"),
    "masked array": (
        np.ma.MaskedArray(GOOD, mask=np.eye(30, 3, k=-1, dtype=bool)),
        ValueError,
        r"3 masked cell\(s\) in 'x0', 'x1', 'x2'",
    ),
    "duplicate column names": (pd.DataFrame(GOOD, columns=list("aba")), ValueError, "'a' occur"),
    "duplicate column names, arrow": (
        pa.table([[1, 2], [3, 4]], names=["a", "a"]),
        ValueError,
        "names must differ.*more than once",
    ),
    "MultiIndex columns": (
        pd.DataFrame(GOOD, columns=pd.MultiIndex.from_product([["u"], list("abc")])),
        ValueError,
        "MultiIndex",
    ),
    "1-D": (GOOD[:, 0], ValueError, "Expected 2D array.*Reshape your data"),
    "1-D, Series": (pd.Series([1.0, 2.0]), ValueError, "Expected 2D array"),
    "3-D": (GOOD[None], ValueError, "got a 3D array"),
    "a number": (np.float64(3.0), ValueError, "Expected 2D array"),
    "a path": (Path("x.csv"), TypeError, r"Dataset\.read"),
    "a dict": ({"a": [1, 2]}, TypeError, "not dict"),
    "None": (None, TypeError, "not NoneType"),
    "an arrow record batch": (pa.record_batch({"a": [1, 2]}), TypeError, "pyarrow table"),
    "128-bit integers": (
        pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Int128)}),
        TypeError,
        "Column 'a' holds Int128",
    ),
    "lazy polars": (pl.LazyFrame({"a": [1, 2]}), TypeError, "collect"),
}


@pytest.mark.parametrize(
    ("X", "kind", "message"), REFUSED_CONTAINERS.values(), ids=REFUSED_CONTAINERS
)
def test_containers_refused(X: object, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        as_table(X)


def test_containers_are_checked_before_values() -> None:
    X = pd.DataFrame({"a": [np.nan, 1.0], "b": ["u", "v"]})
    with pytest.raises(TypeError, match="olumn 'b'"):
        as_table(X)


def memmap(X: np.ndarray, folder: Path) -> np.ndarray:
    file = np.memmap(folder / "X.bin", dtype=X.dtype, mode="w+", shape=X.shape)
    file[:] = X
    return np.memmap(folder / "X.bin", dtype=X.dtype, mode="r", shape=X.shape)


def read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


SAME = {
    "C order": lambda X, _: X.copy(),
    "Fortran order": lambda X, _: np.asfortranarray(X),
    "strides": lambda X, _: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "negative strides": lambda X, _: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda X, _: read_only(X),
    "memory-mapped": memmap,
    "big-endian": lambda X, _: X.astype(">f8"),
    "np.matrix": lambda X, _: X.view(np.matrix),
    "list of lists": lambda X, _: X.tolist(),
    "tuple of arrays": lambda X, _: tuple(X),
    "objects that are numbers": lambda X, _: X.astype(object),
    "masked array without mask": lambda X, _: np.ma.MaskedArray(X),
    "pandas": lambda X, _: pd.DataFrame(X),
    "pandas with Float64": lambda X, _: pd.DataFrame(X).astype("Float64"),
    "polars": lambda X, _: pl.DataFrame(X, schema=["a", "b", "c"]),
    "arrow": lambda X, _: pa.table(dict(zip("abc", X.T, strict=True))),
}


@pytest.mark.parametrize("make", SAME.values(), ids=SAME)
def test_same_values_from_every_container(make: Any, tmp_path: Path) -> None:
    table = as_table(make(GOOD, tmp_path))
    assert np.array_equal(table.values, GOOD)
    assert table.values.dtype == np.float64
    assert table.values.flags.c_contiguous
    assert not table.values.flags.writeable
    assert type(table.values) is np.ndarray


@pytest.mark.parametrize("make", SAME.values(), ids=SAME)
def test_input_untouched_and_never_shared(make: Any, tmp_path: Path) -> None:
    X = make(GOOD.copy(), tmp_path)
    table = as_table(X)
    if isinstance(X, np.ndarray):
        assert not np.shares_memory(table.values, X)
        assert np.array_equal(np.asarray(X, dtype=float), GOOD)
    if isinstance(X, pd.DataFrame):
        X.iloc[0, 0] = 99.0
        assert table.values[0, 0] == GOOD[0, 0]


def test_objects_of_many_number_types() -> None:
    X = np.array([[1, True], [np.float32(0.5), Fraction(1, 4)]], dtype=object)
    assert as_table(X).values.tolist() == [[1.0, 1.0], [0.5, 0.25]]


def test_names_and_index_are_the_datas_own() -> None:
    index = pd.Index(["u", "u", "w"])  # odd: labels repeat
    table = as_table(pd.DataFrame(GOOD[:3], index=index, columns=[3, "b", (1, 2)]))
    assert table.names == (3, "b", (1, 2))
    assert table.index.equals(index)
    assert as_table(GOOD).names == ("x0", "x1", "x2")
    assert as_table(GOOD).index.equals(pd.RangeIndex(30))
    assert as_table(pl.DataFrame({"p": [1, 2]})).names == ("p",)


def test_a_table_passes_through_and_can_be_renamed() -> None:
    table = as_table(GOOD)
    assert as_table(table) is table
    assert isinstance(table.renamed("abc"), Table)
    with pytest.raises(ValueError, match="2 name"):
        table.renamed(["a", "b"])
    with pytest.raises(ValueError, match="more than once"):
        table.renamed("aab")


@given(hnp.arrays(np.float64, (4, 3), elements=st.floats(width=64)))
@settings(deadline=None)
def test_accepted_exactly_when_finite_and_not_too_large(X: np.ndarray) -> None:
    usable = bool(np.isfinite(X).all() and (np.abs(X) <= 1e150).all())
    if usable:
        assert np.array_equal(as_table(X).values, X)
    else:
        with pytest.raises(ValueError, match=r"NaN|inf|beyond"):
            as_table(X)


HOSTILE = {
    "<script>": ("<script>alert(1)</script>", "<script>"),
    "quotes": ("a'\"b", "a'\"b"),
    "newlines": ("a\nb\r", "a\\nb\\r"),
    "right-to-left marks": ("a\u202eb\u200f", "a\\u202eb\\u200f"),
    "emoji": ("🧬", "🧬"),
    "NUL": ("a\0b", "a\\x00b"),
    "terminal escapes": ("\x1b[2J\x9b31m", "\\x1b[2J\\x9b31m"),
    "../../x": ("../../x", "../../x"),
}


@pytest.mark.parametrize(("name", "shown"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_are_escaped_in_messages(name: str, shown: str) -> None:
    with pytest.raises(ValueError, match="NaN") as caught:
        as_table(pd.DataFrame({name: [1.0, np.nan]}))
    message = str(caught.value)
    assert shown in message
    assert message.isprintable()


@given(st.text(), st.integers(1, 80))
def test_printable_is_printable_and_short(name: str, limit: int) -> None:
    shown = printable(name, limit)
    assert shown.isprintable()
    assert len(shown) <= limit


def test_a_lone_surrogate_is_escaped() -> None:  # pandas itself takes no such name
    assert printable("\ud800") == "\\ud800"


def test_ten_thousand_characters_are_shortened() -> None:
    with pytest.raises(ValueError, match="…") as caught:
        as_table(pd.DataFrame({"x" * 10_000: [1.0, np.nan]}))
    assert len(str(caught.value)) < 400


def test_constant_column_is_found_without_division_by_zero() -> None:
    X = GOOD.copy()
    X[:, 1] = 0.1  # whose mean is not exactly 0.1
    (finding,) = odd(X)
    assert (finding.code, finding.columns) == ("constant", ("x1",))
    assert "isolated node" in finding.message
    assert as_table(X).spread.correlation.shape == (2, 2)


def test_all_columns_constant() -> None:
    table = as_table(np.ones((5, 3)))
    assert codes(table) == ["constant"]
    assert (table.spread.scale_ratio, table.spread.condition_number) == (1.0, 1.0)


def test_d_1_has_nothing_to_report() -> None:
    assert codes(GOOD[:, :1]) == []


def test_duplicated_columns_are_named() -> None:
    X = np.column_stack([GOOD, 5 - 3 * GOOD[:, 1]])
    (finding,) = odd(X)
    assert (finding.code, set(finding.columns)) == ("duplicated", {"x1", "x3"})


def test_collinear_columns_are_named() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 6))
    X[:, 5] = 2 * X[:, 1] - X[:, 3] + 4
    (finding,) = odd(X)
    assert (finding.code, set(finding.columns)) == ("collinear", {"x1", "x3", "x5"})
    assert as_table(X).spread.condition_number > 1e12


def test_nearly_collinear_columns_are_not_called_exact() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 3))
    X[:, 2] = X[:, 0] + X[:, 1] + 1e-4 * X[:, 2]
    assert codes(X) == []


def test_n_below_d() -> None:
    found = codes(np.random.default_rng(3).normal(size=(5, 9)))
    assert found == ["few_rows"]  # and not one finding per dependent column


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        pytest.param(1e12, ["scale"], id="all data x 1e12"),
        pytest.param(1e-6, ["scale"], id="all data x 1e-6"),
        pytest.param(np.array([1, 1, 1e6]), ["scale_ratio"], id="one column x 1e6"),
        pytest.param(np.array([1, 1, 900]), [], id="one column x 900"),
        pytest.param(1e149, ["scale"], id="all data x 1e149"),
    ],
)
def test_scales(factor: object, expected: list[str]) -> None:
    found = findings(as_table(GOOD * factor))
    assert [finding.code for finding in found] == expected
    assert all("standardize=True" in finding.message for finding in found)


@pytest.mark.parametrize("n", [30, 1000, 30_000])
@pytest.mark.parametrize("cells", [1, 3])
def test_one_cell_1e6_is_outlying(n: int, cells: int) -> None:
    X = np.random.default_rng(4).normal(size=(n, 2))
    assert "outlying" not in codes(X)
    cells = min(cells, max(1, n // 100))
    X[:cells, 1] = 1e6
    (finding,) = [f for f in findings(as_table(X)) if f.code == "outlying"]
    assert finding.columns == ("x1",)
    assert "more weight by design" in finding.message


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 8), st.integers(1, 4)),
        elements=st.floats(-1e150, 1e150),
    )
)
@settings(deadline=None, max_examples=200)
def test_findings_never_fail(X: np.ndarray) -> None:
    table = as_table(X)
    assert all(finding.message.isprintable() for finding in findings(table))
    assert table.spread.condition_number >= 1.0 - 1e-9
    assert table.spread.scale_ratio >= 1.0


def test_blocks_of_rows_agree_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(5).lognormal(size=(100, 4)) + np.array([0, 10, 1e5, -3])
    monkeypatch.setattr("rescore.tables.findings.CELLS", 28)
    monkeypatch.setattr("rescore.tables.findings.FEWEST_ROWS", 7)
    monkeypatch.setattr("rescore.tables.findings.LINE", 12)
    width = as_table(X).spread
    assert width.reach == pytest.approx(np.abs(X - X.mean(axis=0)).max(axis=0), rel=1e-10)
    assert width.mean == pytest.approx(X.mean(axis=0), rel=1e-12)
    assert width.deviation == pytest.approx(X.std(axis=0), rel=1e-10)
    assert width.correlation == pytest.approx(np.corrcoef(X.T), abs=1e-10)
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(X.T))
    assert width.condition_number == pytest.approx(eigenvalues[-1] / eigenvalues[0])
    assert width.scale_ratio == pytest.approx(X.std(axis=0).max() / X.std(axis=0).min())
