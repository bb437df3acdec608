"""The learners as Markdown, read from their one list so that none can be forgotten."""

from typing import Any

from rescore.learners import LEARNERS, RECOMMENDED, load_learner, option_word


def table_of_learners() -> str:
    """A line for every learner: its class, its word on the command line, and what it is."""
    header = ["| learner | `--learner` | |", "|---|---|---|"]
    return "\n".join([*header, *(_row(name, load_learner(name)) for name in LEARNERS)])


def learners_as_markdown() -> str:
    """A section for every learner, with its parameters."""
    blocks = (f".. autoclass:: {_path(load_learner(name))}\n   :members:" for name in LEARNERS)
    return "\n\n".join(f"```{{eval-rst}}\n{block}\n```" for block in blocks)


def _row(name: str, kind: Any) -> str:
    told = kind.__doc__.splitlines()[0].replace("``", "`").replace("|", r"\|")
    told += " Needs `groups=`." * kind.needs_groups + " **Recommended.**" * (name == RECOMMENDED)
    return f"| `{name}` | `{option_word(name)}` | {told} |"


def _path(kind: Any) -> str:
    ours = kind.__module__.startswith("rescore.")
    return f"rescore.{kind.__name__}" if ours else f"{kind.__module__}.{kind.__name__}"
