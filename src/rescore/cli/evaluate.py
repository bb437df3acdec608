"""``rescore evaluate``: how far a graph is from the true one."""

from pathlib import Path
from typing import Annotated

import typer

from rescore.cli.options import DebugOption, JsonOption

__all__ = ["evaluate_command"]

Direction = Annotated[
    str | None,
    typer.Option(
        help='"from row to column" or "from column to row", for a matrix that does not say.'
    ),
]


def evaluate_command(
    truth: Annotated[
        Path, typer.Argument(help="A .csv, .tsv, .json, .dot, .graphml or .dagitty file.")
    ],
    estimate: Annotated[Path, typer.Argument(help="Likewise; matched by the nodes' names.")],
    truth_direction: Direction = None,
    estimate_direction: Direction = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Compare two graphs: TPR, FDR, SHD, SID and more."""
    from rescore import metrics
    from rescore.cli.printing import print_all_scores, print_json
    from rescore.graph.io import read_graph

    scores = metrics.evaluate(
        read_graph(truth, truth_direction), read_graph(estimate, estimate_direction)
    )
    if as_json:
        print_json({**scores.as_dict(), "undefined": dict(scores.undefined)})
    else:
        print_all_scores(scores)
