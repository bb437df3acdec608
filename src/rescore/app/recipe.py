"""What a table becomes before a fit and which fit that is, as plain data; and the steps to it.

A step says in a few words what somebody did.  The recipe is what all steps together ask for, so
that undoing one is leaving it out.
"""

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rescore.known_edges import Knowledge
from rescore.learners import LEARNERS, RECOMMENDED, load_learner
from rescore.studies.table_input import TRANSFORMS, in_ranges, row_numbers
from rescore.text import in_commas, listing, printable

__all__ = ["Recipe", "Step", "learners", "recipe_of", "told"]

Step = Mapping[str, Any]
Edge = tuple[str, str]
READING = ("delimiter", "decimal", "thousands", "encoding", "header", "sheet")
AROUND = ("weighting", "tau", "loss")  # parameters of ReScore that can be chosen
SEED = 0
CHOICES = (
    "Linear", "Notears", "Dagma", "Golem", "GES", "Additive", "GaussianProcess", "NotearsMLP",
    "GranDAG", "DICD", "CDNOD", "SortNRegress",
)  # fmt: skip
HIDDEN = ("missing", "categories", "random_state")  # told elsewhere, or always the same


@dataclass(frozen=True)
class Recipe:
    """A table and a fit: how the file is read and repaired, what is known, what learns.

    Examples
    --------
    >>> recipe_of([{"do": "forbid", "edges": [["a", "b"]]}]).knowledge.forbidden
    (('a', 'b'),)
    """

    reading: Mapping[str, Any] = field(default_factory=dict)
    na: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    transform: tuple[tuple[str, str], ...] = ()  # column, by what
    missing: str = "refuse"
    categories: str = "refuse"
    groups: str | None = None  # column of labels, which are compared with the weights
    excluded: str = ""  # rows, as `row_numbers` reads them
    forbidden: tuple[Edge, ...] = ()
    required: tuple[Edge, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    forbid_within: tuple[int, ...] = ()
    learner: str = RECOMMENDED
    options: Mapping[str, Any] = field(default_factory=dict)
    around: Mapping[str, Any] = field(default_factory=dict)  # for ReScore

    @property
    def knowledge(self) -> Knowledge:
        """All that is known about the edges; what contradicts itself is refused."""
        return Knowledge(self.forbidden, self.required, self.tiers, self.forbid_within)

    def key(self, *more: str) -> str:
        """A name for the fit: the same for the same table, repairs, knowledge and learner."""
        text = json.dumps([asdict(self), *more], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def shown(self) -> dict[str, Any]:
        """For the page."""
        return {
            "drop": self.drop, "transform": dict(self.transform), "missing": self.missing,
            "categories": self.categories, "groups": self.groups, "excluded": self.excluded,
            "forbidden": self.forbidden, "required": self.required, "tiers": self.tiers,
            "forbid_within": self.forbid_within, "learner": self.learner,
            "options": dict(self.options), "around": dict(self.around),
            "reading": dict(self.reading),
        }  # fmt: skip

    def rows_key(self, *more: str) -> str:
        """The same of the table alone, whatever is known and whatever learns."""
        nothing = Recipe()
        kept = {name: getattr(nothing, name) for name in ("forbidden", "required", "tiers",
                "forbid_within", "learner", "options", "around", "excluded")}  # fmt: skip
        return replace(self, **kept).key(*more)

    def params(self, path: Path) -> dict[str, Any]:
        """The options of a command that reads the table so (`rescore.studies.table_input`)."""
        usual = {"delimiter": None, "decimal": ".", "thousands": None, "encoding": "utf-8",
                 "sheet": None}  # fmt: skip
        given = {name: value for name, value in self.reading.items() if name != "header"}
        return (
            usual
            | given
            | {
                "data": path,
                "no_header": not self.reading.get("header", True),
                "na": [in_commas(self.na)] if self.na else [],
                "drop": [in_commas(self.drop)] if self.drop else [],
                "transform": [f"{column}={by}" for column, by in self.transform],
                "exclude": self.excluded,
                "missing": self.missing,
                "categories": self.categories,
                "groups": self.groups,
                "weights": None,
                "seed": SEED,
            }
        )

    def model(self) -> Any:
        """The estimator, not yet fitted; the same as the command line makes."""
        from rescore.learners.rescore import ReScore

        kind = load_learner(self.learner)
        known = {"knowledge": self.knowledge} if self.knowledge != Knowledge() else {}
        given = {**self.learner_settings(), **known}
        inner = kind(**given)
        if not self.around and not kind.weighs_rows:
            return inner
        return ReScore(inner, random_state=SEED, **self.around)

    def learner_settings(self) -> dict[str, Any]:
        """The parameters of the learner but for what is known about edges."""
        kind = load_learner(self.learner)
        opened = {"missing": self.missing, "categories": self.categories}
        given: dict[str, Any] = {k: word for k, word in opened.items() if word != "refuse"}
        if "random_state" in kind._get_param_names():
            given["random_state"] = SEED
        return given | dict(self.options)

    def without_each(self) -> "list[tuple[dict[str, Any], Recipe]]":
        """Every constraint, and what is asked for without it.

        Examples
        --------
        >>> [(what, less)] = Recipe(forbidden=(("a", "b"),)).without_each()
        >>> what, less == Recipe()
        ({'kind': 'forbidden', 'edge': ['a', 'b']}, True)
        """
        lines: list[tuple[dict[str, Any], Recipe]] = []
        for word in ("forbidden", "required"):
            known = getattr(self, word)
            for edge in known:
                rest = tuple(each for each in known if each != edge)
                changed: dict[str, Any] = {word: rest}
                lines.append(({"kind": word, "edge": list(edge)}, replace(self, **changed)))
        if self.tiers:
            lines.append(({"kind": "tiers"}, replace(self, tiers=(), forbid_within=())))
        return lines


def recipe_of(steps: Iterable[Step]) -> Recipe:
    """What all steps together ask for, or a sentence about the one that cannot be taken.

    Examples
    --------
    >>> steps = [{"do": "exclude", "rows": "3-5"}, {"do": "exclude", "rows": "9"}]
    >>> recipe_of(steps).excluded
    '3-5,9'
    >>> recipe_of([{"do": "magic"}])
    Traceback (most recent call last):
        ...
    ValueError: There is no step 'magic'; known are settings, keep, transform, ...
    """
    recipe = Recipe()
    for step in steps:
        name = step.get("do")
        if name not in ACTIONS:
            raise ValueError(f"There is no step {listing([name])}; known are {', '.join(ACTIONS)}.")
        recipe = ACTIONS[name](recipe, step)
    recipe.knowledge  # noqa: B018 - contradictions are refused here
    return recipe


def _settings(recipe: Recipe, step: Step) -> Recipe:
    """Settings that a finding asks for: lists are joined, words replaced."""
    changes: dict[str, Any] = {}
    reading = dict(recipe.reading)
    for name, value in step.items():
        if name in ("drop", "na"):
            changes[name] = tuple(dict.fromkeys([*getattr(recipe, name), *_texts(value)]))
        elif name in ("missing", "categories"):
            changes[name] = str(value)
        elif name in READING:
            reading[name] = value
        elif name not in ("do", "why"):
            raise ValueError(f"There is no setting {listing([name])}.")
    return replace(recipe, reading=reading, **changes)


def _keep(recipe: Recipe, step: Step) -> Recipe:
    wanted = set(_texts(step["columns"]))
    return replace(recipe, drop=tuple(name for name in recipe.drop if name not in wanted))


def _transform(recipe: Recipe, step: Step) -> Recipe:
    """A column is changed in one way; ``none`` gives it back as it was."""
    column, by = str(step["column"]), str(step["by"])
    others = tuple(each for each in recipe.transform if each[0] != column)
    return replace(recipe, transform=others if by == "none" else (*others, (column, by)))


def _groups(recipe: Recipe, step: Step) -> Recipe:
    column = step["column"]
    return replace(recipe, groups=None if column is None else str(column))


def _forbid(recipe: Recipe, step: Step) -> Recipe:
    edges = _edges(step)
    kept = tuple(edge for edge in recipe.required if edge not in edges)
    return replace(recipe, forbidden=_joined(recipe.forbidden, edges), required=kept)


def _require(recipe: Recipe, step: Step) -> Recipe:
    edges = _edges(step)
    back = [(effect, cause) for cause, effect in edges]
    kept = tuple(edge for edge in recipe.required if edge not in back)
    allowed = tuple(edge for edge in recipe.forbidden if edge not in edges)
    return replace(recipe, required=_joined(kept, edges), forbidden=allowed)


def _turn(recipe: Recipe, step: Step) -> Recipe:
    """The edges point the other way."""
    edges = _edges(step)
    back = {"edges": [[effect, cause] for cause, effect in edges]}
    return _require(_forbid(recipe, {"edges": edges}), back)


def _free(recipe: Recipe, step: Step) -> Recipe:
    """Nothing is known of these edges any more."""
    edges = _edges(step)
    forbidden, required = (
        tuple(edge for edge in known if edge not in edges)
        for known in (recipe.forbidden, recipe.required)
    )
    return replace(recipe, forbidden=forbidden, required=required)


def _tiers(recipe: Recipe, step: Step) -> Recipe:
    tiers = tuple(tuple(_texts(tier)) for tier in step["tiers"] if tier)
    within = tuple(int(k) for k in step.get("forbid_within", ()))
    return replace(recipe, tiers=tiers, forbid_within=within)


def _learner(recipe: Recipe, step: Step) -> Recipe:
    name = str(step["name"])
    if name not in LEARNERS:
        raise ValueError(f"There is no learner {listing([name])}; known are {listing(LEARNERS)}.")
    options, around = (dict(step.get(part) or {}) for part in ("options", "around"))
    unknown = options.keys() - set(load_learner(name)._get_param_names())
    unknown |= around.keys() - set(AROUND)
    if unknown:
        raise ValueError(f"{name} has no parameter {listing(sorted(unknown))}.")
    changed = replace(recipe, learner=name, options=options, around=around)
    changed.model()
    return changed


def _exclude(recipe: Recipe, step: Step) -> Recipe:
    rows = [*row_numbers(recipe.excluded), *row_numbers(str(step["rows"]))]
    return replace(recipe, excluded=in_ranges(rows))


def _include(recipe: Recipe, step: Step) -> Recipe:
    back = set(row_numbers(str(step["rows"])))
    return replace(
        recipe, excluded=in_ranges([r for r in row_numbers(recipe.excluded) if r not in back])
    )


ACTIONS: dict[Any, Callable[[Recipe, Step], Recipe]] = {
    "settings": _settings,
    "keep": _keep,
    "transform": _transform,
    "groups": _groups,
    "forbid": _forbid,
    "require": _require,
    "turn": _turn,
    "free": _free,
    "tiers": _tiers,
    "learner": _learner,
    "exclude": _exclude,
    "include": _include,
}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"A list of names was expected, got {printable(repr(value))}.")
    return [str(name) for name in value]


def _edges(step: Step) -> list[Edge]:
    edges = [tuple(_texts(edge)) for edge in step["edges"]]
    if not edges or any(len(edge) != 2 for edge in edges):
        raise ValueError("An edge is a pair of names: its cause and its effect.")
    return [(edge[0], edge[1]) for edge in edges]


def _joined(known: tuple[Edge, ...], more: Iterable[Edge]) -> tuple[Edge, ...]:
    return tuple(dict.fromkeys([*known, *more]))


def told(step: Step) -> str:
    """The step in words.

    Examples
    --------
    >>> told({"do": "turn", "edges": [["a", "b"]]}), told({"do": "exclude", "rows": "3-5"})
    ('Turn a → b round', 'Leave out 3 rows')
    """
    name = step["do"]
    if name in ("forbid", "require", "free", "turn"):
        edges = ", ".join(f"{printable(a)} → {printable(b)}" for a, b in _edges(step)[:3])
        more = f" and {len(step['edges']) - 3} more" if len(step["edges"]) > 3 else ""
        end = " round" if name == "turn" else ""
        return f"{name.capitalize()} {edges}{more}{end}"
    if name in ("exclude", "include"):
        count = len(row_numbers(str(step["rows"])))
        what = "Leave out" if name == "exclude" else "Take back"
        why = f": {printable(step['why'], 80)}" if step.get("why") else ""
        return f"{what} {count} row{'s' * (count != 1)}{why}"
    if name == "transform":
        return f"{printable(step['column'])}: {_change(str(step['by']))}"
    if name == "learner":
        chosen = {**dict(step.get("options") or {}), **dict(step.get("around") or {})}
        words = ", ".join(f"{key} {printable(value)}" for key, value in chosen.items())
        return f"Learn with {printable(step['name'])}{f' ({words})' if words else ''}"
    return _of_settings(name, step)


def _of_settings(name: str, step: Step) -> str:
    if name == "keep":
        return f"Bring back {listing(step['columns'], 3)}"
    if name == "groups":
        return f"Groups of rows: {printable(step['column'])}"
    if name == "tiers":
        shown = " | ".join(", ".join(map(printable, tier)) for tier in step["tiers"] if tier)
        return f"Tiers: {printable(shown, 200)}" if shown else "No tiers"
    words = {"drop": "Leave out {}", "missing": "Missing cells: {}", "categories": "Words: {}"}
    parts = [
        words.get(key, f"{key}: {{}}").format(
            listing(value, 3) if isinstance(value, list | tuple) else printable(value)
        )
        for key, value in step.items()
        if key not in ("do", "why")
    ]
    return "; ".join(parts)


def _change(by: str) -> str:
    if by == "none":
        return "as it was"
    if by == "category":
        return "a category"
    return by if by in TRANSFORMS else f"times {printable(by)}"


def learners() -> list[dict[str, Any]]:
    """What can be chosen to learn: the first sentence of each, and its simple parameters."""
    found = []
    for name in CHOICES:
        kind = load_learner(name)
        first = " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split())
        found.append(
            {"name": name, "told": first, "linear": kind.linear, "groups": kind.needs_groups,
             "weighs": kind.weighs_rows, "options": _options(kind)}
        )  # fmt: skip
    return found


def _options(kind: Any) -> list[dict[str, Any]]:
    """The parameters that are numbers, words or switches, with what the docstring says of them."""
    own = inspect.signature(kind.__init__).parameters
    about = inspect.cleandoc(kind.__doc__ or "")
    told = dict(re.findall(r"^(\w+) : .*\n((?:    .*\n)+)", about, re.MULTILINE))
    return [
        {"name": name, "default": one.default, "told": " ".join(told.get(name, "").split())}
        for name, one in own.items()
        if isinstance(one.default, bool | int | float | str) and name not in HIDDEN
    ]
