"""The options of commands that read a table, and what their texts mean."""

import ast
import csv
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from rescore.learners import FOLDER

__all__ = [
    "BootstrapOption",
    "CompareOption",
    "DataArgument",
    "DebugOption",
    "DecimalOption",
    "DelimiterOption",
    "DropOption",
    "GroupsOption",
    "JobsOption",
    "JsonOption",
    "NoHeaderOption",
    "PlainOption",
    "ResamplesOption",
    "UnitsOption",
    "WeightsOption",
    "default_of",
    "edge_pairs",
    "names_in",
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]
JobsOption = Annotated[int, typer.Option(help="Processes for what is fitted many times.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]

# The file of a table, and its columns that are no variables.
DataArgument = Annotated[Path, typer.Argument(help="A .csv, .csv.gz, .tsv or .parquet file.")]
WeightsOption = Annotated[
    str | None, typer.Option(help="Column of prior row weights; not a variable.")
]
GroupsOption = Annotated[
    str | None,
    typer.Option(help="Column, or file, of labels: reported on; fitted only where needed."),
]
DropOption = Annotated[
    list[str] | None, typer.Option(help="Columns to leave out, separated by commas.")
]
DelimiterOption = Annotated[
    str | None, typer.Option(help="Between fields.", show_default="by the file's ending")
]
DecimalOption = Annotated[str, typer.Option(help="Decimal mark.")]
NoHeaderOption = Annotated[bool, typer.Option("--no-header", help="The first line is data.")]

# What is fitted again once the fit is there.
PlainOption = Annotated[
    bool,
    typer.Option(
        "--plain/--no-plain",
        help="Where rows were reweighted, also fit without: what did the weights change?",
    ),
]
UnitsOption = Annotated[
    bool | None,
    typer.Option(
        "--units/--no-units",
        help="Fit again in four other units and say which edges hang on them; costly where fits "
        "are slow, as of networks.",
        show_default="with linear learners",
    ),
]
BootstrapOption = Annotated[
    int | None,
    typer.Option(min=1, help="Afterwards, fit so many resamples: how sure is each edge?"),
]
CompareOption = Annotated[
    bool,
    typer.Option("--compare", help="Afterwards, compare plain and reweighted fits on resamples."),
]
ResamplesOption = Annotated[int, typer.Option(help="How many resamples --compare draws.")]


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


def names_in(texts: Iterable[str]) -> list[str]:
    """The names in comma-separated texts; a name with a comma in it is put in double quotes.

    Examples
    --------
    >>> names_in(["a,b", '"c,d"'])
    ['a', 'b', 'c,d']
    """
    return [name for text in texts for name in _fields(text)]


def edge_pairs(option: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """The edges in texts of the form ``cause,effect``.

    Examples
    --------
    >>> edge_pairs("--forbid", ["a,b"])
    [('a', 'b')]
    >>> edge_pairs("--forbid", ["a"])
    Traceback (most recent call last):
        ...
    ValueError: --forbid takes a cause and an effect, such as "a,b"; got 'a'.
    """
    pairs = []
    for text in texts:
        fields = _fields(text)
        if len(fields) != 2:
            raise ValueError(f'{option} takes a cause and an effect, such as "a,b"; got {text!r}.')
        pairs.append((fields[0], fields[1]))
    return pairs


def _fields(text: str) -> list[str]:
    try:
        (fields,) = csv.reader([text], strict=True)
    except (csv.Error, ValueError):
        raise ValueError(f"{text!r} is not a list of names separated by commas.") from None
    return fields
