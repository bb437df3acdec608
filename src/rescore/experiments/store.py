"""Records on disk: a small JSON file for each trial, or many of them in one file of lines.

A file appears whole or not at all.  Nothing is ever rewritten: packing writes a new file and only
then removes what is in it, so that sweeps that run or stop at the same time lose nothing.  A file
with a line that is no record is never removed.
"""

import hashlib
import json
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rescore.staging import write_whole

__all__ = ["Record", "Store"]

Record = dict[str, Any]
STATUSES = ("ok", "not converged", "failed", "timed out")  # the best first
WITH_RESULT = STATUSES[:2]
TRIAL = ("data", "method", "seed", "version")


@dataclass(frozen=True)
class Store:
    """The records in a folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder))
    ...     store.write({"key": "ab", "status": "ok", "result": {}})
    ...     store.pack()
    ...     sorted(store.read()), len(list(Path(folder).iterdir()))
    (['ab'], 1)
    """

    folder: Path

    def write(self, record: Record) -> None:
        """Keep a record under its key."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / f"{record['key']}.json", f"{_line(record)}\n".encode())

    def read(self) -> dict[str, Record]:
        """All records by key, of two with one key the better; the rest is passed over."""
        return _best(_Part(path) for path in self._parts())

    def passed_over(self) -> list[str]:
        """The names of files with something in them that is no record; packing leaves them."""
        return [path.name for path in self._parts() if not _Part(path).whole]

    def pack(self) -> None:
        """All records into one file, a line each, in an order that does not depend on the run."""
        self._sweep_up()
        parts = [_Part(path) for path in self._parts()]
        found = _best(parts)
        if not found or (len(parts) == 1 and parts[0].path.suffix == ".jsonl"):
            return
        text = "".join(_line(found[key]) + "\n" for key in sorted(found))
        packed = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.jsonl"
        write_whole(packed, text.encode())
        for part in parts:
            if part.path != packed and part.whole and part.is_as_read():
                part.path.unlink(missing_ok=True)

    def _parts(self) -> list[Path]:
        """The files, those of single trials last: they are the newer ones."""
        return sorted(self.folder.glob("*.jsonl")) + sorted(self.folder.glob("*.json"))

    def _sweep_up(self) -> None:
        """Remove what killed processes had begun to write; a write takes far less than an hour."""
        for path in self.folder.glob(".*.json*.partial"):
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - 3600:
                    path.unlink()


class _Part:
    """What a file holds: its records, and whether that is all."""

    def __init__(self, path: Path) -> None:
        self.path, self.whole = path, True
        self.records: list[Record] = []
        try:
            self.read = path.stat()
            lines = path.read_bytes().split(b"\n")
        except FileNotFoundError:  # packed by another sweep meanwhile
            return
        except OSError:  # a folder, or a file of somebody else
            self.whole = False
            return
        for line in filter(bytes.strip, lines):
            record = _record(line)
            self.whole &= record is not None
            self.records += [] if record is None else [record]

    def is_as_read(self) -> bool:
        """Whether nobody has put a newer file in its place."""
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return False
        return (now.st_ino, now.st_mtime_ns) == (self.read.st_ino, self.read.st_mtime_ns)


def _best(parts: Iterable[_Part]) -> dict[str, Record]:
    """A result goes before an attempt that came to nothing, and otherwise the later file counts."""
    found: dict[str, Record] = {}
    for record in (record for part in parts for record in part.records):
        there = found.get(record["key"])
        if there is None or STATUSES.index(record["status"]) <= STATUSES.index(there["status"]):
            found[record["key"]] = record
    return found


def _record(line: bytes) -> Record | None:
    """The record in a line, if it is a whole one; files from elsewhere are data, and may lie."""
    try:
        record = json.loads(line)
        _line(record)  # neither NaN nor infinite
        whole = (
            isinstance(record["key"], str)
            and record["status"] in STATUSES
            and isinstance(record.get("result", {}), dict)
            and ("result" in record or record["status"] not in WITH_RESULT)
            and set(record.get("trial", TRIAL)) == set(TRIAL)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return record if whole else None


def _line(record: Record) -> str:
    return json.dumps(record, sort_keys=True, allow_nan=False)
