"""Rows read in passes: the same answer from wherever they come, or a sentence why not."""

import itertools
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import rescore as rs
from rescore.moments import Rows
from rescore.protocols import Status
from rescore.scanning import passes as passes_module
from rescore.scanning import sources
from rescore.scanning.passes import Passes
from rescore.scanning.statistics import Count, Stretches
from rescore.tables.table import as_table
from rescore.weightings.refined import ByMechanisms
from rescore.weightings.regimes import Mechanisms

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")

N, D = 20_000, 4


def linear_rows(n=N, groups=False, seed=0):
    """x0 -> x1 -> x3, x2 -> x3; two groups whose noise differs, if asked for."""
    rng = np.random.default_rng(seed)
    scale = np.ones((n, D))
    if groups:
        scale = np.where(rng.random((n, 1)) < 0.3, [0.3, 2.0, 1.0, 0.4], [1.0, 0.5, 0.4, 2.0])
    E = rng.normal(size=(n, D)) * scale
    X = E.copy()
    X[:, 1] += 1.5 * X[:, 0]
    X[:, 3] += X[:, 2] - 0.8 * X[:, 1]
    return pd.DataFrame(X, columns=["a", "b", "c", "d"])


@pytest.fixture(scope="module")
def table():
    return linear_rows(groups=True)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 256 rows and tasks of a few, so that a small table has many."""
    monkeypatch.setattr(sources, "CELLS", 2**10)
    monkeypatch.setattr(sources, "SPAN", 2**12)


def written(frame, folder, cuts=(0, 7_001, 7_002, 15_000, N), group=1_000):
    """The rows in several Parquet files, cut anywhere."""
    folder.mkdir(exist_ok=True)
    for k, (low, high) in enumerate(itertools.pairwise(cuts)):
        part = pa.Table.from_pandas(frame.iloc[low:high], preserve_index=False)
        pq.write_table(part, folder / f"part-{k}.parquet", row_group_size=group)
    return folder


def alike(one, other):
    assert (one.adjacency_matrix_ == other.adjacency_matrix_).all(axis=None)
    assert (one.cpdag_ == other.cpdag_).all(axis=None)
    assert (one.sample_weight_ == other.sample_weight_).all()
    assert (one.noise_variance_ == other.noise_variance_).all()


def test_any_partitioning_gives_the_same_to_the_last_bit(table, tmp_path, small_blocks):
    model = rs.ReScore().fit(rs.scan(table, jobs=1))
    assert model.diagnostics_["weighting"]["groups"] == 2
    folder = written(table, tmp_path / "many")
    whole = written(table, tmp_path / "one", (0, N), 100_000) / "part-0.parquet"
    dataset = ds.dataset(sorted(map(str, folder.glob("*.parquet"))))
    for source in (folder, str(folder / "*.parquet"), whole, dataset):
        alike(rs.ReScore().fit(rs.scan(source, jobs=3)), model)
    alike(rs.ReScore().fit(dataset), model)


def test_dask_partitions_give_the_same(table, small_blocks):
    dd = pytest.importorskip("dask.dataframe")
    model = rs.Linear().fit(rs.scan(table))
    alike(rs.Linear().fit(dd.from_pandas(table, npartitions=7)), model)


def test_workers_of_a_cluster_give_the_same(table, tmp_path, small_blocks):
    distributed = pytest.importorskip("distributed")
    folder = written(table, tmp_path / "many")
    model = rs.ReScore().fit(rs.scan(table))
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    for many in (1, 2, 4):
        with distributed.Client(n_workers=many, **options) as client:
            alike(rs.ReScore().fit(rs.scan(folder, client=client)), model)


def test_few_rows_are_fitted_as_in_memory(tmp_path):
    table = linear_rows(3_000, groups=True)
    folder = written(table, tmp_path / "few", (0, 1_000, 3_000))
    for model in (rs.ReScore(), rs.Linear(), rs.Additive()):
        here, there = model.fit(table), type(model)().fit(rs.scan(folder))
        assert (here.adjacency_matrix_ == there.adjacency_matrix_).all(axis=None)
        assert (here.sample_weight_.to_numpy() == there.sample_weight_.to_numpy()).all()


@pytest.mark.parametrize(
    "model", [rs.Linear(), rs.ReScore(), rs.Additive(), rs.ReScore(rs.Linear(standardize=True))]
)
def test_many_rows_in_memory_are_read_in_the_same_passes(model, table, tmp_path):
    here = clone(model).fit(table.set_index(table.index[::-1]))
    folder = written(table, tmp_path / "parts")
    there = clone(model).fit(rs.scan(folder))
    assert (here.adjacency_matrix_ == there.adjacency_matrix_).all(axis=None)
    rs.write_weights(there, rs.scan(folder), tmp_path / "weights.parquet")
    weights = pq.read_table(tmp_path / "weights.parquet").column("weight").to_numpy()
    np.testing.assert_allclose(here.sample_weight_, weights, rtol=1e-9)
    assert here.sample_weight_.sum() == pytest.approx(1)
    assert (here.losses_.index == table.index[::-1]).all()
    assert here.losses_.shape == table.shape
    assert here.cell_weight_.shape == table.shape
    assert (here.sample_weight_.index == table.index[::-1]).all()
    assert f"{N:,} rows were read" in here.diagnostics_["table"]["read"]


@pytest.mark.parametrize("standardize", [False, True])
def test_many_rows_agree_with_linear_of_whole_rows(standardize, small_blocks, monkeypatch):
    monkeypatch.setattr(sources, "SAMPLE", N)
    table = linear_rows()
    here = rs.Linear(standardize=standardize).fit(table)
    there = rs.Linear(standardize=standardize).fit(rs.scan(table))
    np.testing.assert_allclose(here.adjacency_matrix_, there.adjacency_matrix_, rtol=1e-9)
    np.testing.assert_allclose(here.noise_variance_, there.noise_variance_, rtol=1e-9)
    np.testing.assert_allclose(here.equations_.offset, there.equations_.offset, atol=1e-9)
    np.testing.assert_allclose(here.standard_errors_, there.standard_errors_, rtol=0.1)
    assert (here.cpdag_ == there.cpdag_).all(axis=None)
    assert there.diagnostics_["passes"]["count"] == 1


def test_many_rows_in_groups_are_near_the_fit_of_whole_rows(table, monkeypatch):
    monkeypatch.setattr(sources, "SAMPLE", N)
    here, there = rs.ReScore().fit(table), rs.ReScore().fit(rs.scan(table))
    assert ((here.adjacency_matrix_ != 0) == (there.adjacency_matrix_ != 0)).all(axis=None)
    np.testing.assert_allclose(here.adjacency_matrix_, there.adjacency_matrix_, atol=2e-3)
    np.testing.assert_allclose(here.noise_variance_, there.noise_variance_, rtol=0.02)
    told = there.diagnostics_["passes"]
    assert told["count"] <= 15
    assert f"{N:,} rows were read in {told['count']} passes" in told["summary"]
    before = here.diagnostics_["weighting"]["share_before"]
    np.testing.assert_allclose(there.diagnostics_["weighting"]["share_before"], before, atol=0.01)
    effective = here.diagnostics_["effective_rows"]
    assert there.diagnostics_["effective_rows"] == pytest.approx(effective, rel=0.01)


def test_rows_of_another_model_are_set_aside(small_blocks, monkeypatch):
    monkeypatch.setattr("rescore.out_of_core.SAMPLE", 2_000)
    ours, theirs = (
        rs.simulate(nodes=8, degree=2, samples=n, random_state=seed)
        for n, seed in ((10_000, 3), (400, 4))
    )
    dirty = np.vstack([ours.X.to_numpy(), theirs.X.to_numpy()])
    model = rs.ReScore().fit(rs.scan(pd.DataFrame(dirty, columns=ours.X.columns)))
    assert rs.evaluate(ours.truth, model).shd == 0
    told = model.diagnostics_["weighting"]
    assert told["noise"] == [False, True]
    assert told["noise_rows"] == pytest.approx(400, rel=0.1)
    assert model.diagnostics_["noise"]["hypothesis"] == "equal"


def test_smooth_functions_in_passes(small_blocks):
    rng = np.random.default_rng(0)
    x, e, f = rng.normal(size=(3, N))
    y = np.sin(2 * x) + 0.4 * e * np.where(np.arange(N) % 3 == 0, 3, 1)
    table = pd.DataFrame({"z": y**2 / 2 + 0.3 * f, "x": x, "y": y})
    for model in (rs.Additive(), rs.ReScore(rs.Additive())):
        found = model.fit(rs.scan(table))
        assert set(found.causal_graph_.edges) == {("x", "y"), ("y", "z")}
        assert found.diagnostics_["passes"]["count"] <= 15


def test_moments_of_groups_are_those_of_the_rows(table, small_blocks):
    X = table.to_numpy()
    groups = [
        Mechanisms(3.0, np.full(D, level), np.zeros((D, D)), np.full(D, 4.0)) for level in (-1, 1)
    ]
    rule = ByMechanisms(tuple(groups), np.ones(D, dtype=bool))
    sums = Passes(rs.scan(table)).made("groups", Count(rule))
    reference = Rows(X).group_moments(rule(X)[0])
    for ours, theirs in zip(sums.moments, reference, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sums.likelihood, rule(X)[1].sum())


def test_passes_done_are_kept_and_not_made_again(table, tmp_path, monkeypatch):
    undisturbed = rs.ReScore().fit(rs.scan(table))
    folder, kept = written(table, tmp_path / "many"), tmp_path / "kept"
    compute, made = Passes._computed, []

    def third_is_interrupted(self, name, statistic):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(name)
        return compute(self, name, statistic)

    monkeypatch.setattr(Passes, "_computed", third_is_interrupted)
    with pytest.raises(KeyboardInterrupt):
        rs.ReScore().fit(rs.scan(folder, keep=kept))
    monkeypatch.setattr(Passes, "_computed", compute)
    resumed = rs.ReScore().fit(rs.scan(folder, keep=kept))
    alike(resumed, undisturbed)
    told = resumed.diagnostics_["passes"]["passes"]
    assert [one["kept"] for one in told] == [True, True] + [False] * (len(told) - 2)
    again = rs.ReScore().fit(rs.scan(folder, keep=kept)).diagnostics_["passes"]["passes"]
    assert all(one["kept"] for one in again)
    for file in kept.glob("pass-*.npz"):  # a damaged one is made again
        file.write_bytes(file.read_bytes()[:100])
    alike(rs.ReScore().fit(rs.scan(folder, keep=kept)), undisturbed)


def test_a_text_file_is_read_in_chunks(tmp_path, monkeypatch):
    from rescore.scanning import files

    monkeypatch.setattr(files, "CHUNK", 2**16)
    table = linear_rows(5_000)
    table.to_csv(tmp_path / "t.csv", index=False)
    found = rs.scan(tmp_path / "t.csv")
    assert len(found.parts) > 3
    ours = rs.Linear().fit(found)
    assert (ours.adjacency_matrix_ == rs.Linear().fit(table).adjacency_matrix_).all(axis=None)
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3,word\n")
    with pytest.raises(ValueError, match=r"bad\.csv.*word"):
        rs.scan(tmp_path / "bad.csv")


def broken(folder, what):
    """One part of three spoilt; the words that its error must have."""
    table, last = linear_rows(3_000), folder / "part-2.parquet"
    written(table, folder, (0, 1_000, 2_000, 3_000), 400)
    part = table.iloc[2_000:]
    if what == "other columns":
        part = part.rename(columns={"d": "e"})
        words = r"part-2.*not those of.*part-0.*'d' missing, 'e' besides"
    elif what == "words":
        part, words = part.assign(d="word"), r"'d' of '.*part-2.*no number"
    elif what == "NaN":
        part = part.assign(c=np.where(np.arange(1_000) == 900, np.nan, part["c"]))
        words = r"'c' is NaN.*part-2\.parquet', row group 2, row 100"
    elif what == "infinite":
        part = part.assign(c=np.where(np.arange(1_000) == 401, np.inf, part["c"]))
        words = r"'c' is NaN, missing or infinite.*row group 1, row 1 "
    pq.write_table(pa.Table.from_pandas(part, preserve_index=False), last, row_group_size=400)
    if what == "truncated":
        last.write_bytes(last.read_bytes()[:-20])
        words = r"part-2\.parquet' is not a whole Parquet file"
    elif what == "empty":
        last.write_bytes(b"")
        words = r"part-2\.parquet' is not a whole Parquet file"
    elif what == "damaged":
        content = bytearray(last.read_bytes())
        content[4:200] = b"\xff" * 196
        last.write_bytes(content)
        words = r"part-2\.parquet', row group 0 cannot be read"
    return words


SEEN_AT_ONCE = {"other columns", "words", "truncated", "empty"}


@pytest.mark.parametrize("what", [*sorted(SEEN_AT_ONCE), "NaN", "infinite", "damaged"])
def test_a_bad_part_is_named(what, tmp_path):
    words = broken(tmp_path / "data", what)
    if what in SEEN_AT_ONCE:  # before anything is read
        with pytest.raises(ValueError, match=words):
            rs.scan(tmp_path / "data")
    else:
        with pytest.raises(ValueError, match=words):
            rs.Linear().fit(rs.scan(tmp_path / "data"))


def test_parts_in_another_order_of_columns_or_without_rows_are_aligned(tmp_path):
    table = linear_rows(3_000)
    folder = written(table, tmp_path / "data", (0, 1_000, 2_000, 3_000))
    turned = pa.Table.from_pandas(table.iloc[1_000:2_000, ::-1], preserve_index=False)
    pq.write_table(turned, folder / "part-1.parquet")
    pq.write_table(turned.slice(0, 0), folder / "part-1b.parquet")
    found = rs.Linear().fit(rs.scan(folder))
    assert (found.adjacency_matrix_ == rs.Linear().fit(table).adjacency_matrix_).all(axis=None)


def test_a_file_that_changes_between_passes_is_named(table, tmp_path, monkeypatch):
    folder = written(table, tmp_path / "data")
    compute = Passes._computed

    def changed_after_the_first(self, name, statistic):
        found = compute(self, name, statistic)
        written(table.iloc[::-1], folder)
        return found

    monkeypatch.setattr(Passes, "_computed", changed_after_the_first)
    with pytest.raises(ValueError, match=r"part-\d\.parquet', row group \d: the file changed"):
        rs.ReScore().fit(rs.scan(folder))


def test_what_is_missing_is_said(tmp_path, table):
    with pytest.raises(ValueError, match="There is no file"):
        rs.scan(tmp_path / "nothing*.parquet")
    (tmp_path / "bare").mkdir()
    with pytest.raises(ValueError, match=r"holds no \.parquet file"):
        rs.scan(tmp_path / "bare")
    folder = written(table, tmp_path / "data")
    with pytest.raises(ValueError, match="no column 'id'"):
        rs.scan(folder, keys=["id"])
    with pytest.raises(ValueError, match=r"needs about .* MB, and memory is 1 MB"):
        rs.scan(folder, memory="1MB")
    with pytest.raises(ValueError, match="memory must be a size such as '2GB'"):
        rs.scan(folder, memory="much")
    with pytest.raises(ValueError, match="all are dropped"):
        rs.scan(folder, drop=list("abcd"))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (rs.Notears(), "Notears needs all rows in memory; Linear and Additive"),
        (rs.ReScore(tau=0.5), "Exact weights need all rows in memory"),
        (rs.Linear(missing="em"), "nothing is filled in, and there are no categories"),
    ],
)
def test_what_needs_rows_in_memory_refuses(model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(rs.scan(np.eye(50)[:, :3]))


def test_weights_of_rows_are_not_taken():
    with pytest.raises(ValueError, match=r"name them in rs\.scan\(\.\.\., weights="):
        rs.Linear().fit(rs.scan(np.eye(5)), sample_weight=np.ones(5))


def test_memory_decides_how_many_threads_read(table):
    need = rs.scan(table).need
    assert passes_module.workers_here(rs.scan(table, jobs=8)) == 8
    assert passes_module.workers_here(rs.scan(table, jobs=8, memory=2.5 * need)) == 2


def test_an_error_in_one_thread_ends_them_all(tmp_path):
    broken(tmp_path / "data", "NaN")
    before = threading.active_count()
    with pytest.raises(ValueError, match="NaN"):
        rs.Linear().fit(rs.scan(tmp_path / "data", jobs=3))
    assert threading.active_count() == before


@pytest.mark.parametrize("model", [rs.Linear(noise="unequal"), rs.ReScore()])
def test_resamples_of_stretches_are_as_sure_as_standard_errors(model, table, monkeypatch):
    monkeypatch.setattr("rescore.out_of_core.SAMPLE", 4_000)
    found = rs.bootstrap(model, rs.scan(table), resamples=30)
    assert found.summary == "30 bootstrap resamples of 1,000 stretches of rows; all fits converged."
    top = found.table.set_index(["cause", "effect"]).loc[("c", "d")]
    assert found.adjacent.loc["c", "d"] == 1
    error = model.fit(table).standard_errors_.loc["c", "d"]
    assert top["high"] - top["low"] == pytest.approx(2 * 1.645 * error, rel=0.5)


def test_stretches_add_up_to_all_rows(table, small_blocks):
    passes = Passes(rs.scan(table))
    whole = passes.made("all", Count())
    stretches = passes.made("stretches", Stretches(Count(), 777))
    assert stretches.mass[:, 0].tolist() == [777.0] * (N // 777) + [float(N % 777)]
    again = stretches.drawn(np.ones(len(stretches.first)))
    for one, other in zip(whole, again, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_a_full_disk_keeps_no_pass_and_loses_no_fit(table, tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(passes_module, "write_whole", full)
    with pytest.warns(RuntimeWarning, match="could not be kept .*No space left"):
        found = rs.Linear().fit(rs.scan(table, keep=tmp_path / "kept"))
    alike(found, rs.Linear().fit(rs.scan(table)))


def test_weights_that_cannot_be_written_are_one_sentence(table, tmp_path):
    found = rs.scan(table)
    model = rs.Linear().fit(found)
    with pytest.raises(OSError, match=r"weights\.parquet' could not be written"):
        rs.write_weights(model, found, tmp_path / "nowhere" / "weights.parquet")


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("model", [rs.Linear(), rs.ReScore()])
def test_weights_in_a_column_are_those_of_memory(model, whole, table, tmp_path, small_blocks):
    rng = np.random.default_rng(1)
    w = rng.integers(0, 3, N) if whole else rng.uniform(0.5, 1.5, N) * (rng.random(N) < 0.9)
    folder = written(table.assign(w=w, id=np.arange(N)), tmp_path / "parts")
    found = rs.scan(folder, weights="w", keys=["id"])
    assert found.names == tuple("abcd")
    here, there = clone(model).fit(table, sample_weight=w), clone(model).fit(found)
    assert ((here.adjacency_matrix_ != 0) == (there.adjacency_matrix_ != 0)).all(axis=None)
    close = 1e-9 if isinstance(model, rs.Linear) else 3e-3
    np.testing.assert_allclose(here.adjacency_matrix_, there.adjacency_matrix_, atol=close)
    np.testing.assert_allclose(here.noise_variance_, there.noise_variance_, rtol=0.02)
    effective = here.diagnostics_["effective_rows"]
    assert there.diagnostics_["effective_rows"] == pytest.approx(effective, rel=0.02)
    assert rs.write_weights(there, found, tmp_path / "weights.parquet") == N
    lines = pq.read_table(tmp_path / "weights.parquet").to_pandas()
    assert (lines["id"] == np.arange(N)).all()
    assert lines["weight"].sum() == pytest.approx(1)
    assert ((lines["weight"] == 0) == (w == 0)).all()
    assert ((lines["group"] == -1) == (w == 0)).all()
    if isinstance(model, rs.Linear):
        np.testing.assert_allclose(lines["weight"], w / w.sum(), rtol=1e-9)


def test_a_weight_that_is_none_is_named(table, tmp_path):
    folder = written(table.assign(w=np.where(np.arange(N) == 7_001, -1.0, 1.0)), tmp_path / "parts")
    with pytest.raises(
        ValueError, match=r"A weight is negative.*part-1\.parquet', row group 0, row 0"
    ):
        rs.Linear().fit(rs.scan(folder, weights="w"))
    with pytest.raises(ValueError, match="no column 'v'"):
        rs.scan(folder, weights="v")
    words = written(table.assign(w="much"), tmp_path / "words")
    with pytest.raises(ValueError, match=r"'w' .*must hold numbers"):
        rs.Linear().fit(rs.scan(words, weights="w"))


@pytest.mark.parametrize("weighed", [False, True])
def test_rows_with_gaps_are_left_out(weighed, table, tmp_path, small_blocks):
    model = rs.Linear(missing="drop")
    model = rs.ReScore(model) if weighed else model
    rng = np.random.default_rng(2)
    holes = table.mask(rng.random(table.shape) < 0.02)
    folder = written(holes, tmp_path / "parts")
    here, there = clone(model).fit(holes), clone(model).fit(rs.scan(folder))
    complete = holes.notna().all(axis=1)
    assert ((here.adjacency_matrix_ != 0) == (there.adjacency_matrix_ != 0)).all(axis=None)
    close = 3e-3 if weighed else 1e-9
    np.testing.assert_allclose(here.adjacency_matrix_, there.adjacency_matrix_, atol=close)
    told = there.diagnostics_["table"]["missing"]
    assert told == here.diagnostics_["table"]["missing"]
    assert complete[there.sample_weight_.index].all()
    rs.write_weights(there, rs.scan(folder), tmp_path / "weights.parquet")
    weights = pq.read_table(tmp_path / "weights.parquet").column("weight").to_numpy()
    assert ((weights > 0) == complete).all()
    if weighed:
        return
    few = written(holes.iloc[:3_000], tmp_path / "few", (0, 1_000, 3_000))
    some = clone(model).fit(rs.scan(few))
    np.testing.assert_allclose(
        some.adjacency_matrix_, clone(model).fit(holes.iloc[:3_000]).adjacency_matrix_, rtol=1e-9
    )


def test_a_table_of_gaps_is_refused(table, tmp_path):
    folder = written(table.assign(a=np.nan), tmp_path / "parts")
    with pytest.raises(ValueError, match=f"0 of {N} rows have no gap"):
        rs.Linear(missing="drop").fit(rs.scan(folder))


def test_groups_in_a_column_count_alike(table, tmp_path, small_blocks):
    place = np.where(np.arange(N) % 10 == 0, "south", "north")
    folder = written(table.assign(place=place), tmp_path / "parts")
    model = rs.ReScore(rs.Linear(noise="unequal"), weighting="inverse-propensity")
    here = clone(model).fit(table, groups=place)
    found = rs.scan(folder, groups="place")
    there = clone(model).fit(found)
    np.testing.assert_allclose(here.adjacency_matrix_, there.adjacency_matrix_, rtol=1e-9)
    effective = here.diagnostics_["effective_rows"]
    assert there.diagnostics_["effective_rows"] == pytest.approx(effective)
    told = [sorted(one.diagnostics_["weighting"]["share_before"]) for one in (here, there)]
    np.testing.assert_allclose(*told)
    rs.write_weights(there, found, tmp_path / "weights.parquet")
    weights = pq.read_table(tmp_path / "weights.parquet").column("weight").to_numpy()
    np.testing.assert_allclose(weights, here.sample_weight_, rtol=1e-9)
    plain = [rs.Linear().fit(each) for each in (found, table)]
    assert (plain[0].adjacency_matrix_ == plain[1].adjacency_matrix_).all(axis=None)
    with pytest.raises(ValueError, match="needs the group of each row"):
        clone(model).fit(rs.scan(table))


@pytest.mark.parametrize("in_memory", [True, False])
def test_interrupted_while_the_sample_is_fitted_keeps_what_was_reached(in_memory, table):
    def stop(record):
        if record["step"] == 2:
            raise KeyboardInterrupt

    model = rs.ReScore()
    with pytest.raises(KeyboardInterrupt):
        model.fit(table if in_memory else rs.scan(table), on_step=stop)
    assert model.status_ is Status.INTERRUPTED
    assert set(model.causal_graph_.edges) >= {("a", "b"), ("c", "d")}
    assert model.diagnostics_["weighting"]["groups"] == 2
    assert model.sample_weight_.sum() == pytest.approx(1)
    assert len(model.sample_weight_) == (N if in_memory else sources.SAMPLE)


def test_resamples_of_smooth_functions(small_blocks, monkeypatch):
    monkeypatch.setattr("rescore.out_of_core.SAMPLE", 2_000)
    x, e, f = np.random.default_rng(0).normal(size=(3, 8_000))
    table = pd.DataFrame({"y": np.sin(2 * x) + 0.4 * e, "x": x, "z": f})
    found = rs.bootstrap(rs.Additive(), rs.scan(table), resamples=5)
    assert "5 bootstrap resamples of 1,000 stretches of rows" in found.summary
    assert found.edges.loc["x", "y"] == 1
    assert found.adjacent.loc["x", "z"] == 0


def test_a_table_that_was_read_from_a_file_takes_the_passes_of_its_frame(table):
    """So that the command, the workbench and a script of many rows find the same."""
    known = rs.ReScore(rs.Linear()).fit(table)
    found = rs.ReScore(rs.Linear()).fit(as_table(table))
    read = [model.diagnostics_["passes"]["summary"] for model in (known, found)]
    assert read[0] == read[1]
    pd.testing.assert_frame_equal(
        found.adjacency_matrix_, known.adjacency_matrix_, check_exact=True
    )
    with pytest.raises(ValueError, match="sample_weight"):
        rs.Linear().fit(as_table(table), sample_weight=np.ones(3))


def full(*_, **__):
    raise OSError(28, "No space left on device")


def test_a_disk_that_fills_up_leaves_no_half_file(table, tmp_path, monkeypatch):
    found = rs.scan(table)
    model = rs.Linear().fit(found)
    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(OSError, match=r"could not be written \(.*No space left.*Make room"):
        rs.write_weights(model, found, tmp_path / "weights.parquet")
    table.iloc[:100].to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    with pytest.raises(OSError, match=r"t\.csv' is read once .*No space left.*Make room"):
        rs.scan(tmp_path / "t.csv", keep=tmp_path / "kept")
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == ["t.csv"]


def test_an_address_is_read_as_files_are(table, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    there, folder = fsspec.filesystem("memory"), written(table, tmp_path / "many")
    for each in folder.glob("*.parquet"):
        there.pipe(f"/bucket/{each.name}", each.read_bytes())
    try:
        model = rs.Linear().fit(rs.scan(folder))
        for address in ("memory://bucket/*.parquet", "memory://bucket"):
            alike(rs.Linear().fit(rs.scan(address, jobs=2)), model)
        found = rs.scan("memory://bucket")
        there.pipe("/bucket/part-1.parquet", (folder / "part-2.parquet").read_bytes())
        with pytest.raises(ValueError, match=r"part-1\.parquet', row group 0: the file changed"):
            rs.Linear().fit(found)
        with pytest.raises(ValueError, match="no Parquet file at"):
            rs.scan("memory://nothing/*.parquet")
    finally:
        there.rm("/bucket", recursive=True)
