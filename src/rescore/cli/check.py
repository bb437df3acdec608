"""``rescore check``: a table before any fit."""

from typing import TYPE_CHECKING, Annotated

import typer

from rescore.cli.options import (
    DataArgument,
    DebugOption,
    DecimalOption,
    DelimiterOption,
    DropOption,
    GroupsOption,
    JsonOption,
    NoHeaderOption,
    WeightsOption,
    names_in,
)

if TYPE_CHECKING:
    from rescore.checkup import Checkup

__all__ = ["check_command"]


def check_command(
    data: DataArgument,
    weights: WeightsOption = None,
    groups: GroupsOption = None,
    drop: DropOption = None,
    delimiter: DelimiterOption = None,
    decimal: DecimalOption = ".",
    no_header: NoHeaderOption = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings.")] = False,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Look at a table before any fit: what would be refused, and what could lead astray.

    Exits with 2 if there are errors, with 1 if there are warnings and --strict, otherwise with 0.
    """
    from rescore.checkup import Checkup, check, refusal
    from rescore.cli.inputs import FileFormat, read_input
    from rescore.cli.terminal import noted_warnings

    with noted_warnings():
        try:
            table = read_input(
                data, FileFormat(delimiter, decimal, not no_header), weights=weights, groups=groups,
                drop=names_in(drop or []),
            )  # fmt: skip
        except (ValueError, TypeError) as error:
            if debug:
                raise
            found = Checkup((refusal(error),))
        else:
            found = check(table.X, table.sample_weight, table.groups)
    _print(found, as_json)
    raise typer.Exit(_exit_code(found, strict))


def _print(found: "Checkup", as_json: bool) -> None:
    from rescore.cli.printing import print_json, print_table
    from rescore.text import printable

    lines = found.table.to_dict("records")
    if as_json:
        shown = [line | {"columns": [str(name) for name in line["columns"]]} for line in lines]
        print_json({"ok": found.ok, "findings": shown})
        return
    header = ("severity", "code", "seen", "remedy")
    title = str(found).partition("\n")[0]
    print_table(title, header, [[printable(line[key], 2000) for key in header] for line in lines])


def _exit_code(found: "Checkup", strict: bool) -> int:
    if not found.ok:
        return 2
    return 1 if strict and found.count("warning") else 0
