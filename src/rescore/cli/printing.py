"""Tables, scores and JSON on stdout, whatever they are about."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rescore.cli.guard import one_line
from rescore.cli.terminal import console

if TYPE_CHECKING:
    from rich.table import Table

    from rescore.metrics.scores import Scores

__all__ = ["print_all_scores", "print_files", "print_json", "print_scores", "print_table"]

METRICS = {"tpr": "TPR", "fdr": "FDR", "shd": "SHD", "sid": "SID", "edges": "edges"}


def print_json(data: Mapping[str, Any]) -> None:
    """One JSON object on one line, in ASCII, so that no terminal can be misled by a name."""
    print(json.dumps(data, allow_nan=False))


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


def print_scores(title: str, scores: "Mapping[str, Scores]") -> None:
    """One line per graph, one column per metric."""
    header = ("", *(f">{title}" for title in METRICS.values()))
    lines = [(name, *(_number(each[key]) for key in METRICS)) for name, each in scores.items()]
    print_table(title, header, lines)
    for name, each in scores.items():
        for metric, reason in each.undefined.items():
            if metric in METRICS:
                print(f"{METRICS[metric]} of {name} has no value: {one_line(reason)}")


def print_all_scores(scores: "Scores") -> None:
    """Every metric of one estimate on a line of its own, as plain text that is easy to search."""
    for name, value in scores.as_dict().items():
        reason = f"  {one_line(scores.undefined.get(name, ''))}" if value is None else ""
        print(f"{name:<13} {_number(value)}{reason}")


def print_files(folder: Any, files: Sequence[str]) -> None:
    """Where the results are."""
    if files:
        print(f"\nWritten to {one_line(folder)}: {', '.join(files)}")


def _add_column(table: "Table", heading: str) -> None:
    right = heading.startswith(">")
    table.add_column(heading.removeprefix(">"), justify="right" if right else "left",
                     no_wrap=right, overflow="fold")  # fmt: skip


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"
