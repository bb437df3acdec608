"""What the paper's released code did otherwise than its text says, as switches of one experiment.

There rows were weighted by a softmax of logits with Gumbel noise, drawn anew at every evaluation
of the objective, without the cut-offs of C(τ), and penalties stayed what they were however few rows
had the weight.  No learner of this library does any of it; `experiments/published-gains.toml` asks
what comes of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from rescore.learners.base import GraphLearner, StructureLearner
from rescore.learners.custom import Custom
from rescore.learners.rescore import ReScore
from rescore.moments import Matrix, Weights, row_weights
from rescore.protocols import Losses, Problem, State
from rescore.validation import check_number

__all__ = ["Redrawn", "as_released"]


def as_released(learner: GraphLearner, switches: Mapping[str, Any], seed: int) -> StructureLearner:
    """The learner with weights redrawn at a ``temperature``, or, of networks, λ left as it is.

    Examples
    --------
    >>> from rescore.learners.notears import Notears
    >>> as_released(Notears(), {"temperature": 1.0}, seed=0)
    ReScore(estimator=Notears(), weighting=Redrawn(temperature=1.0, seed=0, tau=1e-09))
    """
    temperature = switches.get("temperature")
    if getattr(learner, "scheme", None) == "paper":
        return Custom(_AsReleased(learner.backbone(), temperature))
    return ReScore(learner, weighting=Redrawn(check_number("temperature", temperature), seed))


@dataclass(frozen=True)
class Redrawn:
    """``w_i ∝ s_i exp(g_i/T)`` with fresh Gumbel noise g at every outer step, whatever the losses.

    Linear learners see their rows as second moments, so that an evaluation cannot draw weights of
    its own; a step of theirs is the shortest time in which weights can change.

    Examples
    --------
    >>> problem, player = Problem.unconstrained(np.eye(4)), Redrawn(temperature=1.0)
    >>> w, count = player.step(problem, None, player.init(4, 4))
    >>> float(w.sum().round(9)), (w == player.step(problem, None, count)[0]).any()
    (1.0, np.False_)
    """

    temperature: float = 1.0
    seed: int = 0
    tau: float = 1e-9  # there are no cut-offs

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature, above=0)

    def init(self, n: int, d: int) -> int:
        """How often weights were drawn."""
        return 0

    def step(self, problem: Problem, losses: Losses, state: int) -> tuple[Matrix, int]:
        """Weights drawn anew."""
        noise = np.random.default_rng((self.seed, state)).gumbel(size=len(problem.prior))
        w = problem.prior * np.exp((noise - noise.max()) / self.temperature)
        return w / w.sum(), state + 1

    def explain(self, state: int) -> dict[str, Any]:
        """What a reader must not overlook."""
        return {"summary": "The weights are noise, drawn anew at every step."}


@dataclass(frozen=True)
class _AsReleased:
    """The published NOTEARS-MLP whose λ ignores the weights; these may be redrawn all the time."""

    inner: Any  # a `PaperMLPBackbone`
    temperature: float | None

    @property
    def threshold(self) -> float:
        return float(self.inner.threshold)

    def init(self, problem: Problem) -> State:
        return self.inner.init(problem)

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """One dual ascent with the penalties as they are."""
        from rescore.learners.networks import weighted
        from rescore.learners.networks.notears_mlp_paper import squared_errors

        rows = weighted(state.params.inputs, row_weights(w))
        errors = squared_errors if self.temperature is None else _redrawn(self.temperature)
        return self.inner.ascend(problem, state, rows, 1.0, errors)

    def losses(self, problem: Problem, state: State) -> Matrix:
        return self.inner.losses(problem, state)

    def adjacency(self, state: State) -> Matrix:
        return self.inner.adjacency(state)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Any:
        return self.inner.equations(problem, state, W)


@cache  # one function for a temperature, so that programs with it are compiled once
def _redrawn(temperature: float) -> Any:
    import jax
    import jax.numpy as jnp

    def errors(F: Any, rows: Any) -> Any:
        """``Σ_i w_i (f_ij − x_ij)²``, (d,), w drawn anew wherever the predictions F are others."""
        bits = jax.lax.bitcast_convert_type(jnp.sum(F).astype(jnp.float32), jnp.int32)
        noise = jax.random.gumbel(jax.random.key(bits), rows.w.shape, jnp.float32)
        w = rows.w * jnp.exp((noise - noise.max()) / temperature)
        return jnp.square(F - rows.targets) @ jax.lax.stop_gradient(w / w.sum())

    return errors
