"""A finished fit with what is known around it: all that a report can tell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rescore.estimators import StructureLearner
from rescore.metrics.scores import Scores

__all__ = ["Run"]


@dataclass(frozen=True, eq=False)
class Run:
    """A fitted model, and optionally what surrounds it.

    ``groups`` is a label per row, which the learner never saw.  ``scores`` are the model's against
    a true graph, ``baselines`` those of other fits to compare with, by name.  ``command`` and
    ``source`` say how the fit came about and where its rows are from.

    Examples
    --------
    >>> from rescore import Notears
    >>> Run(Notears().fit([[0.0], [1.0]])).warnings
    ()
    """

    model: StructureLearner
    groups: Any = None  # (n,)
    scores: Scores | None = None
    baselines: Mapping[str, Scores] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    command: str = ""
    source: str = ""
