"""ReScore around a black box: causal-learn's DirectLiNGAM gets rows drawn by their weights."""

import numpy as np
from causallearn.search.FCMBased.lingam import DirectLiNGAM

import rescore as rs


def lingam(X: np.ndarray) -> np.ndarray:
    """Row j of its matrix holds the causes of variable j; here [i, j] is i -> j."""
    model = DirectLiNGAM()
    model.fit(X)
    return model.adjacency_matrix_.T


def main() -> None:
    data = rs.simulate(nodes=6, degree=1, samples=500, noise="exp", corrupt=0.05, random_state=101)
    alone = rs.Custom(lingam, threshold=0.3).fit(data.X)
    around = rs.ReScore(rs.Custom(lingam, threshold=0.3)).fit(data.X)
    print("SHD of the learner alone:  ", rs.evaluate(data.truth, alone).shd)
    print("SHD of ReScore around it:  ", rs.evaluate(data.truth, around).shd)


if __name__ == "__main__":
    main()
