"""Compiled programs kept on disk, so that a second process does not compile them again."""

import os
from pathlib import Path

OFF = {"0", "off", "no"}


def use_persistent_cache() -> None:
    """Let JAX keep its compiled programs in a per-user cache folder.

    This sets JAX's configuration for the whole process, so only a program of its own calls it,
    such as the command line; importing rescore never does.  ``RESCORE_CACHE`` names another
    folder, or switches the cache off (``RESCORE_CACHE=off``).  A folder the user has configured
    in JAX is left alone.

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
    jax.config.update("jax_compilation_cache_dir", wanted or str(home / "rescore" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
