"""What an input of a Gaussian process is worth by chance: the null of the threshold on edges.

    python benchmarks/relevance_by_chance.py [repeats] [--tables]

y is a function of some true inputs and noise; one more input has nothing to do with it.  Printed:
how often its log evidence, everything else fitted anew, exceeds what half a χ² with one degree of
freedom (a relevance that cannot be negative) would exceed so often.  Shares at or below the
nominal ones mean that ``false_edges`` is kept.  Under the price of the search for inputs, under
the prior of the final fits before it has learned anything, and under one that has learned how
relevant inputs are, the unrelated input started from little and from as much as others have.

With ``--tables``: the edges that the whole learner finds in so many tables of noise alone, where
``false_edges`` says how many there should be in each.
"""

import argparse
import itertools

import bench  # noqa: F401 - first: it pins the threads
import numpy as np
from scipy.stats import chi2

import rescore as rs
from rescore.solvers.gaussian_covariance import Target
from rescore.solvers.relevance import ENTRY, RELAXED, Prior, fresh, maximise

ROWS, COLUMNS, SHARES = 300, 12, (0.1, 0.03, 0.01, 0.003)
PRIORS = {"price": RELAXED, "prior": Prior(), "learned": Prior(spread=0.35, width=0.4)}


def gain(true, rng, prior):
    """The log evidence that an unrelated input is worth, beside so many true ones."""
    X = rng.normal(size=(ROWS, true + 1))
    angles = X[:, :true] @ rng.normal(size=(true, 3))
    y = np.sin(angles).sum(axis=1) + rng.normal(size=ROWS)
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    target = Target(X, ((y - y.mean()) / y.std()).astype(np.float32), np.ones(ROWS))
    without = np.arange(true + 1) < true
    less = maximise(target, without, fresh(without), 100, prior)
    costs = []
    for first in (ENTRY, prior.relevance):
        start = less.theta.copy()
        start[true] = first
        costs.append(maximise(target, np.ones(true + 1, dtype=bool), start, 100, prior).cost)
    return max(less.cost - min(costs), 0.0)


def edges_by_chance(seed):
    """How many edges there are in a table of noise."""
    X = np.random.default_rng(seed).normal(size=(ROWS, COLUMNS))
    return rs.GaussianProcess(n_starts=1).fit(X).causal_graph_.number_of_edges()


def single_inputs(repeats):
    print("true inputs", *[f"nominal {share:.1%}" for share in SHARES], sep="  ")
    for (name, prior), true in itertools.product(PRIORS.items(), (0, 1, 3, 5)):
        rng = np.random.default_rng(true)
        gains = np.array([gain(true, rng, prior) for _ in range(repeats)])
        shares = [(gains > chi2.isf(2 * share, 1) / 2).mean() for share in SHARES]
        print(f"{name:7s} {true:3d}", *[f"{share:13.1%}" for share in shares], sep="  ", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repeats", type=int, nargs="?", default=300)
    parser.add_argument("--tables", action="store_true")
    asked = parser.parse_args()
    if asked.tables:
        found = [edges_by_chance(seed) for seed in range(asked.repeats)]
        print(f"{ROWS} x {COLUMNS}: {found}, {np.mean(found):.2f} on average")
    else:
        single_inputs(asked.repeats)
