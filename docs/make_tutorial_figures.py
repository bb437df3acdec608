"""The figures of sachs-tutorial.md: the weight of every condition, and the edges found.

python docs/make_tutorial_figures.py
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import rescore as rs

MODELS = {
    "plain": rs.Linear(),
    "groups (automatic)": rs.ReScore(rs.Linear()),
    "exact, the paper's": rs.ReScore(rs.Linear(), tau=0.5),
}
COLOURS = {"plain": "black", "groups (automatic)": "tab:orange", "exact, the paper's": "tab:blue"}
VERDICTS = {  # colour and marker: neither alone reaches every reader
    "right": ("tab:blue", "o"),
    "reversed": ("tab:orange", "v"),
    "not in it": ("tab:red", "X"),
}


def draw_weights(models: dict, data: rs.Dataset) -> plt.Figure:
    """The share of the weight that each condition has, one mark per model."""
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for name, model in models.items():
        share = model.sample_weight_.groupby(data.groups, sort=False).sum()
        marker, size = ("|", 12) if name == "plain" else ("o", 7)
        places = range(len(share))
        axes.plot(share, places, marker, color=COLOURS[name], label=name, markersize=size, mew=2)
        scores = rs.evaluate(data.truth, model)
        print(name, share.round(3).to_dict(), "SHD", scores.shd, "SID", scores.sid, scores.edges)
    axes.set_yticks(range(len(share)), share.index)
    axes.invert_yaxis()
    axes.set(xlabel="share of the weight", xlim=(0, None))
    axes.grid(axis="y", alpha=0.3)
    axes.legend()
    return figure


def draw_edges(models: dict, truth: object) -> plt.Figure:
    """Where each graph agrees with the consensus; its edges are the empty squares."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.8), sharey=True, layout="constrained")
    for axes, name in zip(panels, ("plain", "groups (automatic)"), strict=True):
        verdicts = verdicts_of(models[name].adjacency_matrix_.to_numpy() != 0, truth.to_numpy())
        for verdict, (causes, effects) in verdicts.items():
            colour, marker = VERDICTS[verdict]
            axes.scatter(effects, causes, s=80, color=colour, marker=marker, label=verdict)
        causes, effects = np.nonzero(truth.to_numpy())
        axes.scatter(effects, causes, s=190, marker="s", facecolors="none", edgecolors="grey")
        axes.set_xticks(range(len(truth)), truth.columns, rotation=60)
        axes.set_yticks(range(len(truth)), truth.columns)
        axes.set(title=name, xlabel="effect", xlim=(-0.6, 10.6), ylim=(10.6, -0.6))
        axes.grid(alpha=0.2)
    panels[0].set_ylabel("cause")
    panels[1].legend(loc="upper right", fontsize=8)
    return figure


def verdicts_of(found: np.ndarray, truth: np.ndarray) -> dict:
    """The edges found, as causes and effects, by how they compare with the consensus."""
    right, reverse = found & (truth != 0), found & (truth.T != 0)
    sets = {"right": right, "reversed": reverse, "not in it": found & ~right & ~reverse}
    return {name: np.nonzero(edges) for name, edges in sets.items()}


def main() -> None:
    """Write sachs-weights.png and sachs-edges.png beside this file, and print the numbers."""
    warnings.simplefilter("ignore")  # an outlying value of Erk, told in the tutorial
    data = rs.load_sachs()
    models = {name: model.fit(data.X) for name, model in MODELS.items()}
    here = Path(__file__).parent
    draw_weights(models, data).savefig(here / "sachs-weights.png", dpi=110)
    draw_edges(models, data.truth).savefig(here / "sachs-edges.png", dpi=110)


if __name__ == "__main__":
    main()
