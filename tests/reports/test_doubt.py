import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.reports.folder import rewrite_report, write_run, write_stability
from rescore.reports.page import render_page
from rescore.reports.run import Run, read_run
from rescore.reports.run_tables import NOTEWORTHY, doubts
from rescore.text import from_cell


def table(columns=("a", "<b>", "=c"), index=None):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[:, 1] += 0.8 * X[:, 0]
    X[:, 2] += 0.8 * X[:, 1]
    return pd.DataFrame(X, columns=list(columns), index=index)


@pytest.fixture(scope="module")
def model():
    return rs.ReScore(rs.Linear(), tau=0.5).fit(table())


def test_lines_by_brute_force(model):
    rng = np.random.default_rng(1)
    P = rng.random((3, 3)) / 2 * ~np.eye(3, dtype=bool)
    W = model.adjacency_matrix_.to_numpy()
    lines = {(line["cause"], line["effect"]): line for line in doubts(Run(model), P)}
    names = list(table().columns)
    for i, j in np.ndindex(3, 3):
        line = lines.pop((names[i], names[j]), None)
        if W[i, j] == 0 and P[i, j] < NOTEWORTHY:
            assert line is None
            continue
        assert line["in_graph"] == (W[i, j] != 0)
        assert line["probability"] == P[i, j]
        assert line["adjacent"] == pytest.approx(P[i, j] + P[j, i])
        assert line["direction"] == pytest.approx(P[i, j] / (P[i, j] + P[j, i]))
    assert not lines
    shares = [line["probability"] for line in doubts(Run(model), P)]
    assert shares == sorted(shares)


def test_an_edge_of_the_graph_that_no_resample_has_is_listed_first(model):
    first = doubts(Run(model), np.zeros((3, 3)))[0]
    assert (first["probability"], first["direction"], first["in_graph"]) == (0, 0, True)


def test_the_folder_gains_tables_and_a_report_that_can_be_made_again(model, tmp_path):
    run = Run(model, source="x.csv")
    before = write_run(tmp_path, run)
    found = rs.bootstrap(model, table(), resamples=10)
    added = write_stability(tmp_path, run, found)
    assert added == ["edges.csv", "report.html", "row_stability.csv", "run.json", "stability.csv"]
    assert {*before, *added} == {path.name for path in tmp_path.iterdir()}
    back = pd.read_csv(
        tmp_path / "stability.csv", converters={"cause": from_cell, "effect": from_cell}
    )
    pd.testing.assert_frame_equal(back, found.table)
    written = (tmp_path / "report.html").read_text()
    assert found.summary in written
    assert "&lt;b&gt;" in written
    rewrite_report(tmp_path)
    assert (tmp_path / "report.html").read_text() == written
    back = read_run(tmp_path)
    np.testing.assert_array_equal(back.stability, found.edges)
    assert back.resampled == found.summary


@pytest.mark.usefixtures("undrawn")
def test_labels_that_repeat_stay_in_their_rows(tmp_path):
    X = table(index=["=u", "v,w"] * 20)
    model = rs.ReScore(rs.Linear(), tau=0.5).fit(X)
    found = rs.bootstrap(model, X, resamples=3)
    write_stability(tmp_path, Run(model), found)
    back = pd.read_csv(tmp_path / "row_stability.csv", index_col="row").rename(index=from_cell)
    pd.testing.assert_frame_equal(back, found.row_weights, check_names=False)


@pytest.mark.usefixtures("undrawn")
def test_a_new_run_removes_the_tables_of_an_earlier_one(model, tmp_path):
    write_stability(tmp_path, Run(model), rs.bootstrap(model, table(), resamples=3))
    write_run(tmp_path, Run(model))
    assert not (tmp_path / "stability.csv").exists()
    assert not (tmp_path / "row_stability.csv").exists()


def test_a_run_without_resamples_has_no_such_section(model):
    assert "How sure is each edge?" not in render_page(Run(model))
