"""``rescore fit --bootstrap``: how sure each edge is, after the fit."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rescore.cli.inputs import Input
    from rescore.report.run import Run
    from rescore.stability import Stability

__all__ = [
    "BootstrapOption",
    "print_stability",
    "stability_as_data",
    "stability_of",
    "written",
]

MOST_EDGES = 15

BootstrapOption = Annotated[
    int | None,
    typer.Option(min=1, help="Afterwards, fit so many resamples: how sure is each edge?"),
]


def stability_of(model: Any, table: "Input", resamples: int, seed: int, jobs: int) -> "Stability":
    """The model on so many resamples of the rows, with a bar on stderr."""
    from rescore.cli.terminal import counter, noted_warnings
    from rescore.stability import bootstrap

    with noted_warnings(), counter("resampling", resamples) as advance:
        return bootstrap(
            model, table.X, resamples=resamples, sample_weight=table.sample_weight,
            groups=table.groups if model.needs_groups else None, random_state=seed, n_jobs=jobs,
            on_resample=lambda done: advance(),
        )  # fmt: skip


def written(
    stability: "Stability", run: "Run", output: Path | None
) -> tuple["Stability", list[str]]:
    """The same, once its files and the new report are in the folder; with their names."""
    from rescore.cli.terminal import uninterrupted
    from rescore.report.files import write_stability

    if output is None:
        return stability, []
    with uninterrupted():
        return stability, write_stability(output, run, stability)


def print_stability(
    stability: "Stability", files: list[str], run: "Run", output: Path | None
) -> None:
    """The edges worth a doubt first, the sentence, and the files."""
    from rescore.cli.printing import print_files, print_table
    from rescore.cli.terminal import console
    from rescore.report.doubt import doubts
    from rescore.text import printable

    lines = [
        (
            printable(line["cause"], 20), "->", printable(line["effect"], 20),
            *(f"{100 * line[key]:.0f} %" for key in ("probability", "adjacent", "direction")),
            "yes" if line["in_graph"] else "no",
        )
        for line in doubts(run, stability.edges)
    ]  # fmt: skip
    shown = f"{MOST_EDGES} of {len(lines)}, " if len(lines) > MOST_EDGES else ""
    header = ("cause", "", "effect", ">edge", ">adjacent", ">direction", "in graph")
    if lines:
        title = f"How sure is each edge?  ({shown}least sure first)"
        print_table(title, header, lines[:MOST_EDGES])
    console().print(stability.summary, soft_wrap=True)
    print_files(output, files)


def stability_as_data(stability: "Stability") -> dict[str, Any]:
    """The table as a list of rows, and how the fits ended."""
    ends = {"cause": "from", "effect": "to"}  # as everywhere in the JSON of a run
    table = stability.table.astype(dict.fromkeys(ends, str)).rename(columns=ends)
    return {
        "summary": stability.summary,
        "scheme": stability.scheme,
        "resamples": stability.resamples,
        "statuses": dict(stability.statuses),
        "interrupted": stability.interrupted,
        "edges": table.to_dict("records"),
    }
