"""The figure of weightings.md: how the plain and the reweighted solution meet as the rows grow.

    python docs/make_theory_figure.py

Theorem 1 of the paper says that on linear data the difference between the two tends to zero, for
least squares (case a) and for the Gaussian likelihood (case b).  Here the order of the variables is
known, so what is left of the problem are regressions: each variable on those before it, plain, and
with exact weights (τ = 0.5), weights and regressions in turn.  The distance is the root mean
square over all coefficients.

What the theorem needs, and where it fails.  Its proof takes the weights as given when it averages
over the noise.  Exact weights are not given: they are made from the residuals, and a weighted
regression is consistent only if the weighted noise stays uncorrelated with the causes,
E[w N_j N_k] = 0.  The loss of a row, Σ_j N_j²/σ_j², does not see the sign of a noise, so this holds
if the noises are independent and at least one of each two is symmetric about zero.  Then both
solutions are root-n consistent with different influence functions, and the distance falls as
n^(-1/2), not faster.  With skewed noise (exponential) it does not hold: the distance stays.

Coefficients are all that converges.  The weighted residual variances do not tend to the noise
variances, because heavy rows are those with large noise; with the likelihood's loss and Gaussian
noise all grow by the same factor, with raw squares and unequal variances they do not, and then
a least-squares search for the order need not end with the same order as the plain one either.
"""

from pathlib import Path

import numpy as np

import rescore as rs
from rescore import weight_box
from rescore.moments import Matrix, Rows
from rescore.weight_box import likelihood_units

SIZES = tuple(250 * 2**k for k in range(11))  # 250 ... 256,000
SEEDS = range(100, 110)
TAU = 0.5
ROUNDS = 10  # of weights and regressions in turn
CASES = {
    "least squares, Gaussian noise": ({}, "raw"),
    "likelihood, Gaussian noise, unequal variances": ({"noise_scale": 0.3}, "nll"),
    "likelihood, uniform noise": ({"noise": "uniform"}, "nll"),
    "likelihood, exponential noise (skewed)": ({"noise": "exp"}, "nll"),
}


def regressions(rows: Rows, w: Matrix) -> tuple[Matrix, Matrix]:
    """Each variable on all before it under the weights ``w``: coefficients and means."""
    mean, S = rows.moments(w)
    W = np.zeros_like(S)
    for j in range(1, len(S)):
        W[:j, j] = np.linalg.solve(S[:j, :j], S[:j, j])
    return W, mean


def distance(X: Matrix, loss: str) -> float:
    """Between the plain and the reweighted coefficients, columns of X from causes to effects."""
    rows, prior = Rows(X), np.full(len(X), 1 / len(X))
    plain, mean = regressions(rows, prior)
    W = plain
    for _ in range(ROUNDS):
        losses = rows.squared_residuals(W, mean)
        per_row = losses.sum(axis=1) if loss == "raw" else likelihood_units(losses, prior)
        W, mean = regressions(rows, weight_box.heaviest(per_row, prior, TAU))
    above = np.triu_indices(len(W), 1)
    return float(np.sqrt(np.mean((W - plain)[above] ** 2)))


def in_order(data: rs.Dataset) -> Matrix:
    """The columns of the data, causes before effects."""
    import networkx as nx

    graph = nx.from_pandas_adjacency(data.truth, create_using=nx.DiGraph)
    return data.X[list(nx.topological_sort(graph))].to_numpy()


def curve(case: str, sizes: tuple[int, ...] = SIZES, seeds: range = SEEDS) -> Matrix:
    """The distances, one row per seed and one column per size, 10 variables."""
    settings, loss = CASES[case]
    largest = [
        in_order(rs.simulate(nodes=10, samples=max(sizes), random_state=seed, **settings))
        for seed in seeds
    ]
    # Rows are independent, so the end of a larger table is a smaller one.
    return np.array([[distance(X[-n:], loss) for n in sizes] for X in largest])


def slope(distances: Matrix, sizes: tuple[int, ...] = SIZES) -> float:
    """Of the mean log distance against log n, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(distances).mean(axis=0), 1)[0])


def main() -> None:
    """Write theory.png beside this file and print the slopes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    for case in CASES:
        distances = curve(case)
        fitted = slope(distances)
        middle = np.exp(np.log(distances).mean(axis=0))
        axes.plot(SIZES, middle, "o-", label=f"{case}: slope {fitted:.2f}", markersize=4)
        axes.fill_between(SIZES, distances.min(axis=0), distances.max(axis=0), alpha=0.15)
        ends = f"{middle[0]:.4f} at {SIZES[0]:,} rows, {middle[-1]:.5f} at {SIZES[-1]:,}"
        print(f"{case}: slope {fitted:.3f}; {ends}")
    guide = 0.03 * (np.array(SIZES) / SIZES[0]) ** -0.5
    axes.plot(SIZES, guide, "k--", linewidth=1, label="slope -1/2")
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="plain - reweighted, RMS")
    axes.set_title("Distance of the plain and the reweighted coefficients, order known")
    axes.legend(fontsize=8)
    figure.savefig(Path(__file__).with_name("theory.png"), dpi=110)


if __name__ == "__main__":
    main()
