"""DAGMA as an estimator."""

from rescore.backbones.dagma import DagmaBackbone
from rescore.constraints import Edges
from rescore.estimators.learner import PathLearner


class Dagma(PathLearner):
    """DAGMA (linear): ``μ (½ Σ_i w_i |x_i − x_i W|² + λ|W|₁) − log det(I − W∘W)``, μ → 0.

    Parameters
    ----------
    lambda1 : float
        λ, the penalty on the coefficients.
    threshold : float
        Coefficients smaller than this are dropped at the end.
    standardize : bool
        Fit on columns of deviation one.  Coefficients are then in standard deviations, and the
        graph no longer depends on units; but nor does it profit from informative ones.
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name, that must not or must be in the graph.
    shrink : float in (0, 1)
        μ is multiplied by this from stage to stage.  Nearer to one is a finer and slower path.
    polish : bool
        At the end, look for a better order of causes: neighbours change places in the order found
        and in the order of least residual variance as long as that lowers the objective.
    h_tol, max_steps : float, int
        Where the path stops: tolerance on the barrier, stages.
    n_starts, random_state : int, int, optional
        Starting points, of which the one with the least objective is kept: zero, and random ones
        drawn from this seed.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> Dagma().fit(X).adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     2.0   0.0
    """

    backbone = DagmaBackbone

    def __init__(
        self,
        lambda1: float = 0.02,
        *,
        threshold: float = 0.3,
        standardize: bool = False,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        shrink: float = 0.6,
        polish: bool = True,
        h_tol: float = 1e-8,
        max_steps: int = 100,
        n_starts: int = 1,
        random_state: int | None = None,
    ) -> None:
        self.lambda1 = lambda1
        self.threshold = threshold
        self.standardize = standardize
        self.forbidden = forbidden
        self.required = required
        self.shrink = shrink
        self.polish = polish
        self.h_tol = h_tol
        self.max_steps = max_steps
        self.n_starts = n_starts
        self.random_state = random_state
