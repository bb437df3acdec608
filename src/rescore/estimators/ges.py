"""Greedy equivalence search as an estimator."""

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from rescore.backbones.ges import GESBackbone
from rescore.constraints import Edges
from rescore.estimators.learner import LinearLearner
from rescore.estimators.unpenalised import Unpenalised
from rescore.graph import cpdag


class GES(Unpenalised, LinearLearner):
    """Greedy equivalence search (Chickering 2002) on the Gaussian BIC.

    It searches among classes of DAGs that fit linear Gaussian data equally well, so the units do
    not matter, and which way an edge points is known only where ``cpdag_`` says so; elsewhere
    ``adjacency_matrix_`` points at the variable of larger variance, of equal ones at the earlier
    column, where the class allows it.
    The BIC is that of the weighted covariance and the effective number of rows.

    Parameters
    ----------
    max_parents : int, optional
        Of a variable, at most; None is one for every ten effective rows.
    standardize : bool
        Coefficients for columns of deviation one.  The class found is the same.
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name, that must not or must be in the graph: the search keeps to classes
        with a DAG that satisfies them.
    max_steps : int
        Searches at most, where row weights move between them.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain, tap = rng.normal(size=(2, 500))
    >>> grass = rain + tap + rng.normal(size=500)
    >>> mud = grass + rng.normal(size=500)
    >>> model = GES().fit(pd.DataFrame({"mud": mud, "rain": rain, "tap": tap, "grass": grass}))
    >>> model.cpdag_
           mud  rain  tap  grass
    mud      0     0    0      0
    rain     0     0    0      1
    tap      0     0    0      1
    grass    1     0    0      0
    """

    backbone = GESBackbone
    one_step = True

    def __init__(
        self,
        max_parents: int | None = None,
        *,
        standardize: bool = False,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        max_steps: int = 100,
    ) -> None:
        self.max_parents = max_parents
        self.standardize = standardize
        self.forbidden = forbidden
        self.required = required
        self.max_steps = max_steps

    @property
    def cpdag_(self) -> pd.DataFrame:
        """The class of the graph (d, d): 1 at [a, b] for a → b, at [b, a] too for a - b."""
        check_is_fitted(self, "adjacency_matrix_")
        W = self.adjacency_matrix_
        return pd.DataFrame(cpdag(W.to_numpy()), W.index, W.columns)
