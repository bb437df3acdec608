"""`rescore fit` of many files: the graph, weights beside keys, and going on after an interrupt."""

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.scanning.passes import Passes

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N = 20_000


@pytest.fixture(autouse=True)
def _small_sample(monkeypatch):
    monkeypatch.setattr("rescore.out_of_core.SAMPLE", 3_000)
    monkeypatch.setattr("rescore.scanning.passes.PATIENCE", 1)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three Parquet files with a key: b = 2 a + noise, in groups whose noise differs."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    scale = np.where(rng.random((N, 1)) < 0.3, [0.3, 2.0, 1.0], [1.0, 0.4, 0.3])
    E = rng.normal(size=(N, 3)) * scale
    table = pd.DataFrame({"a": E[:, 0], "b": 2 * E[:, 0] + E[:, 1]})
    table["c"] = table["b"] + E[:, 2]
    table["id"] = [f"row-{i}" for i in range(N)]
    for k in range(3):
        part = table.iloc[k * 7_000 : (k + 1) * 7_000]
        pq.write_table(pa.Table.from_pandas(part, preserve_index=False), folder / f"{k}.parquet")
    return folder


def test_a_pattern_is_fitted_and_all_rows_get_their_weights(cli, files, tmp_path):
    found = cli("fit", files / "*.parquet", "-o", tmp_path / "run", "--keys", "id", "--json")
    assert found.exit_code == 0, found.output
    weights = pd.read_parquet(tmp_path / "run" / "weights.parquet")
    assert weights["id"].tolist() == [f"row-{i}" for i in range(N)]
    assert weights["weight"].sum() == pytest.approx(1)
    model = rs.ReScore().fit(rs.scan(files, keys=["id"]))
    ours = weights["weight"].to_numpy()[model.sample_weight_.index]
    theirs = model.sample_weight_.to_numpy()
    np.testing.assert_allclose(ours / ours.sum(), theirs, rtol=1e-9)
    saved = rs.load(tmp_path / "run")
    assert (saved.adjacency_matrix_ == model.adjacency_matrix_).all(axis=None)
    assert f"learned from {N:,} rows" in (tmp_path / "run" / "report.html").read_text()
    assert not (tmp_path / "run" / ".passes").exists()


def test_the_same_command_goes_on_after_an_interrupt(cli, cli_json, files, tmp_path, monkeypatch):
    compute, words = Passes._computed, ("fit", files, "-o", tmp_path / "run", "--keys", "id")
    made = []

    def third_is_interrupted(self, name, statistic):
        made.append(name)
        if len(made) == 3:
            raise KeyboardInterrupt
        return compute(self, name, statistic)

    monkeypatch.setattr(Passes, "_computed", third_is_interrupted)
    assert cli(*words).exit_code == 130
    monkeypatch.setattr(Passes, "_computed", compute)
    told = cli_json(*words)["passes"]
    assert [one["kept"] for one in told["passes"]][:3] == [True, True, False]
    assert told["rows"] == N


def test_bad_files_and_options_are_one_line(cli, files, tmp_path):
    bad = cli("fit", files)
    assert bad.exit_code == 2
    assert "'id'" in bad.stderr
    assert "no numbers" in bad.stderr
    assert cli("fit", files, "--drop", "id", "--compare").exit_code == 2
    assert cli("fit", files, "--drop", "id", "--memory", "1KB").exit_code == 2
    lost = cli("fit", files, "--drop", "id", "--cluster", "tcp://127.0.0.1:1")
    assert lost.exit_code == 1
    assert "no Dask scheduler" in lost.stderr


def test_weights_and_groups_are_columns_and_rows_with_gaps_are_left_out(cli, tmp_path):
    rng = np.random.default_rng(0)
    a, e = rng.normal(size=(2, 5_000))
    table = pd.DataFrame({"a": a, "b": 2 * a + e, "w": rng.integers(1, 3, 5_000)})
    table["place"] = np.where(np.arange(5_000) % 4 == 0, "south", "north")
    table.loc[::100, "b"] = np.nan
    table.to_parquet(tmp_path / "t.parquet")
    options = ("--memory", "1GB", "--weights", "w", "--groups", "place", "--missing", "drop")
    found = cli("fit", tmp_path / "t.parquet", "-o", tmp_path / "run", *options)
    assert found.exit_code == 0, found.output
    weights = pd.read_parquet(tmp_path / "run" / "weights.parquet")["weight"].to_numpy()
    assert ((weights == 0) == table["b"].isna()).all()
    assert list(rs.load(tmp_path / "run").adjacency_matrix_.columns) == ["a", "b"]
