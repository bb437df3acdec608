"""The picture of the README: which rows ReScore weighs up, on data whose groups it never sees.

python docs/make_picture.py
"""

from pathlib import Path

import rescore as rs
from rescore.report.figures import draw_weights, png

DATA = {"nodes": 10, "samples": 1000, "groups": (0.9, 0.1), "noise_scale": 0.1}


def main() -> None:
    """Write picture.png beside this file and print the scores that go with it."""
    data = rs.simulate(**DATA, random_state=0)
    model = rs.ReScore(rs.Linear()).fit(data.X)
    minority = model.sample_weight_[data.groups == "g1"].sum()
    print(f"the minority got {minority:.0%} of the weight")
    for name, fitted in (("plain", rs.Linear().fit(data.X)), ("ReScore", model)):
        print(name, "SHD", rs.evaluate(data.truth, fitted).shd)
    labels = data.groups.map({"g0": "majority", "g1": "minority"})
    figure = draw_weights(model.sample_weight_, model.row_losses_, labels)
    Path(__file__).with_name("picture.png").write_bytes(png(figure))


if __name__ == "__main__":
    main()
