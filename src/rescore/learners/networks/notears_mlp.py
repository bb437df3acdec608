"""NOTEARS-MLP along a path: a penalty on cycles that starts tiny, then pruning with refits."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rescore.equations import Equations, NetworkEquations
from rescore.learners.base import GraphLearner
from rescore.learners.networks import (
    Inputs,
    Weighted,
    effective_rows,
    inward,
    mlp,
    outward,
    possible_edges,
    prepare,
    squared_residuals,
    weighted,
)
from rescore.learners.networks.notears_mlp_paper import PaperMLPBackbone
from rescore.learners.networks.selection import (
    cut,
    explained,
    floor,
    stiffness,
    strongest_dag,
    substantial,
)
from rescore.learners.wrappers import from_several_starts
from rescore.moments import TINY, Matrix, Weights, simplest
from rescore.protocols import Backbone, Mask, Problem, State, Status
from rescore.solvers.compilation import float64
from rescore.validation import check_choice, check_integer, check_number, check_seed

SCHEMES = ("path", "paper")
VARIANCES = ("equal", "unequal")
DEVIATION = 1.4  # of the networks' inputs: their penalties are in these units
CYCLES = np.geomspace(3e-4, 10, 10)  # the penalties on cycles, stage by stage
SHARES = (1 / 3, 2 / 3, 1)  # of the cut-off that prunes, after each refit but the last
FIRST, PATH, REFIT = 200, 60, 100  # iterations of the first stage, of the others, of a refit
WITHOUT_PATH = 800  # iterations of the first fit to a DAG that is given


@dataclass(eq=False, repr=False)
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
    forbidden, required, knowledge : pairs of names, and `Knowledge` or its file, optional
        Edges that must not or must be in the graph; all three are joined.
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

    scheme: str = "path"
    _: KW_ONLY
    hidden: tuple[int, ...] = (10,)
    activation: str = "sigmoid"
    variance: str = "equal"
    lambda1: float | None = None
    lambda2: float | None = None
    least_share: float = 0.01
    threshold: float | None = None
    n_starts: int = 1
    random_state: int | None = None

    @property
    def automatic_weighting(self) -> str:  # type: ignore[override]
        """Weights of cells along the path; the published objective has weights of rows."""
        return "precision" if self.scheme == "path" else "balanced"

    def backbone(self) -> Backbone:
        """The backbone of the scheme; what is None there has the scheme's own default."""
        seed = check_seed(self.random_state)
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


class _Path(NamedTuple):
    """Where the path stands; matrices in the order of the networks' columns."""

    inputs: Inputs
    x: Matrix  # the parameters of all networks, flat
    edges: Mask  # (d, d), which inputs the networks may use
    D: Matrix  # (d, d), what each explains
    noise: Matrix  # (d,), the share of each variable's variance that its network leaves
    stage: int


