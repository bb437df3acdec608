"""GraN-DAG: networks with a Gaussian likelihood, acyclic in the paths of their weights."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rescore.equations import Equations, NetworkEquations
from rescore.graph.dag import cut_to_dag
from rescore.learners.base import GraphLearner
from rescore.learners.networks import (
    Inputs,
    effective_rows,
    inward,
    mlp,
    outward,
    possible_edges,
    prepare,
    squared_residuals,
    weighted,
)
from rescore.learners.networks import gran_dag_training as training
from rescore.learners.networks.notears_mlp import NotearsMLPBackbone
from rescore.moments import Matrix, Weights, simplest
from rescore.protocols import Backbone, Mask, Problem, State, Status
from rescore.solvers.compilation import float64
from rescore.validation import check_choice, check_integer, check_number

PRUNINGS = ("joint", "cam")
BATCH = 256
ROUND = (100, 15, 300)  # mini-batches between two looks at h: at least, per variable, at most
FIRST_ROUNDS = 4  # of the first step, which starts from nothing
CLOSING_RATES = (1.0, 1.0, 0.3, 0.1)  # of the last fit, one round each, as shares of the rate
MU, GROWTH, ENOUGH = 0.1, 10.0, 0.9  # μ, its growth, and the share of h that must not be left
MOST_MU = 1e16
TINY = float(np.finfo(float).tiny)


@dataclass(eq=False, repr=False)
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
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.
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

    hidden: tuple[int, ...] = (10, 10)
    _: KW_ONLY
    neighbours: float | None = 0.75
    prune: str | None = "joint"
    cutoff: float = 0.001
    learning_rate: float = 5e-3
    clamp: float = 1e-4
    h_tol: float = 1e-8
    max_steps: int = 200
    random_state: int = 0

    def backbone(self) -> Backbone:
        """What takes the steps, with the parameters given here."""
        return self._filled(GranDAGBackbone)


class _Path(NamedTuple):
    """Where the training stands; all but ``strengths`` in the order of the inputs."""

    x: NDArray[np.float32]  # parameters
    edges: NDArray[np.float32]  # (d, d), 1 where an edge is still possible
    inputs: Inputs
    deviations: Matrix  # (d,), the networks' units of each variable
    multiplier: float  # λ
    mu: float
    h: float
    steps: int
    strengths: Matrix  # (d, d), in the order of the table


@dataclass(frozen=True)
class GranDAGBackbone:
    """``min ½ Σ_i w_i Σ_j (r_ij²/v_j + log v_j)`` with ``h = tr e^A − d = 0`` (Lachapelle 2020).

    ``r_ij = x_ij − f_j(x_i)`` with a network f_j and a learned variance v_j for each variable;
    ``A[i, j]`` is the mean absolute product of weights along the paths from input i to output j.
    One step is one round of mini-batches on ``NLL + λ h + ½ μ h²``, then λ grows by μh, and μ
    tenfold where h did not fall enough.  Edges whose A falls below ``clamp`` are gone for good.
    When h is within its tolerance the last step prunes the graph and fits it once more alone.
    Pruning is "cam", by p-values in additive models (published), or "joint", by what inputs explain
    of networks refitted to the graph on the prior weights, as in `NotearsMLPBackbone`.

    Networks see every column with mean zero and deviation one: variances are learned, so the
    likelihood has no units, and the graph depends on none.
    """

    hidden: tuple[int, ...] = (10, 10)
    neighbours: float | None = 0.75
    prune: str | None = "joint"
    cutoff: float = 0.001
    learning_rate: float = 5e-3
    clamp: float = 1e-4
    h_tol: float = 1e-8
    random_state: int = 0

    def __post_init__(self) -> None:
        mlp.check_architecture(self.hidden, "relu")
        if self.neighbours is not None:
            check_number("neighbours", self.neighbours, at_least=0)
        if self.prune is not None:
            check_choice("prune", self.prune, PRUNINGS)
        check_number("cutoff", self.cutoff, above=0, at_most=1)
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("clamp", self.clamp, at_least=0)
        check_number("h_tol", self.h_tol, above=0)
        check_integer("random_state", self.random_state, at_least=0)

    @property
    def threshold(self) -> float:
        """None: which edges there are is decided by clamping and pruning."""
        return 0.0

    def init(self, problem: Problem) -> State:
        """Random networks that see the candidates for a parent."""
        inputs, d = prepare(problem, deviation=1.0), problem.rows.shape[1]
        deviations = np.sqrt(np.diag(problem.moments(problem.prior).covariance))
        deviations = np.where(deviations > 0, deviations, 1.0)[inputs.columns]
        x = training.initial(d, tuple(self.hidden), np.random.default_rng(self.random_state))
        edges = _candidates(problem, problem.prior, inputs, self.neighbours, self.random_state)
        nothing = np.zeros((d, d))
        return State(
            _Path(x, edges.astype(np.float32), inputs, deviations, 0.0, MU, np.inf, 0, nothing)
        )

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """One subproblem of the augmented Lagrangian; when converged, pruning and the last fit."""
        w = simplest(w)
        path: _Path = state.params
        if path.steps == 0 and w.ndim == 2:
            edges = _candidates(problem, w, path.inputs, self.neighbours, self.random_state)
            path = path._replace(edges=edges.astype(np.float32))
        rates = [self.learning_rate] * (1 if path.steps else FIRST_ROUNDS)
        path, trace = self._trained(problem, w, path, rates)
        status = self._status(path)
        if status is Status.RUNNING:
            grows = path.h > ENOUGH * state.params.h or path.steps == 1
            path = path._replace(
                multiplier=path.multiplier + path.mu * path.h,
                mu=path.mu * (GROWTH if grows else 1.0),
            )
            return State(path, status, trace)
        graph = _pruned(problem, w, _acyclic(problem, path.strengths), self)
        path, closed = self._closed(problem, w, path, graph)
        return State(path, status, {**trace, "objective": closed["objective"]})

    def losses(self, problem: Problem, state: State) -> Matrix:
        """``(x_ij − f_j(x_i))²`` in the units of the data, (n, d)."""
        path: _Path = state.params
        inputs, d = path.inputs, len(path.edges)
        layers = mlp.unflatten(path.x, d, tuple(self.hidden))
        means = training.predict(mlp.masked(layers, path.edges), inputs.XT)
        R = inputs.XT.astype(np.float64) - np.asarray(means, np.float64)
        return squared_residuals(inputs, R * (path.deviations / np.sqrt(inputs.unit))[:, None])

    def adjacency(self, state: State) -> Matrix:
        """``Σ_i w_i |∂f_j/∂x_i|``: by how many deviations j moves with a deviation of i, (d, d)."""
        return np.array(state.params.strengths)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """The networks, blind to all but the edges of W, in the units of the data."""
        path: _Path = state.params
        layers = mlp.unflatten(path.x, len(W), tuple(self.hidden))
        moments = problem.moments(problem.prior)
        columns = path.inputs.columns
        units = path.deviations[np.argsort(columns)]
        return NetworkEquations.of(layers, columns, "leaky_relu", W, moments, 1.0, units)

    def _trained(
        self, problem: Problem, w: Weights, path: _Path, rates: list[float], free: bool = False
    ) -> tuple[_Path, dict[str, float]]:
        """A round of mini-batches at each rate; ``free`` of the constraint and of clamping."""
        required = inward(path.inputs, problem.required)
        limits = (0.0, 0.0, -1.0) if free else (path.multiplier, path.mu, self.clamp)
        penalty = training.Penalty(*limits, required)
        hidden, n = tuple(self.hidden), path.inputs.XT.shape[1]
        rng = np.random.default_rng([self.random_state, path.steps])
        count = max(ROUND[0], min(ROUND[1] * len(required), ROUND[2]))
        with float64():
            rows = training.Rows(path.inputs.XT, _each_sums_to_one(weighted(path.inputs, w).w))
            x, edges = path.x, path.edges
            for rate in rates:
                chosen = training.batches(n, min(BATCH, n), count, rng)
                x, edges = training.train(x, edges, rows, penalty, chosen, np.float32(rate), hidden)
            found = training.summary(x, edges, rows, required, hidden)
        strengths = outward(path.inputs, np.array(found.jacobian, np.float64))
        new = path._replace(
            x=np.array(x), edges=np.array(edges), h=float(found.h), strengths=strengths
        )
        return new._replace(steps=path.steps + 1), self._trace(found, new)

    def _closed(
        self, problem: Problem, w: Weights, path: _Path, graph: Mask
    ) -> tuple[_Path, dict[str, float]]:
        """The networks fitted to the final graph alone, so that they speak of no other."""
        path = path._replace(edges=inward(path.inputs, graph).astype(np.float32))
        rates = [share * self.learning_rate for share in CLOSING_RATES]
        path, trace = self._trained(problem, w, path, rates, free=True)
        # An edge of the graph is there even if its network hardly moves.
        return path._replace(strengths=np.where(graph, np.maximum(path.strengths, TINY), 0)), trace

    def _trace(self, found: training.Summary, path: _Path) -> dict[str, float]:
        objective = float(found.likelihood) + float(np.log(path.deviations).sum())
        return {"objective": objective, "h": float(found.h), "rho": path.mu}

    def _status(self, path: _Path) -> Status:
        if path.h <= self.h_tol:
            return Status.CONVERGED
        return Status.PENALTY_CAP if path.mu >= MOST_MU else Status.RUNNING


def _each_sums_to_one(w: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weights of rows (n,) as they are; of cells (d, n) each variable's, whose variance is free."""
    return w if w.ndim == 1 else w / w.sum(axis=1, keepdims=True)


