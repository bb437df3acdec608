"""The folder a run leaves behind: the graph in every format, the weights, the model, the page."""

import csv
import json
import os
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pandas as pd
from numpy.typing import ArrayLike

from rescore.exchange import can_be_handed_over, equations_json, text_names
from rescore.exchange.saving import fingerprint, saved_fingerprint, write_model
from rescore.graph.dagitty import to_dagitty
from rescore.graph.drawing import draw_graph
from rescore.graph.formats import to_dot, to_graphml, to_json
from rescore.graph.io import write_adjacency
from rescore.learners.base import StructureLearner
from rescore.learners.estimator import check_fitted
from rescore.reports.figures import png, svg
from rescore.reports.page import render_page
from rescore.reports.run import ABOUT_FILE, Run, about, read_run, some_rows
from rescore.reports.run_tables import row_weights
from rescore.staging import Place, staged
from rescore.studies.edge_shares import Stability
from rescore.studies.units import Units
from rescore.tables.table import TableLike, rows_like
from rescore.text import printable, to_cell

__all__ = ["report", "rewrite_report", "write_run", "write_stability"]

STABILITY_FILES = ("stability.csv", "row_stability.csv")
DRAWN_FILES = ("graph.svg", "graph.png", "report.html")
RUN_FILES = (  # all that a run may write, replace or remove
    *("graph.json", "graph.dot", "graph.graphml", "graph.dagitty", "equations.json"),
    *(
        "adjacency.csv",
        "cpdag.csv",
        "edges.csv",
        "weights.csv",
        "weights.parquet",
        "history.csv",
        "model.json",
        "arrays.npz",
    ),
    *("scores.json", ABOUT_FILE, *STABILITY_FILES, *DRAWN_FILES),
)


def report(
    model: StructureLearner,
    X: "TableLike | None" = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    stability: Stability | None = None,
    units: Units | None = None,
    groups: "ArrayLike | None" = None,
    source: str = "",
) -> Path:
    """Write one page about a fitted model, which opens offline, and return its path.

    It is the report of the command line: the graph, a verdict for every edge, what they rest on.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : table, optional
        The rows of the fit: some of them go into the page, for the pictures of single edges.
    path : path
        The file; an earlier one is replaced.
    stability, units : optional
        What `bootstrap` and `units` found.
    groups : array (n,), optional
        A label for each row, which the page compares with the weights.
    source : str
        Where the rows are from, in words.

    Examples
    --------
    >>> import tempfile
    >>> from rescore import Linear, simulate
    >>> X = simulate(nodes=3, degree=1, samples=200, random_state=100).X
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(Linear().fit(X), X, f"{folder}/page.html").name
    'page.html'
    """
    check_fitted(model)
    rows = None
    if X is not None:
        names = tuple(model.adjacency_matrix_.columns)
        table = rows_like(model.plain.opening().of(X)[0], names, type(model).__name__)
        if len(table.values) != len(model.sample_weight_):
            raise ValueError(
                f"The model was fitted to {len(model.sample_weight_)} rows, and X has "
                f"{len(table.values)}. Give the table of the fit, or leave it out."
            )
        rows = some_rows(table.values)
    run = Run(model, groups, source=source, units=units, rows=rows)
    target = Path(path)
    text = render_page(run if stability is None else run.with_stability(stability))
    with staged(target.parent) as scratch:
        _write(scratch / target.name, text)
    return target


def write_run(folder: str | os.PathLike[str], run: Run) -> list[str]:
    """Write all files of a run into ``folder``, and return their names.

    They are ``graph`` as .json, .dot, .graphml, .dagitty, .svg and .png, ``adjacency.csv``,
    ``cpdag.csv``, ``edges.csv``, ``equations.json``, ``weights.csv``, ``history.csv``, the model
    (``model.json``, ``arrays.npz``), what surrounds it (``run.json``), ``report.html``, and, if the
    run has scores, ``scores.json``.  Files of an earlier run are replaced, all at once.  Results
    are there before anything is drawn: a picture that fails is a warning.

    ``edges.csv`` has a line for each edge: its evidence and the verdict (`Run.edges`).
    ``cpdag.csv`` has an edge in both directions where its direction is open; ``adjacency.csv`` is
    one DAG of that class, with its coefficients.

    In CSV files a name or label that a spreadsheet would take for a formula, such as ``=A1``, has
    an apostrophe before it, as spreadsheets write text themselves; `read_graph` takes it away.

    Examples
    --------
    >>> import tempfile
    >>> from rescore import Linear
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_run(folder, Run(Linear().fit([[0.0], [1.0]])))
    ...     files == sorted(os.listdir(folder)), "report.html" in files
    (True, True)
    """
    with staged(folder, stale=RUN_FILES) as scratch:
        _write_graph(scratch, run)
        _write_table(scratch / "edges.csv", run.edges)
        _write_weights(scratch / "weights.csv", row_weights(run.model))
        run.model.history_.to_csv(scratch / "history.csv", lineterminator="\n")
        write_model(run.model, scratch)
        if run.scores is not None:
            scores = json.dumps(run.scores.as_json(), indent=1, allow_nan=False)
            _write(scratch / "scores.json", scores + "\n")
        _write(scratch / ABOUT_FILE, about(run))
        results = [path.name for path in scratch.iterdir()]
    return sorted([*results, *_draw(folder, run)])


