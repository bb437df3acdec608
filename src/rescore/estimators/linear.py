"""The recommended linear learner as an estimator."""

from rescore.backbones.ordered import OrderedBackbone
from rescore.constraints import Edges
from rescore.estimators.learner import LinearLearner


class Linear(LinearLearner):
    """Ordered least squares: the recommended learner for linear data, exact and immediate.

    The order of causes is that of least residual variance, each variable given those before it;
    the edges are those that explain more than chance could (extended BIC on the effective rows).
    Like every least-squares learner (NOTEARS, DAGMA, GOLEM-EV) it tells causes from effects by
    the variances, so it assumes noise of similar size in all variables, in the units given.

    Parameters
    ----------
    threshold : float
        Coefficients smaller than this are dropped at the end.
    standardize : bool
        Fit on columns of deviation one.  The order then has little left to go by.
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name, that must not or must be in the graph.
    max_steps : int
        Fits at most, where row weights move between fits.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> Linear().fit(X).adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     2.0   0.0
    """

    backbone = OrderedBackbone
    one_step = True

    def __init__(
        self,
        threshold: float = 0.3,
        *,
        standardize: bool = False,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        max_steps: int = 100,
    ) -> None:
        self.threshold = threshold
        self.standardize = standardize
        self.forbidden = forbidden
        self.required = required
        self.max_steps = max_steps
