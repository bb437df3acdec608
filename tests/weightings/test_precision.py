import numpy as np

from rescore.moments import Cells, row_weights
from rescore.protocols import Problem
from rescore.weightings.precision import ROUNDS, Precision


def noisy(n=400):
    rng = np.random.default_rng(2)
    scale = np.where(np.arange(n)[:, None] < 0.7 * n, [1.0, 0.1, 1.0, 0.1], [0.1, 1.0, 0.1, 1.0])
    return rng.normal(size=(n, 4)) * scale


def test_cells_count_as_precisely_as_their_group_is_measured():
    E = noisy()
    w, seen = Precision().step(Problem.unconstrained(E), lambda: E**2, None)
    assert isinstance(w, Cells)
    cells = np.asarray(w)
    assert np.isclose(cells.sum(), 4)
    ratio = cells[:280].mean(axis=0) / cells[280:].mean(axis=0)
    assert (np.abs(np.log10(ratio)) > 1.2).all()
    assert (np.sign(np.log10(ratio)) == [-1, 1, -1, 1]).all()
    assert Precision().explain(seen)["groups"] == 2


def test_a_group_with_more_noise_everywhere_hardly_counts():
    E = (
        np.random.default_rng(3).normal(size=(400, 4))
        * np.where(np.arange(400) < 20, 6, 1)[:, None]
    )
    w, seen = Precision().step(Problem.unconstrained(E), lambda: E**2, None)
    assert row_weights(w)[:20].sum() < 0.01
    assert Precision().explain(seen)["noise_rows"] > 10


def test_the_groups_are_found_again_a_few_times():
    E, player = noisy(), Precision()
    problem, state = Problem.unconstrained(E), None
    for _ in range(ROUNDS + 2):
        w, state = player.step(problem, lambda: E**2, state)
    assert state.rounds == ROUNDS
    assert w is state.weights
