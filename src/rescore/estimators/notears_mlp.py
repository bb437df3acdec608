"""NOTEARS-MLP as an estimator."""

from typing import Any

from rescore.backbones.notears_mlp import NotearsMLPBackbone
from rescore.backbones.notears_mlp_paper import PaperMLPBackbone
from rescore.backbones.starts import from_several_starts
from rescore.checking import check_choice, check_integer
from rescore.constraints import Edges
from rescore.estimators.learner import GraphLearner
from rescore.protocols import Backbone

SCHEMES = ("path", "paper")


class NotearsMLP(GraphLearner):
    """NOTEARS-MLP (nonlinear): a small network per variable, and no cycles among their inputs.

    Parameters
    ----------
    scheme : {"path", "paper"}
        "path" follows a penalty on cycles that starts tiny, then prunes the edges less likely
        there than not, by what they explain; the strength of an edge is the relative rise of its
        effect's residual variance when the cause is frozen at its mean.  "paper" is the published
        objective with an augmented Lagrangian; the strength of an edge is the norm of its
        first-layer weights.
    hidden : tuple of int
        Units in each hidden layer.
    activation : {"sigmoid", "relu"}
        What a unit does to its input.
    variance : {"equal", "unequal"}
        With "path": whether the noise of all variables has one variance, in the units given, or
        each its own.  Standardised columns call for "unequal".
    lambda1, lambda2 : float, optional
        Penalties on first-layer weights and on all squared weights; if None, 2 and 1 divided by
        the number of rows ("path"), or 0.01 and 0.01 ("paper").
    least_share : float
        With "path" and many rows, which make the slightest dependence certain: an edge must also
        explain this share of its effect's variance, times ``1 − 2000/rows``, that the effect's
        other causes cannot.  0 asks for certainty alone.
    threshold : float, optional
        Edges weaker than this are dropped at the end; if None, 0 ("path", which has pruned by
        then) or 0.3 ("paper").
    standardize : bool
        Fit on columns of deviation one.
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name, that must not or must be in the graph.
    max_steps : int
        Outer steps at most; "path" takes a fixed number, below 20.
    n_starts : int
        Sets of random networks to start from, of which the one with the least objective is kept;
        each costs a fit.
    random_state : int, optional
        Seed of the networks' initial weights; None is 0.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> dose = rng.normal(size=500)
    >>> X = pd.DataFrame({"effect": np.sin(2 * dose) + 0.5 * rng.normal(size=500), "dose": dose})
    >>> list(NotearsMLP().fit(X).causal_graph_.edges)
    [('dose', 'effect')]
    """

    def __init__(
        self,
        scheme: str = "path",
        *,
        hidden: tuple[int, ...] = (10,),
        activation: str = "sigmoid",
        variance: str = "equal",
        lambda1: float | None = None,
        lambda2: float | None = None,
        least_share: float = 0.01,
        threshold: float | None = None,
        standardize: bool = False,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        max_steps: int = 100,
        n_starts: int = 1,
        random_state: int | None = None,
    ) -> None:
        self.scheme = scheme
        self.hidden = hidden
        self.activation = activation
        self.variance = variance
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.least_share = least_share
        self.threshold = threshold
        self.standardize = standardize
        self.forbidden = forbidden
        self.required = required
        self.max_steps = max_steps
        self.n_starts = n_starts
        self.random_state = random_state

    def _backbone(self) -> Backbone:
        """The backbone of the scheme; what is None there has the scheme's own default."""
        seed = 0 if self.random_state is None else self.random_state
        check_integer("random_state", seed, at_least=0)
        chosen: dict[str, Any] = {
            "hidden": self.hidden,
            "activation": self.activation,
            "seed": seed,
        }
        for name in ("lambda1", "lambda2", "threshold"):
            if getattr(self, name) is not None:
                chosen[name] = getattr(self, name)
        one: PaperMLPBackbone | NotearsMLPBackbone
        if check_choice("scheme", self.scheme, SCHEMES) == "paper":
            one = PaperMLPBackbone(**chosen)
        else:
            one = NotearsMLPBackbone(variance=self.variance, least_share=self.least_share, **chosen)
        return from_several_starts(one, self.n_starts, seed)
