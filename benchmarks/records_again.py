"""Run trials of the committed records again, and say what the code finds otherwise by now.

    python benchmarks/records_again.py [--each 3] [--most 20] [--against CHECKOUT]
    python benchmarks/records_again.py --renew NAME ... [--methods PART ...]

Of every method, with and without row weights, some trials that took no longer than so many CPU
seconds, evenly over the records.  What moved is listed; with another checkout of the project it is
run there too, because single precision may move with the machine and not with the code.

With ``--renew`` all trials of the experiments named, of methods whose name has one of the parts (a
part that ends in $ is the end of the name), are run afresh and take the place of their records once
all are there; what is there meanwhile is kept in build/renewed, so that a rerun goes on.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import bench  # pins the threads, here and in the processes that run the trials

ROOT = bench.RESULTS.parents[1]
COMPARED = ("edges", "shd", "sid", "tpr", "fdr", "effective_rows")

Record = dict[str, Any]


def records() -> list[Record]:
    """The committed records with a result, by key."""
    lines = [
        line
        for path in sorted((ROOT / "results" / "records").glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    return [record for record in map(json.loads, lines) if record["status"] == "ok"]


def kind(record: Record) -> tuple[str, ...]:
    """The learner, its variant, and whether rows are weighted."""
    method = record["trial"]["method"]
    parameters = method.get("parameters", {})
    variant = [str(parameters[name]) for name in ("scheme", "variance") if name in parameters]
    return method["learner"], *variant, *(["weighted"] if "rescore" in method else [])


def chosen(each: int, most: float) -> list[Record]:
    """So many of each kind, spread evenly over its records."""
    kinds = defaultdict(list)
    for record in records():
        if record["result"]["cpu_seconds"] <= most:
            kinds[kind(record)].append(record)
    return [found[k * len(found) // each] for found in kinds.values() for k in range(each)]


def run_here(trials: list[Record]) -> list[Record]:
    """The results of trials with the package that is imported; {} for one that failed."""
    from rescore.experiments import running  # wherever in the package a trial is defined

    made = (running.Trial(t["data"], t["method"], t["seed"], t["version"]) for t in trials)
    return [running.run_trial(trial).get("result", {}) for trial in made]


def run_in(checkout: Path, trials: list[Record]) -> list[Record]:
    """The same in another process, with the package of a checkout."""
    path = {"PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(
        [sys.executable, __file__, "--trials"],
        input=json.dumps(trials), env={**os.environ, **path}, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    results: list[Record] = json.loads(done.stdout)
    return results


def differences(before: Record, after: Record) -> str:
    """What moved, in words; empty if nothing did."""
    moved = [
        f"{name} {before[name]} -> {after.get(name)}"
        for name in COMPARED
        if name in before and before[name] != after.get(name)
    ]
    return ", ".join(moved)


def renew(names: list[str], parts: list[str]) -> None:
    """Run all trials of these experiments afresh, then put them in the place of their records."""
    from rescore.experiments import find
    from rescore.experiments.running import run_trial
    from rescore.experiments.store import Store
    from rescore.experiments.sweep import missing

    made, there = Store(ROOT / "build" / "renewed"), Store(ROOT / "results" / "records")
    cases = [case for name in names for case in find(name).cases() if _named(case.method, parts)]
    todo = missing(cases, made)
    print(f"{len(cases)} trials, {len(todo)} to run", flush=True)
    for trial in todo:  # here: a process of its own has no time to start on a crowded machine
        record = run_trial(trial)
        made.write(record)
        print(record["key"], record["status"], flush=True)
    fresh, before = made.read(), there.read()
    keys = {case.trial.key for case in cases}
    _forget(there.folder, keys)  # a record of the same key would stay if the new one is no result
    for key in keys:
        there.write(fresh[key])
    there.pack()
    moved = [k for k in keys if k in before and differences(*_results(before[k], fresh[k]))]
    print(f"{len(keys)} records in place, {len(moved)} of them moved")


def _named(method: str, parts: list[str]) -> bool:
    return not parts or any(
        method.endswith(part[:-1]) if part.endswith("$") else part in method for part in parts
    )


def _results(*both: Record) -> list[Record]:
    return [record.get("result", {}) for record in both]


def _forget(folder: Path, keys: set[str]) -> None:
    """Take the records of these trials out of the files of lines."""
    for path in folder.glob("*.jsonl"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if json.loads(line)["key"] not in keys))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--each", type=int, default=3)
    parser.add_argument("--most", type=float, default=20.0)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--renew", nargs="+", metavar="NAME", default=[])
    parser.add_argument("--methods", nargs="+", metavar="PART", default=[])
    parser.add_argument("--trials", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.renew:
        renew(asked.renew, asked.methods)
        return
    if asked.trials:
        print(json.dumps(run_here(json.load(sys.stdin))))
        return
    told = defaultdict(list)
    for record in chosen(asked.each, asked.most):
        (here,) = run_in(ROOT, [record["trial"]])
        moved = differences(record["result"], here)
        if moved and asked.against:
            (there,) = run_in(asked.against, [record["trial"]])
            moved += f"; there: {differences(record['result'], there) or 'as recorded'}"
        told[kind(record)].append(moved)
        print(f"{' '.join(kind(record)):32} {moved or 'the same'}", flush=True)
    for name, moved in sorted(told.items()):
        print(f"{' '.join(name):32} {sum(not m for m in moved)} of {len(moved)} the same")


if __name__ == "__main__":
    main()
