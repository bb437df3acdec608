"""A folder that changes all at once: files are finished elsewhere before they move in."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rescore.text import printable

__all__ = ["check_folder", "staged"]


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


@contextmanager
def staged(folder: str | os.PathLike[str], stale: tuple[str, ...] = ()) -> Iterator[Path]:
    """A scratch folder whose files replace those in ``folder`` when the block ends well.

    If it ends badly, say on a full disk, nothing in ``folder`` has changed.  Files named in
    ``stale`` that were not written this time are removed: an earlier run left them.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with staged(folder) as scratch:
    ...         _ = (scratch / "a.txt").write_text("done")
    ...     os.listdir(folder)
    ['a.txt']
    """
    target = check_folder(folder)
    target.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=target))
    try:
        yield scratch
        finished = sorted(path.name for path in scratch.iterdir())
        for name in finished:
            os.replace(scratch / name, target / name)
        for name in set(stale) - set(finished):
            (target / name).unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(
            f"Writing to '{printable(target, 200)}' failed: {reason}. What was there is unchanged."
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
