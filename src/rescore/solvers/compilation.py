"""How programs are compiled: in float64, and kept on disk for the next process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OFF = {"0", "off", "no"}


def use_persistent_cache() -> None:
    """Let JAX keep its compiled programs in a per-user cache folder.

    Called at the first compiled fit, never at import: where programs are kept is a setting of
    the whole process.  ``RESCORE_CACHE`` names another folder, or switches the cache off
    (``RESCORE_CACHE=off``).  A folder the user has configured in JAX is left alone, and without
    a folder that can be written to nothing is kept.

    Examples
    --------
    >>> import os
    >>> os.environ["RESCORE_CACHE"] = "off"
    >>> use_persistent_cache()  # does nothing
    >>> del os.environ["RESCORE_CACHE"]
    """
    import jax

    wanted = os.environ.get("RESCORE_CACHE", "")
    if wanted.lower() in OFF or jax.config.values["jax_compilation_cache_dir"]:
        return
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(wanted) if wanted else home / "rescore" / "jax"
    if not _writable(folder):
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


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

    use_persistent_cache()
    with jax.enable_x64(True):
        yield
