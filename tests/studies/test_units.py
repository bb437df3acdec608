import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.studies.units import MADE, ONLY_STANDARDISED, PROOF

COLUMNS = ["cause", "effect", "verdict", "share"]


@pytest.fixture(scope="module")
def data():
    return rs.simulate(nodes=5, degree=1, samples=400, random_state=100)


@pytest.fixture(scope="module")
def found(data):
    return rs.units(rs.Linear(), data.X)


def edges(model):
    return set(model.causal_graph_.edges)


def open_edges(model):
    P = model.cpdag_
    return [(a, b) for a, b in edges(model) if P.loc[b, a]]


def test_every_edge_of_the_fit_has_a_verdict(data, found):
    ours = found.table[found.table["verdict"] != ONLY_STANDARDISED]
    assert set(zip(ours["cause"], ours["effect"], strict=True)) == edges(rs.Linear().fit(data.X))


def test_verdicts_and_shares_are_those_of_fits_made_by_hand(data, found):
    fits = [rs.Linear().fit(data.X * row) for _, row in found.factors.iterrows()]
    graphs = [edges(fit) - set(open_edges(fit)) for fit in fits]
    for cause, effect, verdict, share in found.table[COLUMNS].to_numpy().tolist():
        there = [(cause, effect) in graph for graph in graphs]
        if verdict != ONLY_STANDARDISED:
            assert share == pytest.approx(np.mean(there))
            assert verdict == (PROOF if all(there) else MADE)
    own = {frozenset(edge) for edge in edges(rs.Linear().fit(data.X))}
    new = {frozenset(edge) for edge in edges(fits[0])} - own
    only = found.table[found.table["verdict"] == ONLY_STANDARDISED]
    assert {frozenset(pair) for pair in only[["cause", "effect"]].to_numpy()} == new


def test_the_first_change_gives_deviation_one_and_the_others_stay_within_a_decade(data, found):
    assert list(found.factors.index) == ["standardised", *(f"rescaling {k}" for k in (1, 2, 3))]
    np.testing.assert_allclose((data.X * found.factors.iloc[0]).std(ddof=0), 1)
    assert found.factors.iloc[1:].map(lambda factor: 0.1 <= factor <= 10).all(axis=None)
    assert found.factors.iloc[1:].nunique().min() == 3


@pytest.mark.parametrize("power", [0, 5])
@pytest.mark.parametrize("learner", [rs.Linear(standardize=True), rs.Notears(standardize=True)])
def test_a_standardised_fit_is_not_certified_but_said_to_be_the_same(data, learner, power):
    X, calls = data.X * 2.0 ** (power * np.arange(5)), []
    found = rs.units(learner, X, on_fit=calls.append)
    assert found.table.empty
    assert found.factors.empty
    assert calls == []
    assert "standardised, so other units give this graph by construction" in found.sentence
    assert "survive" not in found.sentence


def test_where_no_variances_are_compared_the_hypothesis_on_the_noise_is_told(data):
    X = data.X * 10.0 ** np.arange(5)
    model = rs.Linear().fit(X)
    assert model.diagnostics_["noise"]["hypothesis"] == "unequal"
    found = rs.units(model, X)
    assert found.table.empty
    assert found.sentence.endswith(model.diagnostics_["noise"]["summary"])
    other = rs.Linear().fit(X / X.std())  # what is said not to need a test
    assert (other.cpdag_ == model.cpdag_).all(axis=None)


def test_a_threshold_is_in_units_and_so_are_the_refits(data):
    X = data.X * 10.0 ** np.arange(5)
    assert len(rs.units(rs.Linear(threshold=0.3), X, rescalings=1).factors) == 2


def test_a_direction_that_only_the_units_tell_is_unit_made():
    """Of two Gaussian variables with equal noise that of less variance comes first."""
    rng = np.random.default_rng(0)
    rain = rng.normal(size=500)
    X = pd.DataFrame({"rain": rain, "grass": 2 * rain + rng.normal(size=500)})
    found = rs.units(rs.Linear(), X, rescalings=2)
    assert found.table["verdict"].tolist() == [MADE]
    assert found.table["changes"][0].startswith("left open: standardised")
    assert "0 of 1 edges survive" in found.sentence
    assert "in direction alone" in found.sentence


