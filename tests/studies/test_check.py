import dataclasses

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.studies.first_graph import sortability

COLUMNS = ["code", "severity", "columns", "seen", "remedy"]


@pytest.fixture
def frame(chain):
    return pd.DataFrame(chain, columns=list("abcde"))


def severities(found):
    """All but what relations look like, which has tests of its own."""
    return {one.code: one.severity for one in found.findings if one.code != "relations"}


def test_clean_rows_have_notes_alone(frame):
    before = frame.copy()
    found = rs.check(frame)
    assert found.ok
    assert severities(found) == {"sortable": "note"}
    pd.testing.assert_frame_equal(frame, before)


def test_the_result_is_a_table_of_what_was_seen_and_what_to_do(frame):
    found = rs.check(frame.assign(f=1.0, g=2 * frame["a"]))
    assert list(found.table) == COLUMNS
    assert found.table["code"].tolist()[:2] == ["constant", "duplicated"]
    assert found.table["columns"].tolist()[:2] == [("f",), ("a", "g")]
    assert found.table["remedy"].str.len().gt(0).all()
    assert str(found).startswith("2 warnings, 2 notes.\nwarning constant: Constant column(s) 'f'")
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.findings = ()


def test_nothing_found_has_an_empty_table():
    rng = np.random.default_rng(0)
    found = rs.check(rng.normal(size=(200, 2)) * [1.0, 1.2])
    assert found.findings == ()
    assert list(found.table) == COLUMNS
    assert str(found) == "Nothing found."


def spoilt(frame, change):
    frame = frame.copy()
    return change(frame)


