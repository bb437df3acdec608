"""DirectLiNGAM at its defaults on a saved table, in an environment of its own (`make peers`).

    .venv-peers/bin/python benchmarks/lingam_peer.py TABLE.npy COEFFICIENTS.npy

lingam holds numpy and scipy back, so that the two share files, not a process.  The coefficients
are written with row -> column; CPU seconds of the fit are printed.
"""

import sys

import bench  # first: it pins the threads
import numpy as np
from lingam import DirectLiNGAM

if __name__ == "__main__":
    table, coefficients = sys.argv[1:]
    X = np.load(table)
    model, seconds = bench.cpu_seconds(lambda: DirectLiNGAM().fit(X))
    np.save(coefficients, model.adjacency_matrix_.T)  # lingam's row is the effect
    print(seconds)
