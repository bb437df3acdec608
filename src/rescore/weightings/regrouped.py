"""Balanced groups of the learner's own residuals, for learners that are not linear."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rescore.checking import check_integer, check_number
from rescore.moments import Matrix
from rescore.protocols import Problem
from rescore.weightings.evidence import row_counts
from rescore.weightings.latent import Groups, find_groups
from rescore.weightings.masses import balanced_weights, explained, plain_noise

NOISE_SHARE = 0.9  # of the variables in which a group's variance is larger: then it is plain noise

Decision = tuple[Matrix, Groups]


@dataclass(frozen=True)
class Regrouped:
    """Groups among the residuals that a whole fit leaves, balanced for the next one.

    What a straight line leaves of a curved relation looks like rows whose noise differs, so a
    nonlinear learner's groups must be found in its own residuals; and in those of its final
    graph, because half-trained networks fit some rows better than others too.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> alike = Problem.unconstrained(rng.normal(size=(300, 3)))
    >>> w, state = Regrouped().step(alike, alike.rows.values**2, None)
    >>> bool((w == alike.prior).all()), Regrouped().explain(state)["groups"]
    (True, 1)
    """

    tau: float = 0.01
    most_groups: int = 4

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0, at_most=1)
        check_integer("most_groups", self.most_groups, at_least=1)

    def init(self, n: int, d: int) -> Decision | None:
        """Nothing known yet."""
        return None

    def step(
        self, problem: Problem, losses: Matrix, state: Decision | None
    ) -> tuple[Matrix, Decision]:
        """The weights decided at the first call, the prior's if all rows look alike."""
        decided = state or self._decide(problem, losses)
        return decided[0], decided

    def explain(self, state: Decision | None) -> dict[str, Any]:
        """Groups, their shares of the weight before and after, rows treated as noise."""
        if state is None:
            return {}
        w, groups = state
        noise = plain_noise(groups, NOISE_SHARE)
        return explained(w, groups, noise if groups.count > 1 else np.zeros(1, dtype=bool))

    def _decide(self, problem: Problem, losses: Matrix) -> Decision:
        groups = find_groups(losses, row_counts(problem), self.most_groups)
        if groups.count == 1 or self.tau == 1:
            return problem.prior, groups
        noise = plain_noise(groups, NOISE_SHARE)
        return balanced_weights(groups, noise, problem.prior, self.tau), groups
