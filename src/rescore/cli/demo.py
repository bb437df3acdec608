"""``rescore demo``: a simulated table in arbitrary units, then real data; plain and reweighted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rescore.cli.options import DebugOption, JsonOption, folder_named

if TYPE_CHECKING:
    from rescore.data import Dataset
    from rescore.learners.base import StructureLearner
    from rescore.metrics import Scores
    from rescore.reports.run import Run

__all__ = ["demo_command", "verdict", "what_was_found"]


class Pair(NamedTuple):
    """A data set, the same learner without and with row weights, and how far each is off."""

    data: "Dataset"
    plain: "StructureLearner"
    reweighted: "StructureLearner"
    before: "Scores"
    after: "Scores"

    def verdict(self) -> str:
        """Whether reweighting helped, in a sentence."""
        graphs = (model.adjacency_matrix_ != 0 for model in (self.plain, self.reweighted))
        return verdict(self.before, self.after, same_graph=next(graphs).equals(next(graphs)))


def demo_command(
    ctx: typer.Context,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", parser=folder_named, metavar="PATH", help="Folder for the results."
        ),
    ] = Path("demo"),
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Learn two graphs, plainly and with weights: of hidden groups, and of Sachs et al. (2005)."""
    from rescore.cli.terminal import noted_warnings
    from rescore.data import load_sachs
    from rescore.reports.run import ABOUT_FILE, Run, some_rows
    from rescore.staging import refuse_others_files
    from rescore.studies.check import check

    refuse_others_files(output, ABOUT_FILE)
    with noted_warnings() as notes:
        simulated, proteins = _fitted(hidden_groups()), _fitted(load_sachs())
    data = proteins.data
    run = Run(
        proteins.reweighted, data.groups, proteins.after, {"without reweighting": proteins.before},
        tuple(notes), ctx.obj, data.source, plain=proteins.plain.adjacency_matrix_.to_numpy(),
        findings=check(data.table).findings, rows=some_rows(data.X),
    )  # fmt: skip
    _finish(run, simulated, proteins, output, as_json)


def hidden_groups(seed: int = 0) -> "Dataset":
    """Rows of two groups with other noise; the units are arbitrary, the columns shuffled.

    Examples
    --------
    >>> data = hidden_groups()
    >>> data.X.shape, data.groups.value_counts().to_dict()
    ((2000, 20), {'g0': 1400, 'g1': 600})
    """
    import numpy as np

    from rescore.data import Dataset
    from rescore.data.simulate import simulate

    rng = np.random.default_rng(seed)
    data = simulate(nodes=20, samples=2000, groups=(0.7, 0.3), noise_scale=0.3, random_state=seed)
    order = rng.permutation(data.d)
    X = (data.X * np.exp(rng.uniform(-3, 3, data.d))).iloc[:, order]
    assert data.truth is not None
    truth = data.truth.iloc[order, order]
    return Dataset.from_arrays(X, truth=truth, groups=data.groups, source=data.source)


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


def what_was_found(told: dict[str, Any]) -> str:
    """Groups of rows, and what was decided of them, in a sentence.

    Examples
    --------
    >>> what_was_found({"groups": 2, "noise_rows": 0.0, "interventions": []})
    'ReScore found 2 groups of rows that nobody labelled.'
    """
    if told.get("groups", 1) == 1:
        return "ReScore found the rows alike, and left their weights as they were."
    aside, own = round(told["noise_rows"]), len(told["interventions"])
    more = [f"set {aside} rows aside as another model's"] * (aside > 0)
    more += [f"{own} mechanisms that are a group's own"] * (own > 0)
    found = f"ReScore found {told['groups']} groups of rows that nobody labelled"
    return ", and ".join([found, *more]) + "."


def _fitted(data: "Dataset") -> Pair:
    """The same learner with its default settings, with and without row weights."""
    from sklearn.base import clone

    from rescore.cli.after_fit import fit_with_progress
    from rescore.learners import RECOMMENDED, load_learner
    from rescore.learners.rescore import ReScore
    from rescore.metrics import evaluate
    from rescore.studies.table_input import Input

    plain = load_learner(RECOMMENDED)()
    reweighted = ReScore(clone(plain))
    fit_with_progress(plain, Input(data.table), "without reweighting")
    fit_with_progress(reweighted, Input(data.table), "with reweighting")
    scores = (evaluate(data.truth, model) for model in (plain, reweighted))
    return Pair(data, plain, reweighted, *scores)


def _finish(run: "Run", simulated: Pair, proteins: Pair, output: Path, as_json: bool) -> None:
    from rescore.cli.after_fit import run_as_data
    from rescore.cli.terminal import noted_warnings, print_files, print_json, uninterrupted
    from rescore.reports.folder import write_run

    with uninterrupted(), noted_warnings():
        files = write_run(output, run)
    if as_json:
        baselines = {name: scores.as_dict() for name, scores in run.baselines.items()}
        about = {"baselines": baselines, "verdict": proteins.verdict()}
        print_json({**run_as_data(run, output, files), **about, "simulated": _as_data(simulated)})
        return
    n, d = simulated.data.X.shape
    print(f"1. Simulated: {d} variables in arbitrary units, {n} rows of two groups, unlabelled.")
    _show(simulated)
    print(f"{_placed(simulated)} of the rows are in the group they were drawn from.\n")
    n, d = proteins.data.X.shape
    print(f"2. Real: {d} proteins in {n} cells under nine conditions, {run.source}.")
    _show(proteins)
    print_files(output, files)


def _show(pair: Pair) -> None:
    """Both fits beside the truth, whether weights helped, and what they found."""
    from rescore.cli.terminal import console, print_scores
    from rescore.metrics import evaluate

    truth = pair.data.truth
    assert truth is not None
    edges, nothing = int(truth.to_numpy().sum()), evaluate(truth, 0 * truth)
    scores = {"no edges": nothing, "without reweighting": pair.before}
    scores["with reweighting"] = pair.after
    print_scores(f"Against the {edges} edges", scores)
    console().print(pair.verdict())
    console().print(what_was_found(pair.reweighted.diagnostics_["weighting"]))


def _placed(pair: Pair) -> str:
    """The share of rows whose found group is mostly made of rows of their own true group."""
    import numpy as np
    import pandas as pd

    told = pair.reweighted.diagnostics_["weighting"]
    found = told.get("membership", [0] * pair.data.n)
    counts = pd.crosstab(np.asarray(found), np.asarray(pair.data.groups))
    return f"{counts.max(axis=1).sum() / pair.data.n:.1%}"


def _as_data(pair: Pair) -> dict[str, Any]:
    return {
        "plain": pair.before.as_dict(),
        "reweighted": pair.after.as_dict(),
        "verdict": pair.verdict(),
        "found": what_was_found(pair.reweighted.diagnostics_["weighting"]),
    }
