import os
import subprocess
import sys

FIT = """

import numpy as np, jax
import rescore as rs
X = np.random.default_rng(0).normal(size=(50, 3))
rs.Dagma(max_steps=1).fit(X)
print(jax.config.jax_compilation_cache_dir, jax.config.jax_enable_x64)
"""


def fit(cache):
    """What a process of its own prints, and what JAX logs."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    command = [sys.executable, "-W", "ignore", "-c", FIT]
    env["RESCORE_CACHE"] = str(cache)
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True)


def test_a_second_process_does_not_compile_again(tmp_path):
    folder = tmp_path / "cache"
    first = fit(folder)
    assert first.stdout.split() == [str(folder), "False"]
    kept = sorted(p.name for p in folder.iterdir() if p.name.endswith("-cache"))
    assert any("minimise" in name for name in kept)
    fit(folder)
    assert sorted(p.name for p in folder.iterdir() if p.name.endswith("-cache")) == kept


def test_the_cache_can_be_switched_off_and_needs_no_writable_folder(tmp_path):
    assert fit("off").stdout.split() == ["None", "False"]
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert fit(blocked / "below").stdout.split() == ["None", "False"]
