"""ReScore around DAGMA as it comes from PyPI, which knows no row weights."""

import numpy as np
from dagma.linear import DagmaLinear

import rescore as rs


def dagma(cov: np.ndarray, n: int) -> np.ndarray:
    """DAGMA sees the covariance of its rows alone, so 2d rows that have it will do."""
    root = np.linalg.cholesky(cov).T * np.sqrt(len(cov))
    rows = np.vstack([root, -root])
    return DagmaLinear("l2").fit(rows, lambda1=0.02, T=4, warm_iter=5000, max_iter=10000)


def main() -> None:
    # A tenth of the rows has its noise in other variables than the rest.
    data = rs.simulate(
        nodes=10, degree=2, samples=1000, groups=(0.9, 0.1), noise_scale=0.1, random_state=101
    )
    alone = rs.Custom(dagma).fit(data.X)
    around = rs.ReScore(dagma).fit(data.X)
    print("SHD of the learner alone:  ", rs.evaluate(data.truth, alone).shd)
    print("SHD of ReScore around it:  ", rs.evaluate(data.truth, around).shd)


if __name__ == "__main__":
    main()
