"""A file is understood completely or refused with the place."""

import builtins
import gzip
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rescore.tables import files
from rescore.tables.convert import DataWarning
from rescore.tables.files import read_table
from rescore.tables.table import as_table

UTF8_BOM = b"\xef\xbb\xbf"

# name: (content, options, what the message says)
REFUSED: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "wrong delimiter ;": (b"a;b\n1;2\n", {"delimiter": ","}, r"delimiter=';'\."),
    "wrong delimiter tab": (b"a\tb\n1\t2\n", {"delimiter": ","}, r"delimiter='\\t'"),
    "wrong delimiter |": (b"a|b\n1|2\n", {"delimiter": ","}, r"delimiter='\|'"),
    "wrong delimiter blank": (b"a b\n1 2\n", {}, "delimiter=' '"),
    "wrong delimiter, no header": (
        b"1;2\n3;4\n",
        {"header": False, "delimiter": ","},
        "delimiter=';'",
    ),
    "wrong delimiter comma": (b"a,b\n1,2\n", {"delimiter": ";"}, "delimiter=','"),
    "wrong delimiter and decimal comma": (
        b"a;b\n1,5;2,5\n",
        {"delimiter": ","},
        "delimiter=';' and decimal=','",
    ),
    "decimal comma, delimiter ;": (
        b"a;b\n1,5;2\n",
        {"delimiter": ";"},
        "Line 2, column 'a': '1,5' is not a number.*decimal=','",
    ),
    "decimal comma, quoted": (b'a,b\n1,2\n"1,5",2\n', {}, "Line 3, column 'a'.*decimal=','"),
    "decimal comma, delimiter comma": (b"a,b\n1,5,2,5\n", {}, "Line 2 has 4.*decimal commas"),
    "decimal point where a comma was announced": (
        b"a;b\n1.5;2\n",
        {"delimiter": ";", "decimal": ","},
        r"'1\.5' is not a number.*decimal='\.'",
    ),
    "an extra field in the first row": (
        b"a,b\n1,2,3\n4,5\n",
        {},
        r"Line 2 has 3 field\(s\), but the header has 2",
    ),
    "an extra field in a later row": (b"a,b\n1,2\n3,4\n5,6,7\n", {}, "Line 4 has 3 field"),
    "an extra field in the last row": (b"a,b\n1,2\n3,4,5", {}, "Line 3 has 3 field"),
    "an extra field in every row": (b"a,b\n1,2,3\n4,5,6\n", {}, "Line 2 has 3.*row names"),
    "an extra empty field in every row": (b"a,b\n1,2,\n4,5,\n", {}, "Line 2 has 3 field"),
    "two extra fields in every row": (b"a,b,c\n1,2,3,4,5\n4,5,6,7,8\n", {}, "Line 2 has 5"),
    "an extra field in a row with quotes": (b'a,b\n"1",2\n3,4,5\n', {}, "Line 3 has 3 field"),
    "an extra field, no header": (b"1,2\n3,4,5\n", {"header": False}, "Line 2.*the first line"),
    "a missing field in the first row": (b"a,b\n1\n3,4\n", {}, "Line 2 has 1 field"),
    "a missing field in a later row": (b"a,b,c\n1,2,3\n3,4\n", {}, "Line 3 has 2 field"),
    "a missing field in a dropped column": (
        b"a,b\n1,u\n2\n",
        {"drop": ["b"]},
        "Line 3 has 1 field",
    ),
    "an empty line between": (b"a,b\n1,2\n\n3,4\n", {}, "Line 3 is empty"),
    "an empty line between, one column": (b"a\n1\n\n3\n", {}, "Line 3 is empty"),
    "a line of blanks, one column": (b"a\n1\n  \n3\n", {}, "first on line 3"),
    "an empty line first": (b"\na,b\n1,2\n", {}, "Line 1 is empty"),
    "lines after a header of two lines": (b'"a\nb",c\n1,2\n3,4,5\n', {}, "Line 4 has 3 field"),
    "no header": (b"1,2\n3,4\n", {}, "header=False"),
    "no header, decimal comma": (
        b"1,5;2\n3;4\n",
        {"delimiter": ";", "decimal": ","},
        "header=False",
    ),
    "a header announced as none": (
        b"a,b\n1,2\n",
        {"header": False},
        "Line 1, column 'x0': 'a'.*If line 1 is a header",
    ),
    "an index column Unnamed: 0": (
        b"Unnamed: 0,a\n0,1\n1,2\n",
        {},
        "Column 1 looks like a row index.*drop=.'Unnamed: 0'",
    ),
    "an index column without a name": (b",a\n0,1\n1,2\n", {}, "looks like a row index.*drop="),
    "a column without a name": (b"a,,b\n0,1,2\n", {}, "Column 2 has no name"),
    "header only": (b"a,b\n", {}, "header but no row"),
    "header only, no line end": (b"a,b", {}, "header but no row"),
    "empty": (b"", {}, "The file is empty"),
    "only line ends": (b"\n\n", {}, "The file is empty"),
    "only a BOM": (UTF8_BOM, {}, "The file is empty"),
    "UTF-16 with BOM": ("a,b\n1,2\n".encode("utf-16"), {}, "Line 1.*looks like utf-16"),
    "UTF-32 with BOM": ("a,b\n1,2\n".encode("utf-32"), {}, "looks like utf-32"),
    "UTF-16 without BOM": ("a,b\n1,2\n".encode("utf-16-le"), {}, "looks like UTF-16"),
    "latin-1": ("a,b\n1,2\nß,3\n".encode("latin-1"), {}, "Line 3.*looks like latin-1"),
    "an unknown encoding": (b"a\n1\n", {"encoding": "klingon"}, "no encoding 'klingon'"),
    "gz without the ending": (gzip.compress(b"a\n1\n"), {}, "is a gzip file"),
    "duplicate header names": (b"a,b,a\n1,2,3\n", {}, "'a' occur"),
    "non-numeric cell": (b"a,b\n1,2\n3,high\n", {}, "Line 3, column 'b': 'high' is not a number"),
    "non-numeric cell, hostile": (b"a,b\n1,\x1b[2J\n", {}, r"Line 2, column 'b': '\\x1b\[2J'"),
    "non-numeric cell, long": (b"a,b\n1," + b"z" * 10_000, {}, "'z{39}…' is not"),
    "True among numbers": (b"a,b\n1,2\n1,True\n", {}, "Line 3, column 'b': 'True' follows"),
    "numbers among True": (b"a,b\nTrue,2\n0,1\n", {}, "Line 3, column 'a': '0' follows"),
    "non-numeric cell beside True": (b"a,b\nTrue,x\n", {}, "column 'b': 'x' is not"),
    "NA among True": (b"a,b\nTrue,1\nNA,1\n", {}, "first on line 3: column 'a'"),
    "non-numeric cell, 1_000": (b"a,b\n1,1_000\n", {}, "'1_000' is not a number"),
    "non-numeric cell, other digits": ("a\n１\n".encode(), {}, "'１' is not a number"),
    "a quote that never ends": (b'a,b\n1,"2\n3,4\n', {}, "Line 3 is no record"),
    "empty cells": (
        b"a,b\n1,\n,4\n,5\n",
        {},
        r"3 cell.*first on line 2: column 'a' \(2 empty or NaN\), column 'b' \(1 empty or NaN\)",
    ),
    "NA": (b"a,b\n1,2\n3,NA\n", {}, r"first on line 3: column 'b' \(1 empty"),
    "inf": (b"a,b\n1,2\n3,-inf\n", {}, r"first on line 3: column 'b' \(1 infinite\)"),
    "a number beyond float64": (b"a,b\n1,2\n3,1e999\n", {}, r"column 'b' \(1 infinite\)"),
    "drop of an unknown column": (b"a,b\n1,2\n", {"drop": ["c"]}, "no column 'c' to drop"),
    "drop of everything": (b"a\n1\n", {"drop": ["a"]}, "Every column was dropped"),
    "delimiter of two characters": (b"a\n1\n", {"delimiter": "::"}, "one ASCII character"),
    "delimiter and decimal alike": (b"a\n1\n", {"decimal": ","}, "must differ"),
}


