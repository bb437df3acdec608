"""Tables larger than memory, and more than one reader: the figures of docs/scale.md.

    python benchmarks/scale.py [capped rate memory dask wide] [--rows 100_000_000] [--cap 2GB]
                               [--folder /tmp/scale]

Rows are made once in the folder, float32 Parquet files of 20 columns: "equal" has noise of one
size, "groups" the paper's two latent groups (a tenth of the rows has its noise scales 1 and 0.1
flipped).  Every measurement is a process of its own; ratios are of one run.  What was measured is
in results/scale.csv; a rerun measures nothing that is there.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import bench  # first: it pins the threads
import numpy as np
import pandas as pd

D, DEGREE, SEED = 20, 2, 0
PART = 5_000_000  # rows of a file
GROUP = 2**18  # rows of a row group
REPEATS = 5
KEYS, VALUES = ("figure", "setting", "rows"), ("asked", "measured", "details")


def graph(d=D, degree=DEGREE, seed=SEED):
    """Coefficients (d, d) of a random graph with ``degree`` edges a variable."""
    rng = np.random.default_rng(seed)
    order, W = rng.permutation(d), np.zeros((d, d))
    before, after = np.triu_indices(d, 1)
    for e in rng.choice(len(before), degree * d, replace=False):
        W[order[before[e]], order[after[e]]] = rng.uniform(0.5, 2) * rng.choice([-1, 1])
    return W


def rows_of(kind, n, seed, W):
    """So many rows as float32, each column in one piece."""
    rng, d = np.random.default_rng(seed), len(W)
    E = rng.standard_normal((n, d), dtype=np.float32)
    if kind == "groups":
        scale = np.where(np.arange(d) % 2 == 0, 1.0, 0.1).astype(np.float32)
        few = rng.random(n) < 0.1
        E *= np.where(few[:, None], 1.1 - scale, scale)
    return E @ np.linalg.inv(np.eye(d) - W).astype(np.float32)


def table(folder, kind, rows):
    """The folder of Parquet files with so many rows, made if it is not there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    home, W = Path(folder, f"{kind}-{rows}"), graph()
    home.mkdir(parents=True, exist_ok=True)
    for k, start in enumerate(range(0, rows, PART)):
        path = home / f"part-{k:04}.parquet"
        if path.exists():
            continue
        n, writer = min(PART, rows - start), None
        unfinished = path.with_suffix(".unfinished")
        for begin in range(0, n, GROUP):
            X = rows_of(kind, min(GROUP, n - begin), [start, begin], W)
            part = pa.table({f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(D)})
            writer = writer or pq.ParquetWriter(
                unfinished, part.schema, compression="none", use_dictionary=False
            )
            writer.write_table(part)
        writer.close()
        unfinished.rename(path)
    return home


