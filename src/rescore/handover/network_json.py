"""The fitted equations as JSON that anyone can read.

There is no BIF: that format, like the .net and .dsc files of the same programmes, has tables of
probabilities of discrete variables and nothing else, so a file in it would have to say something
that was never fitted.  Linear Gaussian networks are passed around as JSON, in the layout that the
Bayesian Network Repository uses and pgmpy reads; it is used here.
"""

import json
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rescore.equations import LinearEquations, NetworkEquations
from rescore.estimators import StructureLearner
from rescore.graph.edges import check_text_names, edges_of
from rescore.moments import Matrix

__all__ = ["equations_json", "text_names"]

INTERCEPT = "(Intercept)"


def equations_json(model: StructureLearner) -> str:
    """The fitted equations as a JSON object: ``nodes``, ``arcs``, and an equation per node.

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
    check_is_fitted(model, "equations_")
    names = text_names(model)
    W = model.adjacency_matrix_.to_numpy()
    arcs = [[cause, effect] for cause, effect, _ in edges_of(W, names)]
    part = "cpds" if isinstance(model.equations_, LinearEquations) else "networks"
    each = {name: _equation(model, W, names, j) for j, name in enumerate(names)}
    told = {"nodes": names, "arcs": arcs, part: each}
    return json.dumps(told, indent=1, allow_nan=False) + "\n"


def text_names(model: StructureLearner) -> list[str]:
    """The names of the model's variables as text; refused if they clash.

    Examples
    --------
    >>> from rescore import Empty
    >>> text_names(Empty().fit([[0.0], [1.0]]))
    ['x0']
    """
    return check_text_names(str(name) for name in model.adjacency_matrix_.columns)


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
