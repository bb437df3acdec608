"""``rescore check`` and ``rescore advise``: a table before its fit, and the settings of the fit."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rescore.cli.learners import (
    RECOMMENDED_WORD,
    ForbidOption,
    KnowledgeOption,
    LearnerOption,
    RequireOption,
    StandardizeOption,
    TauOption,
    WeightingOption,
    known_edges,
    model_of,
)
from rescore.cli.options import (
    CategoriesOption,
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
    MissingOption,
    NaOption,
    NoHeaderOption,
    SheetOption,
    ThousandsOption,
    TransformOption,
    WeightsOption,
    folder_named,
)
from rescore.cli.terminal import as_flag, in_flags, one_line
from rescore.text import in_commas, names_in

if TYPE_CHECKING:
    from rescore.studies.advise import Advice
    from rescore.studies.check import Checkup
    from rescore.studies.table_input import Input

__all__ = ["advise_command", "check_command"]

SHARED = (  # options that mean the same to `rescore fit`
    "learner", "tau", "weighting", "standardize", "seed", "weights", "groups", "drop", "transform",
    "exclude", "missing", "categories", "na", "forbid", "require", "knowledge", "delimiter",
    "decimal", "thousands", "encoding", "sheet", "no_header",
)  # fmt: skip


def check_command(
    ctx: typer.Context,
    data: DataArgument,
    weights: WeightsOption = None,
    groups: GroupsOption = None,
    drop: DropOption = None,
    transform: TransformOption = None,
    exclude: ExcludeOption = None,
    missing: MissingOption = "refuse",
    categories: CategoriesOption = "refuse",
    na: NaOption = None,
    delimiter: DelimiterOption = None,
    decimal: DecimalOption = ".",
    thousands: ThousandsOption = None,
    encoding: EncodingOption = "utf-8",
    sheet: SheetOption = None,
    no_header: NoHeaderOption = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings.")] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Look at a table before any fit: all that would be refused, and what could lead astray.

    Ends with the command that fits the table.  Exits with 2 if there are errors, with 1 if there
    are warnings and --strict, otherwise with 0.
    """
    from rescore.cli.terminal import noted_warnings
    from rescore.studies.table_input import examined

    with noted_warnings():
        found, settings = examined(ctx.params, debug)
    command = suggested(ctx, settings) if found.ok or settings else None
    _print_findings(found, command, as_json)
    raise typer.Exit(_exit_code(found, strict))


def suggested(ctx: typer.Context, settings: Mapping[str, Any]) -> str:
    """The fit of the table as it was asked for and with these settings, to paste into a shell."""
    from rescore.studies.table_input import with_settings

    shared = {name: value for name, value in ctx.params.items() if name in SHARED}
    given = [name for name in shared if _is_given(ctx, name)]
    wanted = with_settings({name: shared[name] for name in shared}, settings)
    changed = [n for n in wanted if n in given or n in settings or wanted[n] != shared[n]]
    words = [shlex.quote(str(ctx.params["data"]))]
    for name in changed:
        value = wanted[name]
        joined = isinstance(value, list | tuple) and name in ("drop", "na")
        several = [in_commas(names_in(value))] if joined else value
        several = several if isinstance(several, list | tuple) else [several]
        flag = {"no_header": "header"}.get(name, name)
        words += [as_flag(flag, not one if name == "no_header" else one) for one in several]
    return " ".join(["rescore fit", *words, "-o run"])


def _is_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return ctx.params[name] is not None and source is not None and source.name != "DEFAULT"


