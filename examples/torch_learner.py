"""ReScore around a torch model of your own: four methods, trained by torch.optim."""

import copy

import numpy as np
import torch

import rescore as rs
from rescore.protocols import Problem, State, Status


class Layer(torch.nn.Module):
    """A linear layer x ≈ x W whose cycles cost more from step to step."""

    linear, threshold = True, 0.3

    def init(self, problem: Problem) -> State:
        d = problem.rows.shape[1]
        return State((0, torch.nn.Parameter(torch.zeros(d, d, dtype=torch.float64))))

    def residuals(self, problem: Problem, W: torch.Tensor) -> torch.Tensor:
        X = torch.tensor(problem.rows.matrix())
        mean = torch.tensor(problem.prior) @ X
        return (X - mean) - (X - mean) @ (W * torch.tensor(problem.allowed))

    def step(self, problem: Problem, w: np.ndarray, state: State) -> State:
        k, W = copy.deepcopy(state.params)  # a state is never changed, only followed by another
        optimiser = torch.optim.Adam([W], lr=0.03)
        for _ in range(150):
            optimiser.zero_grad()
            fit = torch.tensor(w) @ self.residuals(problem, W).square().sum(dim=1) / 2
            cycles = torch.trace(torch.matrix_exp(W * W)) - len(W)
            (fit + 0.02 * W.abs().sum() + 10.0**k * cycles).backward()
            optimiser.step()
        return State((k + 1, W), Status.CONVERGED if k == 3 else Status.RUNNING)

    def losses(self, problem: Problem, state: State) -> torch.Tensor:
        return self.residuals(problem, state.params[1]).square()

    def adjacency(self, state: State) -> torch.Tensor:
        return state.params[1] - torch.diag(torch.diag(state.params[1]))


def main() -> None:
    # A tenth of the rows has its noise in other variables than the rest.
    data = rs.simulate(
        nodes=10, degree=1, samples=500, groups=(0.9, 0.1), noise_scale=0.1, random_state=101
    )
    alone = rs.Custom(Layer()).fit(data.X)
    around = rs.ReScore(Layer()).fit(data.X)
    print("SHD of the learner alone:  ", rs.evaluate(data.truth, alone).shd)
    print("SHD of ReScore around it:  ", rs.evaluate(data.truth, around).shd)


if __name__ == "__main__":
    main()
