"""Commands where the truth is known: ``rescore simulate``, ``evaluate`` and ``reproduce``.

The first draws data with a known graph, the second tells the distance from it, the third does both
for the paper's experiments, or one's own, from their declarations.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rescore.cli.options import DebugOption, JsonOption, folder_named
from rescore.cli.terminal import one_line

if TYPE_CHECKING:
    from rescore.data import Dataset
    from rescore.experiments import Experiment

__all__ = ["evaluate_command", "reproduce_command", "simulate_command"]

Direction = Annotated[
    str | None,
    typer.Option(
        help='"from row to column" or "from column to row", for a matrix that does not say.'
    ),
]


def simulate_command(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", parser=folder_named, metavar="PATH", help="Folder for the files."
        ),
    ],
    graph: Annotated[str, typer.Option(help="er or sf.")] = "er",
    nodes: Annotated[int, typer.Option(help="Number of variables.")] = 20,
    degree: Annotated[int, typer.Option(help="Edges per node.")] = 2,
    samples: Annotated[int, typer.Option(help="Number of rows.")] = 2000,
    mechanism: Annotated[str, typer.Option(help="linear, gp, gp-add, mlp or mim.")] = "linear",
    noise: Annotated[str, typer.Option(help="gauss, exp, gumbel or uniform.")] = "gauss",
    groups: Annotated[
        str | None, typer.Option(help='Shares of the rows, such as "0.9,0.1".')
    ] = None,
    noise_scale: Annotated[
        float | None, typer.Option(help="Noise of the quiet half of the variables; see --scale-is.")
    ] = None,
    scale_is: Annotated[str, typer.Option(help="std or variance.")] = "std",
    corrupt: Annotated[float, typer.Option(help="Share of rows from another model.")] = 0.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 0,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Draw a random graph and data from it: data.csv, truth.csv, groups.csv, simulate.json."""
    from rescore.cli.terminal import uninterrupted
    from rescore.data import simulate
    from rescore.staging import refuse_others_files

    refuse_others_files(output, "simulation.json")
    parameters: dict[str, Any] = {
        "graph": graph, "degree": degree, "nodes": nodes, "samples": samples,
        "mechanism": mechanism, "noise": noise, "groups": _shares(groups),
        "noise_scale": noise_scale, "scale_is": scale_is, "corrupt": corrupt,
    }  # fmt: skip
    data = simulate.simulate(**parameters, random_state=seed)
    with uninterrupted():
        files = _write(output, data, {**parameters, "seed": seed})
    _tell(data, output, files, as_json)


def evaluate_command(
    truth: Annotated[Path, typer.Argument(help="A .csv, .tsv, .json, .graphml or .dagitty file.")],
    estimate: Annotated[Path, typer.Argument(help="Likewise; matched by the nodes' names.")],
    truth_direction: Direction = None,
    estimate_direction: Direction = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Compare two graphs: TPR, FDR, SHD, CPDAG SHD, SID and more."""
    from rescore import metrics
    from rescore.cli.terminal import print_all_scores, print_json
    from rescore.graph.io import read_graph

    scores = metrics.evaluate(
        read_graph(truth, truth_direction), read_graph(estimate, estimate_direction)
    )
    if as_json:
        print_json(scores.as_json())
    else:
        print_all_scores(scores)


def _shares(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f'--groups takes shares separated by commas, such as "0.9,0.1"; got {text!r}.'
        ) from None


def _write(folder: Path, data: "Dataset", parameters: dict[str, Any]) -> list[str]:
    """Numbers are written so that they read back exactly."""
    import json

    from rescore import __version__
    from rescore.graph.io import write_adjacency
    from rescore.staging import staged

    assert data.truth is not None
    with staged(folder, stale=("groups.csv",)) as scratch:
        data.X.to_csv(scratch / "data.csv", index=False, lineterminator="\n")
        write_adjacency(scratch / "truth.csv", data.truth)
        if data.groups is not None:
            data.groups.to_csv(scratch / "groups.csv", index=False, lineterminator="\n")
        about = {"rescore": __version__, **parameters}
        (scratch / "simulation.json").write_text(json.dumps(about, indent=1) + "\n")
        return sorted(path.name for path in scratch.iterdir())


def _tell(data: "Dataset", folder: Path, files: list[str], as_json: bool) -> None:
    from rescore.cli.terminal import print_files, print_json

    assert data.truth is not None
    edges = int(data.truth.to_numpy().sum())
    if as_json:
        about = {"n": data.n, "d": data.d, "edges": edges, "folder": str(folder), "files": files}
        print_json(about)
    else:
        print(f"{data.n} rows of {data.d} variables, from a graph of {edges} edges.")
        print_files(folder, files)


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
    from rescore.experiments.running import search
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