def _candidates(
    problem: Problem, w: Weights, inputs: Inputs, multiple: float | None, seed: int
) -> Mask:
    """The edges that training may use, in the order of the inputs: those from likely neighbours.

    Trees see the rows as the networks do, so that neither their order nor repetition matters.
    """
    possible, required = inward(inputs, possible_edges(problem)), inward(inputs, problem.required)
    if multiple is None:
        return possible | required
    from rescore.pruning import neighbours

    v = weighted(inputs, w).w.astype(np.float64)
    near = neighbours(inputs.XT.T.astype(np.float64), v.T / v.T.sum(axis=0), multiple, seed)
    return (possible & near) | required


def _acyclic(problem: Problem, strengths: Matrix) -> Mask:
    """The edges left, without the weakest of any cycles that are too weak for h to see."""
    strengths = np.where(problem.required, np.maximum(strengths, TINY), strengths)
    return cut_to_dag(strengths, keep=problem.required)[0] != 0


def _pruned(problem: Problem, w: Weights, graph: Mask, learner: GranDAGBackbone) -> Mask:
    """The graph without parents that explain nothing; required ones stay."""
    if learner.prune is None:
        return graph
    if learner.prune == "joint":
        # Pruning too must depend on no units.
        unitless = replace(problem, rows=problem.rows.standardised(problem.prior))
        own_noise = NotearsMLPBackbone(variance="unequal", seed=learner.random_state)
        return own_noise.pruned(unitless, w, graph)
    from rescore.pruning.cam import significant

    rows = problem.effective_rows(w) if w.ndim == 1 else effective_rows(problem, w)
    v = np.asarray(w) if w.ndim == 1 else np.asarray(w) / np.asarray(w).sum(axis=0)
    return problem.required | significant(problem.rows.matrix(), graph, v, rows, learner.cutoff)
