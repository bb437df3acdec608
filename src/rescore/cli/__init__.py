"""The command line: ``rescore check | advise | fit | report | app | simulate`` and more.

Nothing heavy is imported before a command runs, so that ``rescore --help`` answers at once.
"""

import os
import sys
from typing import Annotated

import typer

from rescore.cli.before_fit import advise_command, check_command
from rescore.cli.demo import demo_command
from rescore.cli.fit import fit_command, report_command
from rescore.cli.learners import LearnerCommand
from rescore.cli.terminal import GuardedGroup
from rescore.cli.truth import evaluate_command, reproduce_command, simulate_command
from rescore.cli.workbench import app_command

__all__ = ["app", "run"]

app = typer.Typer(
    cls=GuardedGroup,
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("check")(check_command)
app.command("advise")(advise_command)
app.command("fit", cls=LearnerCommand)(fit_command)
app.command("report")(report_command)
app.command("app")(app_command)
app.command("simulate")(simulate_command)
app.command("evaluate")(evaluate_command)
app.command("reproduce")(reproduce_command)
app.command("demo")(demo_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from rescore import __version__

        print(f"rescore {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Causal graphs from tables, with adaptive row weights (ReScore)."""
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


def run() -> None:
    """The program ``rescore``."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without Unicode shows escapes instead
            stream.reconfigure(errors="backslashreplace")
    app()


def _open_what_is_closed() -> None:
    """Started with ``>&-``, a file of results would become the place that libraries print to."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for good