@pytest.mark.parametrize(("content", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_files_refused(
    content: bytes, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_table(file, **options)
    assert str(caught.value).isprintable()  # one line, nothing for the terminal to obey


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("block", [4, 1 << 24])
def test_a_wrong_line_is_found_wherever_it_is(
    quoted: bool, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rescore.tables.csv.BLOCK", block)
    for line in range(2, 12):
        rows = ['"1",2' if quoted else "1,2"] * 10
        rows[line - 2] = "1,2,3"
        file = tmp_path / "table.csv"
        file.write_text("\n".join(["a,b", *rows]))
        with pytest.raises(ValueError, match=f"Line {line} has 3"):
            read_table(file)


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="There is no file"):
        read_table(tmp_path / "none.csv")


@pytest.mark.parametrize("name", ["folder.csv", "folder.parquet", "folder"])
def test_a_directory(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match="is a directory"):
        read_table(tmp_path / name)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_no_permission(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / name
    file.write_bytes(b"a\n1\n")

    def refuse(*_: object) -> bytes:  # root may read everything, so the refusal is simulated
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ValueError, match="No permission to read"):
        read_table(file)


def test_an_unknown_ending(tmp_path: Path) -> None:
    (tmp_path / "table.xls").write_bytes(b"")
    with pytest.raises(ValueError, match="format is unknown"):
        read_table(tmp_path / "table.xls")


def test_drop_must_be_a_list(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"id,a\n1,2\n")
    with pytest.raises(TypeError, match=r"drop=\['id'\]"):
        read_table(tmp_path / "t.csv", drop="id")


@pytest.fixture(scope="module")
def packed_rows() -> bytes:
    digits = random.Random(0)
    return gzip.compress(
        ("a,b\n" + "".join(f"{digits.random()},2\n" for _ in range(100_000))).encode()
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(
            lambda raw: raw[: len(raw) // 2], r"truncated.*line \d{4,}", id="truncated gz"
        ),
        pytest.param(lambda raw: raw[:5], "truncated.*line 1", id="truncated in its header"),
        pytest.param(lambda raw: raw[:-4], "truncated", id="truncated in its last bytes"),
        pytest.param(lambda raw: raw[:-8] + bytes(8), "damaged", id="wrong checksum"),
        pytest.param(lambda _: b"a,b\n1,2\n", "no gzip file", id="not gz at all"),
    ],
)
def test_damaged_gz(damage: Any, message: str, packed_rows: bytes, tmp_path: Path) -> None:
    file = tmp_path / "table.csv.gz"
    file.write_bytes(damage(packed_rows))
    with pytest.raises(ValueError, match=message):
        read_table(file)


# name: (file, content, options, names, values)
ACCEPTED: dict[str, tuple[str, bytes, dict[str, Any], list[str], list[list[float]]]] = {
    "csv": ("t.csv", b"a,b\n1,2\n3,4\n", {}, ["a", "b"], [[1, 2], [3, 4]]),
    "no line end at the end": ("t.csv", b"a,b\n1,2", {}, ["a", "b"], [[1, 2]]),
    "empty lines at the end": ("t.csv", b"a\n1\n2\n\n\n", {}, ["a"], [[1], [2]]),
    "Windows line ends": ("t.csv", b"a,b\r\n1,2\r\n", {}, ["a", "b"], [[1, 2]]),
    "old Macintosh line ends": ("t.csv", b"a,b\r1,2\r", {}, ["a", "b"], [[1, 2]]),
    "BOM": ("t.csv", UTF8_BOM + b"a,b\n1,2\n", {}, ["a", "b"], [[1, 2]]),
    "upper case ending": ("T.CSV", b"a,b\n1,2\n", {}, ["a", "b"], [[1, 2]]),
    "tsv": ("t.tsv", b"a\tb\n1\t2\n", {}, ["a", "b"], [[1, 2]]),
    "csv.gz": ("t.csv.gz", gzip.compress(b"a,b\n1,2\n"), {}, ["a", "b"], [[1, 2]]),
    "tsv.gz": ("t.tsv.gz", gzip.compress(b"a\tb\n1\t2\n"), {}, ["a", "b"], [[1, 2]]),
    "delimiter and decimal comma": (
        "t.csv",
        b"a;b\n1,5;-2,25e3\n",
        {"delimiter": ";", "decimal": ","},
        ["a", "b"],
        [[1.5, -2250]],
    ),
    "no header": ("t.csv", b"1,2\n3,4\n", {"header": False}, ["x0", "x1"], [[1, 2], [3, 4]]),
    "a header with some numbers": ("t.csv", b"a,7\n1,2\n", {}, ["a", "7"], [[1, 2]]),
    "index dropped": ("t.csv", b",a\n0,1\n1,2\n", {"drop": ["Unnamed: 0"]}, ["a"], [[1], [2]]),
    "text dropped": ("t.csv", b"a,id,b\n1,u,2\n", {"drop": ["id"]}, ["a", "b"], [[1, 2]]),
    "duplicates dropped": ("t.csv", b"a,b,b\n1,2,3\n", {"drop": ["b"]}, ["a"], [[1]]),
    "quotes": ("t.csv", b'"a,1","b\nc"\n"1",2\n', {}, ["a,1", "b\nc"], [[1, 2]]),
    "latin-1 announced": (
        "t.csv",
        "ä,b\n1,2\n".encode("latin-1"),
        {"encoding": "latin-1"},
        ["ä", "b"],
        [[1, 2]],
    ),
    "UTF-16 announced": (
        "t.csv",
        "ä,b\n1,2\n".encode("utf-16"),
        {"encoding": "utf-16"},
        ["ä", "b"],
        [[1, 2]],
    ),
    "one column named a;b": ("t.csv", b"a;b\n1\n2\n", {}, ["a;b"], [[1], [2]]),
    "True and False": ("t.csv", b"a,b\nTrue,2\nFALSE,3\n", {}, ["a", "b"], [[1, 2], [0, 3]]),
    "blanks around numbers": ("t.csv", b"a,b\n 1 ,\t2\n", {}, ["a", "b"], [[1, 2]]),
    "a dot alone on one side": ("t.csv", b"a,b\n1.,.5\n", {}, ["a", "b"], [[1, 0.5]]),
}


@pytest.mark.parametrize(
    ("name", "content", "options", "names", "values"), ACCEPTED.values(), ids=ACCEPTED
)
def test_files_accepted(
    name: str,
    content: bytes,
    options: dict[str, Any],
    names: list[str],
    values: list[list[float]],
    tmp_path: Path,
) -> None:
    (tmp_path / name).write_bytes(content)
    frame = read_table(tmp_path / name, **options)
    assert list(frame.columns) == names
    assert frame.to_numpy().tolist() == values
    assert frame.to_numpy().dtype == np.float64


@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 4)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
    name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), min_size=1),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_pandas_writes_is_read_back_exactly(X: np.ndarray, name: str, tmp_path: Path) -> None:
    names = [f"v{j}{name}" for j in range(X.shape[1])]
    pd.DataFrame(X, columns=names).to_csv(tmp_path / "t.csv", index=False)
    frame = read_table(tmp_path / "t.csv")
    assert list(frame.columns) == names
    assert np.array_equal(frame.to_numpy(), X)


