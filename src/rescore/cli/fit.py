"""``rescore fit``: a graph from a table."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rescore.cli.bootstrap import BootstrapOption, stability_of
from rescore.cli.compare import CompareOption, ResamplesOption, comparison_of
from rescore.cli.finishing import finish
from rescore.cli.fitting import stopped_early
from rescore.cli.learners import (
    ForbidOption,
    KnowledgeOption,
    Lambda1Option,
    LearnerOption,
    LossOption,
    RequireOption,
    StandardizeOption,
    TauOption,
    ThresholdOption,
    WeightingOption,
    known_edges,
    model_of,
)
from rescore.cli.options import (
    DataArgument,
    DebugOption,
    DecimalOption,
    DelimiterOption,
    DropOption,
    GroupsOption,
    JobsOption,
    JsonOption,
    NoHeaderOption,
    WeightsOption,
    names_in,
)
from rescore.cli.plain import PlainOption, plain_of
from rescore.cli.units import UnitsOption, units_of

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["fit_command"]


def fit_command(
    ctx: typer.Context,
    data: DataArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the results; without it none is written."),
    ] = None,
    learner: LearnerOption = "notears",
    lambda1: Lambda1Option = None,
    threshold: ThresholdOption = None,
    tau: TauOption = None,
    weighting: WeightingOption = None,
    loss: LossOption = None,
    standardize: StandardizeOption = None,
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
    forbid: ForbidOption = None,
    require: RequireOption = None,
    knowledge: KnowledgeOption = None,
    delimiter: DelimiterOption = None,
    decimal: DecimalOption = ".",
    no_header: NoHeaderOption = False,
    plain: PlainOption = True,
    units: UnitsOption = None,
    compare: CompareOption = False,
    resamples: ResamplesOption = 20,
    bootstrap: BootstrapOption = None,
    jobs: JobsOption = 1,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Learn a causal graph and row weights from a table."""
    from rescore.checkup import check
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
            **known_edges(forbid, require, knowledge),
        }
        around = {"tau": tau, "weighting": weighting, "loss": loss}
        model = model_of(learner, settings, around)
        table = read_input(
            data, FileFormat(delimiter, decimal, not no_header), weights=weights, groups=groups,
            drop=names_in(drop or []),
        )  # fmt: skip
        graph = None if truth is None else _read_truth(truth, edge_direction, table.X)
        stopped = stopped_early(model, table)
        without, stopped = (None, True) if stopped else plain_of(model, table, plain)
        changed, stopped = (None, True) if stopped else units_of(model, table, units, seed)
    run = Run(
        model, table.groups, None if graph is None else _scores(graph, model),
        warnings=tuple(notes), command=ctx.obj, source=data.name, plain=without, units=changed,
        findings=check(table.X, table.sample_weight, table.groups).findings,
    )  # fmt: skip
    compared = partial(comparison_of, model, table, graph, resamples, seed, jobs)
    doubted = partial(stability_of, model, table, bootstrap or 0, seed, jobs)
    finish(
        run, output, as_json,
        compared if compare and not stopped else None,
        doubted if bootstrap and not stopped else None,
    )  # fmt: skip
    if stopped:
        raise KeyboardInterrupt


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
