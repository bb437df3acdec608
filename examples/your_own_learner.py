"""ReScore around a learner of your own: a function of the covariance, and nothing else."""

import numpy as np

import rescore as rs


def least_residual_variance(cov: np.ndarray, n: int) -> np.ndarray:
    """Place what varies least given those before, and regress; [i, j] is the effect of i on j."""
    d = len(cov)
    W, placed, left = np.zeros((d, d)), [], set(range(d))
    while left:
        effects = {j: np.linalg.solve(cov[np.ix_(placed, placed)], cov[placed, j]) for j in left}
        j = min(left, key=lambda k: cov[k, k] - effects[k] @ cov[placed, k])
        W[placed, j] = effects[j]
        placed.append(j)
        left.remove(j)
    return np.where(np.abs(W) > 0.3, W, 0)


def main() -> None:
    # A tenth of the rows has its noise in other variables than the rest.
    data = rs.simulate(
        nodes=10, degree=1, samples=1000, groups=(0.9, 0.1), noise_scale=0.1, random_state=101
    )
    alone = rs.Custom(least_residual_variance).fit(data.X)
    around = rs.ReScore(least_residual_variance).fit(data.X)
    print("SHD of the learner alone:  ", rs.evaluate(data.truth, alone).shd)
    print("SHD of ReScore around it:  ", rs.evaluate(data.truth, around).shd)


if __name__ == "__main__":
    main()
