"""``rescore fit``, a graph from a table, and ``rescore report``, its page made again.

Many files, a memory limit or a cluster ask for rows to be read in passes.
"""

import logging
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rescore.cli.before_fit import suggested
from rescore.cli.learners import (
    RECOMMENDED_WORD,
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
    own_settings,
)
from rescore.cli.options import (
    BootstrapOption,
    CategoriesOption,
    ClusterOption,
    CompareOption,
    DataArgument,
    DebugOption,
    DecimalOption,
    DelimiterOption,
    DropOption,
    EncodingOption,
    ExcludeOption,
    GroupsOption,
    JobsOption,
    JsonOption,
    KeysOption,
    MemoryOption,
    MissingOption,
    NaOption,
    NoHeaderOption,
    PlainOption,
    ResamplesOption,
    SheetOption,
    ThousandsOption,
    TransformOption,
    UnitsOption,
    VerboseOption,
    WeightsOption,
    folder_named,
)
from rescore.cli.terminal import in_flags

if TYPE_CHECKING:
    import pandas as pd

    from rescore.studies.table_input import Input
    from rescore.tables.findings import Finding

__all__ = ["fit_command", "report_command"]

KEPT = ".passes"  # in the folder of the run, until it is whole
NOT_YET = (
    "transform", "exclude", "na", "delimiter", "thousands", "sheet",
    "units", "compare",
)  # fmt: skip


def fit_command(
    ctx: typer.Context,
    data: DataArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            parser=folder_named,
            metavar="PATH",
            help="A new folder for the results, or that of an earlier run; without it none is "
            "written.",
        ),
    ] = None,
    learner: LearnerOption = RECOMMENDED_WORD,
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
    transform: TransformOption = None,
    exclude: ExcludeOption = None,
    missing: MissingOption = "refuse",
    categories: CategoriesOption = "refuse",
    na: NaOption = None,
    forbid: ForbidOption = None,
    require: RequireOption = None,
    knowledge: KnowledgeOption = None,
    delimiter: DelimiterOption = None,
    decimal: DecimalOption = ".",
    thousands: ThousandsOption = None,
    encoding: EncodingOption = "utf-8",
    sheet: SheetOption = None,
    no_header: NoHeaderOption = False,
    plain: PlainOption = True,
    units: UnitsOption = None,
    compare: CompareOption = False,
    resamples: ResamplesOption = 20,
    bootstrap: BootstrapOption = None,
    keys: KeysOption = None,
    memory: MemoryOption = None,
    cluster: ClusterOption = None,
    jobs: JobsOption = 1,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Learn a causal graph and row weights from a table."""
    from rescore.cli.after_fit import (
        comparison_of,
        plain_of,
        stability_of,
        stopped_early,
        units_of,
    )
    from rescore.cli.terminal import noted_warnings
    from rescore.metrics import evaluate
    from rescore.reports.folder import RUN_FILES
    from rescore.reports.run import ABOUT_FILE, Run, some_rows
    from rescore.staging import refuse_others_files
    from rescore.studies.check import check

    if output is not None:
        inputs = (data, truth, groups, knowledge)
        refuse_others_files(output, ABOUT_FILE, RUN_FILES, inputs)
    with noted_warnings() as notes:
        settings = {
            "lambda1": lambda1,
            "threshold": threshold,
            "standardize": standardize,
            "random_state": seed,
            "missing": missing,
            "categories": categories,
            **known_edges(forbid, require, knowledge),
        }
        around = {"tau": tau, "weighting": weighting, "loss": loss}
        model = model_of(learner, settings, around, own_settings(ctx))
        scans = in_passes(ctx.params)
        table = scanned(ctx) if scans else _read(ctx, model)
        graph = None if truth is None else _read_truth(truth, edge_direction, table.X.names)
        stopped = stopped_early(model, table)
        without, stopped = (None, True) if stopped else plain_of(model, table, plain)
        changed, stopped = (
            (None, stopped) if stopped or scans else units_of(model, table, units, seed)
        )
    found = () if scans else check(table.X, table.sample_weight, table.groups).findings
    found = tuple(replace(one, remedy=in_flags(one.remedy)) for one in found if _tells(one, model))
    notes += _further(found, notes)
    run = Run(
        model, table.groups, None if graph is None else evaluate(graph, model),
        warnings=tuple(notes), command=ctx.obj, source=data.name, plain=without, units=changed,
        findings=found, rows=None if scans else some_rows(table.X.values),
    )  # fmt: skip
    compared = partial(comparison_of, model, table, graph, resamples, seed, jobs)
    doubted = partial(stability_of, model, table, bootstrap or 0, seed, jobs)
    _finish(
        run, output, as_json, verbose,
        compared if compare and not stopped else None,
        doubted if bootstrap and not stopped else None,
    )  # fmt: skip
    if scans and output is not None and not stopped:
        weights_written(model, table.X, output, as_json)
    if stopped:
        raise KeyboardInterrupt


def report_command(
    folder: Annotated[Path, typer.Argument(help="The folder that fit -o or demo -o wrote.")],
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Make report.html again from a saved run; nothing is fitted."""
    from rescore.cli.terminal import print_files, print_json
    from rescore.reports.folder import rewrite_report

    path = rewrite_report(folder)
    if as_json:
        print_json({"folder": str(folder), "files": [path.name]})
        return
    print_files(folder, [path.name])


