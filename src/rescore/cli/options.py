"""The options of commands that read a table, and what their texts mean."""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from rescore.learners import FOLDER
from rescore.text import comma_fields

__all__ = [
    "BootstrapOption",
    "CategoriesOption",
    "ClusterOption",
    "CompareOption",
    "DataArgument",
    "DebugOption",
    "DecimalOption",
    "DelimiterOption",
    "DropOption",
    "EncodingOption",
    "ExcludeOption",
    "GroupsOption",
    "JobsOption",
    "JsonOption",
    "KeysOption",
    "MemoryOption",
    "MissingOption",
    "NaOption",
    "NoHeaderOption",
    "PlainOption",
    "ResamplesOption",
    "SheetOption",
    "ThousandsOption",
    "TransformOption",
    "UnitsOption",
    "VerboseOption",
    "WeightsOption",
    "default_of",
    "edge_pairs",
    "folder_named",
]

# The groups of options in the help.
FILE, COLUMNS, AFTER, RUNNING = "The file", "Columns and rows", "After the fit", "Running"

JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object, nothing else.", rich_help_panel=RUNNING),
]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Also rows, units and constraints.", rich_help_panel=RUNNING
    ),
]
JobsOption = Annotated[
    int, typer.Option(help="Processes for what is fitted many times.", rich_help_panel=RUNNING)
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        help="Such as 2GB: read rows in passes, with no more threads than have room in it.",
        rich_help_panel=RUNNING,
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler, whose workers read rows in passes.",
        rich_help_panel=RUNNING,
    ),
]
KeysOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns that tell rows apart, written beside the weights of rows read in passes.",
        rich_help_panel=COLUMNS,
    ),
]
DebugOption = Annotated[
    bool, typer.Option("--debug", help="Show tracebacks.", rich_help_panel=RUNNING)
]

# The file of a table, and its columns that are no variables.
DataArgument = Annotated[
    Path,
    typer.Argument(
        help="A .csv, .tsv (or .gz), .parquet or .xlsx file; a folder or pattern of .parquet "
        "files is read in passes."
    ),
]
WeightsOption = Annotated[
    str | None,
    typer.Option(help="Column of prior row weights; not a variable.", rich_help_panel=COLUMNS),
]
GroupsOption = Annotated[
    str | None,
    typer.Option(
        help="Column, or file, of labels: reported on; fitted only where needed.",
        rich_help_panel=COLUMNS,
    ),
]
DropOption = Annotated[
    list[str] | None,
    typer.Option(help="Columns to leave out, separated by commas.", rich_help_panel=COLUMNS),
]
TransformOption = Annotated[
    list[str] | None,
    typer.Option(
        help='A column changed before the fit: "NAME=log", or log1p, sqrt, asinh, category '
        "(numbers that are codes), or a number to multiply by.",
        rich_help_panel=COLUMNS,
    ),
]
ExcludeOption = Annotated[
    str | None,
    typer.Option(
        help="Rows that count nothing, counted from 0, such as 3,17,40-52; or a file of them.",
        rich_help_panel=COLUMNS,
    ),
]
MissingOption = Annotated[
    str,
    typer.Option(
        help="Missing cells: refuse, drop (the rows), em (fill in by the likeliest Gaussian).",
        rich_help_panel=COLUMNS,
    ),
]
CategoriesOption = Annotated[
    str,
    typer.Option(
        help="Columns of words: refuse, drop, exogenous (they may cause, and are not caused).",
        rich_help_panel=COLUMNS,
    ),
]
NaOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Words that mean a missing cell, separated by commas.", rich_help_panel=COLUMNS
    ),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(
        help="Between fields; tab is a word for it.",
        show_default="looked for",
        rich_help_panel=FILE,
    ),
]
DecimalOption = Annotated[str, typer.Option(help="Decimal mark.", rich_help_panel=FILE)]
ThousandsOption = Annotated[
    str | None, typer.Option(help="Mark between thousands.", rich_help_panel=FILE)
]
EncodingOption = Annotated[
    str, typer.Option(help="Such as latin-1 or cp1252.", rich_help_panel=FILE)
]
SheetOption = Annotated[
    str | None,
    typer.Option(help="Of a workbook.", show_default="the first", rich_help_panel=FILE),
]
NoHeaderOption = Annotated[
    bool, typer.Option("--no-header", help="The first line is data.", rich_help_panel=FILE)
]

