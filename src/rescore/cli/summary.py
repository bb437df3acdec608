"""What a command says when it is done, for people and for programs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from rescore.cli.guard import one_line
from rescore.cli.terminal import console
from rescore.metrics.scores import Scores
from rescore.report.run import Run
from rescore.report.tables import group_shares, strongest_edges
from rescore.text import printable

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "print_all_scores",
    "print_files",
    "print_json",
    "print_run",
    "print_scores",
    "print_shares",
    "print_table",
    "run_as_data",
]

MOST_EDGES, MOST_ROWS, MOST_GROUPS = 15, 5, 20
METRICS = {"tpr": "TPR", "fdr": "FDR", "shd": "SHD", "sid": "SID", "edges": "edges"}


def run_as_data(run: Run, folder: Any, files: Sequence[str]) -> dict[str, Any]:
    """A run as a JSON object: status, graph, scores, warnings, and the files written."""
    diagnostics = run.model.diagnostics_
    n, d = run.model.losses_.shape
    edges = strongest_edges(run.model)
    data: dict[str, Any] = {
        "status": diagnostics["status"],
        "converged": diagnostics["converged"],
        "n": n,
        "d": d,
        "effective_rows": diagnostics["effective_rows"],
        "edges": [{"from": cause, "to": effect, "weight": w} for cause, effect, w in edges],
        "warnings": list(run.warnings),
        "folder": None if folder is None else str(folder),
        "files": list(files),
    }
    if run.groups is not None:
        shares = group_shares(run.model.sample_weight_, run.groups)
        data["groups"] = shares.reset_index().to_dict("records")
    if run.scores is not None:
        data["scores"] = run.scores.as_dict()
    return data


def print_json(data: Mapping[str, Any]) -> None:
    """One JSON object on one line, in ASCII, so that no terminal can be misled by a name."""
    typer.echo(json.dumps(data, allow_nan=False))


def print_run(run: Run, folder: Any, files: Sequence[str]) -> None:
    """The run for a reader: how it ended, the strongest edges, the heaviest rows, the files."""
    out, diagnostics = console(), run.model.diagnostics_
    n, edges = len(run.model.losses_), strongest_edges(run.model)
    out.print(one_line(diagnostics["status"]), soft_wrap=True)
    effective = f"{diagnostics['effective_rows']:,.0f} effective of {n:,} rows"
    out.print(f"{len(edges)} edge{'s' * (len(edges) != 1)}, {effective}")
    _print_edges(edges)
    _print_heaviest(diagnostics["heaviest_rows"], n)
    if run.groups is not None:
        print_shares(group_shares(run.model.sample_weight_, run.groups))
    if run.scores is not None:
        print_scores("Against the true graph", {**run.baselines, "this fit": run.scores})
    print_files(folder, files)


def print_files(folder: Any, files: Sequence[str]) -> None:
    """Where the results are."""
    if files:
        typer.echo(f"\nWritten to {one_line(folder)}: {', '.join(files)}")


def _print_edges(edges: list[tuple[str, str, float]]) -> None:
    shown = [(_name(cause), "->", _name(effect), f"{w:.3f}") for cause, effect, w in edges]
    if len(edges) > MOST_EDGES:
        title = f"Strongest edges ({MOST_EDGES} of {len(edges)})"
    else:
        title = "Edges, strongest first"
    if edges:
        print_table(title, ("cause", "", "effect", ">weight"), shown[:MOST_EDGES])


def _print_heaviest(rows: list[dict[str, Any]], n: int) -> None:
    shown = [(_name(row["row"]), f"{row['weight'] * n:.2f}", f"{row['loss']:.4g}") for row in rows]
    print_table("Heaviest rows", ("row", ">weight x n", ">loss"), shown[:MOST_ROWS])


def print_shares(shares: Any) -> None:
    """Each group's share of the rows and of the weight."""
    lines = [
        (_name(label), str(rows), f"{100 * of_rows:.1f} %", f"{100 * of_weight:.1f} %")
        for label, rows, of_rows, of_weight in shares.itertuples(name=None)
    ]
    more = f" (the first {MOST_GROUPS} of {len(lines)})" if len(lines) > MOST_GROUPS else ""
    header = ("group", ">rows", ">share of rows", ">share of weight")
    print_table(f"Groups, unseen by the learner{more}", header, lines[:MOST_GROUPS])


def print_scores(title: str, scores: Mapping[str, Scores]) -> None:
    """One line per graph, one column per metric."""
    header = ("", *(f">{title}" for title in METRICS.values()))
    lines = [(name, *(_number(each[key]) for key in METRICS)) for name, each in scores.items()]
    print_table(title, header, lines)
    for name, each in scores.items():
        for metric, reason in each.undefined.items():
            if metric in METRICS:
                typer.echo(f"{METRICS[metric]} of {name} has no value: {one_line(reason)}")


def print_all_scores(scores: Scores) -> None:
    """Every metric of one estimate on a line of its own, as plain text that is easy to search."""
    for name, value in scores.as_dict().items():
        reason = f"  {one_line(scores.undefined.get(name, ''))}" if value is None else ""
        typer.echo(f"{name:<13} {_number(value)}{reason}")


def print_table(title: str, header: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    """A plain table on stdout; columns whose heading starts with > are aligned to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold")
    for heading in header:
        _add_column(table, heading)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def _add_column(table: "Table", heading: str) -> None:
    right = heading.startswith(">")
    table.add_column(heading.removeprefix(">"), justify="right" if right else "left",
                     no_wrap=right, overflow="fold")  # fmt: skip


def _name(name: object) -> str:
    return printable(name, 30)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"
