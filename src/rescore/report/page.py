"""One self-contained page about a run, without scripts, that needs nothing from the network."""

import base64
from typing import Any

from rescore.report.figures import draw_graph, draw_history, draw_weights, svg
from rescore.report.run import Run
from rescore.report.tables import group_shares, row_weights, settings, strongest_edges, text_names
from rescore.text import printable

__all__ = ["render_page"]

METRICS = {"tpr": "TPR", "fdr": "FDR", "shd": "SHD", "sid": "SID", "edges": "edges"}


def render_page(run: Run) -> str:
    """The page as HTML text; everything that comes from the data is escaped.

    Examples
    --------
    >>> import pandas as pd
    >>> from rescore import Notears
    >>> page = render_page(Run(Notears().fit(pd.DataFrame({"<b>": [0.0, 1.0]}))))
    >>> "<b>" in page, "&lt;b&gt;" in page
    (False, True)
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rescore.report", "."), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["printable"] = printable
    return environment.get_template("template.html.j2").render(_contents(run))


def _contents(run: Run) -> dict[str, Any]:
    from rescore import __version__

    model = run.model
    weights = row_weights(model)
    present = model.adjacency_matrix_.to_numpy() != 0
    degrees = present.sum(axis=0) + present.sum(axis=1)
    return {
        "version": __version__,
        "command": printable(run.command, 2000),
        "source": printable(run.source, 500),
        "settings": {name: _shown(value) for name, value in settings(model).items()},
        "diagnostics": model.diagnostics_,
        "names": text_names(model),
        "isolated": [n for n, degree in zip(text_names(model), degrees, strict=True) if not degree],
        "edges": strongest_edges(model),
        "n": len(weights),
        "figures": _figures(run),
        "groups": _groups(run),
        "scores": _scores(run),
        "undefined": dict(run.scores.undefined) if run.scores is not None else {},
        "metrics": METRICS,
        "warnings": [printable(text, 2000) for text in run.warnings],
    }


def _figures(run: Run) -> dict[str, str]:
    model = run.model
    pictures = {
        "graph": draw_graph(model.adjacency_matrix_.to_numpy(), text_names(model)),
        "history": draw_history(model.history_),
        "weights": draw_weights(model.sample_weight_, model.row_losses_, run.groups),
    }
    return {name: _data_address(svg(figure)) for name, figure in pictures.items()}


def _data_address(picture: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(picture.encode()).decode()


def _groups(run: Run) -> list[dict[str, Any]]:
    if run.groups is None:
        return []
    shares = group_shares(run.model.sample_weight_, run.groups)
    return shares.reset_index(names="label").to_dict("records")  # type: ignore[return-value]


def _scores(run: Run) -> dict[str, dict[str, Any]]:
    """One line per fit: those to compare with first, this one last."""
    if run.scores is None:
        return {}
    every = {**run.baselines, "this fit": run.scores}
    return {name: {key: scores[key] for key in METRICS} for name, scores in every.items()}


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else printable(value, 500)
