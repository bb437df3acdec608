import importlib
import os
import subprocess
import sys

import pytest

from rescore.solvers import compilation
from rescore.solvers.compilation import Entries, compiled

BEGIN = """
import warnings
import numpy as np, jax
warnings.filterwarnings("error", "Error .*ing persistent compilation cache")
"""
FIT = """
import rescore as rs
rs.Dagma(max_steps=1).fit(np.random.default_rng(0).normal(size=(50, 3)))
"""
SMALL = """
from rescore.solvers.compilation import float64
with float64():
    assert jax.jit(lambda x: 2 * x)(np.ones(3)).dtype == np.float64
"""
END = "print(jax.config.jax_compilation_cache_dir, jax.config.jax_enable_x64)"


def fit(cache, program=FIT):
    """What a process of its own prints, and what JAX logs."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    command = [sys.executable, "-W", "ignore", "-c", BEGIN + program + END]
    env["RESCORE_CACHE"] = str(cache)
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True)


def test_a_second_process_compiles_again_only_what_is_damaged(tmp_path):
    folder = tmp_path / "cache"
    first = fit(folder)
    assert first.stdout.split() == [str(folder), "False"]
    kept = sorted(p.name for p in folder.iterdir() if p.name.endswith("-cache"))
    assert any("minimise" in name for name in kept)
    times = [(folder / name).stat().st_mtime_ns for name in kept]
    (folder / kept[0]).write_bytes(b"damaged")  # is neither run nor warned of, and written anew
    fit(folder)
    assert sorted(p.name for p in folder.iterdir()) == kept
    again = [(folder / name).stat().st_mtime_ns for name in kept]
    assert [a == b for a, b in zip(times, again, strict=True)] == [False] + [True] * len(kept[1:])
    assert (folder / kept[0]).stat().st_size > 1000


def test_the_cache_can_be_switched_off_and_needs_no_writable_folder(tmp_path):
    assert fit("off", SMALL).stdout.split() == ["None", "False"]
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert fit(blocked / "below", SMALL).stdout.split() == ["None", "False"]


def test_a_home_that_is_none_is_no_reason_to_fail(monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(compilation.Path, "home", nobody)
    assert compilation._writable("") is None


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b"x" + b[1:]])
def test_a_damaged_program_is_dropped_and_kept_anew(tmp_path, damage):
    entries = Entries(tmp_path)
    entries.put("a", b"program")
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert entries.get("a") is None
    assert not path.exists()
    entries.put("a", b"program")
    assert entries.get("a") == b"program"


def test_a_folder_without_room_keeps_nothing_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", full)
    Entries(tmp_path).put("a", b"program")
    assert not list(tmp_path.iterdir())
    Entries(tmp_path / "gone").put("a", b"program")


class Broken:
    """Numba's files of a function, where everything fails."""

    def load_overload(self, *_):
        raise EOFError("Ran out of input")

    def save_overload(self, *_):
        raise OSError("No space left on device")

    flush = save_overload


def test_numba_files_that_cannot_be_read_or_written_are_as_good_as_none(monkeypatch):
    def double(x):
        return 2 * x

    made = compiled()(double)
    made._cache = compilation._Forgiving(Broken())
    assert made(3) == 6


def test_numba_needs_no_place_to_keep_anything(monkeypatch):
    from numba.core import caching

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    @compiled()
    def triple(x):
        return 3 * x

    assert triple(3) == 9


def test_a_fork_of_a_process_that_has_fitted_is_told_so(monkeypatch):
    with compilation.float64():
        pass
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="spawn"), compilation.float64():
        pass


def test_what_is_compiled_into_a_function_is_not_kept_longer_than_its_source(tmp_path, monkeypatch):
    """Numba looks at the date of the file of the function itself, which stays as it is."""
    monkeypatch.syspath_prepend(str(tmp_path))
    begin = "from rescore.solvers.compilation import compiled\n"
    decorated = "@compiled()\ndef {}(x):\n    return {}\n"
    outer = "from inner_steps import step\n" + decorated.format("walk", "step(x) + 1")
    (tmp_path / "outer_steps.py").write_text(begin + outer)
    for factor in (2, 30):
        (tmp_path / "inner_steps.py").write_text(begin + decorated.format("step", f"{factor} * x"))
        for name in ("inner_steps", "outer_steps"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        compilation._digest.cache_clear()
        assert importlib.import_module("outer_steps").walk(1) == factor + 1
