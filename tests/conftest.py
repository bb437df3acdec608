"""Data shared by the tests; few shapes, because each number of columns compiles once."""

import gc
import os
import tempfile
from pathlib import Path

import jaxlib
import numpy as np
import pytest
from hypothesis import settings

from rescore.solvers.compilation import use_persistent_cache

# `make test` draws the same examples every time, so that it fails for what changed and not by
# chance; `make fuzz` draws new ones, and more of them.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("new", deadline=None, print_blob=True)
settings.load_profile("same")

# Most of the time goes into compiling programs that then run for a moment.  XLA's older emitters
# make the same programs in half the time; `XLA_FLAGS= make test` compiles as users do.  XLA ends
# the process at a flag it does not know, so only the release that was tried gets it.
if jaxlib.__version__.startswith("0.10."):
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")

# Compiled programs are shared between the workers of a run, the processes that tests start, and the
# next run.
os.environ["RESCORE_CACHE"] = str(Path(tempfile.gettempdir(), "rescore-compiled"))
use_persistent_cache()


# Thousands of tests and all compiled programs stay to the end: to look through them for garbage
# again and again takes seconds each time.
gc.set_threshold(20_000, 20, 20)


def pytest_collection_finish():
    gc.freeze()


@pytest.fixture(scope="session")
def chain():
    """x0 → x1 → x2 → x3 → x4 with clear coefficients: 300 rows every learner must get right."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 5))
    for j in range(1, 5):
        X[:, j] += 1.5 * X[:, j - 1]
    X.flags.writeable = False
    return X


@pytest.fixture
def undrawn(monkeypatch):
    """Runs are written without pictures and page, where these are not what is looked at."""
    monkeypatch.setattr("rescore.reports.folder._draw", lambda *_, **__: [])
