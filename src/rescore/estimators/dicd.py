"""DICD as estimators: linear, and with networks."""

from rescore.backbones.dicd import DICDBackbone
from rescore.backbones.dicd_mlp import DICDMLPBackbone
from rescore.backbones.notears import NotearsBackbone
from rescore.backbones.notears_mlp_paper import PaperMLPBackbone
from rescore.checking import check_integer
from rescore.constraints import Edges
from rescore.estimators.learner import GroupedLearner
from rescore.protocols import Backbone


class DICD(GroupedLearner):
    """DICD (linear): equations that are optimal in every group of rows, as causal ones must be.

    NOTEARS on the mean of the groups' losses, ``½ (1/K) Σ_e E_e|x − xW|² + λ|W|₁``, with a price
    on what a group would gain by stretching a prediction: γ times the mean over groups of
    ``Σ_j g_ej²/v_ej``, where ``g_ej`` is the slope of group e's loss of variable j with respect to
    a multiplier of its prediction, and ``v_ej`` the variable's variance there.  Every group counts
    the same, whatever its size: row weights matter within groups.

    Parameters
    ----------
    invariance : float
        γ, the price on slopes, a number without unit.  0 is NOTEARS with inverse-propensity
        weights; a price far above 1 shuns edges, for a prediction that is constant has no slope.
    lambda1 : float
        λ, the penalty on the coefficients.
    threshold : float
        Coefficients smaller than this are dropped at the end.
    standardize : bool
        Fit on columns of deviation one.
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name, that must not or must be in the graph.
    constraint : {"exponential", "polynomial"}
        The acyclicity measure h.
    polish : bool
        At the end, try the graph that a search among orders of causes by least squares makes of
        the one found; it is kept if the whole objective is lower there.
    h_tol, rho_max, max_steps : float, float, int
        Where the augmented Lagrangian stops: tolerance on h, cap of its penalty, outer steps.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> lab = np.repeat(["old", "new"], [450, 50])
    >>> rain, rest = rng.normal(size=(2, 500)) * np.where(lab == "new", [[1], [3]], [[3], [1]])
    >>> X = pd.DataFrame({"grass": 2 * rain + rest, "rain": rain})
    >>> DICD().fit(X, groups=lab).adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     2.0   0.0
    """

    linear = True

    def __init__(
        self,
        invariance: float = 1.0,
        *,
        lambda1: float = 0.1,
        threshold: float = 0.3,
        standardize: bool = False,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        constraint: str = "exponential",
        polish: bool = True,
        h_tol: float = 1e-8,
        rho_max: float = 1e16,
        max_steps: int = 100,
    ) -> None:
        self.invariance = invariance
        self.lambda1 = lambda1
        self.threshold = threshold
        self.standardize = standardize
        self.forbidden = forbidden
        self.required = required
        self.constraint = constraint
        self.polish = polish
        self.h_tol = h_tol
        self.rho_max = rho_max
        self.max_steps = max_steps

    def _backbone(self) -> Backbone:
        notears = NotearsBackbone(
            lambda1=self.lambda1,
            threshold=self.threshold,
            constraint=self.constraint,
            polish=self.polish,
            h_tol=self.h_tol,
            rho_max=self.rho_max,
        )
        return DICDBackbone(self.invariance, notears)


class DICDMLP(GroupedLearner):
    """DICD (nonlinear): the same with a small network per variable, as NOTEARS-MLP published it.

    Parameters
    ----------
    invariance : float
        γ, the price on slopes: see `DICD`.
    hidden : tuple of int
        Units in each hidden layer.
    activation : {"sigmoid", "relu"}
        What a unit does to its input.
    lambda1, lambda2 : float
        Penalties on first-layer weights and on all squared weights.
    threshold : float
        Edges whose first-layer weights have a smaller norm are dropped at the end.
    standardize : bool
        Fit on columns of deviation one.
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name, that must not or must be in the graph.
    max_steps : int
        Outer steps at most.
    random_state : int, optional
        Seed of the networks' initial weights; None is 0.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> lab = np.repeat(["old", "new"], [400, 100])
    >>> dose, rest = rng.normal(size=(2, 500)) * np.where(lab == "new", [[0.5], [1]], [[1], [0.5]])
    >>> X = pd.DataFrame({"effect": 2 * np.sin(2 * dose) + rest, "dose": dose})
    >>> list(DICDMLP().fit(X, groups=lab).causal_graph_.edges)
    [('dose', 'effect')]
    """

    def __init__(
        self,
        invariance: float = 1.0,
        *,
        hidden: tuple[int, ...] = (10,),
        activation: str = "sigmoid",
        lambda1: float = 0.01,
        lambda2: float = 0.01,
        threshold: float = 0.3,
        standardize: bool = False,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        max_steps: int = 100,
        random_state: int | None = None,
    ) -> None:
        self.invariance = invariance
        self.hidden = hidden
        self.activation = activation
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.threshold = threshold
        self.standardize = standardize
        self.forbidden = forbidden
        self.required = required
        self.max_steps = max_steps
        self.random_state = random_state

    def _backbone(self) -> Backbone:
        seed = 0 if self.random_state is None else self.random_state
        networks = PaperMLPBackbone(
            hidden=self.hidden,
            activation=self.activation,
            lambda1=self.lambda1,
            lambda2=self.lambda2,
            threshold=self.threshold,
            seed=check_integer("random_state", seed, at_least=0),
        )
        return DICDMLPBackbone(self.invariance, networks)
