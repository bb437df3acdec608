"""``rescore simulate``, data with a known graph, and ``rescore evaluate``, the distance from it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rescore.cli.options import DebugOption, JsonOption, folder_named

if TYPE_CHECKING:
    from rescore.data import Dataset

__all__ = ["evaluate_command", "simulate_command"]

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
