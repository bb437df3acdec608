"""Runs are values, records are written whole, and whatever happens nothing is lost."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from rescore import simulate
from rescore.experiments import Case, Trial, read_experiment, running
from rescore.experiments import store as store_module
from rescore.experiments import sweep as sweeps
from rescore.experiments.running import dataset, run_trial
from rescore.experiments.store import Store
from rescore.experiments.sweep import missing, sweep

DATA = {"source": "simulate", "nodes": 5, "samples": 100}


def trials(count, learner="Linear", **data):
    return [Trial(DATA | data, {"learner": learner}, seed) for seed in range(count)]


def cases(runs):
    return [Case("Linear", trial) for trial in runs]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A folder of records that one process made: five good trials, and one that cannot be."""
    folder = tmp_path_factory.mktemp("records")
    sweep([*trials(5), *trials(1, degree=99)], Store(folder))
    return folder


@pytest.fixture
def records(swept, tmp_path):
    """A store with the records of the first three trials."""
    for trial in trials(3):
        shutil.copy(swept / f"{trial.key}.json", tmp_path)
    return Store(tmp_path)


def without_time(record):
    result = {k: v for k, v in record["result"].items() if k != "cpu_seconds"}
    return record | {"result": result}


def test_running_a_trial_is_pure():
    (trial,) = trials(1)
    assert without_time(run_trial(trial)) == without_time(run_trial(trial))


def test_methods_share_the_data_and_leave_them_as_they_are():
    data = dataset(DATA, seed=0)
    for method in ({"learner": "Linear"}, {"learner": "SortNRegress", "rescore": {"tau": 0.5}}):
        assert run_trial(Trial(DATA, method, 0))["status"] == "ok"
    assert dataset(DATA, seed=0) is data
    pd.testing.assert_frame_equal(data.X, simulate(nodes=5, samples=100, random_state=0).X)


def test_a_record_tells_its_whole_trial(swept):
    (trial,) = trials(1)
    record = Store(swept).read()[trial.key]
    assert Trial(**record["trial"]) == trial
    assert record["status"] == "ok"


def test_the_key_changes_with_every_part():
    base = Trial(DATA, {"learner": "Linear"}, 0)
    others = [
        Trial(DATA | {"nodes": 6}, {"learner": "Linear"}, 0),
        Trial(DATA, {"learner": "Notears"}, 0),
        Trial(DATA, {"learner": "Linear"}, 1),
        Trial(DATA, {"learner": "Linear"}, 0, version="0.0.0"),
    ]
    assert len({trial.key for trial in [base, *others]}) == 5


def test_a_failed_trial_is_recorded_as_such_and_not_tried_again_unasked(swept):
    (bad,) = trials(1, degree=99)
    record = Store(swept).read()[bad.key]
    assert record["status"] == "failed"
    assert "DAG on 5 nodes" in record["error"]
    assert "result" not in record
    assert missing(cases([bad]), Store(swept)) == []
    assert missing(cases([bad]), Store(swept), again=True) == [bad]


def test_a_trial_that_takes_too_long_is_recorded_as_such():
    (trial,) = trials(1, learner="Notears")
    assert run_trial(trial, limit=0.0)["status"] == "timed out"


def test_a_fit_that_does_not_converge_is_no_result():
    method = {"learner": "Notears", "parameters": {"max_steps": 1}}
    assert run_trial(Trial(DATA, method, 0))["status"] == "not converged"


def test_a_sweep_of_two_processes_runs_what_is_missing_and_gives_the_records_of_one(records, swept):
    runs, heard = trials(5), []
    assert missing(cases(runs), records) == runs[3:]
    sweep(missing(cases(runs), records), records, jobs=2, on_record=heard.append)
    assert {record["key"] for record in heard} == {run.key for run in runs[3:]}
    one, two = Store(swept).read(), records.read()
    assert set(two) == {run.key for run in runs}
    for key in two:
        assert without_time(one[key]) == without_time(two[key])


