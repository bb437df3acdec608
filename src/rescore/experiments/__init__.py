"""The paper's experiments, and anybody's own: declared in TOML, run as trials, kept as records.

Here is an experiment as it is written in its file, and the trials it stands for.
"""

import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from rescore import __version__
from rescore.text import listing, printable
from rescore.validation import check_choice, check_integer

__all__ = [
    "SIZES",
    "Case",
    "Experiment",
    "Trial",
    "assign",
    "declared",
    "find",
    "flat",
    "read_experiment",
]

SIZES = ("full", "quick", "tiny")
PROTOCOLS = ("honest", "oracle")
TINY_SAMPLES, TINY_NODES = 60, 11  # as many columns as Sachs has
TINY_PARAMETERS = {"GranDAG": {"h_tol": 0.1, "hidden": [4]}}  # most of the time is their training
KNOWN = {"title", "about", "published", "protocol", "figure", "seeds", "data", "methods", "quick"}
TEXTS = ("title", "about", "published", "figure")
TABLES = ("parameters", "rescore", "released", "search")
NEEDED = {
    "data": {"source": 'a source, such as "simulate"'},
    "methods": {"name": "a name", "learner": "a learner"},
}
ABOUT = ("name", "where", "against", "choose", "cut_off", "seeds")  # of a method, not of its trials
WORDS: dict[Any, str] = {str: "a text", dict: "a table", list: "a list"}

Spec = dict[str, Any]


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


class Case(NamedTuple):
    """A trial under the name that its method has in an experiment.

    Of a trial that was scored at several cut-offs, one may be meant.
    """

    method: str
    trial: Trial
    cut_off: float | None = None


@dataclass(frozen=True)
class Experiment:
    """What is run on what, how often, and what it is compared with.

    ``data`` and ``methods`` are tables; an ``over`` table in one of them lists values to go
    through, all combinations of them.  ``protocol`` "oracle" means that the page may pick the best
    of a method's combinations with the truth in sight, and says so.
    """

    name: str
    title: str
    data: tuple[Spec, ...]
    methods: tuple[Spec, ...]
    seeds: int = 10
    about: str = ""
    published: str | None = None  # a table of the paper's numbers
    protocol: str = "honest"
    figure: str | None = None
    quick: Spec = field(default_factory=dict)  # seeds, and the values that stay of a list

    def cases(self, size: str = "full") -> list[Case]:
        """All runs, one seed after the other, so that an unfinished sweep is still balanced.

        Examples
        --------
        >>> data = ({"source": "simulate", "over": {"nodes": [5, 10]}},)
        >>> tiny = Experiment("mine", "Mine", data, ({"name": "Linear", "learner": "Linear"},))
        >>> len(tiny.cases())
        20
        """
        check_choice("size", size, SIZES)
        seeds = self.seeds if size == "full" else int(self.quick.get("seeds", min(2, self.seeds)))
        fixed = [block for block in self.methods if "search" not in block]
        data, methods = (
            [spec for block in blocks for spec in _expanded(self._sized(block, size))]
            for blocks in (self.data, fixed)
        )
        return [
            Case(m["name"], Trial(_without(d, "seeds"), _without(m, *ABOUT), s), m.get("cut_off"))
            for s in range(1 if size == "tiny" else seeds)
            for d, m in itertools.product(data, methods)
            if _applies(d, m) and s < min(d.get("seeds", seeds), m.get("seeds", seeds))
        ]

    def with_methods(self, *methods: Spec) -> "Experiment":
        """The same experiment with other methods."""
        return replace(self, methods=methods)

    def _sized(self, block: Spec, size: str) -> Spec:
        """The block with its lists cut to what a quick run keeps, or to one value and little work.

        A block of which no value is kept has no trials then.
        """
        if size == "full":
            return block
        small = deepcopy(block)
        for name, values in small.get("over", {}).items():
            kept = self.quick.get("over", {}).get(name, values)
            some = [value for value in values if value in kept]
            small["over"][name] = some[:1] if size == "tiny" else some
        if size == "tiny":
            return _shrunk(small) if "source" in small else _shortened(small)
        return small


def declared() -> list[Experiment]:
    """All experiments of the paper, in the order of their names.

    Examples
    --------
    >>> [e.title for e in declared() if e.name == "sachs"]
    ['Sachs: eleven proteins, nine conditions']
    """
    return [read_experiment(path) for path in _declarations()]


def find(name: str) -> Experiment:
    """The experiment of that name, or in that file.

    Examples
    --------
    >>> find("sachs").published
    'sachs'
    """
    if name.endswith(".toml"):
        return read_experiment(Path(name))
    known = {path.stem: path for path in _declarations()}
    return read_experiment(known[check_choice("the experiment", name, known)])


