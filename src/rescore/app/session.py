"""A session of the workbench in a folder of its own, and the trail it leaves.

The folder holds the table's bytes and the list of steps; the trail is a script and a command that
repeat the fit exactly.
"""

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from pprint import pformat
from typing import Any

import numpy as np
import pandas as pd

from rescore import __version__
from rescore.app.recipe import SEED, Recipe, Step, recipe_of, told
from rescore.known_edges import Knowledge
from rescore.learners import RECOMMENDED, load_learner, option_word
from rescore.staging import write_whole
from rescore.studies.table_input import Input, row_numbers
from rescore.tables.files import DELIMITERS, WORKBOOKS
from rescore.tables.table import Table
from rescore.text import in_commas, printable

__all__ = [
    "KNOWLEDGE_FILE",
    "MOST_STEPS",
    "ROWS_FILE",
    "Session",
    "Shelf",
    "command",
    "ending_of",
    "safe_name",
    "script",
]

FILE, FITS = "session.json", "fits"
SCHEMA = 1
ENDINGS = (*sorted(DELIMITERS, key=len, reverse=True), ".parquet", *WORKBOOKS)
MOST_STEPS = 1000
PIECE = 16_384  # rows that are written at once
KNOWLEDGE_FILE, ROWS_FILE = "knowledge.json", "left_out.txt"  # beside the table
MOST_INLINE = 400  # characters of row numbers in a command or script


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
        self._lines: list[dict[str, Any]] = []  # of the history, as far as they are known
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
        self.source, self.steps, self.at, self.places, self._lines = name, [], 0, {}, []
        with self.table.open("rb") as file:
            self.digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._save()

    def take(self, step: Step) -> None:
        """Add a step after those that hold, if it can be taken; what was undone is gone then."""
        if len(self.steps) >= MOST_STEPS:
            raise ValueError(f"There are {MOST_STEPS} steps already. Export, and begin anew.")
        steps = [*self.steps[: self.at], dict(step)]
        recipe_of(steps)
        del self._lines[self.at :]
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
        for k in range(len(self._lines), len(self.steps)):
            key = recipe_of(self.steps[: k + 1]).key(self.digest)
            self._lines.append({"told": told(self.steps[k]), "key": key})
        return [line | {"holds": k < self.at} for k, line in enumerate(self._lines)]

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


