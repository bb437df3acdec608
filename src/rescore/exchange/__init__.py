"""A fitted model for other programmes: its equations as JSON, and models of DoWhy.

The graph alone is handed over by `rescore.graph.io`; `rescore.exchange.saving` keeps the model.
"""

import json
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from rescore.equations import Equations, LinearEquations, NetworkEquations
from rescore.graph.formats import check_text_names, edges_of
from rescore.graph.io import to_networkx
from rescore.learners.base import StructureLearner
from rescore.learners.estimator import check_fitted
from rescore.moments import Matrix
from rescore.text import listing

INTERCEPT = "(Intercept)"


def equations_json(model: StructureLearner) -> str:
    """The fitted equations as a JSON object: ``nodes``, ``arcs``, and an equation per node.

    The arcs are those of the DAG that was fitted.  ``open`` lists those of them whose direction is
    open (``cpdag_``): turned round, they would fit as well, with other equations.

    Of a linear model ``cpds`` holds for each node its ``parents``, its ``coefficients`` by parent
    and under ``(Intercept)``, in the units of the data, and the ``variance`` of its noise; numbers
    stand in lists of one.  ``pgmpy.models.LinearGaussianBayesianNetwork.load`` reads it.

    Of a nonlinear model ``networks`` holds, with the parents p of a node in their order,
    ``offset + scale·(W_k a(… a(W_1 z + b_1) …) + b_k)`` with ``z = (p − centre) / spread``: the
    ``layers`` (weights and bias) and the ``activation`` a.  A node without parents has an
    ``offset`` alone.

    Numbers beyond float64 are null.  Names that are not text become text.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from rescore import Linear
    >>> rain = np.random.default_rng(0).normal(size=500)
    >>> X = pd.DataFrame({"rain": rain, "grass": 3 + 2 * rain + rain[::-1]})
    >>> grass = json.loads(equations_json(Linear().fit(X)))["cpds"]["grass"]
    >>> grass["parents"], {name: round(value) for name, (value,) in grass["coefficients"].items()}
    (['rain'], {'(Intercept)': 3, 'rain': 2})
    """
    check_fitted(model)
    names = text_names(model)
    W = model.adjacency_matrix_.to_numpy()
    edges = list(edges_of(W, names, model.cpdag_.to_numpy()))
    arcs = [[cause, effect] for cause, effect, *_ in edges]
    undirected = [[cause, effect] for cause, effect, _, directed in edges if not directed]
    part = "cpds" if isinstance(model.equations_, LinearEquations) else "networks"
    each = {name: _equation(model, W, names, j) for j, name in enumerate(names)}
    told = {"nodes": names, "arcs": arcs, "open": undirected, part: each}
    return json.dumps(told, indent=1, allow_nan=False) + "\n"


def can_be_handed_over(model: StructureLearner) -> bool:
    """Whether `equations_json` has words for the model: its equations are linear, or networks.

    Examples
    --------
    >>> from rescore import Empty
    >>> can_be_handed_over(Empty().fit([[0.0], [1.0]]))
    True
    """
    known = isinstance(model.equations_, LinearEquations | NetworkEquations)
    return known and INTERCEPT not in text_names(model)  # such a column looks like the constants


def text_names(model: StructureLearner) -> list[str]:
    """The names of the model's variables as text; refused if they clash.

    Examples
    --------
    >>> from rescore import Empty
    >>> text_names(Empty().fit([[0.0], [1.0]]))
    ['x0']
    """
    return check_text_names(str(name) for name in model.adjacency_matrix_.columns)


def to_dowhy(model: StructureLearner, X: Any, treatment: Any, outcome: Any) -> Any:
    """A ``dowhy.CausalModel`` of the rows X with the graph of the fit, to estimate effects with.

    DoWhy estimates from the rows anew and knows no row weights.  It takes every direction of
    ``adjacency_matrix_`` for known; ``directed`` on the edges of the graph says which are not.  It
    wants names that are text: others are written as text.  It needs
    ``pip install "rescore[dowhy]"``.

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
    check_fitted(model)
    names = tuple(model.adjacency_matrix_.columns)
    chosen = [_position(names, *pair) for pair in (("treatment", treatment), ("outcome", outcome))]
    if chosen[0] == chosen[1]:
        raise ValueError(f"The treatment and the outcome are both {listing([outcome])}.")
    texts = text_names(model)
    table = model._rows(X)
    data = pd.DataFrame(table.values.copy(), index=table.index, columns=texts)
    graph = to_networkx(model.adjacency_matrix_.to_numpy(), texts, model.cpdag_.to_numpy())
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
    check_fitted(model)
    gcm = _imported("dowhy.gcm")
    fitted_parents = _imported("dowhy.gcm.causal_models").PARENTS_DURING_FIT
    predecessors = _imported("dowhy.graph").get_ordered_predecessors
    names = text_names(model)
    graph = to_networkx(model.adjacency_matrix_.to_numpy(), names, model.cpdag_.to_numpy())
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


def _equation(model: StructureLearner, W: Matrix, names: list[str], j: int) -> dict[str, Any]:
    equations, parents = model.equations_, np.flatnonzero(W[:, j])
    causes = [names[i] for i in parents]
    if isinstance(equations, LinearEquations):
        described = {"coefficients": _linear(equations, parents, causes, j)}
    elif isinstance(equations, NetworkEquations):
        described = _network(equations, parents, j)
    else:
        raise TypeError(
            f"The equations of {type(model).__name__} are {type(equations).__name__}, which is "
            "neither linear nor a network; only these two can be handed over."
        )
    variance = float(np.asarray(model.noise_variance_)[j])
    return {"parents": causes, **described, "variance": [variance]}


def _linear(equations: LinearEquations, parents: Any, causes: list[str], j: int) -> dict[str, Any]:
    if INTERCEPT in causes:
        raise ValueError(
            f"A cause is called '{INTERCEPT}', which in this layout is the constant; rename the "
            "column."
        )
    scale = np.broadcast_to(equations.scale, len(equations.W))
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is written as null
        slopes = equations.W[parents, j] / scale[parents] * scale[j]
        constant = equations.variable(np.zeros((1, len(equations.W))), j)[0]
    return {INTERCEPT: [_number(constant)]} | {
        cause: [_number(slope)] for cause, slope in zip(causes, slopes, strict=True)
    }


def _network(equations: NetworkEquations, parents: Any, j: int) -> dict[str, Any]:
    d = len(equations.centre)
    if not len(parents):
        return {"offset": float(equations.variable(np.zeros((1, d)), j)[0])}
    offset, scale = (np.broadcast_to(a, d) for a in (equations.offset, equations.scale))
    layers = [(weights[j], bias[j]) for weights, bias in equations.layers]
    layers[0] = layers[0][0][:, parents], layers[0][1]
    return {
        "activation": equations.kind,
        "centre": equations.centre[parents].tolist(),
        "spread": scale[parents].tolist(),
        "layers": [{"weights": W.tolist(), "bias": bias.tolist()} for W, bias in layers],
        "offset": float(offset[j]),
        "scale": float(scale[j]),
    }


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


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
