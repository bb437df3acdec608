"""``rescore fit``: a graph from a table."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rescore.cli.bootstrap import BootstrapOption, stability_of
from rescore.cli.compare import CompareOption, ResamplesOption, comparison_of
from rescore.cli.options import (
    DataArgument,
    DebugOption,
    DecimalOption,
    DelimiterOption,
    DropOption,
    GroupsOption,
    JsonOption,
    NoHeaderOption,
    WeightsOption,
    default_of,
    edge_pairs,
    names_in,
)
from rescore.cli.units import UnitsOption, units_of

if TYPE_CHECKING:
    import pandas as pd

    from rescore.cli.inputs import Input

__all__ = ["fit_command", "fit_with_progress"]

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

Tau = Annotated[
    float | None,
    typer.Option(
        help="Exact weights between tau/n and 1/(tau n).",
        show_default=default_of("ReScore", "tau"),
    ),
]
Weighting = Annotated[
    str | None,
    typer.Option(
        help="auto, balanced, exact, neural, inverse-propensity (by --groups), uniform (none).",
        show_default=default_of("ReScore", "weighting"),
    ),
]
Loss = Annotated[
    str | None,
    typer.Option(
        help="How rows are ranked: nll or raw.", show_default=default_of("ReScore", "loss")
    ),
]
Lambda1 = Annotated[
    float | None,
    typer.Option(
        help="Penalty on the coefficients.", show_default=default_of("Notears", "lambda1")
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        help="Weaker edges are dropped at the end.", show_default=default_of("Notears", "threshold")
    ),
]
Standardize = Annotated[
    bool | None,
    typer.Option(
        "--standardize/--no-standardize",
        help="Fit on columns of mean 0 and deviation 1.",
        show_default=default_of("Notears", "standardize"),
    ),
]


def fit_command(
    ctx: typer.Context,
    data: DataArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the results; without it none is written."),
    ] = None,
    learner: Annotated[str, typer.Option(help=f"One of {', '.join(LEARNERS)}.")] = "notears",
    lambda1: Lambda1 = None,
    threshold: Threshold = None,
    tau: Tau = None,
    weighting: Weighting = None,
    loss: Loss = None,
    standardize: Standardize = None,
    seed: Annotated[int, typer.Option(help="Seed of learners that draw.")] = 0,
    truth: Annotated[
        Path | None, typer.Option(help="A graph to compare with; not used in the fit.")
    ] = None,
    edge_direction: Annotated[
        str | None,
        typer.Option(help='Of the truth: "from row to column" or "from column to row".'),
    ] = None,
    weights: WeightsOption = None,
    groups: GroupsOption = None,
    drop: DropOption = None,
    forbid: Annotated[
        list[str] | None, typer.Option(help='An edge "cause,effect" that must not be there.')
    ] = None,
    require: Annotated[
        list[str] | None, typer.Option(help='An edge "cause,effect" that must be there.')
    ] = None,
    knowledge: Annotated[
        Path | None,
        typer.Option(help="A file of forbidden and required edges and tiers: .json or Tetrad's."),
    ] = None,
    delimiter: DelimiterOption = None,
    decimal: DecimalOption = ".",
    no_header: NoHeaderOption = False,
    units: UnitsOption = None,
    compare: CompareOption = False,
    resamples: ResamplesOption = 20,
    bootstrap: BootstrapOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Learn a causal graph and row weights from a table."""
    from rescore.cli.inputs import FileFormat, read_input
    from rescore.cli.terminal import noted_warnings
    from rescore.report.run import Run
    from rescore.report.staging import check_folder

    if output is not None:
        check_folder(output)
    with noted_warnings() as notes:
        settings = {
            "lambda1": lambda1,
            "threshold": threshold,
            "standardize": standardize,
            "random_state": seed,
            **_known_edges(forbid or [], require or [], knowledge),
        }
        around = {"tau": tau, "weighting": weighting, "loss": loss}
        model = _model(learner, settings, around)
        table = read_input(
            data, FileFormat(delimiter, decimal, not no_header), weights=weights, groups=groups,
            drop=names_in(drop or []),
        )  # fmt: skip
        graph = None if truth is None else _read_truth(truth, edge_direction, table.X)
        stopped = _stopped_early(model, table)
        changed = None
        if not stopped:
            changed, stopped = units_of(model, table, units, seed)
    run = Run(
        model, table.groups, None if graph is None else _scores(graph, model),
        warnings=tuple(notes), command=ctx.obj, source=data.name, units=changed,
    )  # fmt: skip
    further = partial(comparison_of, model, table, graph, resamples, seed)
    doubted = None if bootstrap is None else partial(stability_of, model, table, bootstrap, seed)
    if stopped:
        doubted = None
    finish(run, output, as_json, further if compare and not stopped else None, doubted)
    if stopped:
        raise KeyboardInterrupt


