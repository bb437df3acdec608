"""Pages about experiments: Markdown, HTML and figures, from the records alone."""

from pathlib import Path
from typing import Any

import pandas as pd

from rescore.experiments.contents import Contents, contents
from rescore.experiments.drawing import draw
from rescore.experiments.spec import Experiment
from rescore.experiments.store import Store

__all__ = ["write_pages"]


def write_pages(
    experiments: list[Experiment], store: Store, folder: Path, size: str = "full"
) -> list[Path]:
    """A page for every experiment in both formats, with its figure; the paths written."""
    written = []
    for experiment in experiments:
        found = contents(experiment, store, size)
        command = f"rescore reproduce {experiment.name} --{size}"
        picture = None
        if experiment.figure is not None:
            picture = draw(experiment, found.runs, store, folder / f"{experiment.name}.svg")
        figure = None if picture is None else picture.name
        texts = {".md": markdown(found, figure, command), ".html": html(found, figure, command)}
        for ending, text in texts.items():
            path = folder / (experiment.name + ending)
            path.write_text(text, encoding="utf-8")
            written.append(path)
    return written


def markdown(page: Contents, figure: str | None, command: str) -> str:
    r"""The page as Markdown.

    Examples
    --------
    >>> table = pd.DataFrame({"method": ["A|B"], "SHD": ["1.0"]})
    >>> print(markdown(Contents("T", ("Words.",), {"C": table}, table), None, "rescore reproduce"))
    # T
    <BLANKLINE>
    Words.
    <BLANKLINE>
    ## C
    <BLANKLINE>
    | method | SHD |
    |---|---|
    | A\|B | 1.0 |
    <BLANKLINE>
    Made by `rescore reproduce` with rescore ...
    <BLANKLINE>
    """
    parts = [f"# {page.title}", *page.paragraphs]
    if figure is not None:
        parts.append(f"![{page.title}]({figure})")
    for caption, table in page.tables.items():
        parts += [f"## {caption}", _markdown_table(table)]
    return "\n\n".join([*parts, f"Made by `{command}` with rescore {_version()}."]) + "\n"


def html(page: Contents, figure: str | None, command: str) -> str:
    """The page as HTML; everything in it is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rescore.experiments", "."), autoescape=True,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    words: dict[str, Any] = {"page": page, "figure": figure, "command": command}
    return environment.get_template("page.html.j2").render(**words, version=_version())


def _markdown_table(table: pd.DataFrame) -> str:
    lines = [list(table.columns), *table.to_numpy().tolist()]
    rows = ["| " + " | ".join(str(c).replace("|", "\\|") for c in line) + " |" for line in lines]
    return "\n".join([rows[0], "|" + "---|" * len(table.columns), *rows[1:]])


def _version() -> str:
    from rescore import __version__

    return __version__
