"""The learner that a command is asked for, and what it is told."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from rescore.cli.options import default_of, edge_pairs
from rescore.learners import LEARNERS, RECOMMENDED, learner_called, load_learner, option_word

__all__ = [
    "RECOMMENDED_WORD",
    "ForbidOption",
    "KnowledgeOption",
    "Lambda1Option",
    "LearnerCommand",
    "LearnerOption",
    "LossOption",
    "RequireOption",
    "StandardizeOption",
    "TauOption",
    "ThresholdOption",
    "WeightingOption",
    "known_edges",
    "model_of",
    "own_settings",
]

RECOMMENDED_WORD = option_word(RECOMMENDED)
LEARNER, KNOWN = "Learner and weights", "What is known"  # groups of options in the help

TauOption = Annotated[
    float | None,
    typer.Option(
        help="Exact weights between tau/n and 1/(tau n).",
        show_default=default_of("ReScore", "tau"),
        rich_help_panel=LEARNER,
    ),
]
WeightingOption = Annotated[
    str | None,
    typer.Option(
        help="auto, environments (of cells), balanced, exact, neural, "
        "inverse-propensity (by --groups), uniform (none).",
        show_default=default_of("ReScore", "weighting"),
        rich_help_panel=LEARNER,
    ),
]
LossOption = Annotated[
    str | None,
    typer.Option(
        help="How rows are ranked: nll or raw.",
        show_default=default_of("ReScore", "loss"),
        rich_help_panel=LEARNER,
    ),
]
Lambda1Option = Annotated[
    float | None,
    typer.Option(
        help="Penalty on the coefficients, where the learner has one.",
        show_default="the learner's own",
        rich_help_panel=LEARNER,
    ),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        help="Weaker edges are dropped at the end.",
        show_default=default_of(RECOMMENDED, "threshold"),
        rich_help_panel=LEARNER,
    ),
]
StandardizeOption = Annotated[
    bool | None,
    typer.Option(
        "--standardize/--no-standardize",
        help="Fit on columns of mean 0 and deviation 1.",
        show_default=default_of(RECOMMENDED, "standardize"),
        rich_help_panel=LEARNER,
    ),
]
LearnerOption = Annotated[
    str,
    typer.Option(
        help=f"One of {', '.join(option_word(name) for name in LEARNERS)}. `fit` takes its own "
        "parameters as options too, such as --max-steps 50.",
        rich_help_panel=LEARNER,
    ),
]
ForbidOption = Annotated[
    list[str] | None,
    typer.Option(help='An edge "cause -> effect" that must not be there.', rich_help_panel=KNOWN),
]
RequireOption = Annotated[
    list[str] | None,
    typer.Option(help='An edge "cause -> effect" that must be there.', rich_help_panel=KNOWN),
]
KnowledgeOption = Annotated[
    Path | None,
    typer.Option(
        help="A file of forbidden and required edges and tiers: .json or Tetrad's.",
        rich_help_panel=KNOWN,
    ),
]


OWN = f"{__name__}.own"  # where a command keeps them, among what it knows of its call


class LearnerCommand(TyperCommand):
    """A command that also takes the parameters of the learner it is told as options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The learner's own options are kept for `own_settings`, all others read as usual."""
        spelled = [word for each in self.params for word in (*each.opts, *each.secondary_opts)]
        ctx.meta[OWN], rest = _apart(args, {*spelled, *ctx.help_option_names})
        return super().parse_args(ctx, rest)


def own_settings(ctx: typer.Context) -> dict[str, Any]:
    """The parameters of the learner that a `LearnerCommand` was given beside its options."""
    return dict(ctx.meta[OWN])


def _apart(words: Sequence[str], spelled: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """The learner's own parameters among the words, and the other words.

    Examples
    --------
    >>> _apart(["data.csv", "--learner", "golem", "--n-starts", "3", "--no-polish"], ["--learner"])
    ({'n_starts': 3, 'polish': False}, ['data.csv', '--learner', 'golem'])
    """
    if all(word.split("=")[0] in spelled for word in words if word.startswith("--")):
        return {}, list(words)  # nothing to load a learner for
    hints = get_type_hints(load_learner(learner_called(_learner_in(words))).__init__)
    own: dict[str, Any] = {}
    rest, waiting = [], iter(words)
    for word in waiting:
        option, equals, text = word.partition("=")
        name = option.removeprefix("--").replace("-", "_")
        if option in spelled or not option.startswith("--"):
            rest.append(word)
        elif hints.get(name.removeprefix("no_")) is bool:
            own[name.removeprefix("no_")] = not name.startswith("no_")
        elif name in hints and _kind_of(hints[name]) is not None:
            own[name] = _read(option, text if equals else next(waiting, ""), hints[name])
        else:
            rest.append(word)  # which the command refuses
    return own, rest


def _learner_in(words: Sequence[str]) -> str:
    """The word after the last ``--learner``."""
    learner = RECOMMENDED_WORD
    for word, after in zip(words, [*words[1:], ""], strict=True):
        option, equals, text = word.partition("=")
        if option == "--learner":
            learner = text if equals else after
    return learner


def _kind_of(hint: Any) -> Any:
    """What a text becomes: a number, itself, or numbers separated by commas; None is neither."""
    kind = get_args(hint)[0] if isinstance(hint, UnionType) else hint
    return kind if kind in (int, float, str) or get_origin(kind) is tuple else None


def _read(option: str, text: str, hint: Any) -> Any:
    """The value that a text means.

    Examples
    --------
    >>> _read("--hidden", "10,10", tuple[int, ...]), _read("--neighbours", "none", float | None)
    ((10, 10), None)
    """
    if text.lower() == "none" and NoneType in get_args(hint):
        return None
    kind = _kind_of(hint)
    try:
        if get_origin(kind) is tuple:
            return tuple(get_args(kind)[0](part) for part in text.split(","))
        return kind(text)
    except ValueError:
        words = {int: "a whole number", float: "a number"}.get(kind, "numbers with commas between")
        raise ValueError(f"{option} takes {words}, got {text!r}.") from None


def known_edges(
    forbid: list[str] | None, require: list[str] | None, file: Path | None
) -> dict[str, Any]:
    """What a learner is told about edges: the options, and the file."""
    from rescore.known_edges import as_knowledge

    forbidden = edge_pairs("--forbid", forbid or [])
    return as_knowledge(file).joined(forbidden, edge_pairs("--require", require or [])).edges()


def model_of(
    learner: str, settings: dict[str, Any], around: dict[str, Any], own: Mapping[str, Any] = {}
) -> Any:
    """The estimator; settings that are None are left to its defaults, those of its ``own`` not."""
    from rescore.learners.rescore import ReScore

    kind = load_learner(learner_called(learner))
    given = {name: value for name, value in settings.items() if value is not None} | dict(own)
    unknown = given.keys() - set(kind._get_param_names())
    for name in unknown - {"random_state"}:  # where nothing is drawn no seed matters
        raise ValueError(f"--{name} means nothing to the learner {learner}; leave it out.")
    inner = kind(**{name: value for name, value in given.items() if name not in unknown})
    wanted = {name: value for name, value in around.items() if value is not None}
    if not wanted and not kind.weighs_rows:
        return inner  # its rows count alike, so that there is nothing to wrap
    return ReScore(inner, random_state=settings.get("random_state"), **wanted)
