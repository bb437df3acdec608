"""A folder that changes all at once: files are finished elsewhere before they move in.

They are staged in a hidden folder inside.  One renaming of it to ``.finished-...`` is the moment
from which they count: before it nothing has changed, and after it whoever reads or writes the
folder next, under a lock, moves in what a crash has left on the way.
"""

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from rescore.text import printable

__all__ = ["Place", "check_folder", "refuse_others_files", "settled", "staged", "write_whole"]

UNFINISHED, FINISHED = ".unfinished-", ".finished-"
REMOVED = ".removed"  # beside finished files: the names that go when they come
PATIENCE = 60.0  # seconds to wait for another writer, who holds the lock while files are moved

Place = Callable[[str], Path]  # where the file of that name is


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder as a path, if it is one, or could be made; nothing is made yet.

    Examples
    --------
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     check_folder(file.name)
    Traceback (most recent call last):
        ...
    ValueError: '...' is not a folder, so the results cannot go there. Give another name.
    """
    path = Path(folder)
    nearest = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    shown = f"'{printable(nearest, 200)}'"
    if not nearest.is_dir():
        raise ValueError(
            f"{shown} is not a folder, so the results cannot go there. Give another name."
        )
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ValueError(f"No permission to write in {shown}. Give another folder.")
    return path


def refuse_others_files(
    folder: str | os.PathLike[str],
    ours: str,
    written: Iterable[str] = (),
    inputs: Iterable[str | os.PathLike[str] | None] = (),
) -> Path:
    """The folder as `check_folder` gives it, if it is empty or holds ``ours``, our mark.

    None of the ``inputs`` may be one of the files that are ``written`` there.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "thesis.txt").write_text("precious")
    ...     refuse_others_files(folder, "run.json")
    Traceback (most recent call last):
        ...
    ValueError: '...' is not empty and holds no run.json, so its files may be yours; ...
    """
    path = check_folder(folder)
    there = [p for p in path.iterdir() if p.name[:1] != "."] if path.is_dir() else []
    if there and not (path / ours).exists():
        raise ValueError(
            f"'{printable(path.absolute(), 200)}' is not empty and holds no {ours}, so its files "
            "may be yours; nothing is written there. Give a new folder."
        )
    places = {(path / name).resolve() for name in written}
    for given in inputs:
        if given is not None and Path(given).resolve() in places:
            raise ValueError(
                f"'{printable(given, 200)}' is read, and would be written over by the results. "
                "Give another folder."
            )
    return path


@contextmanager
def staged(
    folder: str | os.PathLike[str],
    stale: tuple[str, ...] = (),
    if_still: Callable[[Place], bool] | None = None,
) -> Iterator[Path]:
    """A scratch folder whose files replace those in ``folder`` when the block ends well.

    If it ends badly, say on a full disk, nothing in ``folder`` has changed.  Files named in
    ``stale`` that were not written this time are removed: an earlier run left them.  Whoever
    writes into the same folder at the same time waits; ``if_still`` is asked then whether the
    folder is still the one these files are for.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with staged(folder) as scratch:
    ...         _ = (scratch / "a.txt").write_text("done")
    ...     os.listdir(folder)
    ['a.txt']
    """
    target = check_folder(folder)
    made = not target.exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=target))
    except OSError as error:
        raise _unchanged(target, error) from error
    try:
        with locked(scratch):  # as long as somebody works in it
            yield scratch
        _make_durable(scratch, stale)
        with locked(target):
            _commit(scratch, target, if_still)
    except WritingError:
        raise
    except OSError as error:
        raise _unchanged(target, error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if made:
            with suppress(OSError):  # unless something is in it
                target.rmdir()


@contextmanager
def settled(folder: str | os.PathLike[str]) -> Iterator[Place]:
    """Hold the folder still while it is read; the block gets where each file is, or would be.

    What a crash kept from moving in is moved in first, or read where it is if that cannot be.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder, settled(folder) as place:
    ...     place("a.txt").name
    'a.txt'
    """
    path = Path(folder)
    with locked(path):
        with suppress(OSError):
            _settle(path)
        yield partial(_place, path)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it in, so that nobody ever sees half of it.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "a.txt"), b"done")
    ...     os.listdir(folder)
    ['a.txt']
    """
    partial_file = path.with_name(f".{path.name[:80]}.{uuid.uuid4().hex[:12]}.partial")
    try:
        with partial_file.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial_file, path)
    finally:
        partial_file.unlink(missing_ok=True)


