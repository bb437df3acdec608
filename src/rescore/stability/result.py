"""What resamples say about a graph, in tables and in words."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rescore.protocols import Status
from rescore.stability.summary import readable

__all__ = ["Stability"]

MOST_SHOWN = 20


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """What `bootstrap` found.

    Attributes
    ----------
    edges : DataFrame (d, d)
        ``.loc[a, b]``: the share of resamples whose graph has a → b.
    adjacent : DataFrame (d, d)
        The share with an edge between a and b, whichever way it points.
    table : DataFrame
        A line for every edge found at least once, the most probable first: ``cause``, ``effect``,
        ``probability`` of the edge, probability that the two are ``adjacent``, probability of this
        ``direction`` given that they are; mean ``coefficient`` and its 5 % and 95 % quantiles
        (``low``, ``high``) over the resamples that have the edge.
    row_weights : DataFrame (n, 4)
        On the index of X: the row's weight times the number of rows, relative to its own
        ``sample_weight`` where there is one, so that 1 counts as in the plain learner; its
        ``mean``, ``low`` (5 %) and ``high`` (95 %) over the resamples in which it was drawn, and
        how often it was ``drawn`` in all.
    resamples : int
        How many there were.
    scheme : str
        How they were drawn.
    statuses : dict
        How many fits ended with each `Status`, by its name.  All of them count, converged or not.
    interrupted : bool
        Whether Ctrl-C kept it from drawing as many as were asked for.

    Examples
    --------
    >>> from rescore import Linear, bootstrap, simulate
    >>> X = simulate(nodes=3, degree=1, samples=200, random_state=100).X
    >>> bootstrap(Linear(), X, resamples=50).statuses
    {'CONVERGED': 50}
    """

    edges: pd.DataFrame
    adjacent: pd.DataFrame
    table: pd.DataFrame
    row_weights: pd.DataFrame
    resamples: int
    scheme: str
    statuses: Mapping[str, int]
    interrupted: bool = False

    @property
    def not_converged(self) -> int:
        """How many fits did not converge."""
        return self.resamples - self.statuses.get(Status.CONVERGED.name, 0)

    @property
    def weights_vary(self) -> bool:
        """Whether any row was weighed other than in the plain learner."""
        values = self.row_weights[["low", "high"]].to_numpy()
        return bool(((values != 1) & ~np.isnan(values)).any())

    @property
    def summary(self) -> str:
        """How the resamples were drawn and how their fits ended, as a sentence."""
        n = len(self.row_weights)
        if self.scheme == "bootstrap":
            how = f"bootstrap resamples of {n:,} rows"
        else:
            how = f"random halves of {n:,} rows"
        failed = self.not_converged
        ends = f"{failed} fit(s) did not converge and count too" if failed else "all fits converged"
        stopped = " Stopped by Ctrl-C before all were drawn." if self.interrupted else ""
        return f"{self.resamples} {how}; {ends}.{stopped}"

    def __repr__(self) -> str:
        if self.table.empty:
            return f"{self.summary}\nNo resample has an edge."
        shown = readable(self.table.head(MOST_SHOWN)).to_string(index=False)
        left = len(self.table) - MOST_SHOWN
        more = f"\n... and {left} more edge(s), all in .table" if left > 0 else ""
        return f"{self.summary}\n\n{shown}{more}"
