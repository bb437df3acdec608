"""GOLEM as an estimator."""

from rescore.backbones.golem import GolemBackbone
from rescore.constraints import Edges
from rescore.estimators.learner import PathLearner


class Golem(PathLearner):
    """GOLEM (linear Gaussian): ``L(W) − log|det(I−W)| + λ₁|W|₁ + λ₂ h(W)``.

    Parameters
    ----------
    lambda1 : float, optional
        λ₁, the penalty on the coefficients; if None, 0.02 for equal and 0.002 for unequal
        variances.
    variance : {"equal", "unequal"}
        Whether the noise of all variables has one variance, ``L = d/2 · log Σ_ij w_i r_ij²``, or
        each its own, ``L = ½ Σ_j log Σ_i w_i r_ij²``.
    lambda2 : float
        λ₂, the first penalty on cycles; it grows until there are none.
    threshold : float
        Coefficients smaller than this are dropped at the end.
    standardize : bool
        Fit on columns of deviation one.  Coefficients are then in standard deviations, and the
        graph no longer depends on units; but nor does it profit from informative ones.
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name, that must not or must be in the graph.
    polish : bool
        At the end, look for a better order of causes: neighbours change places in the order found
        and in the order of least residual variance as long as that lowers the objective.
    h_tol, max_steps : float, int
        Where the search stops: tolerance on h, outer steps.
    n_starts, random_state : int, int, optional
        Starting points, of which the one with the least objective is kept: zero, and random ones
        drawn from this seed.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> Golem().fit(X).adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     2.0   0.0
    """

    backbone = GolemBackbone

    def __init__(
        self,
        lambda1: float | None = None,
        *,
        variance: str = "equal",
        lambda2: float = 5.0,
        threshold: float = 0.3,
        standardize: bool = False,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        polish: bool = True,
        h_tol: float = 1e-8,
        max_steps: int = 100,
        n_starts: int = 1,
        random_state: int | None = None,
    ) -> None:
        self.lambda1 = lambda1
        self.variance = variance
        self.lambda2 = lambda2
        self.threshold = threshold
        self.standardize = standardize
        self.forbidden = forbidden
        self.required = required
        self.polish = polish
        self.h_tol = h_tol
        self.max_steps = max_steps
        self.n_starts = n_starts
        self.random_state = random_state