class WritingError(OSError):
    """Writing failed, and the sentence says what is there now."""


def _unchanged(target: Path, error: OSError) -> WritingError:
    return WritingError(
        f"Writing to '{printable(target, 200)}' failed: {error.strerror or error}. "
        "What was there is unchanged."
    )


def _commit(scratch: Path, target: Path, if_still: Callable[[Place], bool] | None) -> None:
    """The one moment from which the new files count, and then their move."""
    _settle(target)  # what came before goes in before
    _sweep_up(target)
    if if_still is not None and not if_still(partial(_place, target)):
        raise WritingError(
            f"Another fit was written to '{printable(target, 200)}' meanwhile; it is left as it "
            "is. Give each fit a folder of its own."
        )
    for path in scratch.iterdir():
        if (target / path.name).is_dir():
            raise IsADirectoryError(0, f"'{printable(path.name, 200)}' is a folder there")
    finished = target / f"{FINISHED}{time.time_ns():020}-{scratch.name.removeprefix(UNFINISHED)}"
    os.rename(scratch, finished)
    _synchronise(target)
    try:
        _move_in(finished, target)
    except OSError as error:
        raise WritingError(
            f"All is written, but not everything could be moved into '{printable(target, 200)}': "
            f"{error.strerror or error}. It is whole in '{finished.name}' there, is read from "
            "there, and moves in when the folder is next read or written."
        ) from error


def _settle(target: Path) -> None:
    for finished in _finished(target):
        _move_in(finished, target)


def _move_in(finished: Path, target: Path) -> None:
    """Every step can be the last one: what is left is moved by whoever comes next."""
    for path in sorted(finished.iterdir()):
        if path.name != REMOVED:
            os.replace(path, target / path.name)
    for name in _removed(finished):
        (target / name).unlink(missing_ok=True)
    shutil.rmtree(finished)


def _place(folder: Path, name: str) -> Path:
    """Where the newest file of that name is, or would be."""
    for finished in reversed(_finished(folder)):
        if (finished / name).exists() or name in _removed(finished):
            return finished / name
    return folder / name


def _finished(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(f"{FINISHED}*") if path.is_dir())


def _removed(finished: Path) -> list[str]:
    """The names that go; none of them leads out of the folder."""
    try:
        lines = (finished / REMOVED).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return [line for line in lines if Path(line).name == line != ".."]


def _make_durable(scratch: Path, stale: tuple[str, ...]) -> None:
    """Everything on the disk itself, so that a power cut after the commit takes nothing away."""
    gone = set(stale) - {path.name for path in scratch.iterdir()}
    if gone:
        (scratch / REMOVED).write_text("\n".join(sorted(gone)), encoding="utf-8")
    for path in (*scratch.iterdir(), scratch):
        _synchronise(path)


def _synchronise(path: Path) -> None:
    handle = _opened(path)
    if handle is not None:
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep_up(target: Path) -> None:
    """Remove what killed writers left: nobody holds its lock, and it is not from just now."""
    for path in target.glob(f"{UNFINISHED}*"):
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - PATIENCE and not _is_locked(path):
                shutil.rmtree(path, ignore_errors=True)


def _is_locked(folder: Path) -> bool:
    try:
        with locked(folder, patience=0.0):
            return False
    except WritingError:
        return True


@contextmanager
def locked(folder: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Keep other threads and processes out; where files cannot be locked, go on without."""
    handle = _opened(folder)
    try:
        if handle is not None:
            _wait_for(handle, folder, patience)
        yield
    finally:
        if handle is not None:
            os.close(handle)  # and with it the lock


def _opened(folder: Path) -> int | None:
    try:
        return os.open(folder, os.O_RDONLY)
    except OSError:  # not there, or a system whose folders cannot be opened
        return None


def _wait_for(handle: int, folder: Path, patience: float) -> None:
    try:
        import fcntl
    except ImportError:
        return
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise WritingError(
                    f"Another program has kept '{printable(folder, 200)}' for {patience:g} "
                    "seconds. Wait for it, or give another folder."
                ) from None
            time.sleep(0.005)
        except OSError:  # a file system without locks
            return