def test_packing_keeps_every_record_in_one_file(records, swept):
    before, folder = records.read(), records.folder
    assert len(before) == 3
    records.pack()
    assert [path.suffix for path in folder.iterdir()] == [".jsonl"]
    assert records.read() == before
    for trial in trials(5)[3:]:
        shutil.copy(swept / f"{trial.key}.json", folder)
    records.pack()
    assert len(records.read()) == 5
    (packed,) = folder.iterdir()
    content = packed.read_bytes()
    records.pack()  # again changes nothing
    assert packed.read_bytes() == content


def test_damaged_files_are_passed_over(records):
    (records.folder / "half.json").write_text('{"key": "x", ')
    (records.folder / "list.json").write_text("[1]\n")
    assert len(records.read()) == 3


GOOD = {"key": "a", "status": "ok", "result": {}}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.json", b'{"mine": 1}\n'),
        ("x.jsonl", json.dumps(GOOD | {"key": "b"}).encode() + b"\n{half\n"),
        ("x.json", b'{"key": "b", "status": "ok", "result": {"shd": NaN}}\n'),
        ("x.json", b'{"key": "b", "status": "ok", "result": {"shd": 1e999}}\n'),
        ("x.json", b'{"key": 7, "status": "ok", "result": {}}\n'),
        ("x.json", b'{"key": "b", "status": "splendid", "result": {}}\n'),
        ("x.json", b'{"key": "b"}\n'),
        ("x.json", b"\xff\xfe"),
        ("x.json", b"[" * 100_000),
    ],
)
def test_packing_never_removes_a_file_with_an_unread_line_and_names_it(tmp_path, name, content):
    store = Store(tmp_path)
    store.write(GOOD)
    (tmp_path / name).write_bytes(content)
    found = store.read()
    assert "a" in found
    assert store.passed_over() == [name]
    for _ in range(2):
        store.pack()
        assert (tmp_path / name).read_bytes() == content
        assert store.read() == found


@pytest.mark.parametrize("order", [1, -1])
def test_a_result_goes_before_an_attempt_that_came_to_nothing(tmp_path, order):
    records = [GOOD, {"key": "a", "status": "timed out"}, {"key": "a", "status": "failed"}]
    for number, record in enumerate(records[::order]):
        (tmp_path / f"{number}.jsonl").write_text(json.dumps(record) + "\n")
    assert Store(tmp_path).read()["a"]["status"] == "ok"
    Store(tmp_path).pack()
    assert Store(tmp_path).read() == {"a": GOOD}
    assert len(list(tmp_path.iterdir())) == 1


def test_what_was_tried_again_replaces_a_failure(tmp_path):
    (tmp_path / "p.jsonl").write_text('{"key": "a", "status": "failed", "error": "old"}\n')
    Store(tmp_path).write({"key": "a", "status": "failed", "error": "new"})
    assert Store(tmp_path).read()["a"]["error"] == "new"


