import numpy as np
import pandas as pd
import pytest

from rescore.data.simulate import simulate
from rescore.pruning import (
    MOST_ROWS,
    SMALLEST_LEAF,
    TREES,
    _importance,
    neighbours,
    select_neighbours,
)


@pytest.fixture(scope="module")
def data():
    return simulate("ER", degree=1, nodes=5, samples=300, mechanism="gp-add", random_state=100)


@pytest.fixture(scope="module")
def selected(data):
    return select_neighbours(data.X)


def test_a_table_gives_a_table_and_an_array_an_array(data, selected):
    assert list(selected.index) == list(selected.columns) == list(data.X.columns)
    assert selected.to_numpy().dtype == np.bool_
    np.testing.assert_array_equal(select_neighbours(data.X.to_numpy()), selected.to_numpy())


def test_the_seed_decides(data, selected):
    pd.testing.assert_frame_equal(select_neighbours(data.X, random_state=0), selected)
    fully = [select_neighbours(data.X, multiple=1.0, random_state=s).to_numpy() for s in range(3)]
    assert any((fully[0] != other).any() for other in fully[1:])


def test_a_higher_multiple_selects_fewer(data, selected):
    fewer = select_neighbours(data.X, multiple=1.5)
    assert fewer.to_numpy().sum() < selected.to_numpy().sum()
    assert not (fewer & ~selected).any(axis=None)


def test_weights(data, selected):
    X = data.X
    n = len(X)
    pd.testing.assert_frame_equal(select_neighbours(X, np.full(n, 1 / n)), selected)
    times = np.arange(n) % 3
    pd.testing.assert_frame_equal(
        select_neighbours(X, times), select_neighbours(X.loc[X.index.repeat(times)])
    )


def test_units_do_not_matter_and_constants_are_alone(data, selected):
    scales = 10.0 ** np.linspace(-140, 140, 5)
    moved = select_neighbours(data.X.to_numpy() * scales)
    assert (moved != selected.to_numpy()).mean() < 0.05  # rounding moves a few splits
    X = data.X.assign(x0=3.0)
    assert not select_neighbours(X).loc["x0"].any()
    assert not select_neighbours(X)["x0"].any()
    assert not select_neighbours(np.arange(5.0)[:, None]).any()


def test_long_tables_are_thinned_by_weight():
    """The second half has no weight to speak of, and another cause."""
    n = 3 * MOST_ROWS
    a, b, c, noise = np.random.default_rng(0).normal(size=(4, n))
    first = np.arange(n) < n // 2
    X = np.column_stack([a, b, c, np.where(first, np.sin(2 * a), np.sin(2 * b)) + 0.3 * noise])
    w = np.where(first, 1.0, 1e-9)
    assert neighbours(X, w / w.sum())[:, 3].tolist() == [True, False, False, False]
    assert neighbours(X, (1 - w) / (1 - w).sum())[:, 3].tolist() == [False, True, False, False]


def test_true_parents_remain_and_most_others_go():
    kept = true = gone = others = 0
    for seed, mechanism in ((100, "gp"), (101, "gp-add"), (102, "gp")):
        data = simulate(
            "ER", degree=2, nodes=12, samples=1000, mechanism=mechanism, random_state=seed
        )
        A = data.truth.to_numpy() != 0
        found = select_neighbours(data.X).to_numpy()
        apart = ~(A | A.T) & ~np.eye(12, dtype=bool)
        kept, true = kept + (found & A).sum(), true + A.sum()
        gone, others = gone + (apart & ~found).sum(), others + apart.sum()
    assert kept / true >= 0.9
    assert gone / others >= 0.6


def test_errors_are_sentences(data):
    with pytest.raises(ValueError, match="multiple must be a number of at least 0"):
        select_neighbours(data.X, multiple=-1)
    with pytest.raises(TypeError, match="random_state must be a whole number"):
        select_neighbours(data.X, random_state=None)


@pytest.mark.parametrize("signal", [1.0, 0.0])
def test_the_trees_are_those_of_a_forest_of_scikit_learn(signal):
    from sklearn.ensemble import ExtraTreesRegressor

    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(90, 4)), rng.random(90)
    y = signal * (X[:, 0] ** 2 + rng.normal(size=90))  # or nothing to split
    forest = ExtraTreesRegressor(TREES, min_weight_fraction_leaf=SMALLEST_LEAF, random_state=5)
    forest.fit(X, y, sample_weight=w)
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num(forest.feature_importances_)
    np.testing.assert_allclose(_importance(X, y, w, seed=5), expected, rtol=1e-12)
