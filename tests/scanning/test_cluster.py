"""Workers and a scheduler that die in the middle of a pass; `campaigns/workers.py` kills more."""

import threading

import pytest

import rescore as rs
from campaigns import workers
from rescore.scanning import passes, sources

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(workers, "ROWS", 90_000)
    monkeypatch.setattr("rescore.out_of_core.SAMPLE", workers.SAMPLE)  # and back at the end
    monkeypatch.setattr(sources, "CELLS", 2**12)
    monkeypatch.setattr(sources, "SPAN", 2**13)
    workers.files.cache_clear()
    workers.undisturbed.cache_clear()
    yield
    workers.files.cache_clear()
    workers.undisturbed.cache_clear()


@pytest.mark.parametrize("case", [workers.Case("worker", (3,)), workers.Case("scheduler", (9,))])
def test_the_answer_is_the_same_when_some_of_the_cluster_dies(case):
    assert workers.try_one(case) == [f"{case.whom} killed, the same answer"]


def local(many, **options):
    """Workers of one thread each, in this process."""
    shape = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    return distributed.Client(n_workers=many, **shape, **options)


def test_a_slow_worker_is_overtaken(monkeypatch):
    undisturbed = workers.answer()
    done, overtaken, slow = [], threading.Event(), []
    compute = passes.computed

    def one_waits_for_the_other(*task):
        own = distributed.get_worker().address
        slow.append(own)
        if own == slow[0] and not overtaken.is_set():  # the first to begin
            assert overtaken.wait(timeout=120)
        else:
            done.append(own)
            if len(done) == 4:
                overtaken.set()
        return compute(*task)

    monkeypatch.setattr(passes, "computed", one_waits_for_the_other)
    with local(2) as client:
        assert workers.answer(client=client) == undisturbed
    assert overtaken.is_set()


def test_workers_with_too_little_memory_are_refused(monkeypatch):
    table = rs.scan(workers.files())
    # What a client knows of the workers is empty at times: its own timer asks for none.
    monkeypatch.setattr(distributed.Client, "scheduler_info", lambda *_, **__: {"workers": {}})
    with local(1, memory_limit=int(table.need / 2)) as client:
        small = rs.scan(workers.files(), client=client)
        with pytest.raises(ValueError, match=r"needs about .* a worker of the cluster has"):
            rs.Linear().fit(small)
