"""A finished fit with what is known around it: all that a report can tell."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from rescore.estimators import StructureLearner
from rescore.metrics.scores import Scores
from rescore.tables.findings import Finding
from rescore.units_changed import Units

__all__ = ["Run", "versions_here"]

DECISIVE = ("jax", "numpy", "scipy", "scikit-learn", "pandas")  # of what a result may depend on


def versions_here() -> dict[str, str]:
    """The versions of this program, Python and the libraries that compute.

    Examples
    --------
    >>> list(versions_here())[:3]
    ['rescore', 'Python', 'jax']
    """
    from rescore import __version__

    ours = {"rescore": __version__, "Python": platform.python_version()}
    return ours | {name: version(name) for name in DECISIVE}


@dataclass(frozen=True, eq=False)
class Run:
    """A fitted model, and optionally what surrounds it.

    ``groups`` is a label per row, which the learner never saw.  ``scores`` are the model's against
    a true graph, ``baselines`` those of other fits to compare with, by name.  ``command`` and
    ``source`` say how the fit came about and where its rows are from.  ``plain`` is the graph of
    the same learner without row weights, and ``stability`` the share of resamples with each edge,
    both in the order of the model's variables.  ``resampled`` says how these were drawn.
    ``units`` is what other units would change, ``findings`` what a check of the table showed.

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
    plain: Any = None  # (d, d)
    stability: Any = None  # (d, d)
    versions: Mapping[str, str] = field(default_factory=versions_here)
    units: Units | None = None
    resampled: str = ""
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        d = len(self.model.adjacency_matrix_)
        for name, matrix in (("plain", self.plain), ("stability", self.stability)):
            if matrix is not None and np.shape(matrix) != (d, d):
                raise ValueError(
                    f"{name} must have a row and a column for each of the {d} variables; got the "
                    f"shape {np.shape(matrix)}."
                )
        if self.stability is not None and not np.all(
            np.abs(2 * np.asarray(self.stability) - 1) <= 1
        ):
            raise ValueError("stability must hold shares between 0 and 1.")
