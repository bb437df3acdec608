"""What a command puts on the terminal, and what is kept from interrupting it."""

import json
import math
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rescore.cli.guard import in_flags, one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rescore.metrics import Scores

__all__ = [
    "console",
    "counter",
    "noted_warnings",
    "print_all_scores",
    "print_files",
    "print_json",
    "print_scores",
    "print_table",
    "progress",
    "uninterrupted",
]


def console(stderr: bool = False) -> "Console":
    """A rich console that takes text as it is; without colours when it is not a terminal."""
    from rich.console import Console

    file = sys.stderr if stderr else sys.stdout
    return Console(file=file, highlight=False, markup=False, emoji=False)


@contextmanager
def noted_warnings() -> Iterator[list[str]]:
    """Collect the warnings of the block, each once, and print them as lines when it ends.

    Examples
    --------
    >>> with noted_warnings() as notes:
    ...     warnings.warn("odd")
    >>> notes
    ['odd']
    """
    notes: list[str] = []
    notes_kind: dict[str, str] = {}

    def note(message: Any, category: Any, *_: Any, **__: Any) -> None:
        text = in_flags(str(message))
        if text not in notes:
            notes.append(text)
        if category.__name__ == "DataNote":
            notes_kind[text] = "note"

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            # Numerical libraries announce their own future here; that is not the user's concern.
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            warnings.showwarning = note
            yield notes
    finally:
        for text in notes:
            print(f"{notes_kind.get(text, 'warning')}: {one_line(text)}", file=sys.stderr)


@contextmanager
def progress(title: str, h_tol: float = 1e-8) -> Iterator[Callable[[Mapping[str, float]], None]]:
    """A bar on stderr, shown only on a terminal; the block gets a callback for ``fit(on_step=)``.

    The bar is full when log h, the distance from a DAG, has come down to its tolerance.
    """
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(24))
    screen = console(stderr=True)
    hidden = not screen.is_terminal  # a log file has no use for a bar
    with Progress(
        *columns, TimeElapsedColumn(), console=screen, transient=True, disable=hidden
    ) as bar:
        task = bar.add_task(f"{title}: compiling", total=1.0)

        def on_step(record: Mapping[str, float]) -> None:
            text = f"{title}: step {record['step']}, {record['edges']} edges"
            if "h" in record:
                text += f", h = {record['h']:.1e}"
            bar.update(task, description=text, completed=_done(record.get("h", 1.0), h_tol))

        yield on_step


@contextmanager
def counter(title: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr with the time that is left; the block gets a callback to move it by one.

    Where there is no terminal, a line for every tenth part that is done.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    screen = console(stderr=True)
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        bar.advance(task)
        if not screen.is_terminal and done * 10 // total > (done - 1) * 10 // total:
            print(f"{title}: {done} of {total}", file=sys.stderr, flush=True)

    columns = (BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield advance


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let the block finish when Ctrl-C is pressed, and only then stop."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        print("Ctrl-C was pressed while writing; the files were finished first.", file=sys.stderr)
        raise KeyboardInterrupt


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
    from rescore.metrics import HEADINGS

    header = ("", *(f">{heading}" for heading in HEADINGS.values()))
    lines = [(name, *(_number(each[key]) for key in HEADINGS)) for name, each in scores.items()]
    print_table(title, header, lines)
    for name, each in scores.items():
        for metric, reason in each.undefined.items():
            if metric in HEADINGS:
                print(f"{HEADINGS[metric]} of {name} has no value: {one_line(reason)}")


def print_all_scores(scores: "Scores") -> None:
    """Every metric of one estimate on a line of its own, as plain text that is easy to search."""
    for name, value in scores.as_dict().items():
        reason = f"  {one_line(scores.undefined.get(name, ''))}" if value is None else ""
        print(f"{name:<13} {_number(value)}{reason}")


def print_files(folder: Any, files: Sequence[str]) -> None:
    """Where the results are."""
    if files:
        print(f"\nWritten to {one_line(folder)}: {', '.join(files)}")


def _done(h: float, h_tol: float) -> float:
    """How much of the way from h = 1 to its tolerance is done, in orders of magnitude."""
    if not 0 < h_tol < 1:
        return 0.0
    return min(1.0, max(0.0, math.log(max(h, h_tol)) / math.log(h_tol)))


def _add_column(table: "Table", heading: str) -> None:
    right = heading.startswith(">")
    table.add_column(heading.removeprefix(">"), justify="right" if right else "left",
                     no_wrap=right, overflow="fold")  # fmt: skip


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def passing(logged: bool) -> Callable[[str, float], None]:
    """A callback for ``scan(on_pass=)``: on a terminal a line that is written over as it goes."""
    shown = console(stderr=True).is_terminal and not logged

    def on_pass(name: str, share: float) -> None:
        if shown:
            end = "\r" if share < 1 else " " * 20 + "\r"
            print(f"\rreading, {name}: {share:.0%}  ", end=end, file=sys.stderr, flush=True)

    return on_pass