def test_an_edge_below_the_threshold_in_other_units_is_lost_not_turned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    X = pd.DataFrame({"x": x, "y": 0.05 * x + 0.001 * rng.normal(size=300)})
    X["y"] *= 100  # now y = 5 x; in its own deviation the coefficient is about 1
    known = rs.Linear(threshold=4.0, forbidden=[("y", "x")])
    found = rs.units(known, X, rescalings=0)
    assert found.table[["verdict", "changes"]].to_numpy().tolist() == [[MADE, "lost: standardised"]]
    assert "direction" not in found.sentence


def test_permuted_columns_permute_the_table(data, found):
    order = list(data.X.columns[::-1])
    permuted = rs.units(rs.Linear(), data.X[order])
    key = ["cause", "effect"]
    pd.testing.assert_frame_equal(
        permuted.table.sort_values(key, ignore_index=True),
        found.table.sort_values(key, ignore_index=True),
    )
    pd.testing.assert_frame_equal(permuted.factors[found.factors.columns], found.factors)


def test_a_fitted_model_is_not_fitted_again_and_stays_as_it_is(data, found):
    calls = []
    model = rs.ReScore(rs.Linear()).fit(data.X)
    before = model.adjacency_matrix_.copy()
    again = rs.units(model, data.X, on_fit=calls.append)
    assert calls == [1, 2, 3, 4]
    pd.testing.assert_frame_equal(model.adjacency_matrix_, before)
    pd.testing.assert_frame_equal(again.factors, found.factors)


def test_same_seed_same_answer_and_another_seed_other_factors(data, found):
    again = rs.units(rs.Linear(), data.X, random_state=0)
    pd.testing.assert_frame_equal(again.table, found.table)
    other = rs.units(rs.Linear(), data.X, random_state=1).factors
    assert (other.iloc[1:] != found.factors.iloc[1:]).all(axis=None)


def test_refits_that_do_not_converge_count_and_are_said(data):
    found = rs.units(rs.Notears(max_steps=1), data.X, rescalings=1)  # and they do not warn
    assert found.not_converged == ("standardised", "rescaling 1")
    assert found.sentence.endswith("2 of 2 refits did not converge.")


def test_weights_and_groups_reach_the_refits(data):
    weight = np.r_[np.ones(200), np.zeros(200)]
    half = rs.units(rs.Linear(), data.X.iloc[:200]).table
    pd.testing.assert_frame_equal(rs.units(rs.Linear(), data.X, sample_weight=weight).table, half)
    grouped = rs.ReScore(rs.Linear(), weighting="inverse-propensity")
    labels = np.repeat(["u", "v"], 200)
    assert len(rs.units(grouped, data.X, groups=labels, rescalings=1).table)
    with pytest.raises(ValueError, match="needs the group of each row"):
        rs.units(grouped, data.X)


def test_constant_columns_and_an_empty_graph(data):
    X = data.X.assign(x4=3.0)
    assert rs.units(rs.Notears(), X, rescalings=1).factors.loc["standardised", "x4"] == 1
    nothing = rs.units(rs.Empty(), data.X)
    assert nothing.table.empty
    assert repr(nothing).startswith("There is no edge that could hang on the units")


def test_other_rows_than_those_of_the_fit_are_refused(data):
    model = rs.Linear().fit(data.X)
    for X in (data.X.iloc[:50], data.X[data.X.columns[::-1]], data.X.iloc[:, :3]):
        with pytest.raises(ValueError, match="Give the table of the fit"):
            rs.units(model, X)
    with pytest.raises(ValueError, match="rescalings must be a whole number of at least 0"):
        rs.units(model, data.X, rescalings=-1)


def test_the_repr_holds_the_table_and_the_sentence(found):
    assert found.sentence in repr(found)
    assert found.table["verdict"][0] in repr(found)
