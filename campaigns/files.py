"""Damaged and hostile files, given to every reader: a whole answer, or a sentence."""

import gzip
import json
import random
import resource
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

COUNT, SECONDS, TESTED = 5000, 100, 120
MOST_MEMORY = 600_000  # kilobytes by which a file of a few kilobytes may raise the process's peak

Case = tuple[str, int]

HOSTILE = [
    b"\0", b"\r", b"\n", b'"', b"'", b",", b";", b"\t", b"=cmd()", b"@SUM(1)", b"1e999", b"-inf",
    b"nan", b"NA", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\x1b[31m", b"../../x", b"<a>",
    b"&#x41;", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"{", b"}", b"[" * 3000, b'{"a":' * 2000,
    b"9" * 400, b"1e308", b"-0", b"true", b"null", b"x" * 10_000, b"\\u0000", b"\\", b"]]>", b"->",
    b"[[", b"]", b"*", b"1_000", "١٢".encode(), b"0x10",
]  # fmt: skip


def cases(seed: int) -> Iterator[Case]:
    """Every reader in turn."""
    number = seed * 1_000_000
    while True:
        for reader in sorted(READERS):
            yield reader, number
        number += 1


def try_one(case: Case) -> str:
    """Damage a good file and read it."""
    reader, number = case
    name, good, read = READERS[reader]
    damaged = _damaged(good(), random.Random(f"{reader} {number}"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(damaged)
        outcome = _answer(read, path)
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before > MOST_MEMORY:
        return f"BROKEN: {reader} took more than {MOST_MEMORY // 1000} MB for {len(damaged)} bytes"
    return outcome


def _answer(read: Callable[[Path], None], path: Path) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)
    except AssertionError as error:
        return f"BROKEN: {path.name} was read as something else {error}"
    except (ValueError, TypeError, OSError) as error:
        # A sentence of ours, not whatever a library underneath happened to say.
        if type(error) not in (ValueError, TypeError, FileNotFoundError) or len(str(error)) < 15:
            return f"BROKEN: {path.name}: {type(error).__name__}: {error}"
        return "refused"
    return "read"


def _damaged(good: bytes, rng: random.Random) -> bytes:
    """One to four small changes; now and then none, and now and then a file packed anew."""
    raw = bytearray(good)
    packed = raw[:2] == b"\x1f\x8b"
    if packed and rng.random() < 0.7:  # what is inside, too
        raw = bytearray(gzip.decompress(good))
    for _ in range(rng.randrange(5)):
        _change(raw, rng)
    return gzip.compress(bytes(raw)) if packed and raw[:2] != b"\x1f\x8b" else bytes(raw)


def _change(raw: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(raw) + 1)
    length = rng.choice([1, 1, 2, 8, 64])
    kind = rng.randrange(6)
    if kind == 0 and raw:
        raw[min(at, len(raw) - 1)] = rng.randrange(256)
    elif kind == 1:
        del raw[at : at + length]
    elif kind == 2:
        raw[at:at] = rng.choice(HOSTILE)
    elif kind == 3:
        raw[at : at + length] = rng.choice(HOSTILE)
    elif kind == 4:
        del raw[at:]
    else:
        raw[at:at] = raw[at : at + length] * rng.choice([1, 2, 50])


def _table(path: Path) -> None:
    from rescore.tables.files import read_table

    frame = read_table(path)
    assert frame.shape[0] >= 1, frame.shape
    assert frame.columns.is_unique
    assert np.isfinite(frame.to_numpy(float)).all()


def _graph(path: Path) -> None:
    from rescore.graph.io import read_graph

    frame = read_graph(path)
    assert frame.shape[0] == frame.shape[1]
    assert frame.columns.is_unique
    assert list(frame.index) == list(frame.columns)
    assert np.isfinite(frame.to_numpy(float)).all()


def _knowledge(path: Path) -> None:
    import rescore as rs

    rs.Knowledge.read(path)


def _experiment(path: Path) -> None:
    from rescore.experiments import read_experiment

    for size in ("full", "quick", "tiny"):
        assert all(case.trial.key for case in read_experiment(path).cases(size)[:100])


def _store(path: Path) -> None:
    from rescore.experiments.store import Store

    before = path.read_bytes()
    store = Store(path.parent)
    found = store.read()
    store.pack()
    assert store.read() == found
    lines = sum(1 for line in before.decode(errors="replace").split("\n") if line.strip())
    if lines > len(found):  # what could not be read is still there
        assert path.read_bytes() == before


@cache
def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    names = ["a", "b c", "d,e", "ß"]
    return pd.DataFrame(rng.normal(size=(12, 4)).round(3), columns=names)


@cache
def _csv(delimiter: str = ",") -> bytes:
    return _frame().to_csv(index=False, sep=delimiter).encode()


@cache
def _packed() -> bytes:
    return gzip.compress(_csv(), mtime=0)


@cache
def _parquet() -> bytes:
    import io

    file = io.BytesIO()
    _frame().to_parquet(file)
    return file.getvalue()


@cache
def _graph_text(form: str, *delimiter: str) -> bytes:
    from rescore.graph import dagitty, formats, io

    W = np.triu(np.arange(16.0).reshape(4, 4), 1)
    writers: dict[str, Any] = {
        "matrix": io.to_adjacency,
        "edges": io.to_edge_list,
        "json": formats.to_json,
        "graphml": formats.to_graphml,
        "dagitty": dagitty.to_dagitty,
    }
    return writers[form](W, list(_frame().columns), *delimiter).encode()


TETRAD = b"""/knowledge
addtemporal
1 a b
2* c
forbiddirect
a c
requiredirect
a b
"""
KNOWLEDGE = {"forbidden": [["a", "b"]], "required": [["c", "a"]], "tiers": [["c"], ["a"]]}
EXPERIMENT = b"""title = "Mine"
about = "Nothing"
seeds = 3
protocol = "honest"
[[data]]
source = "simulate"
nodes = 5
over = {samples = [50, 100], degree = [1, 2]}
[[methods]]
name = "Linear"
learner = "Linear"
parameters = {noise = "equal"}
rescore = {tau = 0.5}
[[methods]]
name = "Notears"
learner = "Notears"
where = {degree = [1]}
over = {"parameters.lambda1" = [0.1, 0.2]}
[quick]
seeds = 1
over = {samples = [50]}
"""
RECORDS = "".join(
    json.dumps({"key": f"k{k}", "status": "ok", "result": {"shd": k}}) + "\n" for k in range(3)
).encode()

READERS: dict[str, tuple[str, Callable[[], bytes], Callable[[Path], None]]] = {
    "csv": ("t.csv", _csv, _table),
    "tsv": ("t.tsv", lambda: _csv("\t"), _table),
    "gzip": ("t.csv.gz", _packed, _table),
    "parquet": ("t.parquet", _parquet, _table),
    "matrix": ("g.csv", lambda: _graph_text("matrix"), _graph),
    "edges": ("g.tsv", lambda: _graph_text("edges", "\t"), _graph),
    "graph json": ("g.json", lambda: _graph_text("json"), _graph),
    "graphml": ("g.graphml", lambda: _graph_text("graphml"), _graph),
    "dagitty": ("g.dagitty", lambda: _graph_text("dagitty"), _graph),
    "tetrad": ("k.txt", lambda: TETRAD, _knowledge),
    "knowledge": ("k.json", lambda: json.dumps(KNOWLEDGE).encode(), _knowledge),
    "experiment": ("e.toml", lambda: EXPERIMENT, _experiment),
    "records": ("r.jsonl", lambda: RECORDS, _store),
}