def held(what="VmRSS"):
    """Megabytes that this process holds, or with VmHWM the most since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) * 1024 / 1e6


def forget_peak():
    """What compilation took is no part of a fit."""
    Path("/proc/self/clear_refs").write_text("5")


def limit(cap):
    """No more memory than this for the process: a control group, or else a limit of addresses."""
    group = Path("/sys/fs/cgroup/memory", f"rescore-{os.getpid()}")
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(int(cap)))
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        resource.setrlimit(resource.RLIMIT_AS, (int(cap), int(cap)))


def model_named(name):
    import rescore as rs

    return rs.Linear() if name == "Linear" else rs.ReScore()


def fitted(name, source, cap=None, keep=None):
    """Fit in this process, under a limit of memory if one is given; print what it took."""
    if cap:
        limit(cap)
    import rescore as rs

    model_named(name).fit(rows_of("groups", 3_000, 1, graph()))  # compilation
    X = np.load(source) if source.endswith(".npy") else rs.scan(source, memory=cap, keep=keep)
    forget_peak()
    before, begun, cpu = held(), time.perf_counter(), time.process_time()
    model = model_named(name).fit(X)
    told = {
        "seconds": time.perf_counter() - begun,
        "cpu": time.process_time() - cpu,
        "before_mb": before,
        "peak_mb": held("VmHWM"),
        "shd": rs.evaluate(graph(), model.adjacency_matrix_.to_numpy()).shd,
        "passes": model.diagnostics_.get("passes", {}).get("count", 0),
        "groups": model.diagnostics_["weighting"].get("groups", 1),
        "noise": model.diagnostics_["noise"]["hypothesis"],
    }
    print(json.dumps(told))


def apart(*words, **environment):
    """What a step of this script prints, run in a process of its own."""
    command = [sys.executable, __file__, *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def capped(records, folder, rows, cap):
    """A table larger than the memory allowed."""
    from rescore.scanning.sources import bytes_of

    size = 4 * rows * D / 1e9
    for kind, name, asked in (("equal", "Linear", "SHD 0"), ("groups", "ReScore", "SHD <= 1.5")):
        setting = f"{name}, {kind}, {size:.1f} GB under {cap}"
        if records.missing("capped", setting, rows):
            home = table(folder, kind, rows)
            kept = Path(folder, f"kept-{kind}-{rows}")  # an interrupted measurement goes on
            told = apart("fit", name, home, bytes_of(cap), kept, ARROW_DEFAULT_MEMORY_POOL="system")
            note = (
                f"{told['seconds']:.0f} s, {told['passes']} passes, peak {told['peak_mb']:.0f} MB"
            )
            records.add("capped", setting, rows, f"finishes, {asked}", f"SHD {told['shd']}", note)


def rate(records, folder, rows):
    """A pass against pyarrow reading and summing the same columns, in turn."""
    import pyarrow as pa

    import rescore as rs
    from rescore.scanning.passes import Passes
    from rescore.scanning.statistics import Count, Look

    home = table(folder, "equal", rows)
    pa.set_cpu_count(2)
    chosen, names = np.arange(0, rows, rows // 2**14), tuple(f"x{j}" for j in range(D))
    for setting, statistic in (("moments", Count()), ("first look", Look(chosen, names))):
        if not records.missing("rate", setting, rows):
            continue
        ours, theirs = [], []
        for _ in range(REPEATS):
            begun = time.perf_counter()
            Passes(rs.scan(home, jobs=2)).made("all", statistic)
            ours.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            summed(home)
            theirs.append(time.perf_counter() - begun)
        fast, faster = (rows / np.median(each) / 1e6 for each in (ours, theirs))
        note = f"{fast:.1f} against {faster:.1f} million rows a second"
        records.add("rate", setting, rows, ">= 0.5", f"{fast / faster:.2f}", note)


def summed(home):
    """All columns of all files, read and summed by pyarrow."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    for path in sorted(home.glob("*.parquet")):
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            [pc.sum(column) for column in file.read_row_group(group).columns]


def memory(records, folder, rows=2_000_000):
    """In memory against Parquet."""
    for name, kind in (("Linear", "equal"), ("ReScore", "groups")):
        if not records.missing("in memory against Parquet", name, rows):
            continue
        home = table(folder, kind, rows)
        array = Path(folder, f"{kind}-{rows}.npy")
        if not array.exists():
            X = pd.concat([pd.read_parquet(p) for p in sorted(home.glob("*.parquet"))])
            np.save(array, X.to_numpy(dtype=np.float64))
        here, there = apart("fit", name, array, 0), apart("fit", name, home, 0)
        array.unlink()
        base = there["before_mb"]  # imports and compiled programs
        share = (there["peak_mb"] - base) / (here["peak_mb"] - base)
        note = (
            f"{here['seconds']:.1f} s and {here['peak_mb']:.0f} MB against {there['seconds']:.1f} "
            f"s and {there['peak_mb']:.0f} MB, imports {base:.0f} MB of each; SHD {here['shd']} "
            f"and {there['shd']}, {there['passes']} passes"
        )
        measured = (
            f"{there['seconds'] / here['seconds']:.2f} of the time, {share:.2f} of the memory"
        )
        records.add("in memory against Parquet", name, rows, "<= 2, <= 0.2", measured, note)


