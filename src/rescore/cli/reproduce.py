"""``rescore reproduce``: the paper's experiments, or one's own, from their declarations."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rescore.cli.guard import one_line
from rescore.cli.options import DebugOption, folder_named

if TYPE_CHECKING:
    from rescore.experiments import Experiment

__all__ = ["reproduce_command"]


def reproduce_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments by name, or your own .toml files; without any, all."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Name the experiments and stop.")] = False,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's size, or one for minutes.")
    ] = False,
    tiny: Annotated[bool, typer.Option("--tiny", help="Only to see that everything runs.")] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Only render the pages from the records there are.")
    ] = False,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", parser=folder_named, metavar="PATH", help="Records and pages."
        ),
    ] = Path("results"),
    jobs: Annotated[int, typer.Option(help="Processes on this machine.")] = 1,
    engine: Annotated[
        str, typer.Option(help="processes (of this machine) or dask (a cluster).")
    ] = ("processes"),
    scheduler: Annotated[
        str | None, typer.Option(help="Of the dask cluster, such as tcp://host:8786.")
    ] = None,
    limit: Annotated[float, typer.Option(help="Seconds that a trial may take.")] = 3600.0,
    again: Annotated[
        bool, typer.Option("--again", help="Also run what failed or timed out before.")
    ] = False,
    asks: Annotated[
        int, typer.Option("--search", help="Try so many settings where a method declares a search.")
    ] = 0,
    debug: DebugOption = False,
) -> None:
    """Run what is missing of the paper's experiments, and render their pages."""
    from rescore.experiments import declared, find
    from rescore.experiments.pages import write_pages
    from rescore.experiments.store import Store
    from rescore.staging import refuse_others_files
    from rescore.validation import check_integer, check_number

    if listed:
        for experiment in declared():
            print(f"{experiment.name:32} {experiment.title}")
        return
    check_number("--limit", limit, above=0)
    check_integer("--jobs", jobs, at_least=1)
    chosen = [find(name) for name in names] if names else declared()
    size = "tiny" if tiny else "full" if full else "quick"
    store = Store(refuse_others_files(output, "records") / "records")
    failures = 0
    if not page:
        where = {"jobs": jobs, "engine": engine, "scheduler": scheduler, "limit": limit}
        failures = _run(chosen, size, store, again, where)
        _search(chosen, size, store, asks, where)
    store.pack()
    for path in write_pages(chosen, store, output, size):
        print(path)
    _tell_what_is_wrong(store, failures)


def _tell_what_is_wrong(store: Any, failures: int) -> None:
    """Name files that hold something else; exit 1 where trials have come to nothing."""
    from rescore.text import listing

    odd = store.passed_over()
    if odd:
        told = f"warning: in {store.folder}, {listing(odd)} hold lines that are no records; they "
        print(one_line(told + "were passed over and left as they are."), file=sys.stderr)
    if failures:
        told = f"error: {failures} trials failed or timed out; --again tries them again."
        print(told, file=sys.stderr)
        raise typer.Exit(1)


def _search(
    chosen: list["Experiment"], size: str, store: Any, asks: int, where: dict[str, Any]
) -> None:
    """Search the settings of methods that ask for it, and say what was found."""
    from rescore.experiments.search import search
    from rescore.experiments.sweep import sweep

    def run(trials: list[Any]) -> None:
        there = store.read()
        sweep([trial for trial in trials if trial.key not in there], store, **where)

    for experiment in chosen if asks else []:
        for name, best in search(experiment, store, asks, run, size).items():
            print(f"{experiment.name}, {name} ({experiment.protocol}): {best}")


def _run(
    chosen: list["Experiment"], size: str, store: Any, again: bool, where: dict[str, Any]
) -> int:
    """Sweep what is missing, with a bar and an estimate of the time left; how many have failed."""
    from rescore.cli.terminal import counter
    from rescore.experiments.sweep import AGAIN, missing, sweep

    cases = [case for experiment in chosen for case in experiment.cases(size)]
    trials = missing(cases, store, again)
    bad: list[str] = []

    def on_record(record: dict[str, Any]) -> None:
        bad.extend([record["status"]] * (record["status"] != "ok"))
        advance()

    with counter("trials", len(trials)) as advance:
        sweep(trials, store, on_record=on_record, **where)
    done = len(trials) - len(bad)
    print(f"{len(cases) - len(trials)} trials were there, {done} ended well, {len(bad)} did not.")
    there = store.read()
    wanted = {case.trial.key for case in cases} & there.keys()
    return sum(there[key]["status"] in AGAIN for key in wanted)
