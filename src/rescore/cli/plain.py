"""``rescore fit``: the graph of the same learner without row weights, to see what they changed."""

import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rescore.cli.inputs import Input

__all__ = ["PlainOption", "plain_of"]

PlainOption = Annotated[
    bool,
    typer.Option(
        "--plain/--no-plain",
        help="Where rows were reweighted, also fit without: what did the weights change?",
    ),
]


def plain_of(model: Any, table: "Input", wanted: bool) -> tuple[Any, bool]:
    """The plain graph (d, d), if there is one to compare with, and whether Ctrl-C prevented it."""
    if not wanted or not hasattr(model, "estimator"):
        return None, False
    if not _reweighted(model, table):
        return model.adjacency_matrix_.to_numpy(), False
    try:
        return _fitted(model.estimator, table), False
    except KeyboardInterrupt:
        return None, True


def _reweighted(model: Any, table: "Input") -> bool:
    """Whether any row counts other than as it was given."""
    import numpy as np

    from rescore.row_weights import prior_weights

    w = model.sample_weight_.to_numpy()
    return not np.allclose(w, prior_weights(table.sample_weight, len(w)), rtol=1e-9)


def _fitted(learner: Any, table: "Input") -> Any:
    from sklearn.base import clone

    from rescore.cli.fitting import fit_with_progress

    plain = clone(learner)
    with warnings.catch_warnings():  # what they say was said of the other fit
        warnings.simplefilter("ignore")
        fit_with_progress(plain, table, "without row weights")
    return plain.adjacency_matrix_.to_numpy()
