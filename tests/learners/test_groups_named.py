"""Groups of rows that the caller names: who may see them, and what is wrong with them."""

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.tables.table import as_table, distinct_rows

HALVES = np.repeat(["small", "large"], [60, 240])


@pytest.fixture
def data():
    return rs.simulate(nodes=4, degree=1, samples=300, random_state=100).X


def by_propensity():
    return rs.ReScore(rs.Linear(), weighting="inverse-propensity")


def test_inverse_propensity_gives_every_group_the_same_weight(data):
    w = by_propensity().fit(data, groups=HALVES).sample_weight_.to_numpy()
    assert w[:60] == pytest.approx(np.full(60, 0.5 / 60))
    assert w[60:] == pytest.approx(np.full(240, 0.5 / 240))


def test_inverse_propensity_is_the_learner_on_those_fixed_weights(data):
    fixed = np.where(HALVES == "small", 4.5, 1.125)
    one = by_propensity().fit(data, groups=HALVES)
    other = rs.Linear().fit(data, sample_weight=fixed)
    np.testing.assert_allclose(one.adjacency_matrix_, other.adjacency_matrix_, rtol=1e-9)
    uniform = rs.ReScore(rs.Linear(), weighting="uniform").fit(data, sample_weight=fixed)
    assert uniform.sample_weight_.to_numpy() == pytest.approx(fixed / fixed.sum())


def test_prior_weights_count_within_groups(data):
    prior = np.random.default_rng(0).uniform(0.5, 2, 300)
    w = by_propensity().fit(data, sample_weight=prior, groups=HALVES).sample_weight_.to_numpy()
    assert w[:60] == pytest.approx(0.5 * prior[:60] / prior[:60].sum())


def test_labels_of_any_kind_and_order_mean_the_same(data):
    order = np.random.default_rng(0).permutation(300)
    one = by_propensity().fit(data, groups=HALVES).sample_weight_
    other = by_propensity().fit(data.iloc[order], groups=pd.Series(HALVES, data.index)[order])
    pd.testing.assert_series_equal(one, other.sample_weight_.sort_index())
    numbered = by_propensity().fit(data, groups=(HALVES == "large").astype(int))
    pd.testing.assert_series_equal(one, numbered.sample_weight_)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (None, "needs the group of each row"),
        (HALVES[:-1], "one label for each of the 300 rows"),
        (np.r_[["alone"], HALVES[1:]], "'alone' have fewer than 2 rows"),
        (np.r_[[None], HALVES[1:]], "1 missing label"),
        (pd.Series(HALVES, np.arange(300) + 7), "another index than X"),
    ],
)
def test_bad_groups_are_named_with_a_remedy(data, groups, words):
    with pytest.raises(ValueError, match=words):
        by_propensity().fit(data, groups=groups)


def test_a_group_whose_rows_have_no_weight_is_too_small(data):
    weight = np.where((HALVES == "small") & (np.arange(300) > 0), 0.0, 1.0)
    with pytest.raises(ValueError, match="'small' have fewer than 2 rows"):
        by_propensity().fit(data, sample_weight=weight, groups=HALVES)


def test_groups_that_nobody_needs_are_refused(data):
    with pytest.raises(ValueError, match="Leave groups out"):
        rs.ReScore(rs.Linear()).fit(data, groups=HALVES)


def test_plain_learners_have_no_place_for_groups(data):
    with pytest.raises(TypeError, match="groups"):
        rs.Linear().fit(data, groups=HALVES)


def test_repeated_rows_of_tiny_tables_merge_within_their_group_only():
    table = as_table([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [3.0, 4.0]])
    merged = distinct_rows(table, np.full(4, 0.25), np.array([0, 0, 1, 1]))
    assert merged.table.values.tolist() == [[1, 2], [1, 2], [3, 4]]
    assert merged.groups.tolist() == [0, 1, 1]
    assert merged.weight == pytest.approx([0.5, 0.25, 0.25])


def test_an_object_is_a_weighting_if_it_behaves_like_one(data):
    with pytest.raises(TypeError, match="weighting must be one of"):
        rs.ReScore(rs.Linear(), weighting=3).fit(data)
