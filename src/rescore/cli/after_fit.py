"""What ``rescore fit`` fits again, and what it says when it is done, for people and programs.

Again: without row weights, in other units, on resamples, with other learners.
"""

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rescore.cli.terminal import console, in_flags, one_line, print_files, print_scores, print_table
from rescore.exchange import text_names
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

if TYPE_CHECKING:
    from rescore.studies.compare import Comparison
    from rescore.studies.edge_shares import Stability
    from rescore.studies.table_input import Input
    from rescore.studies.units import Units

__all__ = [
    "comparison_as_data",
    "comparison_of",
    "fit_with_progress",
    "plain_of",
    "print_comparison",
    "print_run",
    "print_shares",
    "print_stability",
    "print_units",
    "run_as_data",
    "stability_as_data",
    "stability_of",
    "stopped_early",
    "units_as_data",
    "units_of",
    "written",
]

RESCALINGS = 3
MOST_COLUMNS = 100  # up to which four more fits in other units are made without being asked for
MOST_EDGES, MOST_ROWS, MOST_GROUPS = 15, 5, 20
FEW_GROUPS = 5  # where no more than a screen is wanted


def stopped_early(model: Any, table: "Input") -> bool:
    """Fit; whether Ctrl-C ended it.  What was reached by then is in the model, if anything was."""
    try:
        fit_with_progress(model, table, "fitting")
    except KeyboardInterrupt:
        if not hasattr(model, "status_"):
            raise
        return True
    return False


def fit_with_progress(model: Any, table: "Input", title: str) -> None:
    """Fit the model, with a bar on stderr."""
    from rescore.cli.terminal import progress

    with progress(title, getattr(model.plain, "h_tol", 1e-8)) as on_step:
        model.fit(table.X, on_step=on_step, **table.known_to(model))


def plain_of(model: Any, table: "Input", wanted: bool) -> tuple[Any, bool]:
    """The plain graph (d, d), if there is one to compare with, and whether Ctrl-C prevented it."""
    if not wanted or model.plain is model:
        return None, False
    if not _reweighted(model, table):
        return model.adjacency_matrix_.to_numpy(), False
    try:
        return _fitted(model.plain, table), False
    except KeyboardInterrupt:
        return None, True


def units_of(
    model: Any, table: "Input", wanted: bool | None, seed: int
) -> tuple["Units | None", bool]:
    """What other units would change, if it is wanted, and whether Ctrl-C kept it from being known.

    The fit that was made stays and is worth writing, so the interrupt is handed back as a value.
    """
    many = len(table.X.names) > MOST_COLUMNS
    if not (model.plain.linear and not many if wanted is None else wanted):
        if many and wanted is None and model.plain.linear:
            from rescore.tables.convert import DataNote

            warnings.warn(
                f"With more than {MOST_COLUMNS} columns the fit is not repeated in other units "
                "unless asked for: --units.",
                DataNote,
                stacklevel=2,
            )
        return None, False
    try:
        return _in_other_units(model, table, seed), False
    except KeyboardInterrupt:
        return None, True


def print_units(units: "Units", verbose: bool = True) -> None:
    """The sentence, and the edges that only other units bring; the others have their verdicts."""
    from rescore.cli.terminal import console
    from rescore.studies.units import ONLY_STANDARDISED
    from rescore.text import printable

    console().print(f"Units: {units.sentence}")
    more = units.table[units.table["verdict"] == ONLY_STANDARDISED]
    names = [f"{printable(a, 30)} - {printable(b, 30)}" for a, b in more.to_numpy()[:, :2]]
    if names and verbose:
        left = f" and {len(names) - MOST_EDGES} more" if len(names) > MOST_EDGES else ""
        shown = ", ".join(names[:MOST_EDGES]) + left
        console().print(f"Joined only with standardised columns: {shown}", soft_wrap=True)


def units_as_data(units: "Units") -> dict[str, Any]:
    """The sentence, the table as a list of rows, the factors, and what did not converge."""
    from rescore.reports.run import units_as_json

    return {"sentence": units.sentence, **units_as_json(units)}


def stability_of(model: Any, table: "Input", resamples: int, seed: int, jobs: int) -> "Stability":
    """The model on so many resamples of the rows, with a bar on stderr."""
    from rescore.cli.terminal import counter, noted_warnings
    from rescore.studies.bootstrap import bootstrap

    with noted_warnings(), counter("resampling", resamples) as advance:
        return bootstrap(
            model, table.X, resamples=resamples, random_state=seed, n_jobs=jobs,
            on_resample=lambda done: advance(), **table.known_to(model),
        )  # fmt: skip


