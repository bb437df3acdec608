"""The paper's inner player: a small network that learns the row weights by gradient ascent."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rescore.moments import Matrix
from rescore.protocols import Losses, Problem
from rescore.solvers.compilation import float64
from rescore.solvers.descent import Averages, adam
from rescore.validation import check_choice, check_flag, check_integer, check_number
from rescore.weight_box import heaviest, project
from rescore.weightings import LOSSES

# Added to Adam's denominator: a gradient this small is what is left when nearly all rows are at
# a bound, and steps of full length along it would only amplify rounding.
DAMPING = 0.1
Layers = tuple[tuple[Any, Any], ...]  # (weights (outputs, inputs), bias (outputs,)) of each layer
SMALLEST = 1e-300  # weight below which there is none


class Training(NamedTuple):
    """Where the training stands; the next outer step goes on from here."""

    layers: Layers
    averages: Averages  # one gradient an epoch: their count is the place in the stream of noise
    shift: Any  # the normaliser of the last weights, where the search for the next one starts

    @classmethod
    def start(cls, layers: Layers) -> "Training":
        """Nothing learned yet; arrays throughout, so that all calls share one compiled program."""
        zero = jax.tree.map(np.zeros_like, layers)
        return cls(layers, Averages(zero, zero, np.zeros((), np.int64)), np.zeros(()))


class Learned(NamedTuple):
    """The state between outer steps, and the weighted losses of the last one."""

    training: Training
    told: dict[str, float]


@dataclass(frozen=True)
class Neural:
    """A network turns the losses of a row into a logit, a softmax with cut-offs into a weight.

    ``w_i = s_i·clip(exp(f(z_i)/T − μ), τ, 1/τ)`` with μ such that the weights sum to one.  The
    inputs z_ij are the losses of row i in units of their mean over rows, per variable
    (``loss="nll"``) or over all variables (``"raw"``), centred; Adam raises ``Σ_i w_i Σ_j z_ij``
    for ``epochs`` epochs (the paper's K_inner) over all rows at each call, going on from where
    the last call ended.  The last layer starts at zero, so the weights start at the prior.

    The cut-offs are inside what is differentiated.  A softmax trained without them ends with all
    weight on one row, and a projection afterwards makes nearly uniform weights of that.  With
    them a row at the bound where its loss belongs has no slope, one at the other bound is led
    back, and nothing moves any more where the weights solve the inner problem.

    With ``noise`` every epoch adds fresh Gumbel noise to the logits (Gumbel softmax).  The
    weights handed over are always those of the logits without noise, so that they are a function
    of a row's losses.  Without noise a row repeated k times is a row of weight k.

    Examples
    --------
    >>> losses = np.random.default_rng(0).exponential(size=(100, 3))
    >>> rows, player = Problem.unconstrained(np.zeros((100, 3))), Neural(tau=0.5)
    >>> w, state = player.step(rows, lambda: losses, player.init(100, 3))
    >>> bool(w.min() >= 0.005), bool(w.max() <= 0.02), player.explain(state)["share"] > 0.95
    (True, True, True)
    """

    tau: float = 0.5
    loss: str = "nll"
    hidden: tuple[int, ...] = ()
    temperature: float = 1.0
    learning_rate: float = 0.1
    epochs: int = 50
    noise: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0, at_most=1)
        check_choice("loss", self.loss, LOSSES)
        if not isinstance(self.hidden, tuple | list):
            raise TypeError(
                f"hidden must be a tuple of layer widths such as (10, 10), got {self.hidden!r}."
            )
        for width in self.hidden:
            check_integer("Each width in hidden", width, at_least=1)
        check_number("temperature", self.temperature, above=0)
        check_number("learning_rate", self.learning_rate, above=0)
        check_integer("epochs", self.epochs, at_least=1)
        check_flag("noise", self.noise)
        check_integer("seed", self.seed, at_least=0)

    def init(self, n: int, d: int) -> Learned:
        """A network whose logits are all zero."""
        layers = initial_layers(d, tuple(self.hidden), np.random.default_rng(self.seed))
        return Learned(Training.start(layers), {})

    def step(self, problem: Problem, losses: Losses, state: Learned) -> tuple[Matrix, Learned]:
        """The weights after ``epochs`` more epochs on the losses of the current graph."""
        prior = problem.prior
        if self.tau == 1:
            return prior.copy(), state
        scaled = unit_losses(losses(), prior, self.loss)
        rates = (self.tau, self.temperature, self.learning_rate)
        with float64():
            trained, w = train(
                state.training,
                scaled - prior @ scaled,
                prior,
                rates,
                self.epochs,
                self.seed,
                bool(self.noise),
            )
            training: Training = jax.tree.map(np.asarray, trained)
            weights = np.array(w)
        weights = project(weights, prior, self.tau)  # what the search for μ left to rounding
        return weights, Learned(
            training, _way_to_exact(scaled.sum(axis=1), prior, weights, self.tau)
        )

    def explain(self, state: Learned) -> dict[str, Any]:
        """Weighted losses under prior, learned and exact weights, and the share of the way.

        In units in which the mean loss of a variable is one.
        """
        if not state.told:
            return {}
        share = state.told["share"]
        return {
            "summary": f"The network went {share:.1%} of the way to exact weights."
        } | state.told


def unit_losses(losses: Matrix, prior: Matrix, loss: str) -> Matrix:
    """The losses (n, d) in units of each variable's mean over rows, or of the mean of all.

    A variable that is fitted perfectly, or constant, says nothing about any row.

    Examples
    --------
    >>> unit_losses(np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([0.5, 0.5]), "nll")
    array([[0.5, 0. ],
           [1.5, 0. ]])
    """
    mean = prior @ losses  # (d,)
    unit = mean if loss == "nll" else np.full_like(mean, mean.mean())
    return np.divide(losses, unit, out=np.zeros_like(losses), where=unit > 0)


def _way_to_exact(per_row: Matrix, prior: Matrix, w: Matrix, tau: float) -> dict[str, float]:
    """How far the weighted loss has come from the prior's to the largest there is."""
    exact = float(heaviest(per_row, prior, tau) @ per_row)
    uniform, neural = float(prior @ per_row), float(w @ per_row)
    way = exact - uniform
    share = (neural - uniform) / way if way > 1e-12 * exact else 1.0
    return {"uniform": uniform, "neural": neural, "exact": exact, "share": share}


def initial_layers(d: int, hidden: tuple[int, ...], rng: np.random.Generator) -> Layers:
    """Random hidden layers, a last layer of zeros.

    A unit of the first hidden layer starts with the same weight for every variable, so that the
    order of the columns does not matter; training then tells them apart.

    Examples
    --------
    >>> [(W.shape, b.shape) for W, b in initial_layers(3, (10,), np.random.default_rng(0))]
    [((10, 3), (10,)), ((1, 10), (1,))]
    """
    layers: list[tuple[Matrix, Matrix]] = []
    for inputs, outputs in pairwise((d, *hidden)):
        columns = 1 if not layers else inputs
        W = rng.normal(size=(outputs, columns)) * np.sqrt(2 / inputs)
        layers.append((np.tile(W, (1, inputs // columns)), rng.uniform(-1, 1, outputs)))
    inputs = hidden[-1] if hidden else d
    return (*layers, (np.zeros((1, inputs)), np.zeros(1)))


def row_logits(layers: Layers, Z: Any) -> Any:
    """``f(z_i)`` of every row of Z (n, d), with ReLU between the layers, (n,).

    Examples
    --------
    >>> print(row_logits(((np.ones((1, 2)), np.ones(1)),), np.array([[1.0, 2.0]])))
    [4.]
    """
    *before, (W, b) = layers
    for V, c in before:
        Z = jnp.maximum(Z @ V.T + c, 0.0)
    return Z @ W[0] + b[0]


@partial(jax.jit, static_argnames=("noise",))
def train(
    training: Training,
    Z: Array,
    prior: Array,
    rates: tuple[Array, Array, Array],
    epochs: Array,
    seed: Array,
    noise: bool,
) -> tuple[Training, Array]:
    """All epochs in one loop, and the weights they end with."""
    tau, temperature, rate = rates

    def epoch(_: Any, at: Training) -> Training:
        G = jnp.zeros(len(Z))
        if noise:
            key = jax.random.fold_in(jax.random.key(seed), at.averages.count)
            G = jax.random.gumbel(key, (len(Z),))
        gradient, shift = parameter_slopes(at.layers, Z, prior, G, tau, temperature, at.shift)
        return _adam_step(at, gradient, rate)._replace(shift=shift)

    end = jax.lax.fori_loop(0, epochs, epoch, training)
    f = row_logits(end.layers, Z) / temperature
    w, shift = capped_softmax(f, prior, tau, end.shift, steps=60)
    return end._replace(shift=shift), w


def parameter_slopes(
    layers: Layers, Z: Any, prior: Any, noise: Any, tau: Any, temperature: Any, shift: Any
) -> tuple[Layers, Array]:
    """The direction that raises ``Σ_i w_i Σ_j z_ij``, its gradient while no row is at a bound.

    And the normaliser of the weights.
    """
    f, back = jax.vjp(lambda layers: (row_logits(layers, Z) + noise) / temperature, layers)
    _, shift = capped_softmax(f, prior, tau, shift)
    (gradient,) = back(logit_slopes(Z.sum(axis=1), f, prior, tau, shift))
    return gradient, shift


def _adam_step(at: Training, gradient: Layers, rate: Array) -> Training:
    """One step of Adam."""
    # A row far from all others has a slope that would fill Adam's memory for the whole training.
    leaves = jax.tree.leaves(gradient)
    size = jnp.sqrt(sum(jnp.sum(g**2) for g in leaves) / sum(g.size for g in leaves))
    gradient = jax.tree.map(lambda g: g / jnp.maximum(size, 1.0), gradient)
    move, averages = adam(at.averages, gradient, rate, DAMPING)
    return Training(jax.tree.map(jnp.add, at.layers, move), averages, at.shift)


def capped_softmax(
    logits: Any, prior: Any, tau: Any, shift: Any = 0.0, steps: int = 8
) -> tuple[Array, Array]:
    """``w_i = s_i·clip(exp(f_i − μ), τ, 1/τ)`` with μ such that Σ w_i = 1; returns w and μ.

    The cut-offs of C(τ) on a softmax, normalised so that they keep the sum: the point of C(τ)
    nearest to the softmax in Kullback-Leibler divergence.  Zero logits give the prior; as
    the logits grow apart, w becomes the exact solution for losses in the order of the logits.
    The search for μ starts from ``shift`` and makes so many ``steps``: Newton's, or a halving of
    the bracket where Newton's would leave it.

    Examples
    --------
    >>> import numpy as np
    >>> with jax.enable_x64(True):
    ...     w, _ = capped_softmax(np.array([0.0, 9.0, 5.0]), np.full(3, 1 / 3), 0.5, steps=40)
    >>> print(w.round(3))
    [0.167 0.667 0.167]
    """
    reach = -jnp.log(tau)  # |f − μ| from which a weight is at a bound

    def step(_: Any, at: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        shift, low, high = at
        w, free = _weights(logits - shift, prior, reach)
        excess = w.sum() - 1  # falls as μ grows
        low, high = jnp.where(excess > 0, shift, low), jnp.where(excess > 0, high, shift)
        newton = shift + excess / jnp.maximum(jnp.sum(w * free), SMALLEST)
        good = (low <= newton) & (newton <= high)
        return jnp.where(good, newton, (low + high) / 2), low, high

    bracket = jnp.min(logits) - reach, jnp.max(logits) + reach
    start = (jnp.clip(shift, *bracket), *bracket)
    shift = jax.lax.fori_loop(0, steps, step, start, unroll=steps <= 8)[0]
    return _weights(logits - shift, prior, reach)[0], shift


def logit_slopes(losses: Any, logits: Any, prior: Any, tau: Any, shift: Any) -> Array:
    """The slope of ``Σ_i w_i ℓ_i`` along each logit, and a way back for rows at the wrong bound.

    ``w_i (ℓ_i − ℓ̄)`` with ℓ̄ the mean loss of the rows that are at no bound: raising one logit
    takes its weight from those.  A row at a bound has slope zero.  It keeps it if it is at the
    right one; a row with a loss above ℓ̄ at the floor, or below ℓ̄ at the ceiling, would stay
    there for good, and is moved as if it were free.

    Examples
    --------
    >>> import numpy as np
    >>> losses, logits = np.array([9.0, 1.0, 5.0, 7.0]), np.array([-9.0, 9.0, 0.0, 0.1])
    >>> with jax.enable_x64(True):
    ...     print(jnp.sign(logit_slopes(losses, logits, np.full(4, 1 / 4), 0.1, 0.0)))
    [ 1. -1. -1.  1.]
    """
    reach = -jnp.log(tau)
    w, free = _weights(logits - shift, prior, reach)
    balance = jnp.where(free.any(), jnp.sum(w * free * losses), jnp.sum(w * losses))
    mean = balance / jnp.where(free.any(), jnp.sum(w * free), jnp.sum(w))
    slope = w * (losses - mean)
    wrong = slope * (logits - shift) < 0
    return jnp.where(free | wrong, slope, 0.0)


def _weights(logits: Any, prior: Any, reach: Array) -> tuple[Array, Array]:
    """The weights of shifted logits, and which of them are not at a bound."""
    return prior * jnp.exp(jnp.clip(logits, -reach, reach)), jnp.abs(logits) < reach
