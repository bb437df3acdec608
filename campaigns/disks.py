"""A disk that is full, read-only, broken or slow: it is said truly, and nothing is mixed."""

import contextlib
import itertools
import os
import random
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from campaigns._writers import FAULTS, WRITERS, at_byte, at_event, in_a_child, refuse
from rescore.staging import WritingError

COUNT, SECONDS, TESTED = 600, 200, 10

Case = tuple[str, str, int]


def cases(seed: int) -> Iterator[Case]:
    """Every kind of fault at some touch of every writer, over and over."""
    rng = random.Random(seed)
    while True:
        kinds = list(itertools.product(WRITERS, [*FAULTS, "too large", "slow"]))
        rng.shuffle(kinds)
        for name, kind in kinds:
            writer = WRITERS[name]
            yield name, kind, rng.randrange(writer.size if kind == "too large" else writer.touches)


def try_one(case: Case) -> str:
    """Write "a", fail while writing "b", read; what was said must be so."""
    name, kind, number = case
    writer = WRITERS[name]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, "here")
        folder.mkdir()
        writer.write(folder, "a")
        if kind == "slow":
            return _two_at_once(name, folder, number)
        fault = (
            at_byte(number, deadly=False)
            if kind == "too large"
            else at_event(number + 1, folder, refuse(FAULTS[kind]))
        )
        before = _content(folder)
        code, words = in_a_child(lambda: writer.write(folder, "b"), fault)
        after = _content(folder)
        found = writer.read(folder)
    whole = {"a", "ab"} if writer.keeps else {"a", "b"}
    if found not in whole or (code == 0 and "b" not in found):
        return f"BROKEN: {name} ended with {code} ({words}), then had {found!r}"
    once = name != "stability"  # which writes twice, and may fail in between
    if code == 1 and "unchanged" in words and once and before != after:
        return f"BROKEN: {name} said {words!r}, but the files changed"
    if code == 1 and not words.startswith(("OSError", "WritingError", "FileNotFoundError")):
        return f"BROKEN: {name} said {words!r}"
    return "no fault" if code == 0 else "said"


def _content(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def _two_at_once(name: str, folder: Path, number: int) -> str:
    """Another process writes "b" slowly while "c" is written here."""
    writer = WRITERS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a process with threads is forked
        slow = os.fork()
    if slow == 0:
        try:
            warnings.simplefilter("ignore")
            at_event(number + 1, folder, lambda: time.sleep(0.1))()
            writer.write(folder, "b")
            os._exit(0)
        finally:
            os._exit(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a picture that came too late
            with contextlib.suppress(WritingError):  # or what resamples say of a fit that has gone
                writer.write(folder, "c")
        during = writer.read(folder)
    finally:
        _, status = os.waitpid(slow, 0)
    found = writer.read(folder)
    clean = {"abc"} if writer.keeps else {"b", "c"}
    if found not in clean or not set(during) <= set("abc"):
        return f"BROKEN: {name}, two at once: {during!r}, then {found!r}"
    # Who comes too late with a picture for another fit is told so, and that is all.
    return "two at once" if status == 0 else "one of two"