def _known_edges(forbid: list[str], require: list[str], file: Path | None) -> dict[str, Any]:
    """What a learner is told about edges: the options, and the file."""
    from rescore.knowledge import Knowledge

    known = Knowledge() if file is None else Knowledge.read(file)
    told = Knowledge(
        (*known.forbidden, *edge_pairs("--forbid", forbid)),
        (*known.required, *edge_pairs("--require", require)),
        known.tiers,
        known.forbid_within,
    )
    return told.edges()


def _stopped_early(model: Any, table: "Input") -> bool:
    """Fit; whether Ctrl-C ended it.  What was reached by then is in the model, if anything was."""
    try:
        fit_with_progress(model, table, "fitting")
    except KeyboardInterrupt:
        if not hasattr(model, "status_"):
            raise
        return True
    return False


def fit_with_progress(model: Any, table: "Input", title: str) -> None:
    """Fit the model, with a bar on stderr."""
    from rescore.cli.terminal import progress

    with progress(title, getattr(getattr(model, "estimator", model), "h_tol", 1e-8)) as on_step:
        known = {"groups": table.groups} if model.needs_groups else {}
        model.fit(table.X, sample_weight=table.sample_weight, on_step=on_step, **known)


def finish(
    run: Any,
    output: Path | None,
    as_json: bool,
    compared: Callable[[], Any] | None = None,
    doubted: Callable[[], Any] | None = None,
) -> None:
    """Write the files, even if Ctrl-C is pressed meanwhile, and say what was found.

    ``compared`` and ``doubted`` take long, so they are called when the files are there; if Ctrl-C
    ends the latter, what it has found by then is told before the command stops.
    """
    from rescore.cli.bootstrap import print_stability, stability_as_data, written
    from rescore.cli.compare import comparison_as_data, print_comparison
    from rescore.cli.printing import print_json
    from rescore.cli.summary import print_run, run_as_data
    from rescore.cli.terminal import uninterrupted
    from rescore.report.files import write_run

    files = []
    if output is not None:
        with uninterrupted():
            files = write_run(output, run)
    if not as_json:
        print_run(run, output, files)
    stability, added = (None, []) if doubted is None else written(doubted(), run, output)
    stopped = stability is not None and stability.interrupted
    if not as_json and stability is not None:
        print_stability(stability, added, run, output)
    comparison = compared() if compared is not None and not stopped else None
    if as_json:
        data = run_as_data(run, output, sorted({*files, *added}))
        more = {} if stability is None else {"stability": stability_as_data(stability)}
        more |= {} if comparison is None else {"comparison": comparison_as_data(comparison)}
        print_json(data | more)
    elif comparison is not None:
        print_comparison(comparison)
    if stopped:
        raise KeyboardInterrupt


def _model(learner: str, settings: dict[str, Any], around: dict[str, Any]) -> Any:
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


def _read_truth(path: Path, edge_direction: str | None, X: "pd.DataFrame") -> "pd.DataFrame":
    """The true graph, refused before the fit if its names are not those of the columns."""
    import pandas as pd

    from rescore.graph.io import read_graph
    from rescore.metrics.pairing import paired

    truth = read_graph(path, edge_direction)
    paired(truth, pd.DataFrame(0, index=X.columns, columns=X.columns))
    return truth


def _scores(truth: "pd.DataFrame", model: Any) -> Any:
    from rescore.metrics import evaluate

    return evaluate(truth, model)
