"""The dask engine against a real cluster on this machine, some of which dies on the way."""

import json
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from rescore.experiments import Case, Trial
from rescore.experiments.store import Store
from rescore.experiments.sweep import _kept, missing, run_and_write, sweep

pytest.importorskip("distributed")

DATA = {"source": "simulate", "nodes": 10, "samples": 1000}
TRIALS = [Trial(DATA, {"learner": "Linear"}, seed) for seed in range(30)]
LONGER = [Trial(DATA | {"samples": 200_000}, {"learner": "Linear"}, seed) for seed in range(500)]


class Cluster:
    """A scheduler and two workers as processes of their own."""

    def __init__(self, folder):
        self.file = folder / "scheduler.json"
        place = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"]
        self.scheduler = self.start("scheduler", *place, "--scheduler-file", str(self.file))
        while (written := self.written()) is None:
            assert self.scheduler.poll() is None
            time.sleep(0.1)
        self.address = written["address"]
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        self.workers = [self.start("worker", self.address, *options) for _ in range(2)]

    def start(self, *words):
        command = [sys.executable, "-m", "dask", *words]
        quiet = subprocess.DEVNULL
        elsewhere = self.file.parent / "elsewhere"  # than the client
        elsewhere.mkdir(exist_ok=True)
        return subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=elsewhere)

    def written(self):
        """What the scheduler has written of itself, once that is whole."""
        try:
            return json.loads(self.file.read_text())
        except (OSError, ValueError):
            return None

    def stop(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait(timeout=120)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """One for all tests; in the last it dies."""
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    yield running
    running.stop()


def wait_for(store, count, ended):
    while len(list(store.folder.glob("*.json"))) < count:
        assert ended == []
        time.sleep(0.02)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_records_of_this_machine(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here, there = Store(tmp_path / "here"), Store(Path("there"))  # which workers know otherwise
    sweep(TRIALS[:4], here)
    sweep(TRIALS[:4], there, engine="dask", scheduler=cluster.address)
    scores = [{k: r["result"]["shd"] for k, r in s.read().items()} for s in (here, there)]
    assert scores[0] == scores[1]
    task = partial(run_and_write, folder=tmp_path / "file" / "no folder", limit=60.0)
    (tmp_path / "file").write_text("")
    record = task(TRIALS[5])  # a worker whose disk is another one
    assert _kept(record, there)["status"] == "ok"
    assert there.read()[TRIALS[5].key] == record


def test_a_cluster_needs_an_address(tmp_path):
    with pytest.raises(ValueError, match="--scheduler"):
        sweep(TRIALS[:1], Store(tmp_path), engine="dask")
    with pytest.raises(ValueError, match="engine must be one of"):
        sweep(TRIALS[:1], Store(tmp_path), engine="magic")


# The client of a cluster that has gone says so in its own log and leaves its sockets behind.
@pytest.mark.filterwarnings("ignore")
def test_a_worker_and_then_the_scheduler_die_and_nothing_is_lost(cluster, tmp_path):
    store = Store(tmp_path / "records")
    trials = TRIALS + LONGER  # which take minutes: there is always something left
    ended = []

    def run():
        try:
            sweep(trials, store, engine="dask", scheduler=cluster.address)
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    wait_for(store, 10, ended)
    cluster.workers[0].send_signal(signal.SIGKILL)
    after_worker = len(store.read())
    wait_for(store, after_worker + 10, ended)  # the other one goes on
    cluster.scheduler.send_signal(signal.SIGKILL)
    thread.join(timeout=300)
    assert not thread.is_alive()
    assert isinstance(ended[0], ConnectionError)  # the sweep says that its cluster is gone
    assert "does not answer" in str(ended[0])
    assert "goes on" in str(ended[0])
    done = store.read()
    assert 20 <= len(done) < len(trials)
    left = missing([Case("Linear", trial) for trial in trials], store)
    assert len(left) == len(trials) - len(done)
    sweep(left[:2], store)  # and it goes on anywhere else
    assert all(record["status"] == "ok" for record in store.read().values())
    assert len(store.read()) == len(done) + 2
