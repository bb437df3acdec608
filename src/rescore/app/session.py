"""A session of the workbench, in a folder of its own: the table's bytes and the list of steps."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rescore.app.recipe import Recipe, Step, recipe_of, told
from rescore.staging import write_whole
from rescore.tables.files import DELIMITERS, WORKBOOKS
from rescore.text import printable

__all__ = ["ENDINGS", "MOST_STEPS", "Session", "safe_name"]

FILE = "session.json"
SCHEMA = 1
ENDINGS = (*sorted(DELIMITERS, key=len, reverse=True), ".parquet", *WORKBOOKS)
MOST_STEPS = 1000


class Session:
    """Steps taken with a table, of which the first ``at`` hold: undoing moves ``at`` back.

    All of it is in the folder after every step, so that whoever opens the folder next goes on.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     session = Session(Path(folder))
    ...     session.take({"do": "forbid", "edges": [["a", "b"]]})
    ...     session.go(0)
    ...     Session(Path(folder)).steps, Session(Path(folder)).recipe.forbidden
    ([{'do': 'forbid', 'edges': [['a', 'b']]}], ())
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[dict[str, Any]] = []
        self.at = 0
        self.source = ""  # the name of the table's file, as it was called
        self.digest = ""  # of its bytes
        self.places: dict[str, list[float]] = {}  # of variables that were moved
        if (folder / FILE).is_file():
            self._open()

    @property
    def table(self) -> Path:
        """Where the table's bytes are; its name is ours but for the ending, which tells the format.

        Examples
        --------
        >>> session = Session(Path("nowhere"))
        >>> session.source = "../../etc/<b>.CSV.gz"
        >>> session.table.as_posix()
        'nowhere/table.csv.gz'
        """
        return self.folder / f"table{ending_of(self.source)}"

    @property
    def recipe(self) -> Recipe:
        """What the steps that hold ask for."""
        return recipe_of(self.steps[: self.at])

    @property
    def key(self) -> str:
        """The name of the fit that the steps ask for."""
        return self.recipe.key(self.digest)

    def load(self, name: str) -> None:
        """Begin anew with the table whose bytes are in `table`, and whose file had that name."""
        self.source, self.steps, self.at, self.places = name, [], 0, {}
        with self.table.open("rb") as file:
            self.digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._save()

    def take(self, step: Step) -> None:
        """Add a step after those that hold, if it can be taken; what was undone is gone then."""
        if len(self.steps) >= MOST_STEPS:
            raise ValueError(f"There are {MOST_STEPS} steps already. Export, and begin anew.")
        steps = [*self.steps[: self.at], dict(step)]
        recipe_of(steps)
        self.steps, self.at = steps, len(steps)
        self._save()

    def go(self, at: int) -> None:
        """Let the first ``at`` steps hold: back, or forward again."""
        if not 0 <= at <= len(self.steps):
            raise ValueError(f"There are {len(self.steps)} steps, so there is no place {at}.")
        self.at = at
        self._save()

    def move(self, places: Mapping[str, Any]) -> None:
        """Remember where variables were moved to."""
        self.places = _places(places)
        self._save()

    def history(self) -> list[dict[str, Any]]:
        """Every step in words, whether it holds, and the name of the fit it led to."""
        return [
            {"told": told(step), "holds": k < self.at,
             "key": recipe_of(self.steps[: k + 1]).key(self.digest)}
            for k, step in enumerate(self.steps)
        ]  # fmt: skip

    def _save(self) -> None:
        data = {
            "schema": SCHEMA, "source": self.source, "digest": self.digest, "steps": self.steps,
            "at": self.at, "places": self.places,
        }  # fmt: skip
        write_whole(self.folder / FILE, json.dumps(data, allow_nan=False).encode())

    def _open(self) -> None:
        try:
            data = json.loads((self.folder / FILE).read_text(encoding="utf-8"))
            steps = [dict(step) for step in data["steps"]]
            recipe_of(steps)
            self.steps, self.at = steps, min(max(int(data["at"]), 0), len(steps))
            self.source, self.digest = str(data["source"]), str(data["digest"])
            self.places = _places(data["places"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"'{printable(self.folder / FILE, 200)}' is no session of the workbench: "
                f"{printable(error, 200)}. Give another folder."
            ) from error


def _places(places: Mapping[str, Any]) -> dict[str, list[float]]:
    return {str(name): [float(x), float(y)] for name, (x, y) in places.items()}


def ending_of(name: str) -> str:
    """The part of a file's name that tells its format, or a sentence with the ones that are known.

    Examples
    --------
    >>> ending_of("Sachs.CSV.GZ")
    '.csv.gz'
    """
    lower = name.lower()
    found = next((ending for ending in ENDINGS if lower.endswith(ending)), None)
    if found is None and name:
        raise ValueError(
            f"'{printable(name)}' does not end in {', '.join(ENDINGS)}. Convert it to one of them."
        )
    return found or ""


def safe_name(name: str) -> str:
    """The file's name as it may stand in a script, a command and an archive.

    Examples
    --------
    >>> safe_name("../my data (2).csv"), safe_name("-o.csv")
    ('my_data_2_.csv', 'o.csv')
    """
    bare = re.split(r"[\\/]", name)[-1]
    return re.sub(r"[^\w.-]+", "_", bare, flags=re.ASCII).lstrip(".-_")[-120:] or "table.csv"
