"""What a command says when it is done, for people and for programs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rescore.cli.guard import in_flags, one_line
from rescore.cli.refits import print_units, units_as_data
from rescore.cli.terminal import console, print_files, print_scores, print_table
from rescore.exchange.programs import text_names
from rescore.reports.run import Run
from rescore.reports.run_tables import (
    changes_sentence,
    columns_used,
    edge_changes,
    group_shares,
    rows_learned_from,
    table_sentences,
)
from rescore.text import printable
from rescore.verdicts import trust

__all__ = ["print_run", "print_shares", "run_as_data"]

MOST_EDGES, MOST_ROWS, MOST_GROUPS = 15, 5, 20
FEW_GROUPS = 5  # where no more than a screen is wanted


def run_as_data(run: Run, folder: Any, files: Sequence[str]) -> dict[str, Any]:
    """A run as a JSON object: status, graph, scores, warnings, and the files written."""
    diagnostics = run.model.diagnostics_
    n, d = rows_learned_from(run.model), run.model.losses_.shape[1]
    data: dict[str, Any] = {
        "status": diagnostics["status"],
        "converged": diagnostics["converged"],
        "n": n,
        "d": d,
        "effective_rows": diagnostics["effective_rows"],
        "columns": columns_used(run.model),
        "weighting": diagnostics["weighting"],
        "trust": trust(run.edges),
        "noise": diagnostics["noise"],
        "edges": edges_as_data(run.edges),
        "knowledge": diagnostics["knowledge"],
        "table": diagnostics["table"],
        "heaviest_rows": _plain_rows(diagnostics["heaviest_rows"]),
        "findings": [
            {"code": one.code, "severity": one.severity, "seen": one.seen, "remedy": one.remedy}
            for one in run.findings
        ],
        "warnings": list(run.warnings),
        "folder": None if folder is None else str(folder),
        "files": list(files),
    }
    if "passes" in diagnostics:
        data["passes"] = diagnostics["passes"]
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


def print_run(run: Run, folder: Any, files: Sequence[str], verbose: bool = False) -> None:
    """The run for a reader, on a screen: the graph, what it rests on, the files.

    With ``verbose`` also how the fit ended, every constraint, units, the heaviest rows, groups.
    """
    out, diagnostics = console(), run.model.diagnostics_
    n = rows_learned_from(run.model)
    out.print(trust(run.edges))
    _print_edges(run.edges)
    if verbose or not diagnostics["converged"]:
        out.print(one_line(in_flags(diagnostics["status"])), soft_wrap=True)
    effective = f"{diagnostics['effective_rows']:,.0f} effective of {n:,} rows"
    out.print(f"{effective}, {columns_used(run.model)}")
    for sentence in table_sentences(diagnostics["table"]):
        out.print(one_line(sentence), soft_wrap=True)
    if "summary" in diagnostics["weighting"]:
        out.print(one_line(diagnostics["weighting"]["summary"]), soft_wrap=True)
    if run.plain is not None:
        out.print(changes_sentence(_changes(run)))
    if run.units is not None:
        print_units(run.units, verbose)
    _print_receipts(diagnostics["knowledge"], verbose)
    if verbose:
        _print_heaviest(diagnostics["heaviest_rows"], n)
    if run.groups is not None:
        print_shares(run, MOST_GROUPS if verbose else FEW_GROUPS)
    if run.scores is not None:
        print_scores("Against the true graph", {**run.baselines, "this fit": run.scores})
    print_files(folder, files)


def _changes(run: Run) -> pd.DataFrame:
    """Each edge with its coefficient without and with row weights."""
    W, plain = run.model.adjacency_matrix_.to_numpy(), np.asarray(run.plain, dtype=float)
    return edge_changes(W, plain, text_names(run.model))


def _plain_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"row": str(row["row"])} for row in rows]


def edges_as_data(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The table of edges as JSON knows it: what is not known is null."""
    names = {"cause": "from", "effect": "to", "coefficient": "weight"}  # as in graph.json
    lines = table.rename(columns=names).to_dict("records")
    return [{str(k): None if v != v else v for k, v in line.items()} for line in lines]


def _print_edges(table: pd.DataFrame) -> None:
    """The strongest edges; one of open direction has no cause and no effect, and so no column has.

    The marks are ASCII, for terminals that know nothing else.
    """
    if table.empty:
        return
    shown = table.head(MOST_EDGES)
    columns = [
        [_name(cause) for cause in shown["cause"]],
        ["->" if directed else "--" for directed in shown["directed"]],
        [_name(effect) for effect in shown["effect"]],
        [f"{weight:.3f}" for weight in shown["coefficient"]],
    ]
    header = ["", "", "", ">weight"]
    if table["low"].notna().any():
        bounds = zip(shown["low"], shown["high"], strict=True)
        columns.append(["" if a != a else f"{a:.3g}, {b:.3g}" for a, b in bounds])
        header.append(">90 % interval")
    if table["stability"].notna().any():
        columns.append([f"{100 * share:.0f} %" for share in shown["stability"]])
        header.append(">resamples")
    columns.append(list(shown["verdict"]))
    if len(table) > MOST_EDGES:
        title = f"Strongest edges ({MOST_EDGES} of {len(table)})"
    else:
        title = "Edges, strongest first"
    print_table(title, (*header, "verdict"), zip(*columns, strict=True))


def _print_receipts(receipts: list[dict[str, Any]], verbose: bool) -> None:
    """What was known about the edges, and that it holds; what does not hold first."""
    if not receipts:
        return
    broken = sum(not each["holds"] for each in receipts)
    how = f"{broken} broken" if broken else "all hold"
    console().print(f"Knowledge: {len(receipts)} constraint(s), {how}")
    order = sorted(receipts, key=lambda each: each["holds"])
    if not verbose:
        order = order[:broken]
    lines = [
        (printable(each["constraint"], 80), "yes" if each["holds"] else "NO") for each in order
    ]
    if lines:
        print_table("", ("constraint", "holds"), lines[:MOST_EDGES])


def _print_heaviest(rows: list[dict[str, Any]], n: int) -> None:
    shown = [(_name(row["row"]), f"{row['weight'] * n:.2f}", f"{row['loss']:.4g}") for row in rows]
    print_table("Heaviest rows", ("row", ">weight x n", ">loss"), shown[:MOST_ROWS])


def print_shares(run: Run, most: int = MOST_GROUPS) -> None:
    """Each group's share of the rows and of the weight."""
    shares = group_shares(run.model.sample_weight_, run.groups)
    title = "Groups" if run.model.needs_groups else "Groups, unseen by the learner"
    lines = [
        (_name(label), str(rows), f"{100 * of_rows:.1f} %", f"{100 * of_weight:.1f} %")
        for label, rows, of_rows, of_weight in shares.itertuples(name=None)
    ]
    more = f" (the first {most} of {len(lines)})" if len(lines) > most else ""
    header = ("group", ">rows", ">share of rows", ">share of weight")
    print_table(title + more, header, lines[:most])


def _name(name: object) -> str:
    return printable(name, 30)
