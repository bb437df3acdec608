import copy
import csv
import errno
import os

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.exchange.saving import load
from rescore.graph.io import read_graph
from rescore.reports import folder as module
from rescore.reports.folder import write_run
from rescore.reports.run import Run
from rescore.staging import staged
from rescore.text import from_cell

FILES = {
    "adjacency.csv", "arrays.npz", "cpdag.csv", "edges.csv", "equations.json", "graph.dagitty",
    "graph.dot", "graph.graphml", "graph.json", "graph.png", "graph.svg", "history.csv",
    "model.json", "report.html", "run.json", "weights.csv",
}  # fmt: skip


def table(columns=("a", "b", "c"), index=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    X[:, 1] += 2 * X[:, 0]
    X[:, 2] -= 1.5 * X[:, 1]
    return pd.DataFrame(X, columns=list(columns), index=index)


@pytest.fixture(scope="module")
def model():
    return rs.ReScore(rs.Notears()).fit(table())


def test_every_graph_file_reads_back_exactly(tmp_path, model):
    written = write_run(tmp_path / "new" / "folder", Run(model))
    folder = tmp_path / "new" / "folder"
    assert set(written) == set(os.listdir(folder)) == FILES
    for name in ("adjacency.csv", "graph.json", "graph.graphml"):
        pd.testing.assert_frame_equal(read_graph(folder / name), model.adjacency_matrix_)
    pd.testing.assert_frame_equal(read_graph(folder / "cpdag.csv"), model.cpdag_.astype(float))
    pd.testing.assert_frame_equal(load(folder).adjacency_matrix_, model.adjacency_matrix_)
    pd.testing.assert_frame_equal(load(folder).cpdag_, model.cpdag_)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("some_open", [True, False])
def test_dagitty_holds_the_class_or_the_coefficients_of_a_dag(tmp_path, model, some_open):
    W = model.adjacency_matrix_
    told = copy.copy(model)
    told.cpdag_ = ((W != 0) | (W.T != 0) if some_open else W != 0).astype(np.int8)
    write_run(tmp_path, Run(told))
    expected = told.cpdag_.astype(float) if some_open else W
    pd.testing.assert_frame_equal(read_graph(tmp_path / "graph.dagitty"), expected)


@pytest.mark.usefixtures("undrawn")
def test_weights_and_history_are_exact(tmp_path):
    labels = ["=1+1", "@x", "-2", "a,b", 'q"'] + [f"r{k}" for k in range(115)]
    model = rs.ReScore(rs.Notears()).fit(
        table(index=labels), sample_weight=np.r_[0.0, np.ones(119)]
    )
    write_run(tmp_path, Run(model))
    header, *rows = csv.reader((tmp_path / "weights.csv").read_text().splitlines())
    assert header == ["row", "weight", "loss"]
    # Where a formula could start, a spreadsheet is told that it is text.
    assert [row[0] for row in rows][:5] == ["'=1+1", "'@x", "-2", "a,b", 'q"']
    assert [from_cell(row[0]) for row in rows] == labels
    assert [float(row[1]) for row in rows] == model.sample_weight_.tolist()
    assert rows[0][2] == ""
    losses = model.row_losses_.iloc[1:]
    assert [float(row[2]) for row in rows[1:]] == losses.tolist()
    header, *rows = csv.reader((tmp_path / "history.csv").read_text().splitlines())
    objective = [float(row[header.index("objective")]) for row in rows]
    assert objective == model.history_["objective"].tolist()


ODD_NAMES = ["=cmd()", "+1-2", "@SUM(A1)", "-x", "'=1", "''@", "\t=1", "\r=1", "\n=1", "-2.5"]


@pytest.mark.usefixtures("undrawn")
def test_no_name_is_a_formula_in_any_csv_file_and_all_read_back(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, len(ODD_NAMES))).cumsum(axis=1), columns=ODD_NAMES)
    X.index = [f"=row{k}" for k in range(60)]
    model = rs.Linear().fit(X)
    run = Run(model)
    write_run(tmp_path, run)
    module.write_stability(tmp_path, run, rs.bootstrap(model, X, resamples=2))
    for path in tmp_path.glob("*.csv"):
        with path.open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        risky = [cell for cell in cells if cell[:1] in tuple("=+-@\t\r\n")]
        assert all(float(cell) is not None for cell in risky), path.name
    for name in ("adjacency.csv", "graph.json", "graph.graphml", "graph.dagitty"):
        found = read_graph(tmp_path / name)
        assert list(found.columns) == ODD_NAMES
    assert list(load(tmp_path).adjacency_matrix_.columns) == ODD_NAMES


@pytest.mark.usefixtures("undrawn")
def test_numbers_as_names_become_text_unless_they_clash(tmp_path):
    write_run(tmp_path, Run(rs.Notears().fit(table([1, 2, 3]))))
    assert list(read_graph(tmp_path / "graph.json")) == ["1", "2", "3"]
    with pytest.raises(ValueError, match="more than once"):
        write_run(tmp_path, Run(rs.Notears().fit(table([1, "1", 2]))))


def test_a_full_disk_leaves_the_folder_as_it_was(tmp_path, model, monkeypatch):
    (tmp_path / "graph.json").write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "write_model", full)
    with pytest.raises(OSError, match="No space left on device"):
        write_run(tmp_path, Run(model))
    assert os.listdir(tmp_path) == ["graph.json"]
    assert (tmp_path / "graph.json").read_text() == "old"


@pytest.mark.usefixtures("undrawn")
def test_old_scores_do_not_survive_a_run_without_scores(tmp_path, model):
    scores = rs.evaluate(model.adjacency_matrix_, model)
    assert "scores.json" in write_run(tmp_path, Run(model, scores=scores))
    write_run(tmp_path, Run(model))
    assert not (tmp_path / "scores.json").exists()


def test_a_link_in_the_folder_is_replaced_not_followed(tmp_path):
    outside = tmp_path / "precious.txt"
    outside.write_text("precious")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "a.txt").symlink_to(outside)
    with staged(folder) as scratch:
        (scratch / "a.txt").write_text("new")
    assert outside.read_text() == "precious"
    assert (folder / "a.txt").read_text() == "new"


def test_a_column_called_like_the_constant_loses_only_the_file_that_cannot_hold_it(tmp_path):
    model = rs.Linear().fit(table(columns=("(Intercept)", "b", "c")))
    assert set(write_run(tmp_path, Run(model))) == FILES - {"equations.json"}
