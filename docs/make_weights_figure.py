"""The figure of linear-learners.md: what the automatic weights decide on three kinds of rows.

python docs/make_weights_figure.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import rescore as rs

KINDS = {
    "rows alike": {},
    "a minority with other noise": {"groups": (0.9, 0.1), "noise_scale": 0.1},
    "rows of another model": {"corrupt": 0.05},
}
COLOURS = {"majority": "tab:blue", "minority": "tab:orange", "other model": "tab:red"}


def labels_of(data: rs.Dataset) -> np.ndarray:
    """What each row really is; the fit never sees it."""
    names = {"g0": "majority", "g1": "minority", "corrupted": "other model"}
    groups = data.groups if data.groups is not None else np.full(len(data.X), "g0")
    return np.array([names.get(str(group), "majority") for group in groups])


def draw(axes: plt.Axes, title: str, settings: dict) -> None:
    """Row losses against weights, coloured by what the rows really are."""
    data = rs.simulate(nodes=10, samples=1000, random_state=0, **settings)
    model = rs.ReScore(rs.Linear()).fit(data.X)
    labels = labels_of(data)
    for label in np.unique(labels):
        rows = labels == label
        loss, weight = model.row_losses_[rows], model.sample_weight_[rows] * len(data.X)
        axes.scatter(loss, weight, s=8, color=COLOURS[label], label=label, alpha=0.6)
    axes.set(xscale="log", yscale="log", xlabel="loss of the row", title=title, xlim=(0.3, 2e3))
    axes.legend()
    decided = model.diagnostics_["weighting"]
    plain, ours = (rs.evaluate(data.truth, m).shd for m in (rs.Linear().fit(data.X), model))
    print(f"{title}: {decided['summary']} SHD {plain} -> {ours}")


def main() -> None:
    """Write weights.png beside this file, and print the decisions."""
    figure, panels = plt.subplots(1, 3, figsize=(13, 4), sharey=True, layout="constrained")
    for axes, (title, settings) in zip(panels, KINDS.items(), strict=True):
        draw(axes, title, settings)
    panels[0].set_ylabel("weight, 1 = as before")
    figure.savefig(Path(__file__).with_name("weights.png"), dpi=110)


if __name__ == "__main__":
    main()
