"""Records on disk: a small JSON file for each trial, or many of them in one file of lines.

A file appears whole or not at all.  Nothing is ever rewritten: packing writes a new file and only
then removes what is in it, so that sweeps that run or stop at the same time lose nothing.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Record", "Store"]

Record = dict[str, Any]


@dataclass(frozen=True)
class Store:
    """The records in a folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder))
    ...     store.write({"key": "ab", "status": "ok"})
    ...     store.pack()
    ...     sorted(store.read()), len(list(Path(folder).iterdir()))
    (['ab'], 1)
    """

    folder: Path

    def write(self, record: Record) -> None:
        """Keep a record under its key."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record, sort_keys=True, allow_nan=False)
        _write(self.folder / f"{record['key']}.json", text + "\n")

    def read(self) -> dict[str, Record]:
        """All records by key; files that are not whole records are passed over."""
        found: dict[str, Record] = {}
        for path in [*self.folder.glob("*.jsonl"), *self.folder.glob("*.json")]:
            found |= {record["key"]: record for record in _records(path)}
        return found

    def pack(self) -> None:
        """All records into one file, a line each, in an order that does not depend on the run."""
        parts = [*self.folder.glob("*.jsonl"), *self.folder.glob("*.json")]
        found = {record["key"]: record for path in parts for record in _records(path)}
        if not found or (len(parts) == 1 and parts[0].suffix == ".jsonl"):
            return
        lines = [json.dumps(found[key], sort_keys=True, allow_nan=False) for key in sorted(found)]
        text = "\n".join(lines) + "\n"
        packed = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.jsonl"
        _write(packed, text)
        for path in parts:
            if path != packed and all(r["key"] in found for r in _records(path)):
                path.unlink(missing_ok=True)


def _records(path: Path) -> Iterable[Record]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:  # packed by another sweep meanwhile
        return
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and "key" in record:
            yield record


def _write(path: Path, text: str) -> None:
    """Write beside and move into place, whatever interrupts it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
