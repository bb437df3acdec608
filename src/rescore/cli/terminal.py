"""What a command puts on the terminal, what may not interrupt it, and how it ends.

Its exit code: 0 all went well; 1 something failed while running; 2 the input or the call was wrong;
130 stopped by Ctrl-C.  An error is one line; ``--debug`` shows the traceback as well.
"""

import ast
import json
import math
import os
import re
import shlex
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rescore.metrics import Scores

__all__ = [
    "GuardedGroup",
    "console",
    "counter",
    "in_flags",
    "noted_warnings",
    "one_line",
    "print_all_scores",
    "print_files",
    "print_json",
    "print_scores",
    "print_table",
    "progress",
    "uninterrupted",
]

# typer carries click inside itself or beside itself, depending on its version.
UsageFault: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
BAD_INPUT = (ValueError, TypeError, OSError, ImportError)
LONGEST_LINE = 3000


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


class GuardedGroup(TyperGroup):
    """The commands; whatever they raise ends here.  ``ctx.obj`` is the command line as text."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit with its code."""
        words = sys.argv[1:] if args is None else list(args)
        extra["obj"] = shlex.join(["rescore", *words])

        def command() -> Any:
            return super(GuardedGroup, self).main(words, "rescore", standalone_mode=False, **extra)

        code = _exit_code(command, debug="--debug" in words)
        if standalone_mode:
            sys.exit(code)
        return code


def one_line(text: object) -> str:
    r"""The text on one line, without anything a terminal would obey.

    Examples
    --------
    >>> print(one_line("two\nlines and \x1b[31m red"))
    two lines and \x1b[31m red
    """
    line = " ".join(str(text).split())[:LONGEST_LINE]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


ARGUMENTS = (
    "missing", "categories", "drop", "na", "decimal", "thousands", "delimiter", "encoding", "sheet",
    "header", "standardize", "weighting", "noise", "tau", "max_steps", "threshold", "lambda1",
)  # fmt: skip
VALUE = r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|True|False|[\d.]*\d"
WORDS = re.compile(rf"\b({'|'.join(ARGUMENTS)})=({VALUE})")
SPOKEN = {"header": "no-header", "sample_weight": "weights"}  # where a flag is called otherwise
ASKED = {"groups=...": "--groups COLUMN", "sample_weight=...": "--weights COLUMN"}


def in_flags(text: str) -> str:
    """A sentence about arguments in Python as one about flags on the command line.

    Examples
    --------
    >>> in_flags("Fit with standardize=True, or missing='em' and drop=['a', 'b c'].")
    "Fit with --standardize, or --missing em and --drop 'a,b c'."
    """
    for python, flag in ASKED.items():
        text = text.replace(f"fit(X, {python})", flag).replace(python, flag)
    return WORDS.sub(lambda found: as_flag(found[1], _literal(found[2])) or found[0], text)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def as_flag(name: str, value: Any) -> str:
    """The flag that says the same as an argument in Python.

    Examples
    --------
    >>> as_flag("header", False), as_flag("max_steps", 5), as_flag("delimiter", ";")
    ('--no-header', '--max-steps 5', "--delimiter ';'")
    """
    from rescore.text import in_commas

    flag = SPOKEN.get(name, name.replace("_", "-"))
    if isinstance(value, bool):
        plain = value or flag.startswith("no-")
        return f"--{flag}" if plain else f"--no-{flag}"
    if isinstance(value, list):
        return f"--{flag} {shlex.quote(in_commas(value))}"
    return f"--{flag} {shlex.quote('tab' if value == chr(9) else str(value))}"


def _exit_code(command: Callable[[], Any], debug: bool) -> int:
    try:
        code = command()
        sys.stdout.flush()
    except UsageFault as error:
        return _complain(f"error: {error.format_message()}", error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _complain(*_described(error))
    if code == 130:
        return _complain("interrupted: stopped by Ctrl-C.", 130)
    return code if isinstance(code, int) else 0


def _described(error: Exception) -> tuple[str, int]:
    """What to say about an exception, and the exit code."""
    text = str(error) or type(error).__name__
    if isinstance(error, ConnectionError):  # the call was right
        return f"error: {text}", 1
    if isinstance(error, BAD_INPUT):
        return f"error: {text}", 2
    return f"error: {type(error).__name__}: {text} (unexpected; run again with --debug)", 1


def _complain(text: str, code: int) -> int:
    print(one_line(in_flags(text)), file=sys.stderr)
    return code
