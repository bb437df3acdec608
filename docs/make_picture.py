"""The picture of the README: the weight of every cell, on rows whose groups the fit never sees.

python docs/make_picture.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import rescore as rs
from rescore.cli.demo import hidden_groups

SEEDS = range(10)


def draw_cells(axes: plt.Axes, model: rs.ReScore, data: rs.Dataset) -> None:
    """Every cell's weight, with the rows of each true group together."""
    minority = (data.groups == "g1").to_numpy()
    cells = model.cell_weight_.to_numpy()  # (n, d)
    cells = np.log10(
        cells / cells.mean(axis=0)
    )  # a variable's weights are only compared with its own
    order = np.argsort(cells[minority].mean(axis=0) - cells[~minority].mean(axis=0))
    rows = np.argsort(minority, kind="stable")
    shown = axes.imshow(cells[rows][:, order], aspect="auto", cmap="RdBu_r", vmin=-1, vmax=1,
                        interpolation="nearest")  # fmt: skip
    axes.axhline((~minority).sum(), color="black", linewidth=1)
    places = [(~minority).sum() / 2, data.n - minority.sum() / 2]
    axes.set_yticks(places, ["majority", "minority"], rotation=90, va="center")
    axes.set_xticks(range(data.d), data.X.columns[order], rotation=90, fontsize=7)
    axes.set_title("the weight of every cell", fontsize=10)
    axes.figure.colorbar(shown, ax=axes, ticks=[-1, 0, 1]).ax.set_yticklabels(
        ["1/10", "as before", "x 10"], fontsize=8
    )


def draw_distances(axes: plt.Axes, distances: np.ndarray) -> None:
    """The SHD without and with weights, a pair of bars for each data set, (seeds, 2)."""
    places = np.arange(len(distances))
    for k, (name, colour) in enumerate({"plain": "0.6", "ReScore": "tab:blue"}.items()):
        axes.bar(places + 0.4 * k, distances[:, k], width=0.4, color=colour, label=name)
    axes.set_xticks(places + 0.2, SEEDS)
    axes.set(xlabel="data set", ylabel="SHD, 40 true edges")
    axes.set_title("distance from the true graph", fontsize=10)
    axes.legend(fontsize=8)


def main() -> None:
    """Write picture.png beside this file, and the numbers that go with it into picture.csv."""
    found = []
    for seed in SEEDS:
        data = hidden_groups(seed)
        pair = rs.Linear().fit(data.X), rs.ReScore(rs.Linear()).fit(data.X)
        found.append([rs.evaluate(data.truth, model).shd for model in pair])
        print("seed", seed, "SHD plain and reweighted", *found[-1], flush=True)
        if seed == SEEDS[0]:
            first, of = data, pair[1]
    table = pd.DataFrame(found, columns=["plain", "rescore"]).rename_axis("seed")
    table.to_csv(Path(__file__).with_name("picture.csv"), lineterminator="\n")
    print("mean SHD", *np.mean(found, axis=0))
    print(of.diagnostics_["weighting"]["summary"])
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    draw_cells(panels[0], of, first)
    draw_distances(panels[1], np.array(found))
    figure.savefig(Path(__file__).with_name("picture.png"), dpi=130)


if __name__ == "__main__":
    main()
