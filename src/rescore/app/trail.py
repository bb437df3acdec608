"""What a session leaves behind: a script and a command that repeat its fit exactly."""

import shlex
from pprint import pformat
from typing import Any

from rescore.app.recipe import SEED, Recipe
from rescore.known_edges import Knowledge
from rescore.learners import RECOMMENDED, load_learner, option_word
from rescore.studies.table_input import row_numbers
from rescore.text import in_commas

__all__ = ["KNOWLEDGE_FILE", "ROWS_FILE", "command", "script"]

KNOWLEDGE_FILE, ROWS_FILE = "knowledge.json", "left_out.txt"  # beside the table
MOST_INLINE = 400  # characters of row numbers in a command or script


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
