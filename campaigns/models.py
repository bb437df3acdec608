"""Tampered models, with digests made to fit: a model that keeps its promises, or a sentence."""

import io
import json
import random
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from campaigns._writers import model
from campaigns.files import _change

COUNT, SECONDS, TESTED = 2000, 100, 60
NUMBERS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 2.0, 1e300, -1e-300]
WORDS = [None, True, -1, 10**30, 1.5, "", "x" * 10_000, "\0", [], [[]], {}, {"class": "os.system"}]

Case = tuple[str, int]


def cases(seed: int) -> Iterator[Case]:
    """Numbers, words, shapes, bytes and bombs in turn."""
    number = seed * 1_000_000
    while True:
        for kind in ("numbers", "shapes", "words", "bytes", "bombs"):
            yield kind, number
        number += 1


@cache
def _good() -> tuple[dict[str, Any], dict[str, Any]]:
    import rescore as rs

    with tempfile.TemporaryDirectory() as folder:
        rs.save(model("a"), folder)
        with np.load(Path(folder, "arrays.npz")) as archive:
            arrays = dict(archive)
        return json.loads(Path(folder, "model.json").read_text()), arrays


def try_one(case: Case) -> str:
    """Tamper, load, and look at what came."""
    import rescore as rs
    from rescore.exchange.saving import _digest

    kind, number = case
    rng = random.Random(f"{kind} {number}")
    about, arrays = json.loads(json.dumps(_good()[0])), {k: v.copy() for k, v in _good()[1].items()}
    packed = None
    if kind == "numbers":
        array = arrays[rng.choice(sorted(arrays))].reshape(-1)
        if len(array):
            with np.errstate(all="ignore"):
                array[rng.randrange(len(array))] = np.array(rng.choice(NUMBERS)).astype(array.dtype)
    elif kind == "shapes":
        name = rng.choice(sorted(arrays))
        arrays[name] = rng.choice([arrays[name][:1], arrays[name].T, arrays[name][None]])
    elif kind == "words":
        about[rng.choice(sorted(about))] = rng.choice(WORDS)
    elif kind == "bombs":
        packed = _bomb(rng.choice(["losses", "sample_weight", "evil"]), rng.choice([9, 11, 15]))
    if kind in ("numbers", "shapes") and rng.random() < 0.9:
        about["arrays"] = _digest(arrays)  # whoever tampers knows how
    with tempfile.TemporaryDirectory() as folder:
        text = bytearray(json.dumps(about).encode())
        raw = bytearray(packed or _packed(arrays))
        if kind == "bytes":
            _change(rng.choice([text, raw]), rng)
        Path(folder, "model.json").write_bytes(text)
        Path(folder, "arrays.npz").write_bytes(raw)
        try:
            found = rs.load(folder)
        except (ValueError, TypeError) as error:
            return "refused" if len(str(error)) > 20 else f"BROKEN: {error!r}"
    return _promises(found)


def _packed(arrays: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _bomb(name: str, digits: int) -> bytes:
    """An array whose header asks for far more than there is."""
    header = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (10**digits,)}
    np.lib.format.write_array_header_1_0(header, about)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}.npy", header.getvalue() + bytes(1000))
    return file.getvalue()


def _promises(found: Any) -> str:
    from rescore.graph.dag import is_dag

    W, w = found.adjacency_matrix_.to_numpy(), found.sample_weight_.to_numpy()
    if not np.isfinite(W).all() or not is_dag(W):
        return "BROKEN: a graph that is no DAG of finite numbers"
    if not (w >= 0).all() or abs(w.sum() - 1) > 1e-6:
        return "BROKEN: weights that are no shares"
    return "read"