def read_experiment(path: Path) -> Experiment:
    """The experiment in a TOML file, named after the file; or a sentence what is wrong with it."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no experiment '{printable(path, 200)}'.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"'{printable(path, 200)}' is no TOML file: {error}.") from None
    _check(content, printable(path, 200))
    blocks = {name: tuple(_tables(content[name])) for name in ("data", "methods")}
    return Experiment(name=path.stem, **{**content, **blocks})


def assign(spec: Spec, path: str, value: Any) -> None:
    """Put a value at a path such as "rescore.tau", making the tables on the way.

    Examples
    --------
    >>> spec = {"learner": "Notears"}
    >>> assign(spec, "rescore.tau", 0.5)
    >>> spec
    {'learner': 'Notears', 'rescore': {'tau': 0.5}}
    """
    *tables, last = path.split(".")
    for name in tables:
        spec = spec.setdefault(name, {})
        if not isinstance(spec, dict):
            raise ValueError(f"'{printable(path)}' leads into '{printable(name)}', no table.")
    spec[last] = value


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


def _tables(value: Any) -> Iterable[Spec]:
    return value if isinstance(value, list) else [value]


def _check(content: Mapping[str, Any], where: str) -> None:
    unknown, missing = set(content) - KNOWN, {"title", "data", "methods"} - set(content)
    if unknown or missing:
        what = f"has {listing(sorted(unknown))}" if unknown else f"lacks {listing(sorted(missing))}"
        raise ValueError(f"'{where}' {what}. An experiment has {', '.join(sorted(KNOWN))}.")
    try:
        check_choice("protocol", content.get("protocol", "honest"), PROTOCOLS)
        check_integer("seeds", content.get("seeds", 10), at_least=1)
        _check_types("the experiment", content, dict.fromkeys(TEXTS, str) | {"quick": dict})
        _check_lists("[quick]", content.get("quick", {}))
        for kind, needed in NEEDED.items():
            for block in _tables(content[kind]):
                _check_block(f"each [[{kind}]]", block, needed)
    except (ValueError, TypeError) as error:
        raise ValueError(f"'{where}': {error}") from None


def _check_block(what: str, block: Any, needed: Mapping[str, str]) -> None:
    if not isinstance(block, dict):
        raise ValueError(f"{what} must be a table, got {printable(block)}.")
    if not needed.keys() <= block.keys():
        raise ValueError(f"{what} needs {' and '.join(needed.values())}.")
    _check_types(what, block, dict.fromkeys(needed, str) | dict.fromkeys(TABLES, dict))
    _check_lists(what, block)
    for name, space in block.get("search", {}).items():
        bounds = isinstance(space, dict) and {"low", "high"} <= space.keys()
        if not (isinstance(space, list) and space) and not bounds:
            raise ValueError(
                f"{what}: the search of {printable(name)} takes a list of choices, or a table "
                f"with low and high; got {printable(space)}."
            )


def _check_lists(what: str, block: Mapping[str, Any]) -> None:
    """Values to go through or to stay with are tables of lists; seeds are counted."""
    check_integer("seeds", block.get("seeds", 1), at_least=1)
    for table in ("over", "where"):
        _check_types(what, block, {table: dict})
        lists = block.get(table, {})
        _check_types(f"{table} of {what}", lists, dict.fromkeys(lists, list))


def _check_types(what: str, block: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
    for name, kind in kinds.items():
        if name in block and not isinstance(block[name], kind):
            raise ValueError(
                f"'{printable(name)}' in {what} must be {WORDS[kind]}, got "
                f"{printable(block[name])}."
            )


def _expanded(block: Spec) -> Iterator[Spec]:
    """The block once for each combination of the values in its ``over`` table."""
    over = block.get("over", {})
    fixed = {name: value for name, value in block.items() if name != "over"}
    for values in itertools.product(*over.values()):
        spec = deepcopy(fixed)
        for name, value in zip(over, values, strict=True):
            assign(spec, name, value)
        yield spec


def _shrunk(data: Spec) -> Spec:
    """The data with few rows, and tables of one size, so that learners are compiled once."""
    small = {"samples": round(TINY_SAMPLES / (1 - data.get("hold", 0)))}
    if data["source"] == "simulate":
        small["nodes"] = TINY_NODES
    over = {name: values for name, values in data.get("over", {}).items() if name not in small}
    return data | small | {"over": over}


def _shortened(method: Spec) -> Spec:
    """The method with less to do, if it takes long."""
    given = TINY_PARAMETERS.get(method["learner"], {}) | method.get("parameters", {})
    return method | {"parameters": given} if given else method


def _without(spec: Spec, *names: str) -> Spec:
    return {name: value for name, value in spec.items() if name not in names}


def _applies(data: Spec, method: Spec) -> bool:
    """A method may name the only kinds of data it is meant for, as ``where`` = {name = [...]}."""
    return all(data.get(name) in values for name, values in method.get("where", {}).items())


def _declarations() -> list[Path]:
    """The declarations: beside this file where the library is installed, else in the repository."""
    installed = Path(str(files("rescore.experiments") / "declarations"))
    folder = installed if installed.is_dir() else Path(__file__).parents[3] / "experiments"
    return sorted(folder.glob("*.toml"))
