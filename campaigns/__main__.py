"""Run campaigns, go on where they stopped, and print one table.

    python -m campaigns [NAME ...] [--seed 0] [--count N] [--seconds S] [--jobs 2] [-o FOLDER]

Every outcome is a line of ``FOLDER/NAME-SEED.jsonl``.  The cases of a campaign run in a process of
their own: one that hangs or dies is known by the line that is missing, and the next one follows.
"""

import argparse
import itertools
import json
import pkgutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import campaigns

BROKEN = "BROKEN: "
WALL = 10  # times the CPU seconds of a case: it may wait for others, but not for ever


def names() -> list[str]:
    """All campaigns."""
    return sorted(m.name for m in pkgutil.iter_modules(campaigns.__path__) if m.name[0] != "_")


def by_case(path: Path) -> list[list[str]]:
    """What was recorded so far; a last line that is not whole does not count."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    told = [json.loads(line)["outcome"] for line in lines]
    return [[outcome] if isinstance(outcome, str) else outcome for outcome in told]


def longest_first(chosen: list[str]) -> list[str]:
    """Those chosen, or all, so that two processes end at about the same time."""
    return sorted(chosen or names(), key=lambda name: -import_module(f"campaigns.{name}").SECONDS)


def outcomes(path: Path) -> list[str]:
    """What counts: most cases have one outcome, a case of several faults one for each."""
    return list(itertools.chain.from_iterable(by_case(path)))


def record(path: Path, outcome: str | list[str], case: object = None) -> None:
    """Add a line; what the case was is kept where it must be tried again by hand."""
    broken = isinstance(outcome, str) and outcome.startswith(BROKEN)
    line = {"outcome": outcome} | ({"case": case} if broken else {})
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, default=repr) + "\n")


def go_on(name: str, seed: int, count: int, path: Path) -> None:
    """Try the cases that have no line yet, until the process is ended or none is left."""
    campaign = import_module(f"campaigns.{name}")
    limit = getattr(campaign, "CPU_SECONDS", 60)
    tried, found = len(by_case(path)), len(outcomes(path))
    for case in itertools.islice(campaign.cases(seed), tried, None):
        if found >= count:
            break
        # The default answer to these signals is death, in compiled code too.
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.setitimer(signal.ITIMER_REAL, WALL * limit)
        try:
            outcome = campaign.try_one(case)
        except Exception as error:
            outcome = f"{BROKEN}{type(error).__name__}: {error}"
        record(path, outcome, case)
        found += 1 if isinstance(outcome, str) else len(outcome)


def run(name: str, seed: int, count: int | None, seconds: float | None, folder: Path) -> dict:
    """Start processes until the campaign has its count or its time is over."""
    campaign = import_module(f"campaigns.{name}")
    path = folder / f"{name}-{seed}.jsonl"
    count = campaign.COUNT if count is None else count
    began = time.monotonic()
    until = began + (campaign.SECONDS if seconds is None else seconds)
    _drop_half_a_line(path)
    while len(outcomes(path)) < count and time.monotonic() < until:
        words = ["--only", name, "--seed", str(seed), "--count", str(count), "-o", str(folder)]
        process = subprocess.Popen([sys.executable, "-m", "campaigns", *words])
        try:
            code = process.wait(timeout=max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            break
        if code == 0:
            break
        case = next(itertools.islice(campaign.cases(seed), len(by_case(path)), None), None)
        record(path, f"{BROKEN}{_ended(code)}", case)
    _drop_half_a_line(path)
    found = Counter(o.split(":")[0] for o in outcomes(path))
    return {"name": name, "found": found, "seconds": time.monotonic() - began, "count": count}


def _ended(code: int) -> str:
    if code == -signal.SIGPROF:
        return "it takes too much of the processor"
    if code == -signal.SIGALRM:
        return "it hangs"
    return f"the process ended with {signal.Signals(-code).name if code < 0 else code}"


def _drop_half_a_line(path: Path) -> None:
    if path.exists():
        text = path.read_text(encoding="utf-8")
        path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")


def table(results: list[dict]) -> str:
    """One line for each campaign."""
    lines = [f"{'campaign':<12} {'cases':>13} {'broken':>7} {'seconds':>8}  outcomes"]
    for result in results:
        found = result["found"]
        told = ", ".join(f"{n} {word}" for word, n in found.most_common() if word != "BROKEN")
        tried = f"{found.total()} of {result['count']}"
        lines.append(
            f"{result['name']:<12} {tried:>13} {found['BROKEN']:>7} {result['seconds']:>8.0f}  "
            f"{told}"
        )
    return "\n".join(lines)


def main() -> int:
    """The exit code is 1 if anything is broken."""
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, help="cases of each campaign")
    parser.add_argument("--seconds", type=float, help="that each campaign may take")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=Path("build/campaigns"))
    parser.add_argument("--only", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    if given.only:
        path = given.output / f"{given.only}-{given.seed}.jsonl"
        go_on(given.only, given.seed, given.count, path)
        return 0
    with ThreadPoolExecutor(given.jobs) as pool:
        shared = (given.seed, given.count, given.seconds, given.output)
        results = list(pool.map(lambda name: run(name, *shared), longest_first(given.names)))
    print(table(results))
    for result in results:
        path = given.output / f"{result['name']}-{given.seed}.jsonl"
        told = Counter(o for o in outcomes(path) if o.startswith(BROKEN))
        for outcome, times in told.most_common(10):
            print(f"{result['name']}, {times} times: {outcome.removeprefix(BROKEN)[:300]}")
    return int(any(result["found"]["BROKEN"] for result in results))


if __name__ == "__main__":
    sys.exit(main())
