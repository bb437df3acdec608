"""A graph with its functions: variables predicted from their parents, new rows drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np

from rescore.graph.dag import topological_order
from rescore.moments import CHUNK, Matrix, Moments

Layer = tuple[Matrix, Matrix]  # weights (d, outputs, inputs) and bias (d, outputs)
VECTORS = ("centre", "offset", "scale")  # of networks, besides their layers
ACTIVATIONS: dict[str, Any] = {
    "sigmoid": lambda Z: (1 + np.tanh(Z / 2)) / 2,
    "relu": lambda Z: np.maximum(Z, 0.0),
    "leaky_relu": lambda Z: np.maximum(Z, 0.01 * Z),
}


class Equations(Protocol):
    """``x_j ≈ f_j(parents of j)`` for every variable; a variable without parents is a constant."""

    @property
    def kind(self) -> str:
        """The form of the functions: what `from_arrays` must know besides the arrays."""

    def predict(self, X: Matrix) -> Matrix:
        """Every variable of every row from the others, (n, d)."""

    def variable(self, X: Matrix, j: int) -> Matrix:
        """Variable j alone, (n,)."""

    def shifted(self, by: Matrix) -> Self:
        """The same with ``by`` (d,) added to every prediction."""

    def rescaled(self, mean: Matrix, scale: Matrix) -> Self:
        """The same for variables ``mean + scale·x``, (d,) each, in the place of x."""

    def arrays(self) -> dict[str, Matrix]:
        """All that there is to know, by name."""


@dataclass(frozen=True, eq=False)
class LinearEquations:
    """``x̂ = μ + (x − μ) W``, W in units of the scale; plus an offset, zero where μ is the mean.

    Examples
    --------
    >>> equations = LinearEquations(W=np.array([[0.0, 2.0], [0.0, 0.0]]), mean=np.array([1.0, 5.0]))
    >>> equations.predict(np.array([[2.0, 0.0]]))
    array([[1., 7.]])
    """

    W: Matrix  # (d, d)
    mean: Matrix  # (d,)
    offset: Matrix | float = 0.0  # (d,)
    scale: Matrix | float = 1.0  # (d,); apart from W, for their ratios may be beyond float64
    kind = "linear"

    def predict(self, X: Matrix) -> Matrix:
        """Every variable of every row from the others, (n, d)."""
        return (X - self.mean) / self.scale @ self.W * self.scale + (self.mean + self.offset)

    def variable(self, X: Matrix, j: int) -> Matrix:
        """Variable j alone, (n,)."""
        offset, scale = (np.broadcast_to(a, len(self.W))[j] for a in (self.offset, self.scale))
        return (X - self.mean) / self.scale @ self.W[:, j] * scale + (self.mean[j] + offset)

    def shifted(self, by: Matrix) -> "LinearEquations":
        """The same with ``by`` (d,) added to every prediction."""
        return replace(self, offset=self.offset + by)

    def rescaled(self, mean: Matrix, scale: Matrix) -> "LinearEquations":
        """The same for variables ``mean + scale·x``."""
        moved = mean + scale * self.mean
        return LinearEquations(self.W, moved, scale * self.offset, scale * self.scale)

    def arrays(self) -> dict[str, Matrix]:
        """W, and vectors (d,)."""
        vectors = {"mean": self.mean, "offset": self.offset, "scale": self.scale}
        return {"W": self.W} | {k: np.broadcast_to(v, len(self.W)) for k, v in vectors.items()}


@dataclass(frozen=True, eq=False)
class NetworkEquations:
    """A network per variable: layers of ``W a + b`` with an activation between them.

    Examples
    --------
    >>> first = np.array([[[0.0, 0.0]], [[1.0, 0.0]]]), np.zeros((2, 1))  # x1 has the parent x0
    >>> last = np.array([[[0.0]], [[3.0]]]), np.array([[0.5], [0.0]])
    >>> equations = NetworkEquations((first, last), centre=np.zeros(2), kind="relu")
    >>> equations.predict(np.array([[2.0, 9.0], [-2.0, 9.0]]))
    array([[0.5, 6. ],
           [0.5, 0. ]])
    """

    layers: tuple[Layer, ...]
    centre: Matrix  # (d,), subtracted from the inputs
    kind: str  # a key of ACTIVATIONS
    offset: Matrix | float = 0.0  # (d,), added to the outputs
    scale: Matrix | float = 1.0  # (d,), in which inputs and outputs are measured

    @classmethod
    def of(
        cls,
        layers: Any,
        columns: Any,
        kind: str,
        edges: Any,
        moments: Moments,
        deviation: float | None,
        unit: Any,
    ) -> "NetworkEquations":
        """Networks of centred variables, network k that of ``columns[k]``, seeing ``edges`` alone.

        Inputs have the given deviation, or with None their own; those without an edge are frozen
        at their mean.  Outputs are measured in ``unit``, a number or (d,).
        """
        mean, S = moments
        place = np.argsort(columns)
        plain: list[Any] = [
            tuple(np.asarray(part, np.float64)[place] for part in layer) for layer in layers
        ]
        first = plain[0][0][:, :, place] * (np.asarray(edges) != 0).T[:, None, :]
        if deviation is not None:
            first = first * (deviation / np.sqrt(np.where(np.diag(S) > 0, np.diag(S), 1.0)))
        plain[0] = first, plain[0][1]
        *inner, (last, bias) = plain
        units = np.broadcast_to(unit, len(mean))[:, None]
        outer = last * units[:, :, None], bias * units
        return cls((*inner, outer), mean, kind, offset=mean)

    def predict(self, X: Matrix) -> Matrix:
        """Every variable of every row from the others, (n, d)."""
        return np.column_stack([self.variable(X, j) for j in range(len(self.centre))])

    def variable(self, X: Matrix, j: int) -> Matrix:
        """Variable j alone, (n,)."""
        parents = np.flatnonzero(self.layers[0][0][j].any(axis=0))
        offset, scale = (np.broadcast_to(a, X.shape[1]) for a in (self.offset, self.scale))
        first, *others = [(W[j], b[j]) for W, b in self.layers]
        Z = (X[:, parents] - self.centre[parents]) / scale[parents]
        Z = Z @ first[0][:, parents].T + first[1]
        for W, b in others:
            Z = ACTIVATIONS[self.kind](Z) @ W.T + b
        return Z[:, 0] * scale[j] + offset[j]

    def shifted(self, by: Matrix) -> "NetworkEquations":
        """The same with ``by`` (d,) added to every prediction."""
        return replace(self, offset=self.offset + by)

    def rescaled(self, mean: Matrix, scale: Matrix) -> "NetworkEquations":
        """The same for variables ``mean + scale·x``."""
        centre, offset = mean + scale * self.centre, mean + scale * self.offset
        return replace(self, centre=centre, offset=offset, scale=scale * self.scale)

    def arrays(self) -> dict[str, Matrix]:
        """The layers, in order, and vectors (d,)."""
        named = {f"weights{k}": W for k, (W, _) in enumerate(self.layers)}
        named |= {f"bias{k}": b for k, (_, b) in enumerate(self.layers)}
        vectors = {"centre": self.centre, "offset": self.offset, "scale": self.scale}
        return named | {k: np.broadcast_to(v, len(self.centre)) for k, v in vectors.items()}


@dataclass(frozen=True, eq=False)
class AdditiveEquations:
    """``x̂_j = offset_j + scale_j Σ_i f_ij(z_i)`` with ``z = (x − centre) / scale``.

    Each f is a straight line plus a cubic spline, constant beyond its outer knots.

    Examples
    --------
    >>> knots = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    >>> slope, values = np.array([[0.0, 2.0], [0.0, 0.0]]), np.zeros((2, 2, 3))
    >>> line = AdditiveEquations(knots, values, values, slope, np.zeros(2))
    >>> line.predict(np.array([[1.5, 9.0]]))
    array([[0., 3.]])
    """

    knots: Matrix  # (d, K), rising
    values: Matrix  # (d, d, K) of the spline of i in the equation of j at the knots of i
    bends: Matrix  # (d, d, K) its second derivatives there
    slope: Matrix  # (d, d) of the lines
    centre: Matrix  # (d,)
    offset: Matrix | float = 0.0  # (d,)
    scale: Matrix | float = 1.0  # (d,)
    kind = "additive"

    def predict(self, X: Matrix) -> Matrix:
        """Every variable of every row from the others, (n, d)."""
        return np.column_stack([self.variable(X, j) for j in range(len(self.slope))])

    def variable(self, X: Matrix, j: int) -> Matrix:
        """Variable j alone, (n,)."""
        offset, scale = (np.broadcast_to(a, X.shape[1]) for a in (self.offset, self.scale))
        total = np.zeros(len(X))
        for i in np.flatnonzero((self.slope[:, j] != 0) | self.values[:, j].any(axis=1)):
            z = (X[:, i] - self.centre[i]) / scale[i]
            columns = self.values[i, j][:, None], self.bends[i, j][:, None]
            total += self.slope[i, j] * z + cubic(z, self.knots[i], *columns)[:, 0]
        return total * scale[j] + offset[j]

    def shifted(self, by: Matrix) -> "AdditiveEquations":
        """The same with ``by`` (d,) added to every prediction."""
        return replace(self, offset=self.offset + by)

    def rescaled(self, mean: Matrix, scale: Matrix) -> "AdditiveEquations":
        """The same for variables ``mean + scale·x``."""
        centre, offset = mean + scale * self.centre, mean + scale * self.offset
        return replace(self, centre=centre, offset=offset, scale=scale * self.scale)

    def arrays(self) -> dict[str, Matrix]:
        """Knots, splines and slopes, and vectors (d,)."""
        parts = ("knots", "values", "bends", "slope")
        vectors = {k: np.broadcast_to(getattr(self, k), len(self.slope)) for k in VECTORS}
        return {name: getattr(self, name) for name in parts} | vectors


def cubic(z: Matrix, knots: Matrix, values: Matrix, bends: Matrix) -> Matrix:
    """Cubic splines at z (n,) from values and second derivatives (K, c) at the knots, (n, c).

    Constant beyond the outer knots.

    Examples
    --------
    >>> tent = np.array([[0.0], [1.0], [0.0]])
    >>> cubic(np.array([-1.0, 0.5, 1.0, 9.0]), np.array([0.0, 1.0, 2.0]), tent, 0 * tent)[:, 0]
    array([0. , 0.5, 1. , 0. ])
    """
    z = np.clip(z, knots[0], knots[-1])
    at = np.clip(np.searchsorted(knots, z, side="right") - 1, 0, len(knots) - 2)
    h = np.diff(knots)[at]
    low = (knots[at + 1] - z) / h
    high = 1 - low
    bend = h**2 / 6
    return np.asarray(
        low[:, None] * values[at]
        + high[:, None] * values[at + 1]
        + ((low**3 - low) * bend)[:, None] * bends[at]
        + ((high**3 - high) * bend)[:, None] * bends[at + 1]
    )


@dataclass(frozen=True, eq=False)
class GaussianProcessEquations:
    """``x̂_j = Σ_a c_aj exp(−½ Σ_i ρ_ij (x_i − z_ai)²)`` over m rows z that were seen in the fit.

    Examples
    --------
    >>> equations = GaussianProcessEquations(
    ...     inputs=np.array([[0.0, 0.0]]),
    ...     dual=np.array([[0.0, 2.0]]),
    ...     relevance=np.array([[0.0, 2.0], [0.0, 0.0]]),  # x1 has the parent x0
    ...     centre=np.zeros(2),
    ... )
    >>> equations.predict(np.array([[0.0, 9.0], [1.0, 9.0]])).round(3)
    array([[0.   , 2.   ],
           [0.   , 0.736]])
    """

    inputs: Matrix  # (m, d), centred and in units of the scale
    dual: Matrix  # (m, d), how much each row counts for each variable
    relevance: Matrix  # (d, d), ``[i, j]`` of variable i for variable j
    centre: Matrix  # (d,), subtracted from the inputs
    offset: Matrix | float = 0.0  # (d,), added to the outputs
    scale: Matrix | float = 1.0  # (d,), in which inputs and outputs are measured
    kind = "gaussian-process"

    def predict(self, X: Matrix) -> Matrix:
        """Every variable of every row from the others, (n, d)."""
        return np.column_stack([self.variable(X, j) for j in range(len(self.centre))])

    def variable(self, X: Matrix, j: int) -> Matrix:
        """Variable j alone, (n,)."""
        parents = np.flatnonzero(self.relevance[:, j])
        root = np.sqrt(self.relevance[parents, j])
        offset, scale = (np.broadcast_to(a, len(self.centre)) for a in (self.offset, self.scale))
        U = (X[:, parents] - self.centre[parents]) / scale[parents] * root
        V = self.inputs[:, parents] * root
        size = max(1, CHUNK * 64 // max(len(V), 1))  # rows at a time: memory stays small
        parts = [U[start : start + size] for start in range(0, len(U), size)] or [U]
        sums = [np.exp(-_half_distances(part, V)) @ self.dual[:, j] for part in parts]
        return np.concatenate(sums) * scale[j] + offset[j]

    def shifted(self, by: Matrix) -> "GaussianProcessEquations":
        """The same with ``by`` (d,) added to every prediction."""
        return replace(self, offset=self.offset + by)

    def rescaled(self, mean: Matrix, scale: Matrix) -> "GaussianProcessEquations":
        """The same for variables ``mean + scale·x``."""
        centre, offset = mean + scale * self.centre, mean + scale * self.offset
        return replace(self, centre=centre, offset=offset, scale=scale * self.scale)

    def arrays(self) -> dict[str, Matrix]:
        """Rows, their weights, the relevances, and vectors (d,)."""
        vectors = {"centre": self.centre, "offset": self.offset, "scale": self.scale}
        whole = {"inputs": self.inputs, "dual": self.dual, "relevance": self.relevance}
        return whole | {k: np.broadcast_to(v, len(self.centre)) for k, v in vectors.items()}


def _half_distances(U: Matrix, V: Matrix) -> Matrix:
    """Half the squared distances between the rows of U and those of V."""
    squares = np.square(U).sum(axis=1)[:, None] + np.square(V).sum(axis=1)
    return np.maximum(squares / 2 - U @ V.T, 0.0)


def from_arrays(kind: Any, arrays: Mapping[str, Any], d: int) -> Equations:
    """The equations of d variables whose `Equations.arrays` these are.

    Examples
    --------
    >>> equations = LinearEquations(np.zeros((2, 2)), np.array([1.0, 2.0]))
    >>> from_arrays("linear", equations.arrays(), 2).predict(np.zeros((1, 2)))
    array([[1., 2.]])
    """
    if kind == "linear":
        wanted = {"W": (d, d), "mean": (d,), "offset": (d,), "scale": (d,)}
    elif kind == "additive":
        K = np.shape(arrays.get("knots", 0))[-1:]
        wanted = {"knots": (d, *K), "values": (d, d, *K), "bends": (d, d, *K), "slope": (d, d)}
        wanted |= dict.fromkeys(VECTORS, (d,))
    elif kind == "gaussian-process":
        seen = (len(arrays["inputs"]) if "inputs" in arrays else 0, d)
        wanted = {"inputs": seen, "dual": seen, "relevance": (d, d)} | dict.fromkeys(VECTORS, (d,))
    elif isinstance(kind, str) and kind in ACTIVATIONS:
        wanted = _network_shapes(arrays, d)
    else:
        raise ValueError(f"Equations of the kind {kind!r} are unknown to this version.")
    if {name: array.shape for name, array in arrays.items()} != wanted:
        raise ValueError(f"The shapes of the arrays are not those of {d} {kind} equations.")
    if kind == "linear":
        return LinearEquations(**arrays)
    if kind == "additive":
        return AdditiveEquations(**arrays)
    if kind == "gaussian-process":
        return GaussianProcessEquations(**arrays)
    vectors = {name: arrays[name] for name in VECTORS}
    depth = (len(arrays) - len(VECTORS)) // 2
    layers = tuple((arrays[f"weights{k}"], arrays[f"bias{k}"]) for k in range(depth))
    return NetworkEquations(layers, kind=kind, **vectors)


def _network_shapes(arrays: Mapping[str, Any], d: int) -> dict[str, tuple[int, ...]]:
    """What the shapes must be for layers as wide as their biases, one output at the end."""
    last = (len(arrays) - len(VECTORS)) // 2 - 1  # each layer has weights and a bias
    hidden = [arrays[f"bias{k}"].size // d for k in range(last) if f"bias{k}" in arrays]
    wanted: dict[str, tuple[int, ...]] = dict.fromkeys(VECTORS, (d,))
    for k, (inputs, outputs) in enumerate(pairwise([d, *hidden, 1])):
        wanted |= {f"weights{k}": (d, outputs, inputs), f"bias{k}": (d, outputs)}
    return wanted


def residual_moments(equations: Equations, X: Matrix, w: Matrix) -> tuple[Matrix, Matrix]:
    """Mean and variance (d,) of ``x − x̂`` under the weights ``w`` (n,), block by block.

    Examples
    --------
    >>> nothing = LinearEquations(np.zeros((1, 1)), np.zeros(1))
    >>> residual_moments(nothing, np.array([[1.0], [5.0]]), np.array([0.5, 0.5]))
    (array([3.]), array([4.]))
    """
    mean, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for start in range(0, len(X), CHUNK):
        part = slice(start, start + CHUNK)
        R = X[part] - equations.predict(X[part])
        mean += w[part] @ R
        square += w[part] @ np.square(R)
    return mean, np.maximum(square - np.square(mean), 0.0)


def log_likelihoods(equations: Equations, variance: Matrix, X: Matrix) -> Matrix:
    """``Σ_j log N(x_ij; x̂_ij, σ_j²)`` of every row, (n,); without those of zero variance.

    Examples
    --------
    >>> nothing = LinearEquations(np.zeros((2, 2)), np.zeros(2))
    >>> log_likelihoods(nothing, np.array([1.0, 0.0]), np.array([[2.0, 9.0]])).round(4)
    array([-2.9189])
    """
    noisy = variance > 0
    found = np.empty(len(X))
    for start in range(0, len(X), CHUNK):
        part = slice(start, start + CHUNK)
        R = (X[part] - equations.predict(X[part]))[:, noisy] / np.sqrt(variance[noisy])
        with np.errstate(over="ignore"):  # a row beyond all measure has the likelihood zero
            Q = np.square(R) + np.log(2 * np.pi) + np.log(variance[noisy])
            found[part] = -Q.sum(axis=1) / 2
    return found


def squared_residuals(equations: Equations, X: Matrix) -> Matrix:
    """``(x_ij - x̂_ij)²``, (n, d), some rows after the others so that little else is in memory.

    Examples
    --------
    >>> nothing = LinearEquations(np.zeros((1, 1)), np.zeros(1))
    >>> squared_residuals(nothing, np.array([[3.0], [5.0]]))
    array([[ 9.],
           [25.]])
    """
    found = np.empty(X.shape)
    for start in range(0, len(X), CHUNK):
        part = slice(start, start + CHUNK)
        found[part] = np.square(X[part] - equations.predict(X[part]))
    return found


def partial_dependence(equations: Equations, X: Matrix, i: int, j: int, values: Matrix) -> Matrix:
    """The mean prediction of variable j over the rows with variable i set to each value.

    Examples
    --------
    >>> equations = LinearEquations(np.array([[0.0, 2.0], [0.0, 0.0]]), np.array([1.0, 5.0]))
    >>> partial_dependence(equations, np.ones((3, 2)), 0, 1, np.array([0.0, 1.0, 2.0]))
    array([3., 5., 7.])
    """
    rows = X.copy()
    curve = np.empty(len(values))
    for k, value in enumerate(values):
        rows[:, i] = value
        curve[k] = equations.variable(rows, j).mean()
    return curve


def draw(
    equations: Equations,
    W: Matrix,
    variance: Matrix,
    n: int,
    rng: np.random.Generator,
    do: Mapping[int, float] | None = None,
) -> Matrix:
    """``x_j = f_j(parents of j) + σ_j e_j`` along the order of the graph W, e standard normal.

    Variables in ``do`` are set to their value instead.  The noise is drawn for all variables
    whatever ``do`` says, so that the same generator gives the same individuals under every
    intervention.

    Examples
    --------
    >>> from rescore.equations import LinearEquations
    >>> W = np.array([[0.0, 2.0], [0.0, 0.0]])
    >>> line = LinearEquations(W, np.zeros(2))
    >>> rng = np.random.default_rng(0)
    >>> draw(line, W, np.array([1.0, 0.0]), 2, rng, do={0: 3.0})
    array([[3., 6.],
           [3., 6.]])
    """
    noise = rng.standard_normal((n, len(W))) * np.sqrt(variance)
    X, fixed = np.zeros((n, len(W))), do or {}
    for j in topological_order(W):
        X[:, j] = fixed[j] if j in fixed else equations.variable(X, j) + noise[:, j]
    return X