def written(
    stability: "Stability", run: "Run", output: Path | None
) -> tuple["Stability", list[str]]:
    """The same, once its files and the new report are in the folder; with their names."""
    from rescore.cli.terminal import noted_warnings, uninterrupted
    from rescore.reports.folder import write_stability

    if output is None:
        return stability, []
    with uninterrupted(), noted_warnings():
        return stability, write_stability(output, run, stability)


def print_stability(
    stability: "Stability", files: list[str], run: "Run", output: Path | None
) -> None:
    """The edges that resamples find and the graph has not, the sentence, and the files."""
    from rescore.cli.terminal import console, print_files, print_table
    from rescore.reports.run_tables import doubts
    from rescore.text import printable

    lines = [
        (
            printable(line["cause"], 20), "->", printable(line["effect"], 20),
            *(_percent(line[key]) for key in ("probability", "adjacent", "direction")),
        )
        for line in reversed(doubts(run, stability.edges)) if not line["in_graph"]
    ]  # fmt: skip
    shown = f" ({MOST_EDGES} of {len(lines)})" if len(lines) > MOST_EDGES else ""
    header = ("cause", "", "effect", ">edge", ">adjacent", ">direction")
    if lines:
        title = f"Not in the graph, but in some resamples{shown}"
        print_table(title, header, lines[:MOST_EDGES])
    console().print(stability.summary, soft_wrap=True)
    print_files(output, files)


def stability_as_data(stability: "Stability") -> dict[str, Any]:
    """The table as a list of rows, and how the fits ended."""
    ends = {"cause": "from", "effect": "to"}  # as everywhere in the JSON of a run
    table = stability.table.astype(dict.fromkeys(ends, str)).rename(columns=ends)
    return {
        "summary": stability.summary,
        "scheme": stability.scheme,
        "resamples": stability.resamples,
        "statuses": dict(stability.statuses),
        "interrupted": stability.interrupted,
        "edges": table.to_dict("records"),
    }


def comparison_of(
    model: Any, table: "Input", truth: Any, resamples: int, seed: int, jobs: int
) -> "Comparison":
    """Plain and reweighted fits of the model's learner, with a bar on stderr."""
    from rescore.cli.terminal import counter
    from rescore.studies.compare import compare

    learner = model.plain
    tau = getattr(model, "tau", "auto")
    given: dict[str, Any] = {} if tau == "auto" else {"tau": tau}
    with counter("comparing", resamples) as advance:
        return compare(
            table.X, learner, truth=truth, resamples=resamples, random_state=seed, n_jobs=jobs,
            on_resample=lambda done: advance(), **given, **table.known_to(learner),
        )  # fmt: skip


def print_comparison(comparison: "Comparison") -> None:
    """A table for each measure that decides, and the sentence."""
    from rescore.cli.terminal import console, print_table
    from rescore.studies.differences import MEASURES, deciding, readable

    for measure in deciding(comparison.records):  # a terminal is not wide enough for all
        shown = readable(comparison.table, [measure])
        lines = [(str(method), *cells) for method, *cells in shown.itertuples(name=None)]
        title = f"Does reweighting help?  {MEASURES[measure].heading}"
        print_table(title, ("weights", *(f">{heading}" for heading in shown)), lines)
    console().print(comparison.answer, soft_wrap=True)


def comparison_as_data(comparison: "Comparison") -> dict[str, Any]:
    """The table as a list of rows, and the sentence; what has no value is null."""
    rows = comparison.table.reset_index().to_dict("records")
    table = [{str(k): None if v != v else v for k, v in row.items()} for row in rows]
    return {"table": table, "answer": comparison.answer}


def _reweighted(model: Any, table: "Input") -> bool:
    """Whether any row counts other than as it was given."""
    import numpy as np

    from rescore.weight_box import prior_weights

    if model._cell_weight is not None:  # rows may have equal weights and their cells others
        return True
    w = model.sample_weight_.to_numpy()
    return not np.allclose(w, prior_weights(table.sample_weight, len(w)), rtol=1e-9)


def _fitted(learner: Any, table: "Input") -> Any:
    from sklearn.base import clone

    plain = clone(learner)
    with warnings.catch_warnings():  # what they say was said of the other fit
        warnings.simplefilter("ignore")
        fit_with_progress(plain, table, "without row weights")
    return plain.adjacency_matrix_.to_numpy()


def _in_other_units(model: Any, table: "Input", seed: int) -> "Units":
    from rescore.cli.terminal import console, counter
    from rescore.studies.units import units

    shown = console(stderr=True).is_terminal  # four refits are not worth lines in a log
    bar = counter("in other units", 1 + RESCALINGS) if shown else nullcontext(lambda: None)
    with bar as advance:
        return units(
            model, table.X, rescalings=RESCALINGS, random_state=seed,
            on_fit=lambda done: advance(), **table.known_to(model),
        )  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


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
