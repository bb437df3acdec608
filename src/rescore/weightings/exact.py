"""The inner problem of ReScore, solved exactly."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rescore.checking import check_choice, check_number
from rescore.moments import Matrix
from rescore.protocols import Problem
from rescore.weightings import box

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
    >>> losses = np.array([[1.0, 0.01], [1.0, 0.01], [0.9, 0.09]])
    >>> three_rows = Problem.unconstrained(np.zeros((3, 2)))
    >>> Exact(tau=0.5, loss="nll").step(three_rows, losses, None)[0].round(2)
    array([0.17, 0.17, 0.67])
    >>> Exact(tau=0.5, loss="raw").step(three_rows, losses, None)[0].round(2)
    array([0.42, 0.42, 0.17])
    """

    tau: float = 0.5
    loss: str = "nll"

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0, at_most=1)
        check_choice("loss", self.loss, LOSSES)

    def init(self, n: int, d: int) -> None:
        """Nothing to remember: the answer depends on the current losses alone."""

    def step(self, problem: Problem, losses: Matrix, state: None) -> tuple[Matrix, None]:
        """The maximiser of the weighted loss over C(τ)."""
        prior = problem.prior
        per_row = losses.sum(axis=1) if self.loss == "raw" else likelihood_units(losses, prior)
        return box.heaviest(per_row, prior, self.tau), None

    def explain(self, state: None) -> dict[str, Any]:
        """The rule has no more to say than its parameters do."""
        return {}


def likelihood_units(losses: Matrix, prior: Matrix) -> Matrix:
    """``ℓ_i = Σ_j r_ij² / σ_j²`` with ``σ_j² = Σ_i s_i r_ij²``, (n,).

    A variable that is fitted perfectly, or constant, says nothing about any row: it is left out.

    Examples
    --------
    >>> likelihood_units(np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([0.5, 0.5]))
    array([0.5, 1.5])
    """
    variance = prior @ losses  # (d,)
    tells = variance > np.finfo(float).tiny  # below it, 1/σ² is no longer a number
    precision = np.divide(1.0, variance, out=np.zeros_like(variance), where=tells)
    return losses @ precision
