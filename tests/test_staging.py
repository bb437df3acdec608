"""A folder changes at once: whatever stops a writer, the old files or the new ones are there."""

import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore import staging
from rescore.exchange.saving import fingerprint
from rescore.reports import folder as run_folder
from rescore.reports.folder import write_run
from rescore.reports.run import Run, read_run
from rescore.staging import refuse_others_files, settled, staged


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(0)
    return [rs.Linear().fit(pd.DataFrame(rng.normal(size=(40, 2)))) for _ in range(2)]


def stop(*_, **__):
    raise RuntimeError("the plug is pulled")


def test_a_crash_after_the_commit_is_made_good_by_whoever_reads(tmp_path, models, monkeypatch):
    old, new = models
    rs.save(old, tmp_path)
    with monkeypatch.context() as crash:
        crash.setattr(staging, "_move_in", stop)
        with pytest.raises(RuntimeError):
            rs.save(new, tmp_path)
    assert fingerprint(rs.load(tmp_path)) == fingerprint(new)
    assert sorted(os.listdir(tmp_path)) == ["arrays.npz", "model.json"]


def test_a_crash_before_the_commit_changes_nothing(tmp_path, models, monkeypatch):
    old, new = models
    rs.save(old, tmp_path)
    with monkeypatch.context() as crash:
        crash.setattr(os, "rename", stop)
        with pytest.raises(RuntimeError):
            rs.save(new, tmp_path)
    assert fingerprint(rs.load(tmp_path)) == fingerprint(old)


def test_who_may_not_write_reads_what_is_finished_where_it_is(tmp_path, models, monkeypatch):
    old, new = models
    rs.save(old, tmp_path)
    replace = os.replace

    def half(source, target):
        if str(target).endswith("model.json"):
            raise PermissionError(13, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(os, "replace", half)
    with pytest.raises(OSError, match=r"It is whole in .* read from there") as told:
        rs.save(new, tmp_path)
    assert "unchanged" not in str(told.value)
    assert fingerprint(rs.load(tmp_path)) == fingerprint(new)
    with pytest.raises(OSError, match="unchanged"):
        rs.save(old, tmp_path)
    monkeypatch.undo()
    assert fingerprint(rs.load(tmp_path)) == fingerprint(new)


@pytest.mark.usefixtures("undrawn")
def test_files_of_two_fits_are_refused(tmp_path, models):
    for name, model in zip("ab", models, strict=True):
        rs.save(model, tmp_path / name)
        write_run(tmp_path / f"run {name}", Run(model))
    (tmp_path / "a/arrays.npz").replace(tmp_path / "b/arrays.npz")
    with pytest.raises(ValueError, match=r"another fit\. Copy both files from one folder"):
        rs.load(tmp_path / "b")
    (tmp_path / "run a/run.json").replace(tmp_path / "run b/run.json")
    with pytest.raises(ValueError, match="another fit"):
        read_run(tmp_path / "run b")


def test_threads_that_save_into_one_folder_take_turns(tmp_path, models):
    ours = {fingerprint(model) for model in models}

    def work(number):
        rs.save(models[number % 2], tmp_path)
        return fingerprint(rs.load(tmp_path))

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(work, range(16))) <= ours
    assert sorted(os.listdir(tmp_path)) == ["arrays.npz", "model.json"]


def test_a_picture_never_joins_another_fit(tmp_path, models, monkeypatch):
    ours, theirs = models
    monkeypatch.setattr(run_folder, "draw_graph", lambda *_: rs.save(theirs, tmp_path) or stop())
    with pytest.warns(RuntimeWarning) as told:
        write_run(tmp_path, Run(ours))
    assert any("Another fit was written" in str(w.message) for w in told)
    assert not (tmp_path / "report.html").exists()
    assert fingerprint(rs.load(tmp_path)) == fingerprint(theirs)


def test_results_are_there_before_anything_is_drawn(tmp_path, models, monkeypatch):
    seen = []

    def fail(*_):
        seen.extend(os.listdir(tmp_path))
        raise MemoryError("no room for a picture")

    monkeypatch.setattr(run_folder, "draw_graph", fail)
    monkeypatch.setattr(run_folder, "render_page", fail)
    with pytest.warns(RuntimeWarning, match="could not be drawn: no room for a picture"):
        files = write_run(tmp_path, Run(models[0]))
    assert {"model.json", "arrays.npz", "run.json", "weights.csv", "adjacency.csv"} <= set(seen)
    assert not set(files) & set(run_folder.DRAWN_FILES)
    assert fingerprint(read_run(tmp_path).model) == fingerprint(models[0])


def test_pictures_of_an_earlier_run_go_with_it(tmp_path, models, monkeypatch):
    write_run(tmp_path, Run(models[0]))
    monkeypatch.setattr(run_folder, "render_page", stop)
    with pytest.warns(RuntimeWarning, match="report.html"):
        write_run(tmp_path, Run(models[1]))
    assert not (tmp_path / "report.html").exists()
    assert (tmp_path / "graph.svg").exists()


def test_what_killed_writers_left_is_swept_up_and_living_ones_are_left_alone(tmp_path):
    dead, alive = (tmp_path / f".unfinished-{name}" for name in ("dead", "alive"))
    for path in (dead, alive):
        path.mkdir()
        os.utime(path, (0, 0))
    with staging.locked(alive), staged(tmp_path) as scratch:
        (scratch / "a").write_text("a")
    assert sorted(os.listdir(tmp_path)) == [".unfinished-alive", "a"]


def test_a_lock_that_is_never_given_back_ends_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(staging.locked.__wrapped__, "__defaults__", (0.05,))
    held, done = threading.Event(), threading.Event()

    def hold():
        with settled(tmp_path):
            held.set()
            done.wait()

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    held.wait()
    with pytest.raises(OSError, match="Another program has kept"), staged(tmp_path) as scratch:
        (scratch / "a").write_text("a")
    done.set()
    thread.join()
    assert os.listdir(tmp_path) == []


def test_a_finished_folder_from_elsewhere_removes_nothing_outside(tmp_path):
    (tmp_path / "precious").write_text("precious")
    place = tmp_path / "here"
    hostile = place / ".finished-1"
    hostile.mkdir(parents=True)
    (hostile / ".removed").write_text("../precious\n..\n.\n")
    with settled(place):
        pass
    assert (tmp_path / "precious").exists()


def test_others_files_are_refused_and_ours_are_not(tmp_path):
    assert refuse_others_files(tmp_path, "run.json") == tmp_path
    (tmp_path / "weights.csv").write_text("mine")
    with pytest.raises(ValueError, match="may be yours"):
        refuse_others_files(tmp_path, "run.json")
    (tmp_path / "run.json").write_text("{}")
    assert refuse_others_files(tmp_path, "run.json") == tmp_path


def test_a_model_of_somebody_else_is_not_replaced(tmp_path, models):
    (tmp_path / "model.json").write_text('{"my": "model"}')
    with pytest.raises(ValueError, match="not replaced"):
        rs.save(models[0], tmp_path)
    assert (tmp_path / "model.json").read_text() == '{"my": "model"}'


def test_no_warning_is_lost_on_the_way(tmp_path, models):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_run(tmp_path, Run(models[0]))
