"""What every backbone with every weighting must do.  A new player joins by one line below.

Always 300 different rows, because another number compiles every network again; one fit of the chain
for each pair of players, which all the properties below share; and every fit, whatever it is for,
must end as a DAG with weights in the box and finite losses.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from rescore import weight_box
from rescore.algorithm import rescore
from rescore.graph.dag import is_dag
from rescore.learners.additive import AdditiveBackbone
from rescore.learners.baselines import EmptyBackbone, RandomBackbone, SortNRegressBackbone
from rescore.learners.custom import Completed
from rescore.learners.dagma import DagmaBackbone
from rescore.learners.dicd import DICDBackbone
from rescore.learners.gaussian_process import GaussianProcessBackbone
from rescore.learners.ges import GESBackbone
from rescore.learners.golem import GolemBackbone
from rescore.learners.linear import OrderBackbone
from rescore.learners.networks.dicd_mlp import DICDMLPBackbone
from rescore.learners.networks.gran_dag import GranDAGBackbone
from rescore.learners.networks.notears_mlp import NotearsMLPBackbone
from rescore.learners.networks.notears_mlp_paper import PaperMLPBackbone
from rescore.learners.notears import NotearsBackbone
from rescore.learners.wrappers import Repeated
from rescore.moments import Cells, Rows
from rescore.protocols import Problem, Status
from rescore.weightings import Drawn, Exact, Uniform
from rescore.weightings.balanced import Balanced
from rescore.weightings.environments import Environments
from rescore.weightings.neural import Neural
from rescore.weightings.precision import Precision


@dataclass(frozen=True)
class Grouped:
    """A backbone that needs groups, given them here: by the row alone, whatever the order."""

    backbone: Any

    @property
    def threshold(self):
        return self.backbone.threshold

    def init(self, problem):
        return self.backbone.init(grouped(problem))

    def step(self, problem, w, state):
        return self.backbone.step(grouped(problem), w, state)

    def losses(self, problem, state):
        return self.backbone.losses(grouped(problem), state)

    def adjacency(self, state):
        return self.backbone.adjacency(state)

    def equations(self, problem, state, W):
        return self.backbone.equations(grouped(problem), state, W)


def grouped(problem):
    return replace(problem, groups=(problem.rows.matrix().sum(axis=1) > 0).astype(np.intp))


@dataclass(frozen=True)
class EqualCells:
    """Every cell counts as its row does: the plain learner, in the shape of cells."""

    as_groups: bool
    tau = 1.0

    def init(self, n, d):
        return None

    def step(self, problem, losses, state):
        w, d = problem.prior, problem.rows.shape[1]
        equal = Cells(w[:, None], np.ones((1, d))) if self.as_groups else np.tile(w, (d, 1)).T
        return equal, state

    def explain(self, state):
        return {}


@dataclass(frozen=True)
class CellsByValue(EqualCells):
    """Weights of cells from the values alone: two groups of rows, precise where they vary least."""

    def step(self, problem, losses, state):
        X, d = problem.rows.matrix(), problem.rows.shape[1]
        above = X.sum(axis=1) > 0
        membership = problem.prior[:, None] * np.column_stack([above, ~above])
        precision = 1 / (membership.T @ X**2)
        total = (membership.sum(axis=0) @ precision).sum()
        cells = Cells(membership, precision * d / total)
        return cells if self.as_groups else np.asarray(cells), state


# Small networks and loose tolerances: no property here is about where a search ends.
PAPER = PaperMLPBackbone(hidden=(2,), lambda1=0.002, h_tol=1e-4)
BACKBONES = {
    "ordered": OrderBackbone(),
    "ordered, repeated": Repeated(OrderBackbone()),
    "ordered, as a user's own": Completed(OrderBackbone(), threshold=0.3),
    "additive": AdditiveBackbone(),
    "notears": NotearsBackbone(),
    "notears-polynomial": NotearsBackbone(constraint="polynomial"),
    "dagma": DagmaBackbone(),
    "golem-ev": GolemBackbone(),
    "golem-nv": GolemBackbone(variance="unequal"),
    "gaussian-process": GaussianProcessBackbone(n_starts=1, most_rows=60),
    "notears-mlp": NotearsMLPBackbone(hidden=(4,)),
    "notears-mlp-paper": PAPER,
    "gran-dag": GranDAGBackbone(neighbours=None, hidden=(4,), h_tol=1e-3),
    "dicd": Grouped(DICDBackbone()),
    "dicd-mlp": Grouped(DICDMLPBackbone(networks=PAPER)),
    "ges": GESBackbone(),
    "ges, repeated": Repeated(GESBackbone()),
    "sort-n-regress": SortNRegressBackbone(),
    "sort-n-regress, r2": SortNRegressBackbone("r2"),
    "random": RandomBackbone(degree=1),
    "empty": EmptyBackbone(),
}
WEIGHTINGS = {
    "uniform": Uniform(),
    "environments": Environments(),
    "exact-nll": Exact(tau=0.5),
    "exact-raw": Exact(tau=0.3, loss="raw"),
    "neural": Neural(tau=0.5),
}
# The weightings that reweight, as functions of τ: at τ = 1 each must be the plain learner.
BY_TAU = {
    "environments": Environments,
    "drawn": Drawn,
    "exact-nll": Exact,
    "exact-raw": lambda tau: Exact(tau, loss="raw"),
    "neural": Neural,
}

# A fit of Gaussian processes costs as much as all others together: plain, and weights that move.
# What learned weights do with networks is seen with "notears-mlp"; to the others they are weights.
SLOW = {"gaussian-process": ("uniform", "exact-nll")} | dict.fromkeys(
    ("notears-mlp-paper", "gran-dag", "dicd-mlp"), ("uniform", "environments", "exact-nll")
)
PAIRS = [(b, w) for b in BACKBONES for w in SLOW.get(b, WEIGHTINGS)]
BACKBONES["notears-mlp, repeated"] = Repeated(BACKBONES["notears-mlp"])
WEIGHTINGS |= {"balanced": Balanced(), "precision": Precision()}  # look at whole fits
PAIRS += [("ordered, repeated", "balanced"), ("notears-mlp, repeated", "precision")]


@pytest.fixture(params=PAIRS, ids=" x ".join)
def players(request):
    backbone, weighting = request.param
    return BACKBONES[backbone], WEIGHTINGS[weighting]


@pytest.fixture(params=BACKBONES)
def backbone(request):
    return BACKBONES[request.param]


@pytest.fixture(scope="module")
def fitted(chain):
    """`fitted(backbone, weighting)`: the fit of the whole chain, made once."""
    problem = Problem.unconstrained(chain)
    return cache(lambda backbone, weighting: fit(problem, backbone, weighting))


def fit(problem, backbone, weighting, **options):
    """`rescore`, with what must hold of every result."""
    found = rescore(problem, backbone, weighting, **options)
    assert is_dag(found.W)
    floor, ceiling = weight_box.bounds(problem.prior, weighting.tau)
    assert (found.sample_weight >= floor * (1 - 1e-12)).all()
    assert (found.sample_weight <= ceiling * (1 + 1e-12)).all()
    assert found.sample_weight.sum() == pytest.approx(1, abs=1e-12)
    assert found.losses.shape == problem.rows.shape
    assert np.isfinite(found.losses).all()
    return found


def with_prior(X, prior):
    problem = Problem.unconstrained(X)
    total = prior.sum()
    return Problem(Rows(X), prior / total, problem.allowed, problem.required, count=total)


def same_result(A, B, w, v, players):
    """The same edges, coefficients as close as solved subproblems are, and the same weights.

    Exact weights jump between floor and ceiling where the losses of two rows cross, and learned
    ones come close to that.  A rounding error can move a row across, and then the coefficients by
    as much as that row's weight.
    """
    jumps = isinstance(players[1], Exact | Neural)
    coefficients, weights = (0.05, 0.15) if jumps else (1e-6, 1e-2)
    near_the_threshold = jumps & (np.maximum(np.abs(A), np.abs(B)) < 0.35)
    same_edges = ((A != 0) == (B != 0)) | near_the_threshold
    relative = np.abs(A - B) / np.maximum(np.abs(A), 1.0)  # the strength of an edge may be large
    same_strength = (relative <= coefficients) | near_the_threshold
    return same_edges.all() and same_strength.all() and np.abs(w - v).sum() < weights


def test_uniform_weights_are_the_plain_learner(backbone, chain, fitted):
    """Stepping the backbone by hand at w = 1/n gives the very same bits as ReScore(Uniform)."""
    problem = Problem.unconstrained(chain)
    found = fitted(backbone, Uniform())
    state = backbone.init(problem)
    for _ in found.history:
        state = backbone.step(problem, np.full(len(chain), 1 / len(chain)), state)
    raw = backbone.adjacency(state)
    assert (np.where(np.abs(raw) >= backbone.threshold, raw, 0) == found.W).all()


@pytest.mark.parametrize("weighting", BY_TAU)
def test_tau_one_is_the_plain_learner_bit_for_bit(backbone, weighting, chain, fitted):
    plain = fitted(backbone, Uniform())
    found = fit(Problem.unconstrained(chain), backbone, BY_TAU[weighting](1.0))
    assert (found.W == plain.W).all()
    assert (found.sample_weight == plain.sample_weight).all()


each_shape = pytest.mark.parametrize("as_groups", [False, True], ids=["cells", "groups"])


@each_shape
def test_equal_cells_are_the_plain_learner_bit_for_bit(backbone, as_groups, chain, fitted):
    found = fit(Problem.unconstrained(chain), backbone, EqualCells(as_groups), warmup=0)
    plain = fitted(backbone, Uniform())
    assert (found.W == plain.W).all()
    assert (found.sample_weight == plain.sample_weight).all()


@each_shape
def test_cells_follow_rows_and_columns_and_count_repetitions(backbone, as_groups, chain):
    """As for weights of rows below, in as few fits as show it; and the graph is a DAG."""
    weighting, rng = CellsByValue(as_groups), np.random.default_rng(3)
    counts, order = rng.permutation(np.repeat([1, 2, 3], 100)), columns_of(backbone, rng)
    found = rescore(with_prior(chain, counts.astype(float)), backbone, weighting, warmup=0)
    rows = rng.permutation(np.repeat(np.arange(300), counts))
    other = rescore(Problem.unconstrained(chain[rows][:, order]), backbone, weighting, warmup=0)
    total = np.bincount(rows, other.sample_weight)
    players = backbone, weighting
    W = found.W[np.ix_(order, order)]
    assert is_dag(found.W)
    assert same_result(W, other.W, found.sample_weight, total, players)


def columns_of(backbone, rng):
    """Another order of the columns, but where the seed draws among them by their numbers."""
    return np.arange(5) if isinstance(backbone, RandomBackbone) else rng.permutation(5)


def test_a_row_repeated_k_times_equals_weight_k(players, chain):
    counts = np.random.default_rng(0).permutation(np.repeat([1, 2, 3], 100))  # 600 in all
    weighted = fit(with_prior(chain, counts.astype(float)), *players)
    repeated = fit(Problem.unconstrained(np.repeat(chain, counts, axis=0)), *players)
    starts = np.r_[0, np.cumsum(counts)[:-1]]
    total = np.add.reduceat(repeated.sample_weight, starts)
    assert same_result(weighted.W, repeated.W, weighted.sample_weight, total, players)


def test_permuting_rows_and_columns_permutes_weights_and_graph(players, chain, fitted):
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(len(chain)), columns_of(players[0], rng)
    found = fitted(*players)
    other = fit(Problem.unconstrained(chain[rows][:, columns]), *players)
    w, v = found.sample_weight[rows], other.sample_weight
    assert same_result(found.W[np.ix_(columns, columns)], other.W, w, v, players)


def test_the_same_input_gives_the_same_bits_untouched_and_a_record_of_every_step(
    players, chain, fitted
):
    X, seen = chain.copy(), []
    first = fitted(*players)
    second = fit(Problem.unconstrained(X), *players, on_step=seen.append)
    assert (chain == X).all()
    assert (first.W == second.W).all()
    assert (first.sample_weight == second.sample_weight).all()
    assert tuple(seen) == second.history
    assert [record["step"] for record in seen] == list(range(1, len(seen) + 1))
    for record in seen:
        assert {"objective", "edges", "effective_rows", "ceiling_share"} <= set(record)
        assert 1 <= record["effective_rows"] <= len(chain) + 1e-6


def test_noise_in_odd_units_with_odd_weights_ends_as_every_fit_must(players):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) @ np.diag([1, 5, 0.2, 1, 3])
    fit(with_prior(X, rng.uniform(0.5, 2, size=300)), *players)


def test_the_losses_are_squared_residuals_in_the_units_of_the_data(backbone, chain, fitted):
    found = fitted(backbone, Uniform())
    residual = found.losses.sum(axis=0) / len(chain)
    assert (residual <= chain.var(axis=0) * 1.05).all()
    if isinstance(backbone, RandomBackbone | EmptyBackbone):
        return  # nothing is learned, so little is explained
    assert (residual / chain.var(axis=0)).mean() < 0.5  # whichever end the learner begins at


def test_masks_are_honoured(players, chain):
    problem = Problem.unconstrained(chain)
    allowed, required = problem.allowed.copy(), problem.required.copy()
    allowed[0, 1] = allowed[4, 0] = False
    required[0, 4] = True
    found = fit(Problem(problem.rows, problem.prior, allowed, required), *players)
    assert found.W[0, 1] == 0
    assert found.W[0, 4] != 0


@pytest.mark.parametrize("step", [1, 2])
def test_ctrl_c_leaves_a_dag_with_finite_losses(backbone, step, chain):
    def stop(record):
        if record["step"] == step:
            raise KeyboardInterrupt

    found = rescore(Problem.unconstrained(chain), backbone, Exact(0.5), on_step=stop)
    assert found.status is Status.INTERRUPTED or len(found.history) < step
    assert is_dag(found.W)
    assert np.isfinite(found.losses).all()
    assert np.isfinite(found.equations.predict(chain)).all()
