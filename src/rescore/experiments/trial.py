"""One run of one method on one data set: a value with a hash of its content."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rescore import __version__

__all__ = ["Trial", "flat"]


@dataclass(frozen=True)
class Trial:
    """What determines a result: the data, the method, the seed and the version of the library.

    Two trials are the same if their contents are, whatever the order of their parts.

    Examples
    --------
    >>> one = Trial({"source": "simulate", "nodes": 5}, {"learner": "Linear"}, seed=0)
    >>> same = Trial({"nodes": 5, "source": "simulate"}, {"learner": "Linear"}, seed=0)
    >>> one.key == same.key, one.key == Trial(one.data, one.method, seed=1).key
    (True, False)
    """

    data: Mapping[str, Any]
    method: Mapping[str, Any]
    seed: int
    version: str = __version__

    @property
    def content(self) -> dict[str, Any]:
        """All of it, as plain data."""
        return {
            "data": dict(self.data),
            "method": dict(self.method),
            "seed": self.seed,
            "version": self.version,
        }

    @property
    def key(self) -> str:
        """A hash of the content, the name of its record."""
        text = json.dumps(self.content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


def flat(spec: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, the names joined by dots.

    Examples
    --------
    >>> flat({"learner": "Notears", "rescore": {"tau": 0.5}})
    {'learner': 'Notears', 'rescore.tau': 0.5}
    """
    found: dict[str, Any] = {}
    for name, value in spec.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found
