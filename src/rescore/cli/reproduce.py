"""``rescore reproduce``: the paper's experiments, or one's own, from their declarations."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rescore.cli.options import DebugOption

if TYPE_CHECKING:
    from rescore.experiments.spec import Experiment

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
    output: Annotated[Path, typer.Option("--output", "-o", help="Records and pages.")] = Path(
        "results"
    ),
    jobs: Annotated[int, typer.Option(help="Processes on this machine.")] = 1,
    engine: Annotated[str, typer.Option(help="joblib (this machine) or dask (a cluster).")] = (
        "joblib"
    ),
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
    from rescore.experiments.pages import write_pages
    from rescore.experiments.spec import declared, find
    from rescore.experiments.store import Store

    if listed:
        for experiment in declared():
            print(f"{experiment.name:32} {experiment.title}")
        return
    chosen = [find(name) for name in names] if names else declared()
    size = "tiny" if tiny else "full" if full else "quick"
    store = Store(output / "records")
    if not page:
        where = {"jobs": jobs, "engine": engine, "scheduler": scheduler, "limit": limit}
        _run(chosen, size, store, again, where)
        _search(chosen, size, store, asks, where)
    store.pack()
    for path in write_pages(chosen, store, output, size):
        print(path)


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
) -> None:
    """Sweep what is missing, with a bar and an estimate of the time left."""
    from rescore.cli.terminal import counter
    from rescore.experiments.sweep import missing, sweep

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
