"""``rescore fit --compare``: whether the row weights help, after the fit."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rescore.cli.inputs import Input
    from rescore.comparison import Comparison

__all__ = [
    "CompareOption",
    "ResamplesOption",
    "comparison_as_data",
    "comparison_of",
    "print_comparison",
]

CompareOption = Annotated[
    bool,
    typer.Option("--compare", help="Afterwards, compare plain and reweighted fits on resamples."),
]
ResamplesOption = Annotated[int, typer.Option(help="How many resamples --compare draws.")]


def comparison_of(
    model: Any, table: "Input", truth: Any, resamples: int, seed: int, jobs: int
) -> "Comparison":
    """Plain and reweighted fits of the model's learner, with a bar on stderr."""
    from rescore.cli.terminal import counter
    from rescore.comparison import compare

    learner = getattr(model, "estimator", model)
    tau = getattr(model, "tau", "auto")
    given: dict[str, Any] = {} if tau == "auto" else {"tau": tau}
    if table.groups is not None and learner.needs_groups:
        given["groups"] = table.groups
    with counter("comparing", resamples) as advance:
        return compare(
            table.X, learner, truth=truth, sample_weight=table.sample_weight, resamples=resamples,
            random_state=seed, n_jobs=jobs, on_resample=lambda done: advance(), **given,
        )  # fmt: skip


def print_comparison(comparison: "Comparison") -> None:
    """A table for each measure that decides, and the sentence."""
    from rescore.cli.printing import print_table
    from rescore.cli.terminal import console
    from rescore.comparison.summary import MEASURES, deciding, readable

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
