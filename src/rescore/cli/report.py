"""``rescore report``: the page of a saved run, made again."""

from pathlib import Path
from typing import Annotated

import typer

from rescore.cli.options import DebugOption, JsonOption

__all__ = ["report_command"]


def report_command(
    folder: Annotated[Path, typer.Argument(help="The folder that fit -o or demo -o wrote.")],
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Make report.html again from a saved run; nothing is fitted."""
    from rescore.cli.printing import print_files, print_json
    from rescore.report.files import rewrite_report

    path = rewrite_report(folder)
    if as_json:
        print_json({"folder": str(folder), "files": [path.name]})
        return
    print_files(folder, [path.name])