def _read(ctx: typer.Context, model: Any) -> "Input":
    """The table; or what is wrong with its file, and the command that reads it all the same."""
    from rescore.studies.table_input import asked_for, everything_wrong

    try:
        return asked_for(ctx.params, model.needs_groups)
    except (ValueError, TypeError) as error:
        wrong = everything_wrong(ctx.params)
        faults = [] if wrong is None else [one for one in wrong.findings if one.severity == "error"]
        if wrong is None or not faults or not all(one.fix for one in faults):
            raise
        told = " ".join(one.seen for one in faults)
        command = suggested(ctx, wrong.settings).removesuffix(" -o run")
        more = "" if ctx.params["output"] is None else f" -o {ctx.params['output']}"
        raise ValueError(f"{error} All that is wrong: {told} Try: {command}{more}") from error


def _tells(found: "Finding", model: Any) -> bool:
    """Whether a finding of the check says anything about this fit, and what is not done already."""
    from rescore.fitting import SCALE_FINDINGS
    from rescore.learners.base import Unpenalised

    done = set()
    if model.plain.standardize or isinstance(model.plain, Unpenalised):
        done |= {*SCALE_FINDINGS, "unequal_noise"}  # in any units
    if model.plain is not model:
        done |= {"heterogeneous", "groups_differ"}  # rows are weighed
    return found.code not in done


def _further(found: Sequence["Finding"], notes: Sequence[str]) -> list[str]:
    """The warnings of the check that the fit has not given itself, told and returned."""
    from rescore.cli.terminal import one_line

    told = [one.message for one in found if one.severity == "warning"]
    seen = [one.seen for one in found if any(one.seen in note for note in notes)]
    further = [text for text in told if not any(text.startswith(each) for each in seen)]
    for text in further:
        print(f"warning: {one_line(text)}", file=sys.stderr)
    return further


def _read_truth(path: Path, edge_direction: str | None, names: tuple[Any, ...]) -> "pd.DataFrame":
    """The true graph, refused before the fit if its names are not those of the columns."""
    import pandas as pd

    from rescore.graph.io import read_graph
    from rescore.metrics.pairing import paired

    truth = read_graph(path, edge_direction)
    paired(truth, pd.DataFrame(0, index=list(names), columns=list(names)))
    return truth


def _finish(
    run: Any,
    output: Path | None,
    as_json: bool,
    verbose: bool,
    compared: Callable[[], Any] | None = None,
    doubted: Callable[[], Any] | None = None,
) -> None:
    """Write the files, even if Ctrl-C is pressed meanwhile, and say what was found.

    ``compared`` and ``doubted`` take long, so they are called when the files are there; if Ctrl-C
    ends the latter, what it has found by then is told before the command stops.
    """
    from rescore.cli.after_fit import (
        comparison_as_data,
        print_comparison,
        print_run,
        print_stability,
        run_as_data,
        stability_as_data,
        written,
    )
    from rescore.cli.terminal import noted_warnings, print_json, uninterrupted
    from rescore.reports.folder import write_run

    files = []
    if output is not None:
        with uninterrupted(), noted_warnings():
            files = write_run(output, run)
    stability: Any = None
    added: list[str] = []
    try:
        if doubted is not None:
            stability, added = written(doubted(), run, output)
            run = run.with_stability(stability)
    finally:  # also if Ctrl-C was pressed before anything was found
        if not as_json:  # the edges once, with all that is known of them
            print_run(run, output, files, verbose)
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


def in_passes(params: Mapping[str, Any]) -> bool:
    """Whether the options of a fit ask for rows to be read in passes."""
    data = str(params["data"])
    many = any(mark in data for mark in "*?[") and not Path(data).exists()
    asked = any(params[name] for name in ("memory", "cluster", "keys"))
    return asked or many or Path(data).is_dir() or _address(data) != data


def _address(data: str) -> str:
    """An address as it was written: a path has lost one of its slashes."""
    return re.sub(r"^(\w{2,}):/+", r"\1://", data) if re.match(r"^\w{2,}:/", data) else data


def scanned(ctx: typer.Context) -> "Input":
    """The scan that the options of a fit ask for; finished passes are kept beside the results."""
    from rescore.cli.terminal import passing
    from rescore.scanning.sources import scan
    from rescore.studies.table_input import Input
    from rescore.text import names_in

    params = ctx.params
    given = [name for name in NOT_YET if params[name]]
    if given:
        flags = ", ".join(f"--{name}" for name in given)
        raise ValueError(
            f"Rows that are read in passes do not take {flags}. Leave it out, or give one file "
            "that fits in memory, without --memory, --cluster and --keys."
        )
    if params["cluster"]:  # what is lost is said in one line
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
    output = params["output"]
    table: Any = scan(
        _address(str(params["data"])),
        drop=names_in(params["drop"] or []),
        keys=names_in(params["keys"] or []),
        weights=params["weights"],
        groups=params["groups"],
        client=params["cluster"],
        keep=None if output is None else output / KEPT,
        memory=params["memory"],
        on_pass=passing(logged=_logged(params["verbose"])),
    )
    return Input(table)


def _logged(verbose: bool) -> bool:
    """A line on stderr for every pass, if wanted."""
    if verbose:
        log = logging.getLogger("rescore.passes")
        log.setLevel(logging.INFO)
        if not log.handlers:
            log.addHandler(logging.StreamHandler(sys.stderr))
    return verbose


def weights_written(model: Any, table: Any, output: Path, quiet: bool) -> None:
    """The last pass: the weights of all rows; then nothing need be kept any more."""
    from rescore.scanning.passes import write_weights

    rows = write_weights(model, table, output / "weights.parquet")
    shutil.rmtree(output / KEPT, ignore_errors=True)
    if not quiet:
        print(f"weights.parquet has the weights of {rows:,} rows; weights.csv those of the sample.")
