"""``rescore demo``: real data, with and without reweighting."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rescore.cli.options import DebugOption, JsonOption

if TYPE_CHECKING:
    from rescore.data.dataset import Dataset
    from rescore.learners.base import StructureLearner
    from rescore.metrics import Scores
    from rescore.report.run import Run

__all__ = ["demo_command", "verdict"]


def demo_command(
    ctx: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path(
        "demo"
    ),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Learn the protein network of Sachs et al. (2005), plainly and with row weights."""
    from rescore.cli.terminal import noted_warnings
    from rescore.data.sachs import load_sachs
    from rescore.metrics import evaluate
    from rescore.report.run import Run
    from rescore.report.staging import check_folder
    from rescore.studies.check import check

    check_folder(output)
    data = load_sachs()
    with noted_warnings() as notes:
        plain, reweighted = _fits(data)
    before, after = evaluate(data.truth, plain), evaluate(data.truth, reweighted)
    run = Run(
        reweighted, data.groups, after, {"without reweighting": before}, tuple(notes), ctx.obj,
        data.source, plain=plain.adjacency_matrix_.to_numpy(), findings=check(data.table).findings,
    )  # fmt: skip
    same = ((plain.adjacency_matrix_ != 0) == (reweighted.adjacency_matrix_ != 0)).all(axis=None)
    _finish(run, output, verdict(before, after, bool(same)), as_json)


def verdict(before: "Scores", after: "Scores", same_graph: bool) -> str:
    """Whether reweighting helped, in a sentence, by SHD and SID alike.

    Examples
    --------
    >>> from rescore.metrics import evaluate
    >>> empty, full = [[0, 0], [0, 0]], [[0, 1], [0, 0]]
    >>> verdict(evaluate(full, empty), evaluate(full, full), same_graph=False)
    'Reweighting helped here: SHD 1 -> 0, SID 1 -> 0.'
    """
    if same_graph:
        return "Reweighting did not help here: both fits found the same edges."
    changes = {name: (before[name], after[name]) for name in ("shd", "sid")}
    moved = ", ".join(f"{name.upper()} {old} -> {new}" for name, (old, new) in changes.items())
    differences = [new - old for old, new in changes.values() if None not in (old, new)]  # type: ignore[operator]
    if not any(differences):
        return f"Reweighting changed the graph, but not its distance from the truth: {moved}."
    if max(differences) <= 0:
        return f"Reweighting helped here: {moved}."
    if min(differences) >= 0:
        return f"Reweighting made it worse here: {moved}."
    return f"Reweighting helped by one measure and hurt by the other: {moved}."


def _fits(data: "Dataset") -> tuple["StructureLearner", "StructureLearner"]:
    """The same learner with its default settings, on standardised columns, with and without."""
    from sklearn.base import clone

    from rescore.cli.refits import fit_with_progress
    from rescore.cli.table_input import Input
    from rescore.learners import RECOMMENDED, load_learner
    from rescore.learners.rescore import ReScore

    plain = load_learner(RECOMMENDED)(standardize=True)
    reweighted = ReScore(clone(plain))
    fit_with_progress(plain, Input(data.table), "without reweighting")
    fit_with_progress(reweighted, Input(data.table), "with reweighting")
    return plain, reweighted


def _finish(run: "Run", output: Path, sentence: str, as_json: bool) -> None:
    from rescore.cli.run_summary import print_shares, run_as_data
    from rescore.cli.terminal import print_files, print_json, print_scores, uninterrupted
    from rescore.report.folder import write_run

    with uninterrupted():
        files = write_run(output, run)
    if as_json:
        baselines = {name: scores.as_dict() for name, scores in run.baselines.items()}
        print_json({**run_as_data(run, output, files), "baselines": baselines, "verdict": sentence})
        return
    print(_introduction(run))
    assert run.scores is not None
    print_scores("Against the 17 edges", {**run.baselines, "with reweighting": run.scores})
    print(sentence)
    print_shares(run)
    print_files(output, files)


def _introduction(run: "Run") -> str:
    from rescore.report.run_tables import settings

    n, d = run.model.losses_.shape
    given = ", ".join(f"{k}={v}" for k, v in settings(run.model).items() if k != "estimator")
    return (
        f"{d} proteins in {n} cells under nine conditions, from {run.source}.\n"
        f"{settings(run.model)['estimator']} against its own learner alone, with the same "
        f"settings, none of them chosen by the truth:\n{given}."
    )
