"""How programs are compiled: in float64, and kept on disk for the next process.

What is kept saves time and is never needed: a folder that cannot be written, is full, shared or
damaged costs another compilation, and no fit fails for it.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

OFF = {"0", "off", "no"}
DIGEST = hashlib.sha256().digest_size


def use_persistent_cache() -> None:
    """Let JAX keep its compiled programs in a per-user cache folder.

    Called at the first compiled fit, never at import: where programs are kept is a setting of
    the whole process.  ``RESCORE_CACHE`` names another folder, or switches the cache off
    (``RESCORE_CACHE=off``).  A folder the user has configured in JAX is left alone, and without
    a folder that can be written to nothing is kept.

    Examples
    --------
    >>> use_persistent_cache()
    >>> use_persistent_cache()  # does nothing more
    """
    import jax

    wanted = os.environ.get("RESCORE_CACHE", "")
    if wanted.lower() in OFF or jax.config.values["jax_compilation_cache_dir"]:
        return
    folder = _writable(wanted)
    if folder is None:
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    # Its own files are neither written at once nor looked at before they are run, and it warns of
    # every one that it cannot write or read.
    with suppress(ImportError, AttributeError):  # of a release that keeps them in another way
        from jax._src import compilation_cache as kept

        with kept._cache_initialized_mutex:
            kept._cache, kept._cache_initialized = Entries(folder), True  # type: ignore[assignment]


def _writable(wanted: str) -> Path | None:
    """The folder asked for, or the user's own; none if it cannot be written to."""
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(wanted) if wanted else Path(home, "rescore", "jax")
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # nobody's home
        return None
    return folder if os.access(folder, os.W_OK) else None


class Entries:
    """Compiled programs in a folder, each file ending with its digest.

    A file appears whole or not at all, and one that is not what was written is removed.

    Examples
    --------
    >>> entries = Entries(Path(tempfile.mkdtemp()))
    >>> entries.put("program", b"code")
    >>> entries.get("program"), entries.get("another")
    (b'code', None)
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder  # the name that JAX asks for

    def get(self, key: str) -> bytes | None:
        """What was kept under this key, if it is there and whole."""
        path = self._path / f"{key}-cache"
        try:
            content = path.read_bytes()
        except OSError:
            return None
        program = content[:-DIGEST]
        if hashlib.sha256(program).digest() == content[-DIGEST:]:
            return program
        with suppress(OSError):
            path.unlink()
        return None

    def put(self, key: str, program: bytes) -> None:
        """Keep it, if there is room."""
        with suppress(OSError):
            number, name = tempfile.mkstemp(dir=self._path)
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(program + hashlib.sha256(program).digest())
                os.replace(name, self._path / f"{key}-cache")
            except OSError:
                os.unlink(name)


@contextmanager
def float64() -> Iterator[None]:
    """Compile and compute in float64, here alone; programs are kept for the next process.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> with float64():
    ...     print(jnp.zeros(1).dtype)
    float64
    """
    import jax

    if _first_process() != os.getpid():
        raise RuntimeError(
            "This process was forked from one that had fitted with JAX, whose threads do not "
            "survive that: a fit would hang here. Start workers with "
            'multiprocessing.get_context("spawn"), or with joblib or dask, which do so themselves.'
        )
    use_persistent_cache()
    with jax.enable_x64(True):
        yield


@cache
def _first_process() -> int:
    """The process that first computed with JAX; a fork of it remembers."""
    return os.getpid()


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` with these options, kept on disk wherever that is possible.

    While it runs, other threads do too: a progress bar goes on moving.

    Examples
    --------
    >>> @compiled()
    ... def double(x):
    ...     return 2 * x
    >>> double(3)
    6
    """
    from numba import njit

    options = {"nogil": True} | options

    def wrap(function: Callable[..., Any]) -> Any:
        try:
            made: Any = njit(cache=True, **options)(function)
        except RuntimeError:  # neither beside the source nor at home is there a place for it
            return njit(**options)(function)
        with suppress(AttributeError, OSError):  # of a release that keeps them in another way
            made._cache._cache_file._source_stamp = _digest(
                Path(function.__code__.co_filename).parent
            )
        made._cache = _Forgiving(made._cache)
        return made

    return wrap


@cache
def _digest(folder: Path) -> str:
    """Of the modules of a folder that compile: what one calls of another is compiled into it.

    Numba by itself looks at the date of the one file.
    """
    contents = [path.read_bytes() for path in sorted(folder.glob("*.py"))]
    return hashlib.sha256(b"".join(c for c in contents if b"@compiled" in c)).hexdigest()


class _Forgiving:
    """Numba's own files of a function, where one that cannot be read or written is as good as none.

    Whatever can be wrong with them: numba unpickles them, and damage can raise anything.
    """

    def __init__(self, files: Any) -> None:
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def load_overload(self, *given: Any) -> Any:
        try:
            return self._files.load_overload(*given)
        except Exception:
            with suppress(Exception):
                self._files.flush()  # the next one to be kept begins anew
            return None

    def save_overload(self, *given: Any) -> None:
        with suppress(Exception):
            self._files.save_overload(*given)
