"""The augmented Lagrangian of the constraint ``h = 0``: when its penalty grows, when it is done."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from rescore.protocols import Status

PROGRESS = 0.25  # a dual step must bring h below this share of what it was
GROWTH = 10.0  # otherwise the penalty grows by this factor


class Solved(Protocol):
    """A minimum of the Lagrangian: whatever else it has, the h there."""

    @property
    def h(self) -> Any:
        """How far from acyclic."""


Solution = TypeVar("Solution", bound=Solved)


def ascend(
    minimise: Callable[[float], Solution], rho: float, h: float, h_tol: float, rho_max: float
) -> tuple[float, Solution]:
    """Minimise ``… + α h + ½ρ h²``, raising ρ until h has fallen to a quarter of what it was.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> ascend(lambda rho: SimpleNamespace(h=1 / rho), 1.0, 0.5, 1e-8, 1e16)
    (10.0, namespace(h=0.1))
    """
    while True:
        found = minimise(rho)
        if found.h <= max(PROGRESS * h, h_tol) or rho * GROWTH > rho_max:
            return rho, found
        rho *= GROWTH


def status(rho: float, h: float, h_tol: float, rho_max: float) -> Status:
    """Whether the constraint holds, could not be made to hold, or needs further steps.

    Examples
    --------
    >>> status(10.0, 1e-9, 1e-8, 1e16).name
    'CONVERGED'
    """
    if h <= h_tol:
        return Status.CONVERGED
    return Status.PENALTY_CAP if rho * GROWTH > rho_max else Status.RUNNING