def write_stability(folder: str | os.PathLike[str], run: Run, stability: Stability) -> list[str]:
    """Add to the folder of a run what resamples say about it, and return the names of the files.

    They are ``stability.csv``, a line per edge; ``row_stability.csv``, a line per row, if any row
    was weighed; and ``edges.csv``, ``run.json`` and ``report.html`` once more.

    Examples
    --------
    >>> import tempfile
    >>> from rescore import Linear, bootstrap
    >>> X = pd.DataFrame({"a": range(20), "b": [2 * x + x % 3 for x in range(20)]})
    >>> model = Linear().fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_stability(folder, Run(model), bootstrap(model, X, resamples=5))
    ['edges.csv', 'report.html', 'run.json', 'stability.csv']
    """
    run = run.with_stability(stability)
    with staged(folder, STABILITY_FILES, partial(_is_of, run)) as scratch:
        _write_table(scratch / "edges.csv", run.edges)
        _write_table(scratch / "stability.csv", stability.table)
        if stability.weights_vary:
            rows = stability.row_weights.rename_axis("row").reset_index()
            _write_table(scratch / "row_stability.csv", rows.astype({"row": str}))
        _write(scratch / ABOUT_FILE, about(run))
        results = [path.name for path in scratch.iterdir()]
    return sorted([*results, *_draw(folder, run, ("report.html",))])


def rewrite_report(folder: str | os.PathLike[str]) -> Path:
    """Make ``report.html`` again from what `write_run` left in ``folder``; its path.

    Examples
    --------
    >>> import tempfile
    >>> from rescore import Linear
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_run(folder, Run(Linear().fit([[0.0], [1.0]])))
    ...     rewrite_report(folder).name
    'report.html'
    """
    run = read_run(folder)
    page = render_page(run)
    with staged(folder, if_still=partial(_is_of, run)) as scratch:
        _write(scratch / "report.html", page)
    return Path(folder) / "report.html"


def _write_graph(folder: Path, run: Run) -> None:
    W, names = run.model.adjacency_matrix_.to_numpy(), text_names(run.model)
    directions = run.model.cpdag_.to_numpy()
    for ending, writer in (("json", to_json), ("dot", to_dot), ("graphml", to_graphml)):
        _write(folder / f"graph.{ending}", writer(W, names, directions))
    linear = run.model.equations_.kind == "linear"  # otherwise W holds strengths, no coefficients
    _write(folder / "graph.dagitty", to_dagitty(W, names, linear, directions))
    if can_be_handed_over(run.model):
        _write(folder / "equations.json", equations_json(run.model))
    for name, matrix in (("adjacency", W), ("cpdag", directions)):
        write_adjacency(folder / f"{name}.csv", pd.DataFrame(matrix, index=names, columns=names))


def _draw(
    folder: str | os.PathLike[str], run: Run, wanted: tuple[str, ...] = DRAWN_FILES
) -> list[str]:
    """Add the pictures and the page to results that are there; the names of those that worked."""
    model = run.model
    W, directions = model.adjacency_matrix_.to_numpy(), model.cpdag_.to_numpy()
    figure = cache(lambda: draw_graph(W, text_names(model), directions))
    drawers: dict[str, Callable[[], bytes]] = {
        "graph.svg": lambda: svg(figure()).encode(),
        "graph.png": lambda: png(figure()),
        "report.html": lambda: render_page(run).encode(),
    }
    try:
        with staged(folder, wanted, partial(_is_of, run)) as scratch:
            for name in wanted:
                _draw_one(scratch / name, drawers[name])
            return [path.name for path in scratch.iterdir()]
    except OSError as error:
        warnings.warn(f"Nothing was drawn. {error}", RuntimeWarning, stacklevel=3)
        return []


def _draw_one(path: Path, drawer: Callable[[], bytes]) -> None:
    try:
        content = drawer()
    except Exception as error:
        warnings.warn(
            f"{path.name} could not be drawn: {printable(error, 200)} ({type(error).__name__}). "
            "The results are written; `rescore report` makes the page again.",
            RuntimeWarning,
            stacklevel=4,
        )
    else:
        path.write_bytes(content)


def _is_of(run: Run, place: Place) -> bool:
    """Whether the folder has this run's model, or none."""
    return saved_fingerprint(place) in (None, fingerprint(run.model))


def _write_table(path: Path, table: pd.DataFrame) -> None:
    """With CR LF, so that a name that holds either is quoted."""
    safe = table.map(lambda cell: to_cell(cell) if isinstance(cell, str) else cell)
    safe.to_csv(path, index=False, lineterminator="\r\n")


def _write_weights(path: Path, weights: pd.DataFrame) -> None:
    """Row label, weight, loss; exact, and an empty cell where there is no loss."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(["row", "weight", "loss"])
        for row, weight, loss in weights.itertuples(name=None):
            writer.writerow([to_cell(str(row)), repr(weight), "" if loss != loss else repr(loss)])


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode())  # line ends as they are, on every system
