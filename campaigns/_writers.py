"""Everything that writes files, with what a reader must find whatever stops it on the way.

A writer puts state "a", "b" or "c" into a folder; its reader tells which one is there, whole, or
raises.  Nothing is drawn for real: a picture is a word here.
"""

import errno
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd

STATES = {"a": 1.0, "b": 2.0, "c": 3.0}
# What changes a disk, and reading, which a dying process does too.
EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate")


class Writer(NamedTuple):
    """How a state is written and read."""

    write: Callable[[Path, str], Any]
    read: Callable[[Path], str]
    touches: int  # how often a folder that holds another state is touched
    size: int  # of the largest file, in bytes, or a little less
    keeps: bool = False  # whether states add up, so that none may ever be lost


class MixedError(Exception):
    """Parts of two states, or half of one, were read as if they were whole."""


@cache
def model(state: str) -> Any:
    """A fit whose parameters and numbers both tell the state."""
    import rescore as rs

    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    X = pd.DataFrame({"u": a, "v": STATES[state] * a + rng.normal(size=60)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rs.Linear(least_share=STATES[state] / 1000).fit(X)


def state_of(found: Any) -> str:
    """The state a model is of, if all of it is."""
    from rescore.exchange.saving import fingerprint

    for state, size in STATES.items():
        if fingerprint(found) == fingerprint(model(state)):
            if found.least_share != size / 1000:
                raise MixedError(f"numbers of {state} with parameters of another")
            return state
    raise MixedError("a model of none of the states")


def _save(folder: Path, state: str) -> None:
    import rescore as rs

    rs.save(model(state), folder)


def _load(folder: Path) -> str:
    import rescore as rs

    return state_of(rs.load(folder))


@contextmanager
def _words_for_pictures() -> Iterator[None]:
    from rescore.reports import folder

    with (
        patch.object(folder, "draw_graph", lambda W, *_: f"picture of {np.abs(W).max():.6f}"),
        patch.object(folder, "svg", lambda figure: figure),
        patch.object(folder, "png", lambda figure: figure.encode()),
        patch.object(folder, "render_page", lambda run: f"page of {run.source}"),
    ):
        yield


def _write_run(folder: Path, state: str) -> None:
    from rescore.reports.folder import write_run
    from rescore.reports.run import Run

    with _words_for_pictures():
        write_run(folder, Run(model(state), source=state))


def _read_run(folder: Path) -> str:
    """What a reader finds, with the files beside it while nobody writes."""
    from rescore.exchange.saving import fingerprint, saved_fingerprint
    from rescore.reports.run import read_run
    from rescore.staging import settled

    run = read_run(folder)
    state = state_of(run.model)
    if run.source != state:
        raise MixedError(f"run.json of {run.source} with the model of {state}")
    with settled(folder) as place:
        same = saved_fingerprint(place) == fingerprint(run.model)
        if same:
            _check_files(folder, state)
    return state if same else _read_run(folder)  # another came in between


def _check_files(folder: Path, state: str) -> None:
    """Once a run is read, every file beside it is of the same state; pictures may be missing."""
    W = model(state).adjacency_matrix_.to_numpy()
    drawn = f"picture of {np.abs(W).max():.6f}"
    expected = {"report.html": f"page of {state}", "graph.svg": drawn, "graph.png": drawn}
    for name, text in expected.items():
        if (folder / name).exists() and (folder / name).read_text() != text:
            raise MixedError(f"{name} of another state than {state}")
    from rescore.graph.io import read_graph

    for name in ("graph.json", "adjacency.csv", "graph.graphml"):
        if not np.array_equal(read_graph(folder / name).to_numpy(), W):
            raise MixedError(f"{name} of another state than {state}")


@cache
def _stability(state: str) -> Any:
    import rescore as rs

    X = pd.DataFrame(np.random.default_rng(1).normal(size=(60, 2)), columns=["u", "v"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rs.bootstrap(model(state), X, resamples=2)


def _write_stability(folder: Path, state: str) -> None:
    """A run, and what resamples say about it."""
    from rescore.reports.folder import write_run, write_stability
    from rescore.reports.run import Run

    run = Run(model(state), source=state)
    with _words_for_pictures():
        write_run(folder, run)
        write_stability(folder, run, _stability(state))


def _simulate(folder: Path, state: str) -> None:
    from rescore.cli.truth import _write
    from rescore.data.simulate import simulate

    data = simulate(nodes=3, degree=1, samples=20, random_state=int(STATES[state]))
    _write(folder, data, {"state": state})


def _read_simulated(folder: Path) -> str:
    import json

    from rescore.data.simulate import simulate
    from rescore.staging import settled
    from rescore.tables.files import read_table

    with settled(folder) as place:
        state = json.loads(place("simulation.json").read_text())["state"]
        X = read_table(place("data.csv"))
    expected = simulate(nodes=3, degree=1, samples=20, random_state=int(STATES[state])).X
    if not np.array_equal(X, expected):
        raise MixedError("the rows of one simulation with the words of another")
    return str(state)


def _record(folder: Path, state: str) -> None:
    from rescore.experiments.store import Store

    Store(folder).write({"key": state, "status": "ok", "result": {"shd": STATES[state]}})


def _pack(folder: Path, state: str) -> None:
    from rescore.experiments.store import Store

    _record(folder, state)
    Store(folder).pack()


def _records(folder: Path) -> str:
    from rescore.experiments.store import Store

    store = Store(folder)
    found = store.read()
    if store.passed_over() or any(r["result"]["shd"] != STATES[k] for k, r in found.items()):
        raise MixedError(f"half a record: {store.passed_over()}")
    return "".join(sorted(found))


def _knowledge(folder: Path, state: str) -> None:
    import rescore as rs

    rs.Knowledge(forbidden=[(state, "z")] * 50).write(folder / "known.json")


def _read_knowledge(folder: Path) -> str:
    import rescore as rs

    return str(rs.Knowledge.read(folder / "known.json").forbidden[0][0])


def _adjacency(folder: Path, state: str) -> None:
    from rescore.graph.io import write_adjacency

    names = [f"{state}{k}" for k in range(12)]
    write_adjacency(folder / "g.csv", pd.DataFrame(np.eye(12, k=1), names, names))


def _read_adjacency(folder: Path) -> str:
    from rescore.graph.io import read_graph

    found = read_graph(folder / "g.csv")
    if found.shape != (12, 12):
        raise MixedError(f"half a graph {found.shape}")
    return str(found.columns[0])[0]


WRITERS = {
    "save": Writer(_save, _load, 18, 3700),
    "run": Writer(_write_run, _read_run, 78, 3700),
    "stability": Writer(_write_stability, _read_run, 112, 3700),
    "simulate": Writer(_simulate, _read_simulated, 24, 1100),
    "record": Writer(_record, _records, 4, 50, keeps=True),
    "pack": Writer(_pack, _records, 11, 100, keeps=True),
    "knowledge": Writer(_knowledge, _read_knowledge, 3, 1200),
    "graph": Writer(_adjacency, _read_adjacency, 3, 400),
}


def in_a_child(work: Callable[[], Any], prepare: Callable[[], Any]) -> tuple[int, str]:
    """Do the work in a forked process: its exit code (0 well, 1 an error, < 0 died), its words."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a process with threads is forked
        child = os.fork()
    if child == 0:
        code = 0
        try:
            os.close(reading)
            warnings.simplefilter("ignore")
            prepare()
            work()
        except BaseException as error:
            code = 1
            os.write(writing, f"{type(error).__name__}: {error}"[:2000].encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as told:
        words = told.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), words


def at_event(number: int, folder: Path, then: Callable[[], Any]) -> Callable[[], None]:
    """Do ``then`` just before the process touches the folder for the ``number``-th time."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal number
        if event in EVENTS and _inside(arguments, folder):
            number -= 1
            if number == 0:
                then()

    return lambda: sys.addaudithook(hook)


def _inside(arguments: tuple[Any, ...], folder: Path) -> bool:
    paths = [os.fsdecode(a) for a in arguments[:2] if isinstance(a, str | bytes | os.PathLike)]
    return any(path.startswith(str(folder)) for path in paths)


def at_byte(number: int, deadly: bool) -> Callable[[], None]:
    """No file may grow beyond so many bytes: the process dies there, or hears of a full disk."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if deadly else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (number, resource.RLIM_INFINITY))

    return limit


def die() -> None:
    """As kill -9 does: nothing is closed, nothing cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(code: int) -> Callable[[], None]:
    """The answer of a disk that is full, read-only or broken."""

    def answer() -> None:
        raise OSError(code, os.strerror(code))

    return answer


FAULTS = {"full": errno.ENOSPC, "read-only": errno.EROFS, "broken": errno.EIO}