def test_packing_keeps_a_record_that_came_meanwhile(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.write({"key": "a", "status": "failed"})
    write = store_module.write_whole

    def write_and_meanwhile(path, content):
        write(path, content)
        write(tmp_path / "a.json", json.dumps(GOOD).encode())

    monkeypatch.setattr(store_module, "write_whole", write_and_meanwhile)
    store.pack()
    assert store.read()["a"]["status"] == "ok"


def test_what_killed_processes_had_begun_is_swept_up(tmp_path):
    store = Store(tmp_path)
    store.write(GOOD)
    old, new = (tmp_path / f".{name}.json.0123.partial" for name in "ab")
    for path in (old, new):
        path.write_text("{")
    os.utime(old, (0, 0))
    store.pack()
    assert new.exists()
    assert not old.exists()


def test_a_full_disk_leaves_no_partial_record(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        Store(tmp_path).write(GOOD)
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_cannot_be_written_ends_the_sweep_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match=r"A record could not be written: .*Not a directory"):
        sweep(trials(1), Store(tmp_path / "file" / "records"))


def serving(what):
    """The code of a worker in which the trial of seed 1 does something else."""
    return f"""
import os, signal, time
from rescore.experiments import sweep
def odd(trial, limit):
    if trial.seed == 1:
        {what}
    return {{"key": trial.key, "trial": trial.content, "status": "ok", "result": {{}}}}
sweep.run_trial = odd
sweep.serve()
"""


def test_ctrl_c_while_a_worker_starts_is_not_for_the_worker(tmp_path):
    package = tmp_path / "rescore" / "experiments"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("")
    interrupts = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nserve = print\n"
    (package / "sweep.py").write_text(interrupts)
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", sweeps.CODE]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_trial_without_a_network_does_not_wait_for_jax():
    code = "import rescore.experiments.sweep, sys; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_trial_that_ends_its_process_is_set_aside_and_the_others_go_on(
    tmp_path, monkeypatch, jobs
):
    monkeypatch.setattr(sweeps, "CODE", serving("os.kill(os.getpid(), signal.SIGKILL)"))
    sweep(trials(3), Store(tmp_path), jobs=jobs)
    found = Store(tmp_path).read()
    statuses = [found[trial.key]["status"] for trial in trials(3)]
    assert statuses == ["ok", "failed", "ok"]
    assert "died 2 times (SIGKILL)" in found[trials(3)[1].key]["error"]
    assert missing(cases(trials(3)), Store(tmp_path)) == []


def test_the_limit_stops_a_step_that_never_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps, "CODE", serving("time.sleep(10_000)"))
    answer = sweeps._Worker.answer

    def impatient(worker, line, seconds):  # with the one that sleeps, however slow this machine is
        yield from answer(worker, line, seconds / 1000 if worker.trial.seed == 1 else seconds)

    monkeypatch.setattr(sweeps._Worker, "answer", impatient)
    sweep(trials(3)[1:], Store(tmp_path), limit=500.0)
    found = Store(tmp_path).read()
    assert [found[trial.key]["status"] for trial in trials(3)[1:]] == ["timed out", "ok"]


def test_numbers_that_are_not_finite_are_a_failure_of_the_trial_alone(monkeypatch):
    monkeypatch.setattr(
        running, "_measured", lambda *_: {"status": "ok", "result": {"shd": float("nan")}}
    )
    record = run_trial(trials(1)[0])
    assert record["status"] == "failed"
    assert "result" not in record


@pytest.mark.parametrize("limit", [float("nan"), -1.0, 0.0, float("inf")])
def test_a_limit_is_a_positive_number(tmp_path, limit):
    with pytest.raises(ValueError, match="limit must be a number above 0"):
        sweep(trials(1), Store(tmp_path), limit=limit)


LONG_SWEEP = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background ignores it
from pathlib import Path
from rescore.experiments.store import Store
from rescore.experiments.sweep import sweep
from rescore.experiments import Trial
data = {"source": "simulate", "nodes": 5, "samples": 100}
trials = [Trial(data, {"learner": "Linear"}, seed) for seed in range(5000)]
sweep(trials, Store(Path(sys.argv[1])), jobs=int(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("how", "jobs"), [(signal.SIGKILL, 1), (signal.SIGINT, 2)], ids=["kill -9", "Ctrl-C"]
)
def test_a_sweep_stopped_in_the_middle_loses_and_corrupts_nothing(tmp_path, how, jobs):
    folder = tmp_path / "records"
    command = [sys.executable, "-c", LONG_SWEEP, str(folder), str(jobs)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while len(list(folder.glob("*.json"))) < 5:
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, how)
    _, told = process.communicate(timeout=120)
    assert "_shutdown" not in told
    assert "Exception ignored" not in told
    written = list(folder.glob("*.json"))
    records = Store(folder).read()
    assert 5 <= len(records) == len(written) < 5000
    assert all(record["status"] == "ok" for record in records.values())
    runs = [Trial(DATA, {"learner": "Linear"}, seed) for seed in range(5000)]
    assert len(missing(cases(runs), Store(folder))) == 5000 - len(written)


def runs(process):
    """Whether there is such a process, other than one that ended and that nobody asked after."""
    try:
        return Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "terminate"])