@dataclass(frozen=True)
class NotearsMLPBackbone:
    """``min L + Σ_ij λ₁|W_ij| + ½λ₂|W|² + a·h`` for growing a; then prune and refit.

    Variable j is predicted by a network of its own; ``W_ij`` are its first-layer weights from
    variable i, ``h`` is zero if no cycle of non-zero ``|W_ij|`` is left.  ``L`` is half the
    weighted residual variances: their sum (``variance="equal"``, in units of the noise) or the
    sum of their logarithms (``"unequal"``: each variable has a noise variance of its own).

    With weights of cells (n, d) each variable's residual variance is that of its own column, and
    so are λ₁, λ₂, what its inputs explain and what chance would let them, by its effective rows.

    One step is one stage: first the penalties a on cycles; then three refits of a DAG, each
    followed by pruning of the edges less likely there than not, and of those that explain less
    than a share (`floor`) of their effect's variance beyond what its other causes can; last a refit
    of what is left.  The strength of an edge is what it explains, the relative rise of the
    effect's residual variance when the cause is frozen at its mean.
    By default λ₁ = 2/n and λ₂ = 1/n, n the effective rows; given ones hold for the prior weights.
    Both grow with the number of variables: beyond 18 on the path, beyond 10 in refits.
    """

    hidden: tuple[int, ...] = (10,)
    activation: str = "sigmoid"
    variance: str = "equal"
    lambda1: float | None = None
    lambda2: float | None = None
    least_share: float = 0.01
    threshold: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        mlp.check_architecture(self.hidden, self.activation)
        check_choice("variance", self.variance, VARIANCES)
        for name in ("lambda1", "lambda2"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), at_least=0)
        check_number("least_share", self.least_share, at_least=0, at_most=1)
        check_number("threshold", self.threshold, at_least=0)
        check_integer("seed", self.seed, at_least=0)

    def init(self, problem: Problem) -> State:
        """Random networks, every possible edge."""
        inputs = prepare(problem, DEVIATION)
        edges = inward(inputs, possible_edges(problem))
        x = mlp.initial(len(edges), self.hidden, np.random.default_rng(self.seed))
        return State(_Path(inputs, x, edges, np.zeros(edges.shape), np.ones(len(edges)), 0))

    def restart(self, problem: Problem, rng: np.random.Generator) -> State:
        """The start with other random networks."""
        return replace(self, seed=int(rng.integers(2**31))).init(problem)

    def pruned(self, problem: Problem, w: Weights, graph: Mask) -> Mask:
        """The edges of a DAG (d, d) that networks fitted to it need; required ones stay."""
        w, path = _choosing_edges(problem, w), self.init(problem).params
        path = path._replace(edges=inward(path.inputs, graph), stage=len(CYCLES))
        required = inward(path.inputs, problem.required)
        penalties = self._penalties(problem, w, path, required)
        found = self._run(path, self._weighted(problem, w, path), penalties, WITHOUT_PATH)
        state = State(path._replace(x=np.array(found.x)))
        for _ in SHARES:
            state = self.step(problem, w, state)
        return outward(path.inputs, state.params.edges)

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """One stage on the weighted rows or cells; the refits as `_choosing_edges` says."""
        path: _Path = state.params
        w = simplest(w) if path.stage < len(CYCLES) - 1 else _choosing_edges(problem, w)
        required, rows = inward(path.inputs, problem.required), self._weighted(problem, w, path)
        penalties = self._penalties(problem, w, path, required)
        most = FIRST if path.stage == 0 else PATH if path.stage < len(CYCLES) else REFIT
        found = self._run(path, rows, penalties, most)
        D, noise = self._explained(found.x, rows)
        path = path._replace(x=np.array(found.x), D=D, noise=noise, stage=path.stage + 1)
        path = path._replace(edges=self._edges(path, problem, w, rows))
        objective = self._in_own_units(float(found.objective), path)
        trace = {
            "objective": objective,
            "h": float(found.h),
            "rho": float(np.asarray(penalties.cycles)),
        }
        done = path.stage == len(CYCLES) + len(SHARES) + 1
        return State(path, Status.CONVERGED if done else Status.RUNNING, trace)

    def losses(self, problem: Problem, state: State) -> Matrix:
        """The squared residuals of the networks, (n, d)."""
        path: _Path = state.params
        return squared_residuals(path.inputs, self._residuals(path))

    def adjacency(self, state: State) -> Matrix:
        """What each cause explains of its effect, (d, d); zero where the edge is pruned."""
        path: _Path = state.params
        return outward(path.inputs, np.where(path.edges, np.maximum(path.D, 0.0), 0.0))

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """The networks, blind to all but the edges of W, in the units of the data."""
        path: _Path = state.params
        layers = mlp.unflatten(path.x, len(W), tuple(self.hidden))
        moments, unit = problem.moments(problem.prior), np.sqrt(path.inputs.unit)
        columns, kind = path.inputs.columns, self.activation
        return NetworkEquations.of(layers, columns, kind, W, moments, DEVIATION, unit)

    def _weighted(self, problem: Problem, w: Weights, path: _Path) -> Weighted:
        """The rows; cells so large that the networks cost now what they would with equal ones.

        The penalties, which are in units of the noise, then keep their meaning.
        """
        rows = weighted(path.inputs, w)
        if rows.w.ndim == 1:
            return rows
        squares = np.square(self._residuals(path))
        usual = squares @ weighted(path.inputs, problem.prior).w
        size = usual.sum() / max(float((squares * rows.w).sum()), TINY)
        return rows._replace(w=rows.w * np.float32(size))

    def _residuals(self, path: _Path) -> Any:
        rows = Weighted(path.inputs.XT, path.inputs.targets, None)
        with float64():
            return np.asarray(mlp.residuals(path.x, rows, path.edges, **self._networks()))

    def _in_own_units(self, objective: float, path: _Path) -> float:
        """The objective in the units of the data; a sum of logarithms moves by a constant."""
        unit = path.inputs.unit
        return (
            objective * unit
            if self.variance == "equal"
            else (objective + len(path.D) / 2 * np.log(unit))
        )

    def _networks(self) -> dict[str, Any]:
        return {"hidden": tuple(self.hidden), "activation": self.activation}

    def _penalties(
        self, problem: Problem, w: Weights, path: _Path, required: Mask
    ) -> mlp.Penalties:
        """Fewer effective rows and more variables need larger ones; a DAG none on cycles."""
        rows, all_rows = _rows(path, problem, w), effective_rows(problem, problem.prior)
        factor = stiffness(len(required), dag=path.stage >= len(CYCLES)) * all_rows / rows
        lambda1 = 2 / all_rows if self.lambda1 is None else self.lambda1
        lambda2 = 1 / all_rows if self.lambda2 is None else self.lambda2
        edges = np.where(required, 0.0, lambda1 * factor)
        cycles = CYCLES[path.stage] if path.stage < len(CYCLES) else 0.0
        return mlp.Penalties(edges, np.float64(lambda2 * factor), np.float64(cycles))

    def _run(self, path: _Path, rows: Weighted, penalties: mlp.Penalties, most: int) -> mlp.Stage:
        """The networks after so many iterations."""
        equal, kind = self.variance == "equal", self._networks()
        with float64():
            return mlp.run_stage(path.x, rows, path.edges, penalties, most, **kind, equal=equal)

    def _explained(self, x: Any, rows: Weighted) -> tuple[Matrix, Matrix]:
        """What the networks' inputs explain, and what they leave."""
        with float64():
            D, noise = explained(x, rows, **self._networks())
        return np.array(D, dtype=np.float64), np.array(noise, dtype=np.float64)

    def _edges(self, path: _Path, problem: Problem, w: Weights, rows: Weighted) -> Mask:
        """All possible edges along the path, then a DAG of them, then fewer after each refit."""
        refits = path.stage - len(CYCLES)
        if refits < 0 or refits > len(SHARES):  # the last refit is of the final graph
            return path.edges
        # What a network misses of a strong signal looks like an effect of its other inputs: where
        # little is noise, half of the variable's variance is the measure.
        D = np.where(path.edges, path.D * np.minimum(1, 2 * path.noise), 0.0)
        required, share = inward(path.inputs, problem.required), SHARES[refits - 1]
        if refits == 0:
            return strongest_dag(D, 0.0, required)
        each, all_rows = _rows(path, problem, w), effective_rows(problem, problem.prior)
        D = D * (each / all_rows)  # chance explains more where fewer rows count
        edges = strongest_dag(D, share * self._cut(D[path.edges], problem, all_rows), required)
        least = share * floor(self.least_share, each)
        return required | self._substantial(path, edges, rows, least)

    def _substantial(self, path: _Path, edges: Mask, rows: Weighted, least: Any) -> Mask:
        """The edges without those that explain too small a share of their effect's variance."""
        if not np.any(least):
            return edges
        with float64():
            return substantial(path.x, rows, edges, path.D, least, **self._networks())

    def _cut(self, D: Matrix, problem: Problem, rows: float) -> float:
        possible = possible_edges(problem)
        pairs = int(np.triu(possible | possible.T).sum())
        return cut(D, len(possible), pairs, self.hidden[0], rows)


def _choosing_edges(problem: Problem, w: Weights) -> Weights:
    """The weights at the end of the path and in refits: the prior ones, or those of cells.

    Weights of rows help to find the order.  To choose edges, networks need every row there is; of
    cells none is lost, loud ones only count less than quiet ones.
    """
    w = simplest(w)
    return problem.prior if w.ndim == 1 else w


def _rows(path: _Path, problem: Problem, w: Weights) -> Any:
    """The effective rows of all networks, or of each, (d,)."""
    rows = effective_rows(problem, w)
    return rows if np.ndim(rows) == 0 else rows[path.inputs.columns]