def advise_command(
    ctx: typer.Context,
    data: DataArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", parser=folder_named, metavar="PATH",
            help="Folder for the table and the figure of the path.",
        ),
    ] = None,
    learner: LearnerOption = RECOMMENDED_WORD,
    lambdas: Annotated[
        str | None,
        typer.Option(help="Penalties to try, separated by commas.",
                     show_default="0.1, 0.3, 1 and 3 times the learner's own"),
    ] = None,
    thresholds: Annotated[
        str | None,
        typer.Option(help="Thresholds to try, separated by commas.",
                     show_default="round numbers up to the strongest edge"),
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts of the rows, each left out once.")] = 5,
    subsamples: Annotated[int, typer.Option(help="Halves of the rows, for the stability.")] = 6,
    jobs: JobsOption = 1,
    tau: TauOption = None,
    weighting: WeightingOption = None,
    standardize: StandardizeOption = None,
    seed: Annotated[int, typer.Option(help="Seed of folds, halves and learners.")] = 0,
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
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:  # fmt: skip
    """Recommend a penalty and a threshold for a table, without any true graph."""
    from rescore.cli.terminal import noted_warnings
    from rescore.staging import refuse_others_files
    from rescore.studies.table_input import asked_for

    if output is not None:
        refuse_others_files(output, "advice.csv")
    with noted_warnings():
        settings: dict[str, Any] = {"standardize": standardize, "random_state": seed}
        settings |= {"missing": missing, "categories": categories}
        settings |= known_edges(forbid, require, knowledge)
        model = model_of(learner, settings, {"tau": tau, "weighting": weighting})
        table = asked_for(ctx.params, model.needs_groups)
        path: dict[str, Any] = {"lambdas": _numbers("--lambdas", lambdas), "folds": folds}
        path["subsamples"] = subsamples
        grid = _numbers("--thresholds", thresholds)
        found = _advice(model, table, path, thresholds=grid, random_state=seed, n_jobs=jobs)
    _finish(found, _next_command(ctx, found), output, as_json)


def _print_findings(found: "Checkup", command: str | None, as_json: bool) -> None:
    from rescore.cli.terminal import print_json, print_table
    from rescore.text import printable

    lines = found.table.to_dict("records")
    for line in lines:
        line["remedy"] = in_flags(line["remedy"])
    if as_json:
        shown = [line | {"columns": [str(name) for name in line["columns"]]} for line in lines]
        print_json({"ok": found.ok, "findings": shown, "command": command})
        return
    header = ("severity", "code", "seen", "remedy")
    title = str(found).partition("\n")[0]
    print_table(title, header, [[printable(line[key], 2000) for key in header] for line in lines])
    print("No option mends this: correct the file first." if command is None
          else f"Run next:\n  {one_line(command)}")  # fmt: skip


def _exit_code(found: "Checkup", strict: bool) -> int:
    if not found.ok:
        return 2
    return 1 if strict and found.count("warning") else 0


def _advice(model: Any, table: "Input", path: dict[str, Any], **more: Any) -> "Advice":
    """The advice, with a bar on stderr."""
    from rescore.cli.terminal import counter
    from rescore.studies.advise import advise, fits_needed

    with counter("advising", fits_needed(model, **path)) as advance:
        return advise(
            model, table.X, on_fit=lambda done: advance(), **path, **more, **table.known_to(model),
        )  # fmt: skip


def _numbers(option: str, text: str | None) -> list[float] | None:
    """The numbers in a comma-separated text."""
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} takes numbers separated by commas, got {text!r}.") from None


def _next_command(ctx: typer.Context, found: "Advice") -> str:
    """The fit with the recommended setting: the options of this command that it shares."""
    settings = {name: repr(value) for name, value in found.recommended.items()}
    extra = " ".join(f"--{name} {value}" for name, value in settings.items())
    return f"{suggested(ctx, {}).removesuffix(' -o run')} {extra}".strip()


def _finish(found: "Advice", command: str, output: Path | None, as_json: bool) -> None:
    from rescore.cli.terminal import console, print_files, print_json, uninterrupted

    files: list[str] = []
    if output is not None:
        with uninterrupted():
            files = _write(output, found)
    if as_json:
        print_json({
            "recommended": found.recommended, "sentence": found.sentence, "command": command,
            "table": found.table.to_dict("records"),
            "folder": None if output is None else str(output), "files": files,
        })  # fmt: skip
        return
    _print_path(found)
    console().print(found.sentence)
    print(f"\nRun next:\n  {one_line(command)}")
    print_files(output, files)


def _print_path(found: "Advice") -> None:
    from rescore.cli.terminal import print_table

    known = [name for name in ("lambda1", "threshold") if name in found.table]
    lines = [
        (
            "*" if point["recommended"] else "", *(f"{point[name]:g}" for name in known),
            str(point["edges"]), f"{point['log_likelihood']:.3f}", f"{point['behind']:.4f}",
            f"{point['behind_se']:.4f}", f"{point['stability']:.2f}",
            "yes" if point["acyclic"] else "no",
        )
        for point in found.table.to_dict("records")
    ]  # fmt: skip
    header = ("edges", "log-lik.", "behind", "±", "stable", "DAG")
    title = "Path: held-out log-likelihood, how far it is behind the best, and stability"
    print_table(title, ["", *(f">{name}" for name in (*known, *header))], lines)


def _write(folder: Path, found: "Advice") -> list[str]:
    """The path as a table and as a picture; the names of the files."""
    from rescore.reports.figures import png, svg
    from rescore.staging import staged

    figure = found.figure()
    with staged(folder) as scratch:
        found.table.to_csv(scratch / "advice.csv", index=False, lineterminator="\n")
        (scratch / "advice.svg").write_bytes(svg(figure).encode())
        (scratch / "advice.png").write_bytes(png(figure))
        return sorted(path.name for path in scratch.iterdir())