def test_workers_end_with_the_process_that_started_them(tmp_path, how):
    folder = tmp_path / "records"
    command = [sys.executable, "-c", LONG_SWEEP, str(folder), "2"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while len(list(folder.glob("*.json"))) < 5:
        assert process.poll() is None
        time.sleep(0.01)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 2
    process.send_signal(how)
    process.wait(timeout=120)
    until = time.monotonic() + 120
    while any(runs(child) for child in children):
        assert time.monotonic() < until, "a worker has stayed"
        time.sleep(0.05)
    assert all(record["status"] == "ok" for record in Store(folder).read().values())


def test_two_sweeps_in_one_folder_end_with_every_record_once(tmp_path):
    code = LONG_SWEEP.replace("5000", "12")
    command = [sys.executable, "-c", code, str(tmp_path), "1"]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    assert len(Store(tmp_path).read()) == 12
    assert {path.suffix for path in tmp_path.iterdir()} == {".json"}
    assert all(json.loads(path.read_text())["status"] == "ok" for path in tmp_path.iterdir())


def test_an_experiment_goes_through_all_combinations(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        """
        title = "Mine"
        seeds = 3
        [[data]]
        source = "simulate"
        over = {nodes = [5, 7], degree = [1, 2]}
        [[methods]]
        name = "Notears"
        learner = "Notears"
        over = {"parameters.lambda1" = [0.01, 0.1]}
        [[methods]]
        name = "Linear"
        learner = "Linear"
        where = {nodes = [7]}
        [quick]
        seeds = 2
        over = {nodes = [5]}
        """
    )
    mine = read_experiment(path)
    assert mine.name == "mine"
    assert len(mine.cases()) == 3 * (4 * 2 + 2)
    quick = mine.cases("quick")
    assert {case.trial.data["nodes"] for case in quick} == {5}
    assert {case.trial.seed for case in quick} == {0, 1}
    assert {case.trial.seed for case in mine.cases("tiny")} == {0}
    assert {case.trial.method["parameters"]["lambda1"] for case in quick} == {0.01, 0.1}


REST = "\n[data]\nsource='simulate'\n[methods]\nname='a'\nlearner='b'"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = ", "no TOML file"),
        ("title = 'a'", "lacks 'data', 'methods'"),
        ("title='a'\ncolour='red'\n[data]\nsource='simulate'\n[methods]\n", "has 'colour'"),
        ("title='a'\n[data]\nnodes=3\n[methods]\nname='a'\nlearner='b'", "needs a source"),
        ("title='a'\n[data]\nsource='simulate'\n[methods]\nname='a'", "a name and a learner"),
        ("title=1" + REST, "'title' in the experiment must be a text, got 1"),
        ("title='a'\nquick=3" + REST, "'quick' in the experiment must be a table, got 3"),
        ("title='a'\nseeds='many'" + REST, "seeds must be a whole number"),
        ("title='a'\ndata=[1]\n[methods]\nname='a'\nlearner='b'", "must be a table, got 1"),
        ("title='a'" + REST + "\nover=3", "'over' in each .* must be a table, got 3"),
        ("title='a'" + REST + "\nover={'a.b'=3}", "must be a list, got 3"),
        ("title='a'" + REST + "\nwhere={nodes=5}", "must be a list, got 5"),
        ("title='a'" + REST + "\nparameters='x'", "'parameters' in each .* must be a table"),
        ("title='a'" + REST + "\nsearch={'rescore.tau'=1}", "a list of choices, or a table"),
        ("title='a'" + REST + "\n[quick]\nseeds=1.5", "seeds must be a whole number"),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence(tmp_path, text, words):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        read_experiment(path)


def test_unknown_learners_and_parameters_end_in_the_record():
    for method, words in [
        ({"learner": "Magic"}, "learner must be one of"),
        ({"learner": "Linear", "parameters": {"magic": 1}}, "no parameter 'magic'"),
    ]:
        assert words in run_trial(Trial(DATA, method, 0))["error"]


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(FileNotFoundError, match="no experiment"):
        read_experiment(Path("nowhere.toml"))