# What is fitted again once the fit is there.
PlainOption = Annotated[
    bool,
    typer.Option(
        "--plain/--no-plain",
        help="Where rows were reweighted, also fit without: what did the weights change?",
        rich_help_panel=AFTER,
    ),
]
UnitsOption = Annotated[
    bool | None,
    typer.Option(
        "--units/--no-units",
        help="Fit again in four other units and say which edges hang on them; costly where fits "
        "are slow, as of networks.",
        show_default="with linear learners",
        rich_help_panel=AFTER,
    ),
]
BootstrapOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="Fit so many resamples: how sure is each edge?", rich_help_panel=AFTER
    ),
]
CompareOption = Annotated[
    bool,
    typer.Option(
        "--compare", help="Compare plain and reweighted fits on resamples.", rich_help_panel=AFTER
    ),
]
ResamplesOption = Annotated[
    int, typer.Option(help="How many resamples --compare draws.", rich_help_panel=AFTER)
]


def folder_named(text: str) -> Path:
    """The folder of that name; an empty name would be the current one, by accident.

    Examples
    --------
    >>> folder_named("run").name
    'run'
    """
    if not str(text).strip():
        raise typer.BadParameter("it has no name in it; give a folder, such as -o run.")
    return Path(text)


def default_of(estimator: str, parameter: str) -> str:
    """The default of an estimator's parameter as text, read from its source without importing it.

    Importing the estimators takes a second, which a help text is not worth; writing their
    defaults down again would let the two drift apart.

    Examples
    --------
    >>> default_of("ReScore", "weighting")
    'auto'
    """
    return str(ast.literal_eval(_fields_of(estimator)[parameter]))


def _fields_of(estimator: str) -> dict[str, Any]:
    """The defaults of the fields of a dataclass and of those it extends."""
    kind = _classes()[estimator]
    bases = [base.id for base in kind.bases if isinstance(base, ast.Name)]
    inherited = [_fields_of(base) for base in reversed(bases) if base in _classes()]
    own = [node for node in kind.body if isinstance(node, ast.AnnAssign) and node.value is not None]
    fields = {node.target.id: node.value for node in own if isinstance(node.target, ast.Name)}
    return {name: value for each in [*inherited, fields] for name, value in each.items()}


@cache
def _classes() -> dict[str, ast.ClassDef]:
    """The classes in the source files of the estimators, by name."""
    sources = (ast.parse(file.read_text(encoding="utf-8")) for file in FOLDER.rglob("*.py"))
    nodes = (node for tree in sources for node in tree.body)
    return {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}


def edge_pairs(option: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """The edges in texts of the form ``cause,effect``, or ``cause -> effect`` for any names.

    Examples
    --------
    >>> edge_pairs("--forbid", ["a,b", "income, total (EUR) -> b"])
    [('a', 'b'), ('income, total (EUR)', 'b')]
    >>> edge_pairs("--forbid", ["a"])
    Traceback (most recent call last):
        ...
    ValueError: --forbid takes a cause and an effect, such as "a -> b"; got 'a'.
    """
    pairs = []
    for text in texts:
        arrow = [part.strip() for part in text.split("->")]
        fields = arrow if len(arrow) == 2 else comma_fields(text)
        if len(fields) != 2 or not all(fields):
            raise ValueError(
                f'{option} takes a cause and an effect, such as "a -> b"; got {text!r}.'
            )
        pairs.append((fields[0], fields[1]))
    return pairs
