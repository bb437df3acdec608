"""The paper's inner player: a small network that learns the row weights by gradient ascent."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from rescore.checking import check_choice, check_flag, check_integer, check_number
from rescore.compilation import float64
from rescore.moments import Matrix
from rescore.protocols import Problem
from rescore.weightings import box
from rescore.weightings.exact import LOSSES
from rescore.weightings.network import Training, initial, train


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
    >>> w, state = player.step(rows, losses, player.init(100, 3))
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
        layers = initial(d, tuple(self.hidden), np.random.default_rng(self.seed))
        return Learned(Training.start(layers), {})

    def step(self, problem: Problem, losses: Matrix, state: Learned) -> tuple[Matrix, Learned]:
        """The weights after ``epochs`` more epochs on the losses of the current graph."""
        prior = problem.prior
        if self.tau == 1:
            return prior.copy(), state
        scaled = unit_losses(losses, prior, self.loss)
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
        weights = box.project(weights, prior, self.tau)  # what the search for μ left to rounding
        return weights, Learned(training, _told(scaled.sum(axis=1), prior, weights, self.tau))

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


def _told(per_row: Matrix, prior: Matrix, w: Matrix, tau: float) -> dict[str, float]:
    """How far the weighted loss has come from the prior's to the largest there is."""
    exact = float(box.heaviest(per_row, prior, tau) @ per_row)
    uniform, neural = float(prior @ per_row), float(w @ per_row)
    way = exact - uniform
    share = (neural - uniform) / way if way > 1e-12 * exact else 1.0
    return {"uniform": uniform, "neural": neural, "exact": exact, "share": share}
