"""GraN-DAG as an estimator."""

from rescore.backbones.gran_dag import GranDAGBackbone
from rescore.constraints import Edges
from rescore.estimators.learner import GraphLearner


class GranDAG(GraphLearner):
    """GraN-DAG (nonlinear): a network per variable, Gaussian noise of learned variance.

    Candidates for a parent are selected, networks on them trained until the paths of their
    weights form no cycle, and parents that explain nothing are pruned.  The strength of an edge
    is the mean ``|∂f_j/∂x_i|`` in deviations of j per deviation of i; units make no difference.

    Parameters
    ----------
    hidden : tuple of int
        Units in each hidden layer.
    neighbours : float, optional
        Only variables whose importance for another is at least this multiple of the mean are
        candidates for its parents; None takes all.
    prune : {"joint", "cam"}, optional
        "joint" drops the parents that networks fitted anew to the graph can do without, as
        `NotearsMLP` does; "cam", the published way, those that smooth additive models can: it
        misses parents that only act together with others.  None keeps all.
    cutoff : float
        With "cam": the largest p-value of a parent that stays.
    learning_rate : float
        Step length of the training.
    clamp : float
        Edges whose mean path product falls below this during the training are dropped for good.
    standardize : bool
        Give ``losses_`` in squared deviations; the training has its own standard units anyway.
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name, that must not or must be in the graph.
    h_tol, max_steps : float, int
        Where the search stops: tolerance on h, outer steps.
    random_state : int
        Seed of the starting networks and of the mini-batches.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=300)
    >>> X = pd.DataFrame({"grass": np.sin(2 * rain) + 0.3 * rng.normal(size=300), "rain": rain})
    >>> list(GranDAG(neighbours=None).fit(X).causal_graph_.edges)
    [('rain', 'grass')]
    """

    backbone = GranDAGBackbone

    def __init__(
        self,
        hidden: tuple[int, ...] = (10, 10),
        *,
        neighbours: float | None = 0.75,
        prune: str | None = "joint",
        cutoff: float = 0.001,
        learning_rate: float = 5e-3,
        clamp: float = 1e-4,
        standardize: bool = False,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        h_tol: float = 1e-8,
        max_steps: int = 200,
        random_state: int = 0,
    ) -> None:
        self.hidden = hidden
        self.neighbours = neighbours
        self.prune = prune
        self.cutoff = cutoff
        self.learning_rate = learning_rate
        self.clamp = clamp
        self.standardize = standardize
        self.forbidden = forbidden
        self.required = required
        self.h_tol = h_tol
        self.max_steps = max_steps
        self.random_state = random_state
