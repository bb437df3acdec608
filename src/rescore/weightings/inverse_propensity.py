"""Row weights from known groups: every group counts the same, whatever its size."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rescore.moments import Matrix
from rescore.protocols import Problem


@dataclass(frozen=True)
class InversePropensity:
    """``w_i = s_i / (K π_k)`` for a row of group k of K, where π_k is the group's prior share.

    The labelled yardstick of the paper's heterogeneous experiments: what could be gained if the
    groups were known.

    Examples
    --------
    >>> from dataclasses import replace
    >>> problem = replace(Problem.unconstrained(np.eye(4)), groups=np.array([0, 0, 0, 1]))
    >>> InversePropensity().step(problem, np.ones((4, 4)), None)[0].round(3)
    array([0.167, 0.167, 0.167, 0.5  ])
    """

    needs_groups = True

    @property
    def tau(self) -> float:
        """No bound in practice: the size of a group alone decides how much its rows count."""
        return 1e-9

    def init(self, n: int, d: int) -> None:
        """Nothing to remember."""

    def step(self, problem: Problem, losses: Matrix, state: Any) -> tuple[Matrix, Any]:
        """The same weights at every step, and the shares of the groups."""
        if problem.groups is None:
            raise ValueError("Inverse-propensity weights need the groups of the rows: groups=...")
        share = np.bincount(problem.groups, problem.prior)
        w = problem.prior / share[problem.groups]
        return w / w.sum(), share

    def explain(self, state: Any) -> dict[str, Any]:
        """The groups' shares of the weight before and after."""
        if state is None:
            return {}
        K = len(state)
        return {"groups": K, "share_before": state.tolist(), "share_after": [1 / K] * K}
