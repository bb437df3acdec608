"""Which files of the package one fit passes, and how often control goes from one to another.

    python benchmarks/files_passed.py

Counted are files with a function that runs during `ReScore(Notears()).fit(X)`, after a first fit
that has imported and compiled everything; a switch is a call from a function of one file to a
function of another, directly or through a library.
"""

import sys
import warnings
from collections import Counter
from pathlib import Path

import rescore as rs

PACKAGE = Path(rs.__file__).parent


def passed(run):
    """How many functions of each file ``run`` calls, and how many calls lead to another file."""
    calls = Counter()
    stack = ["outside"]
    switches = 0

    def watch(frame, event, _):
        nonlocal switches
        path = Path(frame.f_code.co_filename)
        if event not in ("call", "return") or PACKAGE not in path.parents:
            return
        if event == "return":
            stack.pop()
            return
        name = str(path.relative_to(PACKAGE))
        calls[name] += 1
        switches += name != stack[-1]
        stack.append(name)

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls, switches


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    groups = {"groups": (0.9, 0.1), "noise_scale": 0.1}  # so that there is something to weigh
    X = rs.simulate(nodes=10, samples=1000, random_state=0, **groups).X
    model = rs.ReScore(rs.Notears())
    model.fit(X)
    calls, switches = passed(lambda: model.fit(X))
    for name, count in sorted(calls.items()):
        print(f"{count:6} {name}")
    print(f"{len(calls)} files, {switches} switches from one to another")
