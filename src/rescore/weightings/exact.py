"""The inner problem of ReScore, solved exactly."""

from dataclasses import dataclass
from typing import Any

from rescore.moments import Matrix
from rescore.protocols import Losses, Problem
from rescore.validation import check_choice, check_number
from rescore.weight_box import heaviest, likelihood_units

LOSSES = ("nll", "raw")


@dataclass(frozen=True)
class Exact:
    """The rows that fit worst get the ceiling 1/(τn), the others the floor τ/n.

    ``loss="nll"`` ranks rows by the Gaussian log-likelihood with one variance per variable,
    ``ℓ_i = Σ_j r_ij² / σ_j²``, where σ_j² is the residual variance under the prior weights;
    re-estimating it under the current weights would pull the effect back.  ``loss="raw"`` is the
    paper's literal ``Σ_j r_ij²``, which hardly sees rows whose noise differs in pattern, not size.

    Examples
    --------
    >>> import numpy as np
    >>> losses = np.array([[1.0, 0.01], [1.0, 0.01], [0.9, 0.09]])
    >>> three_rows = Problem.unconstrained(np.zeros((3, 2)))
    >>> Exact(tau=0.5, loss="nll").step(three_rows, lambda: losses, None)[0].round(2)
    array([0.17, 0.17, 0.67])
    >>> Exact(tau=0.5, loss="raw").step(three_rows, lambda: losses, None)[0].round(2)
    array([0.42, 0.42, 0.17])
    """

    tau: float = 0.5
    loss: str = "nll"

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0, at_most=1)
        check_choice("loss", self.loss, LOSSES)

    def init(self, n: int, d: int) -> None:
        """Nothing to remember: the answer depends on the current losses alone."""

    def step(self, problem: Problem, losses: Losses, state: None) -> tuple[Matrix, None]:
        """The maximiser of the weighted loss over C(τ)."""
        prior, L = problem.prior, losses()
        per_row = L.sum(axis=1) if self.loss == "raw" else likelihood_units(L, prior)
        return heaviest(per_row, prior, self.tau), None

    def explain(self, state: None) -> dict[str, Any]:
        """The rule has no more to say than its parameters do."""
        return {}
