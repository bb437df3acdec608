"""Compiles what most tests run, once: the workers of a run would each do it for themselves.

`make test` starts it beside the linters, of which the longest takes one core only.
"""

import warnings

import numpy as np

import rescore as rs

if __name__ == "__main__":
    X = np.random.default_rng(0).normal(size=(300, 5)).cumsum(axis=1)
    X[:60] *= [1, 9, 1, 1, 1]  # groups of rows, whose search is compiled too
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for learner in (rs.ReScore(), rs.Additive(), rs.ReScore(rs.Additive())):
            learner.fit(X)
