"""Workers and a scheduler that die in the middle of a pass; `campaigns/workers.py` kills more."""

import pytest

from campaigns import workers
from rescore.scanning import sources

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(workers, "ROWS", 90_000)
    monkeypatch.setattr(sources, "CELLS", 2**12)
    monkeypatch.setattr(sources, "SPAN", 2**13)
    workers.files.cache_clear()
    workers.undisturbed.cache_clear()
    yield
    workers.files.cache_clear()
    workers.undisturbed.cache_clear()


@pytest.mark.parametrize("case", [workers.Case("worker", (3,)), workers.Case("scheduler", (9,))])
def test_the_answer_is_the_same_when_some_of_the_cluster_dies(case, monkeypatch):
    monkeypatch.setattr("rescore.out_of_core.SAMPLE", workers.SAMPLE)  # and back at the end
    assert workers.try_one(case) == [f"{case.whom} killed, the same answer"]
