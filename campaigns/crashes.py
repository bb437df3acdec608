"""A process that dies at every touch of the disk, in every writer: the old state or the new one."""

import itertools
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from campaigns._writers import WRITERS, at_byte, at_event, die, in_a_child

COUNT, SECONDS, TESTED = 600, 300, 10

Case = tuple[str, str, int]


def cases(seed: int) -> Iterator[Case]:
    """Every touch of every writer, in an order that the seed draws; and files torn at some byte."""
    rng = random.Random(seed)
    touches = [
        (name, "touch", k) for name, writer in WRITERS.items() for k in range(writer.touches)
    ]
    rng.shuffle(touches)
    for touch in itertools.chain(touches, itertools.repeat(None)):
        if touch is not None:
            yield touch
        name = rng.choice(list(WRITERS))
        yield name, "byte", rng.randrange(WRITERS[name].size)


def try_one(case: Case) -> str:
    """Write "a", die while writing "b", read, write "c"."""
    name, kind, number = case
    writer = WRITERS[name]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, "here")
        folder.mkdir()
        writer.write(folder, "a")
        fault = (
            at_event(number + 1, folder, die) if kind == "touch" else at_byte(number, deadly=True)
        )
        code, words = in_a_child(lambda: writer.write(folder, "b"), fault)
        found = writer.read(folder)
        writer.write(folder, "c")
        last = writer.read(folder)
    if code == 1:
        return f"BROKEN: {words}"
    allowed = {"a", "ab"} if code < 0 else {"ab" if writer.keeps else "b"}
    allowed |= {"b"} if code < 0 and not writer.keeps else set()
    if found not in allowed or last != (found + "c" if writer.keeps else "c"):
        return f"BROKEN: {name} ended with {code}, then had {found!r}, and {last!r} after 'c'"
    return "not reached" if code == 0 else "old" if found == "a" else "new"
