"""Models of DoWhy from a fitted model: the graph with data, or the equations themselves."""

from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from rescore.equations import Equations
from rescore.estimators import StructureLearner
from rescore.graph.io import to_networkx
from rescore.handover.network_json import text_names
from rescore.moments import Matrix
from rescore.tables.matching import rows_like
from rescore.text import listing

__all__ = ["to_dowhy", "to_gcm"]


def to_dowhy(model: StructureLearner, X: Any, treatment: Any, outcome: Any) -> Any:
    """A ``dowhy.CausalModel`` of the rows X with the graph of the fit, to estimate effects with.

    DoWhy estimates from the rows anew and knows no row weights.  It wants names that are text:
    others are written as text.  It needs ``pip install "rescore[dowhy]"``.

    Parameters
    ----------
    model : StructureLearner
        Fitted.
    X : table
        Rows with the columns of the fit.
    treatment, outcome : names
        Two columns of the fit.

    Examples
    --------
    >>> from rescore import Linear, simulate
    >>> X = simulate(nodes=3, degree=1, random_state=100).X
    >>> to_dowhy(Linear().fit(X), X, treatment="x0", outcome="rain")
    Traceback (most recent call last):
        ...
    ValueError: The outcome 'rain' is not among the variables of the fit: 'x0', 'x1', 'x2'.
    """
    check_is_fitted(model, "equations_")
    names = tuple(model.adjacency_matrix_.columns)
    chosen = [_position(names, *pair) for pair in (("treatment", treatment), ("outcome", outcome))]
    if chosen[0] == chosen[1]:
        raise ValueError(f"The treatment and the outcome are both {listing([outcome])}.")
    texts = text_names(model)
    table = rows_like(X, names, type(model).__name__)
    data = pd.DataFrame(table.values.copy(), index=table.index, columns=texts)
    graph = to_networkx(model.adjacency_matrix_.to_numpy(), texts)
    cause, effect = (texts[k] for k in chosen)
    return _imported("dowhy").CausalModel(data, treatment=cause, outcome=effect, graph=graph)


def to_gcm(model: StructureLearner) -> Any:
    """The fitted equations as ``dowhy.gcm.InvertibleStructuralCausalModel``, ready to be asked.

    Samples, interventions, counterfactuals and attributions of ``dowhy.gcm`` then use what was
    fitted here, with Gaussian noise of ``noise_variance_``; ``gcm.fit`` is not needed, and leaves
    the functions as they are.  It needs ``pip install "rescore[dowhy]"``.

    Examples
    --------
    >>> from rescore import Linear
    >>> to_gcm(Linear())
    Traceback (most recent call last):
        ...
    sklearn.exceptions.NotFittedError: This Linear instance is not fitted yet...
    """
    check_is_fitted(model, "equations_")
    gcm = _imported("dowhy.gcm")
    fitted_parents = _imported("dowhy.gcm.causal_models").PARENTS_DURING_FIT
    predecessors = _imported("dowhy.graph").get_ordered_predecessors
    names = text_names(model)
    graph = to_networkx(model.adjacency_matrix_.to_numpy(), names)
    causal = gcm.InvertibleStructuralCausalModel(graph)
    for j, name in enumerate(names):
        parents = predecessors(graph, name)
        mechanism = _mechanism(gcm, model, j, [names.index(parent) for parent in parents])
        causal.set_causal_mechanism(name, mechanism)
        causal.graph.nodes[name][fitted_parents] = parents  # what gcm.fit would have noted
    return causal


class Fitted:
    """One equation as a prediction model of ``dowhy.gcm``, which has nothing left to fit."""

    def __init__(self, equations: Equations, j: int, parents: list[int], d: int) -> None:
        self.equations, self.j, self.parents, self.d = equations, j, parents, d

    def fit(self, X: Matrix, Y: Matrix) -> None:
        """Nothing: the equation is fitted."""

    def predict(self, X: Matrix) -> Matrix:
        """The variable from its parents in their order, (n, 1)."""
        rows = np.zeros((len(X), self.d))
        rows[:, self.parents] = X
        return self.equations.variable(rows, self.j)[:, None]

    def clone(self) -> "Fitted":
        """The same, which never changes."""
        return self


def _mechanism(gcm: Any, model: StructureLearner, j: int, parents: list[int]) -> Any:
    """The distribution of a variable without parents, or a function of them plus noise."""
    from scipy.stats import norm

    d = len(model.adjacency_matrix_)
    deviation = float(np.sqrt(np.asarray(model.noise_variance_, dtype=np.float64)[j]))
    if parents:
        noise = gcm.ScipyDistribution(norm, loc=0.0, scale=deviation)
        return gcm.AdditiveNoiseModel(Fitted(model.equations_, j, parents, d), noise)
    mean = float(model.equations_.variable(np.zeros((1, d)), j)[0])
    return gcm.ScipyDistribution(norm, loc=mean, scale=deviation)


def _position(names: tuple[Any, ...], role: str, name: Any) -> int:
    if name not in names:
        raise ValueError(
            f"The {role} {listing([name])} is not among the variables of the fit: {listing(names)}."
        )
    return names.index(name)


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            'This needs DoWhy, which is missing: pip install "rescore[dowhy]".'
        ) from None
