"""A fit with a bar that shows how far it is."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rescore.cli.inputs import Input

__all__ = ["fit_with_progress", "stopped_early"]


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

    with progress(title, getattr(getattr(model, "estimator", model), "h_tol", 1e-8)) as on_step:
        known = {"groups": table.groups} if model.needs_groups else {}
        model.fit(table.X, sample_weight=table.sample_weight, on_step=on_step, **known)
