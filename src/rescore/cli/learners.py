"""The learner that a command is asked for, and what it is told."""

from pathlib import Path
from typing import Annotated, Any

import typer

from rescore.cli.options import default_of, edge_pairs

__all__ = [
    "LEARNERS",
    "ForbidOption",
    "KnowledgeOption",
    "Lambda1Option",
    "LearnerOption",
    "LossOption",
    "RequireOption",
    "StandardizeOption",
    "TauOption",
    "ThresholdOption",
    "WeightingOption",
    "known_edges",
    "model_of",
]

# Word on the command line -> estimator.
LEARNERS = {
    "linear": "Linear",
    "notears": "Notears",
    "dagma": "Dagma",
    "golem": "Golem",
    "notears-mlp": "NotearsMLP",
    "gran-dag": "GranDAG",
    "ges": "GES",
    "cd-nod": "CDNOD",
    "dicd": "DICD",
    "dicd-mlp": "DICDMLP",
    "sort-n-regress": "SortNRegress",
    "random": "Random",
    "empty": "Empty",
}

TauOption = Annotated[
    float | None,
    typer.Option(
        help="Exact weights between tau/n and 1/(tau n).",
        show_default=default_of("ReScore", "tau"),
    ),
]
WeightingOption = Annotated[
    str | None,
    typer.Option(
        help="auto, balanced, exact, neural, inverse-propensity (by --groups), uniform (none).",
        show_default=default_of("ReScore", "weighting"),
    ),
]
LossOption = Annotated[
    str | None,
    typer.Option(
        help="How rows are ranked: nll or raw.", show_default=default_of("ReScore", "loss")
    ),
]
Lambda1Option = Annotated[
    float | None,
    typer.Option(
        help="Penalty on the coefficients.", show_default=default_of("Notears", "lambda1")
    ),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        help="Weaker edges are dropped at the end.", show_default=default_of("Notears", "threshold")
    ),
]
StandardizeOption = Annotated[
    bool | None,
    typer.Option(
        "--standardize/--no-standardize",
        help="Fit on columns of mean 0 and deviation 1.",
        show_default=default_of("Notears", "standardize"),
    ),
]
LearnerOption = Annotated[str, typer.Option(help=f"One of {', '.join(LEARNERS)}.")]
ForbidOption = Annotated[
    list[str] | None, typer.Option(help='An edge "cause,effect" that must not be there.')
]
RequireOption = Annotated[
    list[str] | None, typer.Option(help='An edge "cause,effect" that must be there.')
]
KnowledgeOption = Annotated[
    Path | None,
    typer.Option(help="A file of forbidden and required edges and tiers: .json or Tetrad's."),
]


def known_edges(
    forbid: list[str] | None, require: list[str] | None, file: Path | None
) -> dict[str, Any]:
    """What a learner is told about edges: the options, and the file."""
    from rescore.knowledge import Knowledge

    known = Knowledge() if file is None else Knowledge.read(file)
    told = Knowledge(
        (*known.forbidden, *edge_pairs("--forbid", forbid or [])),
        (*known.required, *edge_pairs("--require", require or [])),
        known.tiers,
        known.forbid_within,
    )
    return told.edges()


def model_of(learner: str, settings: dict[str, Any], around: dict[str, Any]) -> Any:
    """The estimator; what was not given is left to its own defaults."""
    from rescore import estimators
    from rescore.checking import check_choice

    kind = getattr(estimators, LEARNERS[check_choice("--learner", learner, LEARNERS)])
    given = {name: value for name, value in settings.items() if value is not None}
    unknown = given.keys() - kind().get_params().keys()
    for name in unknown - {"random_state"}:  # where nothing is drawn no seed matters
        raise ValueError(f"--{name} means nothing to the learner {learner}; leave it out.")
    inner = kind(**{name: value for name, value in given.items() if name not in unknown})
    wanted = {name: value for name, value in around.items() if value is not None}
    if not wanted and not kind.weighs_rows:
        return inner  # its rows count alike, so that there is nothing to wrap
    return estimators.ReScore(inner, **wanted)
