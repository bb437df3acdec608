from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rescore.graph import layout as module
from rescore.graph.layout import layered


@st.composite
def dags(draw):
    d = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    W = np.triu(rng.random((d, d)) < draw(st.sampled_from([0.1, 0.3, 0.7])), 1)
    order = rng.permutation(d)
    return W[np.ix_(order, order)].astype(float), rng.uniform(0.3, 2.0, d).tolist()


@settings(deadline=None, max_examples=60)
@given(dags())
def test_edges_lead_downwards_and_boxes_keep_apart(case):
    W, widths = case
    found = layered(W, widths)
    assert set(found.routes) == set(map(tuple, np.argwhere(W).tolist()))
    assert set(found.nodes) | set(found.isolated) == set(range(len(W)))
    assert not set(found.nodes) & set(found.isolated)
    for (i, j), route in found.routes.items():
        assert (route[0], route[-1]) == (found.nodes[i], found.nodes[j])
        assert all(above[1] > below[1] for above, below in pairwise(route))
    inner = [point for route in found.routes.values() for point in route[1:-1]]
    boxes = [(x, y, widths[j]) for j, (x, y) in found.nodes.items()]
    boxes += [(x, y, module.WAYPOINT) for x, y in inner]
    for k, (x, y, width) in enumerate(boxes):
        for other_x, other_y, other_width in boxes[:k]:
            if abs(y - other_y) < 1e-9:
                lines = width == other_width == module.WAYPOINT
                gap = module.LINE_GAP if lines else module.NODE_GAP
                assert abs(x - other_x) >= (width + other_width) / 2 + gap - 1e-9


@settings(deadline=None, max_examples=30)
@given(dags())
def test_the_same_graph_gets_the_same_layout(case):
    assert layered(*case) == layered(*case)


def test_crossings_are_removed_where_they_can_be():
    # Two causes and two effects, crosswise in the order of the columns.
    W = np.zeros((4, 4))
    W[0, 3] = W[1, 2] = W[0, 2] = 1
    nodes = layered(W, [1.0] * 4).nodes
    assert (nodes[0][0] - nodes[1][0]) * (nodes[3][0] - nodes[2][0]) > 0


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="cycle"):
        layered([[0, 1], [1, 0]], [1, 1])