class Shelf:
    """Tables that were read and the rows of fits, in files of the session's folder.

    All processes have a table in memory once, and only one of them reads its text.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put_table(self, key: str, table: Input) -> Input:
        """The same with its numbers in a file."""
        self._write(key, "values.npy", lambda file: np.save(file, table.X.values))
        if table.X.levels or table.X.receipt:  # each process reads the text, and can tell of it
            return replace(table, X=replace(table.X, values=self.mapped(key, "values.npy")))
        words, codes = np.unique(table.groups or [], return_inverse=True)
        told = json.dumps({"names": table.X.names, "words": words.tolist()})
        rows: dict[str, Any] = {"told": np.array(told)}
        rows |= {} if table.groups is None else {"codes": codes.astype(np.int32)}
        rows |= {} if table.sample_weight is None else {"weight": table.sample_weight}
        self._write(key, "input.npz", lambda file: np.savez(file, **rows))
        return self.table(key) or table

    def table(self, key: str) -> Input | None:
        """What this process or another one has read before."""
        rows = self.rows(key, "input.npz")
        if rows is None:
            return None
        told, values = json.loads(str(rows["told"])), self.mapped(key, "values.npy")
        words = told["words"]
        labels = [words[code] for code in rows["codes"]] if "codes" in rows else None
        table = Table(values, tuple(told["names"]), pd.RangeIndex(len(values)))
        return Input(table, rows.get("weight"), labels)

    def put_rows(self, key: str, losses: Any, rows: dict[str, Any]) -> None:
        """Of a fit: the losses of every cell, and what there is of every row."""
        self._write(key, "losses.npy", lambda file: _save_in_half(file, losses))
        self._write(key, "rows.npz", lambda file: np.savez(file, **rows))

    def put_fit(self, key: str, told: str) -> None:
        """What a page shows of a fit, as JSON."""
        kept = f'{{"version": "{__version__}", "told": {told}}}'
        self._write(key, "fit.json", lambda file: file.write(kept.encode()))

    def fit(self, key: str) -> dict[str, Any] | None:
        """The same, if it is there and this version has made it."""
        if not key or not self.place(key, "fit.json").is_file():
            return None
        kept = json.loads(self.place(key, "fit.json").read_text(encoding="utf-8"))
        return dict(kept["told"]) if kept["version"] == __version__ else None

    def rows(self, key: str, name: str = "rows.npz") -> dict[str, Any] | None:
        """Arrays by their names, if they are there."""
        if not key or not self.place(key, name).is_file():
            return None
        with np.load(self.place(key, name), allow_pickle=False) as found:
            return dict(found)

    def mapped(self, key: str, name: str) -> Any:
        """An array in the memory of all processes together."""
        return np.asarray(np.load(self.place(key, name), mmap_mode="r", allow_pickle=False))

    def place(self, key: str, name: str) -> Path:
        """Where a file of a fit or table is."""
        if not key.isalnum():
            raise ValueError("That is no name of a fit.")
        return self.folder / FITS / key / name

    def _write(self, key: str, name: str, write: Callable[[Any], Any]) -> None:
        """A file is there whole or not at all; two processes may write the same."""
        coming = self.place(key, f".{os.getpid()} {name}")
        coming.parent.mkdir(parents=True, exist_ok=True)
        with coming.open("wb") as file:
            write(file)
        os.replace(coming, self.place(key, name))


def _save_in_half(file: Any, values: Any) -> None:
    """As `np.save` does in float32, piece by piece: a large table has no room for half a copy."""
    about = {"descr": "<f4", "fortran_order": False, "shape": values.shape}
    np.lib.format.write_array_header_1_0(file, about)
    for at in range(0, len(values), PIECE):
        file.write(np.ascontiguousarray(values[at : at + PIECE], dtype="<f4").tobytes())


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


def command(recipe: Recipe, table: str) -> str:
    """The command that makes the same fit; what is long is in files beside the table.

    Examples
    --------
    >>> from rescore.app.recipe import recipe_of
    >>> steps = [{"do": "settings", "drop": ["a b"]}, {"do": "exclude", "rows": "3-5"}]
    >>> command(recipe_of(steps), "t.csv")
    "rescore fit t.csv --drop 'a b' --exclude 3-5 -o run"
    """
    words = ["rescore", "fit", table]
    for name, value in recipe.reading.items():
        words += _flag({"header": "no_header"}.get(name, name), _read(name, value))
    words += ["--na", in_commas(recipe.na)] if recipe.na else []
    words += ["--drop", in_commas(recipe.drop)] if recipe.drop else []
    for column, by in recipe.transform:
        words += ["--transform", f"{column}={by}"]
    if recipe.excluded:
        words += ["--exclude", recipe.excluded if _is_short(recipe) else ROWS_FILE]
    for name in ("missing", "categories"):
        words += _flag(name, getattr(recipe, name)) if getattr(recipe, name) != "refuse" else []
    words += _flag("groups", recipe.groups) if recipe.groups is not None else []
    words += ["--learner", option_word(recipe.learner)] if recipe.learner != RECOMMENDED else []
    for name, value in {**recipe.options, **recipe.around}.items():
        words += _flag(name, value)
    if recipe.knowledge != Knowledge():
        words += ["--knowledge", KNOWLEDGE_FILE]
    return shlex.join([*words, "-o", "run"])


def _read(name: str, value: Any) -> Any:
    if name == "header":
        return not value
    return "tab" if value == "\t" else value


def _flag(name: str, value: Any) -> list[str]:
    """A parameter as words of a command; what is at its default None needs none."""
    option = f"--{name.replace('_', '-')}"
    if value is None or (name == "no_header" and not value):
        return []
    if isinstance(value, bool):
        return [option if value else f"--no-{option[2:]}"]
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    return [f"{option}={value}"] if str(value).startswith("-") else [option, str(value)]


def _is_short(recipe: Recipe) -> bool:
    return len(recipe.excluded) <= MOST_INLINE


def script(recipe: Recipe, table: str) -> str:
    """The Python script that makes the same fit and prints its edges.

    Examples
    --------
    >>> print(script(Recipe(drop=("id",)), "t.csv"))
    import rescore as rs
    from rescore.tables.files import read_table
    <BLANKLINE>
    X = read_table('t.csv', drop=['id'])
    <BLANKLINE>
    model = rs.ReScore(rs.Linear(), random_state=0)
    model.fit(X)
    print(model.edges_[['cause', 'effect', 'verdict']])
    <BLANKLINE>
    """
    lines = ["import rescore as rs", "from rescore.tables.files import read_table"]
    lines += ["", f"X = read_table({', '.join([repr(table), *_reading(recipe)])})"]
    given = "X"
    if _needs_groups(recipe):
        lines += [f"groups = X.pop({recipe.groups!r})"]
        given += ", groups=groups"
    lines += [_transformed(column, by) for column, by in recipe.transform]
    if recipe.excluded:
        lines += ["", *_weights(recipe)]
        given += ", sample_weight=weight"
    if recipe.knowledge != Knowledge():
        lines += ["", f"known = rs.{_knowledge(recipe)}"]
    lines += ["", f"model = {_model(recipe)}"]
    lines += [f"model.fit({given})", "print(model.edges_[['cause', 'effect', 'verdict']])"]
    head = "import numpy as np\n" if any("np." in line for line in lines) else ""
    return head + "\n".join(lines) + "\n"


def _needs_groups(recipe: Recipe) -> bool:
    return recipe.groups is not None and bool(recipe.model().needs_groups)


def _reading(recipe: Recipe) -> list[str]:
    """The arguments of `read_table`."""
    labels = [] if recipe.groups is None else [recipe.groups]
    needed = labels if _needs_groups(recipe) else []
    lists = {
        "na": list(recipe.na),
        "labels": needed,
        "drop": [*recipe.drop, *(name for name in labels if name not in needed)],
    }
    given = dict(recipe.reading) | {name: names for name, names in lists.items() if names}
    found = [f"{name}={value!r}" for name, value in given.items() if value is not None]
    opened = recipe.missing != "refuse" or recipe.categories != "refuse"
    return [*found, "as_found=True"] if opened else found


def _transformed(column: str, by: str) -> str:
    X = f"X[{column!r}]"
    if by == "category":
        there = 'x if isinstance(x, str) else f"{x:g}"'
        return f"{X} = [None if x is None or x != x else {there} for x in {X}]"
    known = {"log": "np.log", "log1p": "np.log1p", "sqrt": "np.sqrt", "asinh": "np.arcsinh"}
    return f"{X} = {known[by]}({X})" if by in known else f"{X} = {X} * {float(by)!r}"


def _weights(recipe: Recipe) -> list[str]:
    """Rows that are left out weigh nothing."""
    rows = repr(row_numbers(recipe.excluded))
    if not _is_short(recipe):
        lines = [
            "from rescore.studies.table_input import row_numbers",
            f'left_out = row_numbers(open("{ROWS_FILE}").read())',
        ]
    else:
        lines = [f"left_out = {rows}"]
    return [*lines, "weight = np.ones(len(X))", "weight[left_out] = 0"]


def _knowledge(recipe: Recipe) -> str:
    known = recipe.knowledge
    parts = {"forbidden": known.forbidden, "required": known.required, "tiers": known.tiers,
             "forbid_within": known.forbid_within}  # fmt: skip
    inside = ",\n    ".join(
        f"{name}={pformat([list(v) if isinstance(v, tuple) else v for v in value])}"
        for name, value in parts.items()
        if value
    )
    return f"Knowledge(\n    {inside},\n)"


def _model(recipe: Recipe) -> str:
    settings = [f"{name}={value!r}" for name, value in recipe.learner_settings().items()]
    settings += ["knowledge=known"] if recipe.knowledge != Knowledge() else []
    inner = f"rs.{recipe.learner}({', '.join(settings)})"
    if not recipe.around and not load_learner(recipe.learner).weighs_rows:
        return inner
    around = [f"{name}={value!r}" for name, value in recipe.around.items()]
    return f"rs.ReScore({', '.join([inner, *around, f'random_state={SEED}'])})"