def test_integers_above_2_53_warn(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"a,b\n1,{2**53 + 1}\n2,3\n")
    with pytest.warns(DataWarning, match=r"1 number\(s\) in 'b'"):
        read_table(tmp_path / "t.csv")


def test_large_floats_do_not_warn(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1e300\n2.5\n")
    assert read_table(tmp_path / "t.csv")["a"].tolist() == [1e300, 2.5]


def write_parquet(file: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), file)
    return file


def test_parquet(tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "t.parquet", a=[1, 2], id=["u", "v"], b=[0.5, 1.5])
    frame = read_table(file, drop=["id"])
    assert list(frame.columns) == ["a", "b"]
    assert frame.to_numpy().tolist() == [[1, 0.5], [2, 1.5]]


@pytest.mark.parametrize(
    ("columns", "kind", "message"),
    [
        pytest.param({"a": ["u", "v"]}, TypeError, "Column 'a' holds String", id="text"),
        pytest.param({"a": [1, None]}, ValueError, r"'a' \(1 NaN\)", id="null"),
        pytest.param({"a": pa.array([], pa.float64())}, ValueError, r"0 sample", id="zero rows"),
        pytest.param({"__index_level_0__": [5, 6]}, ValueError, "drop=", id="stored index"),
    ],
)
def test_parquet_refused(
    columns: dict[str, Any], kind: type[Exception], message: str, tmp_path: Path
) -> None:
    file = write_parquet(tmp_path / "t.parquet", **columns)
    with pytest.raises(kind, match=message):
        read_table(file)