def dask(records, folder, rows):
    """Two workers against one, of one thread each, on a pass of groups."""
    if not records.missing("dask", "2 workers against 1", rows):
        return
    from distributed import Client

    import rescore as rs
    from rescore.scanning.passes import Passes
    from rescore.scanning.statistics import Count
    from rescore.weightings.refined import ByMechanisms
    from rescore.weightings.regimes import Mechanisms

    home, times, sums = table(folder, "groups", rows), {}, {}
    ones, W = np.ones(D), graph()
    groups = tuple(Mechanisms(size, 0 * ones, W, v * ones) for size, v in ((9.0, 1.0), (1.0, 0.1)))
    count = Count(ByMechanisms(groups, ones > 0))
    for many in (1, 2, 1, 2):
        options = {"threads_per_worker": 1, "dashboard_address": ":0"}
        with Client(n_workers=many, **options) as client:
            Passes(rs.scan(table(folder, "equal", 2_000_000), client=client)).made("warm", count)
            begun = time.perf_counter()
            sums[many] = Passes(rs.scan(home, client=client)).made("groups", count)
            times.setdefault(many, []).append(time.perf_counter() - begun)
    same = all((a == b).all() for a, b in zip(sums[1], sums[2], strict=True))
    one, two = min(times[1]), min(times[2])
    note = f"{one:.1f} s and {two:.1f} s; the same bits: {same}; load {os.getloadavg()[0]:.1f}"
    records.add("dask", "2 workers against 1", rows, ">= 1.6", f"{one / two:.2f}", note)


def wide_fitted(d, n, kind):
    """Print what a fit of many columns takes."""
    import rescore as rs

    W, rng = graph(d, 1), np.random.default_rng(2)
    rs.Linear().fit(rows_of("equal", 500, 1, graph()))
    rs.Linear(noise="unequal").fit(rows_of("equal", 500, 1, graph()))
    X = rows_of("equal", n, 2, W).astype(np.float64)
    if kind == "unequal":
        X = rng.normal(size=(n, d)) * rng.uniform(0.3, 3, d) @ np.linalg.inv(np.eye(d) - W)
    forget_peak()
    before, begun, cpu = held(), time.perf_counter(), time.process_time()
    model = rs.Linear().fit(X)
    known = model.cpdag_.to_numpy()
    told = {
        "seconds": time.perf_counter() - begun,
        "cpu": time.process_time() - cpu,
        "before_mb": before,
        "peak_mb": held("VmHWM"),
        "shd": rs.evaluate(W, model.adjacency_matrix_.to_numpy()).shd,
        "skeleton": int((((known | known.T) != 0) != ((W != 0) | (W.T != 0))).sum()) // 2,
    }
    print(json.dumps(told))


def wide(records, d=2_000, n=5_000):
    """Many columns, with noise of one size and of every size."""
    for kind in ("equal", "unequal"):
        setting = f"{d} columns, {d} edges, {kind} noise"
        if records.missing("wide", setting, n):
            told = apart("wide-fit", d, n, kind)
            wrong = f"SHD {told['shd']}, {told['skeleton']} wrong in the skeleton"
            note = (
                f"{told['cpu']:.0f} CPU s, {told['seconds']:.0f} s, peak {told['peak_mb']:.0f} MB"
            )
            records.add("wide", setting, n, "stated", wrong, note)


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["fit"]:
        name, source, cap, *keep = sys.argv[2:]
        return fitted(name, source, float(cap) or None, *keep)
    if sys.argv[1:2] == ["wide-fit"]:
        return wide_fitted(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    parser = argparse.ArgumentParser()
    parser.add_argument("figures", nargs="*", default=["rate", "memory", "dask", "capped", "wide"])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--cap", default="2GB")
    parser.add_argument("--folder", default="/tmp/scale")
    asked = parser.parse_args()
    records = bench.Records("scale", KEYS, VALUES)
    for figure in asked.figures:
        if figure == "capped":
            capped(records, asked.folder, asked.rows, asked.cap)
        elif figure in ("rate", "dask"):
            globals()[figure](records, asked.folder, 10_000_000)
        elif figure == "memory":
            memory(records, asked.folder)
        else:
            wide(records)
    print(pd.read_csv(bench.RESULTS / "scale.csv").to_string(index=False))
    return None


if __name__ == "__main__":
    main()
