"""Baselines as estimators: no table of results without them."""

from rescore.backbones.baselines import EmptyBackbone, RandomBackbone, SortNRegressBackbone
from rescore.constraints import Edges
from rescore.estimators.learner import LinearLearner
from rescore.estimators.unpenalised import Unpenalised


class Empty(Unpenalised, LinearLearner):
    """The graph without edges, but the required ones: every variable is predicted by its mean.

    Parameters
    ----------
    standardize : bool
        Coefficients, where there are any, for columns of deviation one.
    required : iterable of (cause, effect), optional
        Edges, by column name, that must be in the graph.

    Examples
    --------
    >>> from rescore import simulate
    >>> Empty().fit(simulate(nodes=3, degree=1, random_state=100).X).causal_graph_.size()
    0
    """

    backbone = EmptyBackbone
    one_step = True
    silenced = Unpenalised.silenced | {"empty"}  # that there is no edge is no surprise
    forbidden = None
    max_steps = 100

    def __init__(self, *, standardize: bool = False, required: Edges | None = None) -> None:
        self.standardize = standardize
        self.required = required


class Random(Unpenalised, LinearLearner):
    """A random graph, whatever the data say; its coefficients are regressions on the parents.

    The variables are put in a random order, and the edges drawn evenly from those it allows.

    Parameters
    ----------
    degree : float
        Edges per variable: with d variables ``degree·d`` edges, or all possible if those are fewer.
    standardize : bool
        Coefficients for columns of deviation one.
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name, that must not or must be in the graph.
    random_state : int
        Seed of the order and of the edges.

    Examples
    --------
    >>> from rescore import simulate
    >>> X = simulate(nodes=5, degree=1, random_state=100).X
    >>> Random(degree=1, random_state=1).fit(X).causal_graph_.size()
    5
    """

    backbone = RandomBackbone
    one_step = True
    silenced = Unpenalised.silenced | {"empty"}
    max_steps = 100

    def __init__(
        self,
        degree: float = 2,
        *,
        standardize: bool = False,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        random_state: int = 0,
    ) -> None:
        self.degree = degree
        self.standardize = standardize
        self.forbidden = forbidden
        self.required = required
        self.random_state = random_state


class SortNRegress(Unpenalised, LinearLearner):
    """Sort the variables by variance or R², then regress each on those before it.

    How well this does says how much of the order of causes a data set gives away by its scales
    (Reisach, Seiler, Weichwald 2021) or by what all other variables explain of each (Reisach,
    Tami, Seiler, Chambaz, Weichwald 2023).  Where the published method chooses edges by the lasso
    with BIC, predecessors here stay if dropping them costs more than chance could (extended BIC
    on the effective rows), without the further
    tests of `Linear`.

    Parameters
    ----------
    criterion : {"variance", "r2"}
        What rises from causes to effects; "r2" does not depend on units.
    standardize : bool
        Fit on columns of deviation one.  Their variances then say nothing.
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name, that must not or must be in the graph.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rain = rng.normal(size=500)
    >>> X = pd.DataFrame({"grass": 2 * rain + rng.normal(size=500), "rain": rain})
    >>> SortNRegress().fit(X).adjacency_matrix_.round(1)
           grass  rain
    grass    0.0   0.0
    rain     2.0   0.0
    """

    backbone = SortNRegressBackbone
    one_step = True
    max_steps = 100

    def __init__(
        self,
        criterion: str = "variance",
        *,
        standardize: bool = False,
        forbidden: Edges | None = None,
        required: Edges | None = None,
    ) -> None:
        self.criterion = criterion
        self.standardize = standardize
        self.forbidden = forbidden
        self.required = required