def test_parquet_folder_names_add_no_columns(tmp_path: Path) -> None:
    (tmp_path / "year=2020").mkdir()
    file = write_parquet(tmp_path / "year=2020" / "t.parquet", a=[1.0, 2.0])
    assert list(read_table(file).columns) == ["a"]


@pytest.mark.parametrize("keep", [0, 3, 100])
def test_truncated_parquet(keep: int, tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "t.parquet", a=[1.0, 2.0])
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ValueError, match="not a whole parquet file"):
        read_table(file)


def test_parquet_drop_unknown(tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "t.parquet", a=[1.0, 2.0])
    with pytest.raises(ValueError, match="no column 'z' to drop"):
        read_table(file, drop=["z"])


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_parquet(tmp_path / "t.parquet", a=[1.0, 2.0])
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "rescore\[parquet\]"'):
        read_table(file)


LABELLED = 'a,group,b\n1,NA,2\n3,"01, u",5\n4,,6\n'


def test_labels_are_kept_as_they_are_written(tmp_path):
    (tmp_path / "t.csv").write_text(LABELLED)
    frame = read_table(tmp_path / "t.csv", labels=["group"])
    assert list(frame) == ["a", "group", "b"]
    assert frame["group"].tolist() == ["NA", "01, u", ""]
    assert frame[["a", "b"]].to_numpy().tolist() == [[1, 2], [3, 5], [4, 6]]


