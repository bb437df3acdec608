"""What a command says when it is done, for people and for programs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rescore.cli.guard import one_line
from rescore.cli.refits import print_units, units_as_data
from rescore.cli.terminal import console, print_files, print_scores, print_table
from rescore.exchange.programs import text_names
from rescore.graph.formats import NamedEdge
from rescore.report.run import Run
from rescore.report.run_tables import (
    changes_sentence,
    columns_used,
    edge_changes,
    edges_sentence,
    group_shares,
    strongest_edges,
)
from rescore.text import printable

__all__ = ["print_run", "print_shares", "run_as_data"]

MOST_EDGES, MOST_ROWS, MOST_GROUPS = 15, 5, 20


def run_as_data(run: Run, folder: Any, files: Sequence[str]) -> dict[str, Any]:
    """A run as a JSON object: status, graph, scores, warnings, and the files written."""
    diagnostics = run.model.diagnostics_
    n, d = run.model.losses_.shape
    edges = strongest_edges(run.model)
    data: dict[str, Any] = {
        "status": diagnostics["status"],
        "converged": diagnostics["converged"],
        "n": n,
        "d": d,
        "effective_rows": diagnostics["effective_rows"],
        "columns": columns_used(run.model),
        "weighting": diagnostics["weighting"],
        "edges": [
            {"from": cause, "to": effect, "weight": w, "directed": directed}
            for cause, effect, w, directed in edges
        ],
        "knowledge": diagnostics["knowledge"],
        "warnings": list(run.warnings),
        "folder": None if folder is None else str(folder),
        "files": list(files),
    }
    if run.groups is not None:
        shares = group_shares(run.model.sample_weight_, run.groups)
        data["groups"] = shares.reset_index().to_dict("records")
    if run.plain is not None:
        data["plain"] = _changes(run).to_dict("records")
    if run.units is not None:
        data["units"] = units_as_data(run.units)
    if run.scores is not None:
        data["scores"] = run.scores.as_dict()
    return data


def print_run(run: Run, folder: Any, files: Sequence[str]) -> None:
    """The run for a reader: how it ended, the strongest edges, the heaviest rows, the files."""
    out, diagnostics = console(), run.model.diagnostics_
    n, edges = len(run.model.losses_), strongest_edges(run.model)
    out.print(one_line(diagnostics["status"]), soft_wrap=True)
    out.print(edges_sentence(edges), soft_wrap=True)
    effective = f"{diagnostics['effective_rows']:,.0f} effective of {n:,} rows"
    out.print(f"{effective}, {columns_used(run.model)}")
    if "summary" in diagnostics["weighting"]:
        out.print(one_line(diagnostics["weighting"]["summary"]), soft_wrap=True)
    _print_edges(edges)
    if run.plain is not None:
        out.print(f"\n{changes_sentence(_changes(run))}")
    if run.units is not None:
        print_units(run.units)
    _print_receipts(diagnostics["knowledge"])
    _print_heaviest(diagnostics["heaviest_rows"], n)
    if run.groups is not None:
        print_shares(run)
    if run.scores is not None:
        print_scores("Against the true graph", {**run.baselines, "this fit": run.scores})
    print_files(folder, files)


def _changes(run: Run) -> pd.DataFrame:
    """Each edge with its coefficient without and with row weights."""
    W, plain = run.model.adjacency_matrix_.to_numpy(), np.asarray(run.plain, dtype=float)
    return edge_changes(W, plain, text_names(run.model))


def _print_edges(edges: list[NamedEdge]) -> None:
    """The strongest edges; one of open direction has no cause and no effect, and so no column has.

    The marks are ASCII, for terminals that know nothing else.
    """
    shown = [
        (_name(cause), "->" if directed else "--", _name(effect), f"{w:.3f}")
        for cause, effect, w, directed in edges
    ]
    if len(edges) > MOST_EDGES:
        title = f"Strongest edges ({MOST_EDGES} of {len(edges)})"
    else:
        title = "Edges, strongest first"
    if edges:
        print_table(title, ("", "", "", ">weight"), shown[:MOST_EDGES])


def _print_receipts(receipts: list[dict[str, Any]]) -> None:
    """What was known about the edges, and that it holds; what does not hold first."""
    if not receipts:
        return
    broken = sum(not each["holds"] for each in receipts)
    how = f"{broken} broken" if broken else "all hold"
    console().print(f"\nKnowledge: {len(receipts)} constraint(s), {how}")
    order = sorted(receipts, key=lambda each: each["holds"])
    lines = [
        (printable(each["constraint"], 80), "yes" if each["holds"] else "NO") for each in order
    ]
    print_table("", ("constraint", "holds"), lines[:MOST_EDGES])


def _print_heaviest(rows: list[dict[str, Any]], n: int) -> None:
    shown = [(_name(row["row"]), f"{row['weight'] * n:.2f}", f"{row['loss']:.4g}") for row in rows]
    print_table("Heaviest rows", ("row", ">weight x n", ">loss"), shown[:MOST_ROWS])


def print_shares(run: Run) -> None:
    """Each group's share of the rows and of the weight."""
    shares = group_shares(run.model.sample_weight_, run.groups)
    title = "Groups" if run.model.needs_groups else "Groups, unseen by the learner"
    lines = [
        (_name(label), str(rows), f"{100 * of_rows:.1f} %", f"{100 * of_weight:.1f} %")
        for label, rows, of_rows, of_weight in shares.itertuples(name=None)
    ]
    more = f" (the first {MOST_GROUPS} of {len(lines)})" if len(lines) > MOST_GROUPS else ""
    header = ("group", ">rows", ">share of rows", ">share of weight")
    print_table(title + more, header, lines[:MOST_GROUPS])


def _name(name: object) -> str:
    return printable(name, 30)
