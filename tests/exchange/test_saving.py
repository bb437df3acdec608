import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.exchange.saving import _digest, load, save
from rescore.weightings import Exact


@pytest.fixture(scope="module")
def model(chain):
    frame = pd.DataFrame(chain, columns=["a", "b", "c", "d", "<e>"]).rename(lambda i: f"row {i}")
    learner = rs.Notears(required=[("a", "b")], forbidden={("b", "a")})
    return rs.ReScore(learner, tau=0.4).fit(frame)


def test_everything_comes_back(model, tmp_path):
    save(model, tmp_path)
    again = load(tmp_path)
    assert type(again) is type(model)
    assert again.tau == 0.4
    assert again.estimator.required == [["a", "b"]]
    for name in ("adjacency_matrix_", "losses_", "history_"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(model, name))
    for name in ("sample_weight_", "row_losses_"):
        pd.testing.assert_series_equal(getattr(again, name), getattr(model, name))
    assert again.status_ is model.status_
    assert list(again.feature_names_in_) == list(model.feature_names_in_)
    assert set(again.causal_graph_.edges) == set(model.causal_graph_.edges)
    assert again.diagnostics_["heaviest_rows"] == model.diagnostics_["heaviest_rows"]
    assert again.fit(model.losses_).adjacency_matrix_ is not None  # its parameters still work


def test_unnamed_rows_and_columns_come_back(chain, tmp_path):
    model = rs.Notears().fit(chain)
    save(model, tmp_path)
    pd.testing.assert_frame_equal(load(tmp_path).losses_, model.losses_)


def test_a_weighting_of_one_s_own_comes_back_with_its_parameters(chain, tmp_path):
    model = rs.ReScore(rs.Linear(), weighting=Exact(tau=0.3, loss="raw")).fit(chain)
    save(model, tmp_path)
    assert load(tmp_path).weighting == Exact(tau=0.3, loss="raw")


def test_a_weighting_nobody_knows_is_refused(chain, tmp_path):
    class Unknown(Exact):
        pass

    model = rs.ReScore(rs.Linear(), weighting=Unknown()).fit(chain)
    with pytest.raises(TypeError, match="can be saved"):
        save(model, tmp_path)


def test_an_unfitted_model_is_refused(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        save(rs.Notears(), tmp_path)


def edited(folder, **changes):
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda f: edited(f, schema=99), "schema 99"),
        (lambda f: (f / "model.json").write_text("{"), "not a saved model"),
        (lambda f: (f / "model.json").write_text("[1]"), "not a saved model"),
        (lambda f: edited(f, estimator={"class": "os.system"}), "Linear, Notears, Dagma"),
        (lambda f: edited(f, estimator={"class": "Notears", "evil": 1}), "evil"),
        (lambda f: edited(f, status="FINE"), "status"),
        (lambda f: edited(f, names=["a"]), "shapes differ"),
        (lambda f: (f / "arrays.npz").write_bytes(b"PK not a zip"), "damaged"),
        (lambda f: (f / "arrays.npz").write_bytes((f / "arrays.npz").read_bytes()[:99]), "damaged"),
    ],
)
def test_damaged_or_hostile_files_are_refused_in_a_sentence(model, tmp_path, damage, words):
    save(model, tmp_path)
    damage(tmp_path)
    with pytest.raises(ValueError, match=words):
        load(tmp_path)


def test_a_pickle_in_the_archive_is_never_opened(model, tmp_path):
    save(model, tmp_path)
    objects = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "arrays.npz", adjacency_matrix=objects, allow_pickle=True)
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path)


def test_a_cycle_in_the_archive_is_refused(model, tmp_path):
    save(model, tmp_path)
    with np.load(tmp_path / "arrays.npz") as archive:
        arrays = dict(archive)
    arrays["adjacency_matrix"] = np.ones((5, 5))
    np.savez(tmp_path / "arrays.npz", **arrays)
    with pytest.raises(ValueError, match="cycle"):
        load(tmp_path)


def test_edges_between_columns_named_by_dates_are_kept_as_text(chain, tmp_path):
    days = pd.date_range("2020-01-01", periods=5)
    model = rs.Linear(forbidden=[(days[0], days[1])]).fit(pd.DataFrame(chain, columns=days))
    save(model, tmp_path)
    assert load(tmp_path).forbidden == [["2020-01-01 00:00:00", "2020-01-02 00:00:00"]]


def test_knowledge_is_kept_as_what_it_says_not_as_a_path(chain, tmp_path):
    known = rs.Knowledge([("x0", "x1")], [("x4", "x0")], [["x4"], ["x1", "x2"]], [1])
    known.write(tmp_path / "k.txt")
    save(rs.ReScore(rs.Linear(knowledge=tmp_path / "k.txt")).fit(chain), tmp_path / "run")
    (tmp_path / "k.txt").unlink()
    again = load(tmp_path / "run")
    assert again.estimator.knowledge == known
    assert again.fit(chain).causal_graph_.has_edge("x4", "x0")
    assert json.loads((tmp_path / "run/model.json").read_text())["estimator"]["estimator"][
        "knowledge"
    ]["required"] == [["x4", "x0"]]


def tampered(folder, **changes):
    """The archive with other arrays, and a digest that fits them: whoever tampers knows how."""
    with np.load(folder / "arrays.npz") as archive:
        arrays = dict(archive) | changes
    np.savez(folder / "arrays.npz", **arrays)
    edited(folder, arrays=_digest(arrays))


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("sample_weight", np.full(300, np.nan), "not shares that sum to one"),
        ("sample_weight", np.r_[-1.0, np.full(299, 2 / 299)], "not shares that sum to one"),
        ("sample_weight", np.full(300, 1.0), "not shares that sum to one"),
        ("adjacency_matrix", np.triu(np.full((5, 5), np.nan), 1), "not finite"),
        ("noise_variance", np.full(5, -1.0), "negative"),
        ("cpdag", np.full((5, 5), 7), "not 0 or 1"),
        ("equations_mean", np.full(5, np.inf), "not finite"),
    ],
)
def test_tampered_numbers_are_refused_in_a_sentence(model, tmp_path, name, values, words):
    save(model, tmp_path)
    tampered(tmp_path, **{name: values})
    with pytest.raises(ValueError, match=words):
        load(tmp_path)


def test_an_archive_that_would_fill_the_memory_is_refused_before_it_is_unpacked(model, tmp_path):
    save(model, tmp_path)
    np.savez_compressed(tmp_path / "arrays.npz", losses=np.zeros(40_000_000))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"would unpack to 0\.32 GB, more than the 0\.268 GB"):
        load(tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