@pytest.mark.parametrize(
    ("header", "labels", "words"),
    [
        ("a,group,b", ["g"], "no column 'g' of labels among 'a', 'group', 'b'"),
        ("a,group,group", ["group"], "more than one column 'group' of labels"),
    ],
)
def test_labels_that_are_not_one_column_are_refused(tmp_path, header, labels, words):
    (tmp_path / "t.csv").write_text(header + "\n1,u,2\n3,v,5\n")
    with pytest.raises(ValueError, match=words):
        read_table(tmp_path / "t.csv", labels=labels)


def test_a_packed_file_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    line = b"1," * 999 + b"1\n"
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a" + line + line * 100_000))
    monkeypatch.setattr(files, "most_bytes", lambda size: 10 * size)
    with pytest.raises(ValueError, match=r"would unpack to more than .* unpack it yourself"):
        files.read_table(tmp_path / "t.csv.gz")


def test_a_parquet_file_that_would_fill_the_memory_is_refused(tmp_path):
    column = pa.array(np.zeros(60_000_000, dtype=np.int8))
    pq.write_table(pa.table({"a": column}), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 1_000_000
    with pytest.raises(ValueError, match="would unpack to more than 268 MB"):
        files.read_table(tmp_path / "t.parquet")


def test_an_empty_name_is_refused_at_the_door():
    for X in (pd.DataFrame({"a": [1.0, 2], "": [2.0, 1]}), pa.table({"": [1.0, 2.0]})):
        with pytest.raises(ValueError, match="has an empty name"):
            as_table(X)


@pytest.mark.parametrize("block", [1, 7, 40, 1000])
def test_lines_read_some_at_a_time_are_the_lines_read_at_once(tmp_path, monkeypatch, block):
    rng = np.random.default_rng(block)
    frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "c"])
    frame.insert(1, "batch", [f"no {k % 4}" for k in range(30)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    at_once = read_table(tmp_path / "t.csv", labels=["batch"])
    monkeypatch.setattr("rescore.tables.csv.BLOCK", block)
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv", labels=["batch"]), at_once)
    np.testing.assert_array_equal(at_once[["a", "b", "c"]], frame[["a", "b", "c"]])
    assert list(at_once.columns) == ["a", "batch", "b", "c"]


def test_words_of_truth_are_no_numbers_however_far_down(tmp_path, monkeypatch):
    monkeypatch.setattr("rescore.tables.csv.BLOCK", 8)
    (tmp_path / "t.csv").write_text("a,b\n" + "true,1\n" * 9 + "3,1\n")
    with pytest.raises(ValueError, match="Line 11"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("a,b\n" + "1,1\n" * 9 + "x,1\n")
    with pytest.raises(ValueError, match="Line 11, column 'a': 'x'"):
        read_table(tmp_path / "t.csv")


LARGE_TEXTS = {
    "numbers": b"a,b\n" + b"1.5,2\n3,-4e2\n" * 40,
    "no line end": b"a,b\n1,2\n3,4",
    "words": b"a,b\n1,2\n" * 3 + b"5,x\n",
    "truth": b"a,b\n" + b"True,1\nFalse,2\n" * 9,
    "missing": b"a,b\n1,2\n,4\n",
    "ragged": b"a,b\n1,2\n3,4,5\n",
    "semicolons": b"a;b\n1;2\n3;4\n",
    "quoted": b'a,"b\nc"\n1,2\n3,4\n',
    "returns": b"a,b\r\n1,2\r\n",
    "accents": "a,é\n1,2\n3,4\n".encode(),
    "empty": b"\n\n \n",
    "a header alone": b"a,b\n\n",
}


@pytest.mark.filterwarnings("ignore:The fields of")
@pytest.mark.parametrize("name", LARGE_TEXTS)
@pytest.mark.parametrize("block", [3, 1 << 22])
def test_a_large_file_is_read_piece_by_piece_as_a_small_one_is(name, block, tmp_path, monkeypatch):
    file = tmp_path / "t.csv"
    file.write_bytes(LARGE_TEXTS[name])

    def read():
        try:
            return files.read_table(file).to_dict("list")
        except ValueError as error:
            return str(error)

    small = read()
    monkeypatch.setattr("rescore.tables.LARGE", 1)
    monkeypatch.setattr("rescore.tables.csv.BLOCK", 1 << 22)
    monkeypatch.setattr("rescore.tables.LargeText.find", found_in_blocks_of(block))
    assert read() == small
    is_plain = name not in ("quoted", "returns", "accents")
    assert isinstance(files.Source(file).raw, bytes) != is_plain


def found_in_blocks_of(size):
    """The search of a large text with a block of that size, across whose borders it must look."""
    import rescore.tables as room

    whole = room.LargeText.find

    def find(self, what, start=0, end=None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(room, "BLOCK", size)
            return whole(self, what, start, end)

    return find
