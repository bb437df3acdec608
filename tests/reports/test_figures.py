import subprocess
import sys
import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Polygon

from rescore.graph.drawing import MOST_DOTS, MOST_SIDE, draw_graph, png, svg
from rescore.reports.figures import draw_history, draw_weights
from rescore.reports.run_tables import group_shares

HOSTILE = ["<script>alert(1)</script>", "$\\frac{$", 'a"b\nc\x1b[31m', "\u202eאב", "😀" * 5000]


def chain(d):
    W = np.diag(np.linspace(1, -1, d - 1), 1)
    return np.where(W == 0, 0, W)


def texts(picture):
    return [node.text for node in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


def test_a_graph_shows_every_name_and_weight():
    shown = texts(svg(draw_graph(chain(4) * 2, ["a", "b", "c", "d"])))
    assert {"a", "b", "c", "d", "2.00", "−2.00", "positive", "negative"} <= set(shown)


def test_an_edge_of_open_direction_is_a_line_without_a_head():
    names, open_first = ["a", "b", "c"], np.array([[0, 1, 0], [1, 0, 1], [0, 0, 0]])
    drawn = [draw_graph(chain(3), names, which) for which in (None, open_first)]
    heads = [sum(isinstance(p, Polygon) for p in each.axes[0].patches) for each in drawn]
    assert heads == [2, 1]
    words = [{"no arrow: direction open"} <= set(texts(svg(each))) for each in drawn]
    assert words == [False, True]
    with pytest.raises(ValueError, match="not a member"):
        draw_graph(chain(3), names, np.zeros((3, 3)))


def test_hostile_names_are_text_and_nothing_else():
    picture = svg(draw_graph(chain(5), HOSTILE))
    assert "<script" not in picture
    assert "\x1b" not in picture
    assert "<script>alert(1)<…" in texts(picture)
    assert "$\\\\frac{$" in texts(picture)
    assert png(draw_graph(chain(5), HOSTILE)).startswith(b"\x89PNG")


def test_pictures_are_deterministic_and_leave_the_settings_alone():
    before = dict(mpl.rcParams)
    rng = np.random.default_rng(0)
    w, loss = np.full(50, 0.02), rng.random(50)
    for make in (
        lambda: draw_graph(chain(3), ["a", "b", "c"]),
        lambda: draw_weights(w, loss, ["u", "v"] * 25),
        lambda: draw_history(pd.DataFrame({"h": [1.0, 1e-9]}, index=[1, 2])),
    ):
        assert svg(make()) == svg(make())
        assert png(make()) == png(make())
    assert dict(mpl.rcParams) == before


def test_pyplot_is_never_imported():
    code = (
        "import sys; from rescore.reports.figures import png;"
        "from rescore.graph.drawing import draw_graph;"
        "png(draw_graph([[0]], ['a'])); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("h", [[0.0, 0.0], [1.0, 0.0], [1e-30, 1e30]])
def test_odd_histories_are_drawn(h):
    assert svg(draw_history(pd.DataFrame({"h": h, "edges": [0, 1]}, index=[1, 2])))


def test_odd_weights_are_drawn():
    assert svg(draw_weights([1.0, 0.0], [0.0, np.nan]))
    labels = [f"group {k} $x$" for k in range(60)]
    assert svg(draw_weights(np.full(60, 1 / 60), np.arange(60.0), labels))


def test_a_large_scatter_stays_small():
    n = 100_000
    w, loss = np.full(n, 1 / n), np.random.default_rng(0).random(n)
    assert len(svg(draw_weights(w, loss))) < 200_000


def test_group_shares_by_brute_force():
    rng = np.random.default_rng(0)
    w, labels = rng.dirichlet(np.ones(40)), rng.choice(["b", "a", "c"], 40).tolist()
    shares = group_shares(w, labels)
    assert list(shares.index) == list(dict.fromkeys(labels))
    for label, row in shares.iterrows():
        here = [k for k in range(40) if labels[k] == label]
        assert row["rows"] == len(here)
        assert row["share_of_weight"] == pytest.approx(sum(w[k] for k in here))
    assert shares["share_of_rows"].sum() == pytest.approx(1)


def test_group_labels_must_fit_the_rows():
    with pytest.raises(ValueError, match="3 rows but 2 group labels"):
        group_shares([0.2, 0.3, 0.5], ["a", "b"])


def test_a_picture_of_any_size_has_a_bounded_number_of_dots():
    from matplotlib.figure import Figure

    content = png(Figure(figsize=(1276, 1921)))
    width, height = (int.from_bytes(content[k : k + 4], "big") for k in (16, 20))
    assert max(width, height) <= MOST_SIDE
    assert width * height <= MOST_DOTS
