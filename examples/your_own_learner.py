"""ReScore around a learner of your own: five methods, and the algorithm never knows its name."""

from dataclasses import dataclass

import numpy as np

from rescore.algorithm import rescore
from rescore.equations import LinearEquations
from rescore.protocols import Problem, State, Status
from rescore.weightings.exact import Exact


@dataclass(frozen=True)
class OrderedRegressions:
    """Regress every variable on those with a smaller variance: a baseline in twenty lines."""

    threshold: float = 0.3
    rounds: int = 3

    def init(self, problem: Problem) -> State:
        return State(
            (0, problem.rows.moments(problem.prior), np.zeros_like(problem.allowed, float))
        )

    def step(self, problem: Problem, w: np.ndarray, state: State) -> State:
        moments = problem.rows.moments(w)
        S = moments.covariance
        order = np.argsort(np.diag(S))
        W = np.zeros_like(S)
        for position, j in enumerate(order):
            earlier = [i for i in order[:position] if problem.allowed[i, j]]
            W[earlier, j] = np.linalg.lstsq(S[np.ix_(earlier, earlier)], S[earlier, j])[0]
        done = state.params[0] + 1 == self.rounds
        status = Status.CONVERGED if done else Status.RUNNING
        return State((state.params[0] + 1, moments, W), status)

    def losses(self, problem: Problem, state: State) -> np.ndarray:
        _, moments, W = state.params
        return problem.rows.squared_residuals(W, moments.mean)

    def adjacency(self, state: State) -> np.ndarray:
        return state.params[2]

    def equations(self, problem: Problem, state: State, W: np.ndarray) -> LinearEquations:
        return LinearEquations(W, state.params[1].mean)


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    X = np.c_[x, x + rng.normal(size=400), rng.normal(size=400) * 3]
    found = rescore(Problem.unconstrained(X), OrderedRegressions(), Exact(tau=0.5))
    print(found.W.round(2))
    print(found.status.value)


if __name__ == "__main__":
    main()