def put(row, column, value):
    def change(frame):
        frame.loc[row, column] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("change", "code", "severity"),
    [
        (put(3, "a", np.nan), "missing", "error"),
        (put(3, "a", np.inf), "infinite", "error"),
        (put(3, "a", 1e200), "unreadable", "error"),
        (put(3, "a", 1e6), "outlying", "warning"),
        (lambda f: f.assign(t="text"), "constant_words", "error"),
        (lambda f: f.assign(t=["u", "v"] * (len(f) // 2)), "categories", "error"),
        (lambda f: f.assign(t=[f"w{i % 40}" for i in range(len(f))]), "free_text", "error"),
        (lambda f: f.assign(t=[f"P{i}" for i in range(len(f))]), "labels", "error"),
        (lambda f: f.assign(t=[f"{i} kg" for i in range(len(f))]), "units", "error"),
        (lambda f: f.assign(t=pd.Timestamp("2020-01-01")), "dates", "error"),
        (lambda f: f.astype({"a": "category"}), "not_numbers", "error"),
        (lambda f: f.assign(t=np.arange(len(f))), "row_numbers", "warning"),
        (lambda f: f.assign(a=f["a"].astype("Float64").mask(f["a"] > 2)), "missing", "error"),
        (lambda f: f.rename(columns={"a": "b"}), "unreadable", "error"),
        (lambda f: f.iloc[:1], "unreadable", "error"),
        (lambda f: f.iloc[:, :0], "unreadable", "error"),
        (lambda f: f.iloc[:4], "few_rows", "warning"),
        (lambda f: f.iloc[:30], "small_sample", "warning"),
        (lambda f: f.assign(s=f["a"] + f["c"]), "collinear", "warning"),
        (lambda f: f.assign(s=f["a"] + f["c"] + 1e-4 * f["e"]), "collinear", "warning"),
        (lambda f: f.assign(b=f["b"] * 1e6), "scale_ratio", "warning"),
        (lambda f: f * 1e9, "scale", "warning"),
        (lambda f: f.assign(b=f["b"] * 20), "unequal_noise", "warning"),
        (lambda f: f / f.std(ddof=0), "equal_scales", "note"),
        (lambda f: pd.concat([f, f.iloc[:9]]), "repeated_rows", "note"),
        (lambda f: pd.concat([f, f]), "repeated_rows", "warning"),
        (lambda f: f.assign(s=f["e"] > 0), "discrete", "note"),
        (lambda f: f.assign(i=2**60 + np.arange(len(f))), "rounded", "warning"),
    ],
)
def test_each_fault_is_found_and_graded(frame, change, code, severity):
    assert severities(rs.check(frame)) == {"sortable": "note"}
    found = rs.check(spoilt(frame, change))
    assert severities(found)[code] == severity
    assert found.ok == (severity != "error")


def test_a_column_all_but_determined_by_others_is_named(frame):
    noise = np.random.default_rng(0).normal(size=len(frame))
    found = rs.check(frame.assign(s=frame["a"] + frame["c"] + 1e-3 * noise))
    (named,) = (one.columns for one in found.findings if one.code == "nearly_collinear")
    assert set(named) == {"a", "c", "s"}


def test_all_faults_are_told_at_once_and_the_rest_is_still_looked_at(frame):
    bad = frame.assign(t="x", f=1.0)
    bad.loc[[1, 2], "a"] = np.nan
    bad.loc[7, "b"] = -np.inf
    found = rs.check(bad)
    codes = ["constant_words", "infinite", "missing", "constant"]
    assert [one.code for one in found.findings][:4] == codes
    assert found.findings[1].columns == ("b",)
    assert "2 cell(s) in 2 of 300 rows are missing: 'a' (2)" in found.findings[2].seen


@pytest.mark.parametrize(
    "X", ["data.csv", None, 3, [[1, 2], [3]], np.zeros(3), [], {"a": [1]}, np.ones((3, 2), "U3"),
          np.ma.masked_equal([[1, 2], [3, 4]], 2), pd.DataFrame(index=[0, 1])],
)  # fmt: skip
def test_whatever_a_fit_refuses_is_an_error_and_nothing_raises(X):
    with pytest.raises((ValueError, TypeError)):
        rs.Linear().fit(X)
    found = rs.check(X)
    assert not found.ok
    assert found.findings[0].severity == "error"
    assert found.findings[0].seen


def test_arrays_are_looked_at_by_column(chain):
    X = chain.copy()
    X[0, 2] = np.nan
    assert rs.check(X).findings[0].columns == ("x2",)


@pytest.mark.parametrize("weight", [[1.0], [-1.0] * 300, [0.0] * 300, ["a"] * 300])
def test_bad_weights_are_an_error(frame, weight):
    assert severities(rs.check(frame, weight))["sample_weight"] == "error"


@pytest.mark.parametrize("groups", [["u"], ["u"] * 299 + [None], ["u"] * 299 + ["alone"]])
def test_bad_groups_are_an_error(frame, groups):
    assert severities(rs.check(frame, groups=groups))["groups"] == "error"


def test_rows_of_weight_zero_are_not_there(frame):
    spoilt = pd.concat([frame, pd.DataFrame(1e6, index=range(5), columns=frame.columns)])
    weight = np.r_[np.ones(300), np.zeros(5)]
    assert severities(rs.check(spoilt, weight)) == severities(rs.check(frame))
    assert rs.check(frame, np.r_[1, np.zeros(299)]) is not None


def test_groups_whose_noise_differs_are_found_given_or_not():
    rng = np.random.default_rng(100)
    X = rng.normal(size=(600, 4))
    X[450:] *= [3.0, 0.3, 3.0, 0.3]
    label = np.arange(600) >= 450
    found = severities(rs.check(X, groups=label))
    assert found["heterogeneous"] == "warning"
    assert found["groups_differ"] == "warning"
    assert "groups_differ" not in severities(rs.check(X, groups=rng.permutation(label)))


def test_homogeneous_rows_are_seldom_accused():
    """Chance alone, whatever the distribution: at most one of twenty for each alarm."""
    accused = []
    for seed in range(100, 120):
        rng = np.random.default_rng(seed)
        X = rng.laplace(size=(300, 5)) if seed % 2 else rng.normal(size=(300, 5))
        accused += severities(rs.check(X, groups=rng.integers(3, size=300)))
    assert accused.count("heterogeneous") <= 1
    assert accused.count("groups_differ") <= 1


def test_sortability_agrees_with_counting_paths():
    import networkx as nx

    rng = np.random.default_rng(100)
    for _ in range(20):
        edges = np.triu(rng.random((6, 6)) < 0.4, k=1)
        values = rng.integers(0, 4, size=6).astype(float)
        graph = nx.DiGraph(zip(*np.nonzero(edges), strict=True))
        pairs = [(i, j) for i in graph for j in nx.descendants(graph, i)]
        scores = [0.5 if values[i] == values[j] else float(values[i] < values[j]) for i, j in pairs]
        expected = np.mean(scores) if pairs else np.nan
        assert sortability(edges, values) == pytest.approx(expected, nan_ok=True)


def test_a_small_group_is_told(frame):
    found = rs.check(frame, groups=["few"] * 4 + ["many"] * 296)
    assert severities(found)["small_groups"] == "warning"
