import numpy as np
import pytest

from rescore.known_edges import edge_masks

NAMES = ["a", "b", "c", "d"]


def test_nothing_known_allows_all_but_self_loops():
    allowed, required = edge_masks(NAMES)
    assert (allowed == ~np.eye(4, dtype=bool)).all()
    assert not required.any()


def test_edges_that_would_close_a_cycle_with_required_ones_are_not_allowed():
    allowed, required = edge_masks(NAMES, required=[("a", "b"), ("b", "c")])
    assert required[0, 1]
    assert required[1, 2]
    assert not allowed[[1, 2, 2], [0, 1, 0]].any()  # b→a, c→b and c→a
    assert allowed[0, 2]
    assert allowed[2, 3]
    assert (allowed | ~required).all()


@pytest.mark.parametrize(
    ("forbidden", "required", "error", "words"),
    [
        (None, [("a", "b"), ("b", "a")], ValueError, "cycle.*a -> b -> a"),
        (None, [("a", "a")], ValueError, "cycle"),
        ([("a", "b")], [("a", "b")], ValueError, "both required and forbidden"),
        ([("a", "z")], None, ValueError, "z"),
        (["ab"], None, TypeError, "pair"),
        ([("a", "b", "c")], None, TypeError, "pair"),
    ],
)
def test_contradictions_and_unknown_names_raise(forbidden, required, error, words):
    with pytest.raises(error, match=words):
        edge_masks(NAMES, forbidden, required)


@pytest.mark.parametrize("kind", [list, tuple, set, iter])
def test_any_iterable_of_pairs_will_do(kind):
    allowed, _ = edge_masks(NAMES, forbidden=kind([("a", "b")]))
    assert not allowed[0, 1]
    assert allowed.sum() == 11
