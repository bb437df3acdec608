"""``rescore fit`` of rows that are read in passes: many files, a memory limit, or a cluster."""

import logging
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rescore.studies.table_input import Input

KEPT = ".passes"  # in the folder of the run, until it is whole
NOT_YET = (
    "transform", "exclude", "na", "delimiter", "thousands", "sheet",
    "units", "compare",
)  # fmt: skip


def in_passes(params: Mapping[str, Any]) -> bool:
    """Whether the options of a fit ask for rows to be read in passes."""
    data = str(params["data"])
    many = any(mark in data for mark in "*?[") and not Path(data).exists()
    asked = any(params[name] for name in ("memory", "cluster", "keys"))
    return asked or many or Path(data).is_dir() or _address(data) != data


def _address(data: str) -> str:
    """An address as it was written: a path has lost one of its slashes."""
    return re.sub(r"^(\w{2,}):/+", r"\1://", data) if re.match(r"^\w{2,}:/", data) else data


def scanned(ctx: typer.Context) -> "Input":
    """The scan that the options of a fit ask for; finished passes are kept beside the results."""
    from rescore.cli.terminal import passing
    from rescore.scanning.sources import scan
    from rescore.studies.table_input import Input
    from rescore.text import names_in

    params = ctx.params
    given = [name for name in NOT_YET if params[name]]
    if given:
        flags = ", ".join(f"--{name}" for name in given)
        raise ValueError(
            f"Rows that are read in passes do not take {flags}. Leave it out, or give one file "
            "that fits in memory, without --memory, --cluster and --keys."
        )
    if params["cluster"]:  # what is lost is said in one line
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
    output = params["output"]
    table: Any = scan(
        _address(str(params["data"])),
        drop=names_in(params["drop"] or []),
        keys=names_in(params["keys"] or []),
        weights=params["weights"],
        groups=params["groups"],
        client=params["cluster"],
        keep=None if output is None else output / KEPT,
        memory=params["memory"],
        on_pass=passing(logged=_logged(params["verbose"])),
    )
    return Input(table)


def _logged(verbose: bool) -> bool:
    """A line on stderr for every pass, if wanted."""
    if verbose:
        log = logging.getLogger("rescore.passes")
        log.setLevel(logging.INFO)
        if not log.handlers:
            log.addHandler(logging.StreamHandler(sys.stderr))
    return verbose


def weights_written(model: Any, table: Any, output: Path, quiet: bool) -> None:
    """The last pass: the weights of all rows; then nothing need be kept any more."""
    from rescore.scanning.passes import write_weights

    rows = write_weights(model, table, output / "weights.parquet")
    shutil.rmtree(output / KEPT, ignore_errors=True)
    if not quiet:
        print(f"weights.parquet has the weights of {rows:,} rows; weights.csv those of the sample.")
