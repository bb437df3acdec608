import inspect
import itertools

import joblib
import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.learners.linear import OrderBackbone
from rescore.studies import Given
from rescore.studies.advise import choose, fits_needed, sentence
from rescore.studies.differences import stabilities
from rescore.studies.scored_path import pruned_score, splits


@pytest.fixture(scope="module")
def data():
    return rs.simulate(nodes=5, degree=1, samples=400, random_state=100)


@pytest.fixture(scope="module")
def found(data):
    return rs.advise(rs.Notears(), data.X, lambdas=[0.03, 0.1], thresholds=[0, 0.1, 0.3, 1])


def parts(X, folds=5, subsamples=6, seed=0, groups=None):
    return splits(Given.of(X, groups=groups), folds, subsamples, seed)


def log_likelihood(X, graph, test):
    """By least squares with an intercept, one variable at a time."""
    total = np.zeros(len(test))
    for j in range(X.shape[1]):
        A, B = (np.c_[np.ones(len(Z)), Z[:, graph[:, j]]] for Z in (X, test))
        beta = np.linalg.lstsq(A, X[:, j], rcond=None)[0]
        variance = np.mean((X[:, j] - A @ beta) ** 2)
        residual = test[:, j] - B @ beta
        total += -0.5 * (residual**2 / variance + np.log(2 * np.pi * variance))
    return total.mean()


def test_held_out_numbers_are_those_of_fits_made_by_hand(data, found):
    X, folds = data.X.to_numpy(), parts(data.X).folds
    scores = np.empty((len(found.table), len(folds)))
    for k, point in enumerate(found.table.to_dict("records")):
        model = rs.Notears(point["lambda1"], threshold=point["threshold"])
        for f, (rows, test) in enumerate(folds):
            graph = model.fit(X[rows]).adjacency_matrix_.to_numpy() != 0
            scores[k, f] = log_likelihood(X[rows], graph, X[test])
    np.testing.assert_allclose(found.table["log_likelihood"], scores.mean(axis=1))
    behind = scores[scores.mean(axis=1).argmax()] - scores
    np.testing.assert_allclose(found.table["behind"], behind.mean(axis=1), atol=1e-12)
    error = behind.std(axis=1, ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(found.table["behind_se"], error, atol=1e-12)


def test_edges_and_stability_are_those_of_fits_made_by_hand(data, found):
    for point in found.table.to_dict("records"):
        model = rs.Notears(point["lambda1"], threshold=point["threshold"])
        assert point["edges"] == len(model.fit(data.X).causal_graph_.edges)
        halves = [model.fit(data.X.iloc[rows]).adjacency_matrix_.to_numpy() != 0
                  for rows in parts(data.X).halves]  # fmt: skip
        assert point["stability"] == pytest.approx(np.mean(stabilities(halves)))


def test_the_score_of_other_learners_is_their_own(data):
    """One fit without a threshold tells what a fit with each threshold would score."""
    learner = rs.Custom(OrderBackbone(), is_linear=False)
    found = rs.advise(learner, data.X, thresholds=[0, 0.8, 1.2])
    assert found.table["edges"].nunique() > 1
    for point in found.table.to_dict("records"):
        model = rs.Custom(OrderBackbone(), is_linear=False, threshold=point["threshold"])
        scores = [model.fit(data.X.iloc[rows]).score(data.X.iloc[test])
                  for rows, test in parts(data.X).folds]  # fmt: skip
        assert point["log_likelihood"] == pytest.approx(np.mean(scores))


@pytest.mark.filterwarnings("ignore")  # one step is not a whole fit, but enough to have edges
@pytest.mark.parametrize("standardize", [False, True])
def test_networks_blind_to_an_edge_score_as_with_the_threshold_that_drops_it(data, standardize):
    X, test = data.X.iloc[:100, :3], data.X.iloc[100:, :3]
    known = {"scheme": "paper", "hidden": (3,), "max_steps": 1, "standardize": standardize}
    whole = rs.NotearsMLP(threshold=0.0, **known).fit(X)
    strengths = np.sort(whole.adjacency_matrix_.to_numpy()[whole.adjacency_matrix_ != 0])
    at = float(strengths[1])
    graph = whole.adjacency_matrix_.to_numpy() >= at
    assert 0 < graph.sum() < len(strengths)
    expected = rs.NotearsMLP(threshold=at, **known).fit(X).score(test)
    assert pruned_score(whole, graph, Given.of(X), Given.of(test)) == pytest.approx(expected)


def test_the_recommended_point_is_in_the_table_and_in_the_estimator(found):
    (chosen,) = found.table[found.table["recommended"]].to_dict("records")
    assert found.recommended == {name: chosen[name] for name in ("lambda1", "threshold")}
    assert isinstance(found.estimator, rs.Notears)
    params = found.estimator.get_params()
    assert {name: params[name] for name in found.recommended} == found.recommended
    assert not hasattr(found.estimator, "adjacency_matrix_")
    for words in (f"lambda1 = {chosen['lambda1']:g}", f"{chosen['edges']} edges", "No true graph"):
        assert words in found.sentence
    assert found.sentence in repr(found)


def test_the_rule_is_the_sparsest_within_one_error_and_then_the_most_stable(found):
    near = found.table[found.table["behind"] <= found.table["behind_se"] + 1e-9]
    sparsest = near[near["edges"] == near["edges"].min()]
    (chosen,) = found.table[found.table["recommended"]].to_dict("records")
    assert chosen["stability"] == sparsest["stability"].max() >= 0.9
    assert chosen["edges"] == sparsest["edges"].iloc[0]


def test_an_unstable_graph_is_not_preferred_to_the_own_setting():
    """Two variables of equal variance: the direction is a coin's, so nothing is recommended."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=200)
    X = pd.DataFrame({"x": x, "y": 0.8 * x + 0.6 * rng.normal(size=200)})
    found = rs.advise(rs.Linear(threshold=0.9), X, thresholds=[0, 0.9])
    assert found.table["edges"].tolist() == [1, 0]
    assert found.table["stability"].iloc[0] < 0.9
    assert found.table["behind"].iloc[1] > found.table["behind_se"].iloc[1]
    assert found.recommended == {"threshold": 0.9}
    assert "is not stable enough to be preferred" in found.sentence
    assert "directions are often wrong" in found.sentence
    other = rs.advise(rs.Linear(threshold=0.5), X, thresholds=[0, 0.9])  # its own was not tried
    assert other.recommended == {"threshold": 0.0}
    assert "directions are often wrong" in other.sentence


def test_what_is_less_steady_is_never_kept_for_the_sake_of_steadiness():
    points = {"threshold": [0.1, 0.3], "edges": [9, 5], "log_likelihood": [-1.0, -1.1]}
    table = pd.DataFrame(points | {"behind": [0.0, 0.1], "behind_se": [0.0, 0.2]})
    for own, sparsest in itertools.product([0.5, 0.76, 0.78, 0.95], repeat=2):
        table["stability"] = [own, sparsest]
        choice = choose(table, {"threshold": 0.1})
        steady = table["stability"][choice.recommended]
        assert steady >= min(0.9, max(own, sparsest))
        if choice.recommended == choice.own:
            assert own > sparsest
        told = sentence(table, choice, ["threshold"])
        assert ("no steadier" in told) == (steady == sparsest < 0.9)


def test_the_truth_is_no_parameter():
    assert not {"truth", "true_graph", "y"} & set(inspect.signature(rs.advise).parameters)
    assert not {"truth", "true_graph", "y"} & set(inspect.signature(rs.units).parameters)


def test_same_seed_same_answer_whatever_the_number_of_jobs(data):
    first = rs.advise(rs.Linear(), data.X)
    with joblib.parallel_config(backend="threading"):  # processes take seconds to start
        again = rs.advise(rs.Linear(), data.X, n_jobs=2)
    pd.testing.assert_frame_equal(again.table, first.table)
    assert again.sentence == first.sentence
    other = rs.advise(rs.Linear(), data.X, random_state=1).table["log_likelihood"]
    assert (other != first.table["log_likelihood"]).any()


def test_by_default_the_grids_are_around_the_own_setting(data):
    calls = []
    found = rs.advise(rs.Dagma(), data.X.iloc[:100], folds=2, subsamples=2, on_fit=calls.append)
    assert sorted(found.table["lambda1"].unique()) == [0.002, 0.006, 0.02, 0.06]
    assert {0.0, 0.3} <= set(found.table["threshold"])
    strongest = np.abs(rs.Dagma().fit(data.X.iloc[:100]).adjacency_matrix_).max(axis=None)
    assert found.table["threshold"].max() <= 1.2 * max(strongest, 0.3)
    assert calls == list(range(1, fits_needed(rs.Dagma(), None, 2, 2) + 1))


def test_a_learner_without_lambda_is_advised_on_its_threshold_alone(data):
    found = rs.advise(rs.ReScore(rs.Linear()), data.X)
    assert "lambda1" not in found.table
    assert list(found.recommended) == ["threshold"]
    assert found.estimator.estimator.threshold == found.recommended["threshold"]
    with pytest.raises(ValueError, match="Linear has no lambda1, only a threshold"):
        rs.advise(rs.Linear(), data.X, lambdas=[0.1])


def test_one_that_chooses_its_own_lambda_keeps_it(data):
    found = rs.advise(rs.Golem(), data.X.iloc[:60, :3], folds=2, subsamples=2)
    assert list(found.recommended) == ["threshold"]
    assert found.estimator.lambda1 is None


def test_learners_without_either_are_named(data):
    with pytest.raises(ValueError, match=r"GES has neither a threshold.*Linear, Notears"):
        rs.advise(rs.GES(), data.X)


def test_required_edges_outlast_every_threshold(data):
    first, last = data.X.columns[0], data.X.columns[-1]
    learner = rs.Linear(required=[(first, last)])
    found = rs.advise(learner, data.X, thresholds=[0, 1e6])
    assert found.table["edges"].iloc[-1] == 1


def test_cycles_that_were_cut_are_told():
    def cyclic(X):
        return np.array([[0, 0.9, 0], [0.5, 0, 0], [0, 0.2, 0]])

    X = np.random.default_rng(0).normal(size=(40, 3))
    table = rs.advise(cyclic, X, thresholds=[0, 0.5, 0.7]).table
    assert table["acyclic"].tolist() == [False, False, True]
    assert table["edges"].tolist() == [2, 1, 1]


def test_folds_part_the_rows_and_halves_come_in_complementary_pairs(data):
    found = parts(data.X, folds=3, subsamples=5)
    every = np.arange(len(data.X))
    assert np.array_equal(np.sort(np.concatenate([test for _, test in found.folds])), every)
    assert all(np.array_equal(np.union1d(*fold), every) for fold in found.folds)
    assert np.array_equal(np.union1d(*found.halves[:2]), every)
    assert [len(half) for half in found.halves] == [200] * 5


def test_groups_are_spread_over_folds_and_halves(data):
    labels = np.where(np.arange(400) < 30, "few", "many")
    found = parts(data.X, folds=5, groups=labels)
    assert {int((labels[test] == "few").sum()) for _, test in found.folds} == {6}
    assert {int((labels[half] == "few").sum()) for half in found.halves} == {15}
    grouped = rs.ReScore(rs.Linear(), weighting="inverse-propensity")
    assert len(rs.advise(grouped, data.X, groups=labels, thresholds=[0.3]).table) == 1


def test_weights_count_in_fits_and_on_rows_left_out(data):
    grid = {"thresholds": [0, 0.3], "folds": 2, "subsamples": 2}
    plain = rs.advise(rs.Linear(), data.X, **grid).table
    same = rs.advise(rs.Linear(), data.X, sample_weight=np.full(400, 2), **grid).table
    np.testing.assert_allclose(same["log_likelihood"], plain["log_likelihood"])
    weight = np.random.default_rng(0).uniform(0.1, 1, size=400)
    other = rs.advise(rs.Linear(), data.X, sample_weight=weight, **grid).table
    assert (np.abs(other["log_likelihood"] - plain["log_likelihood"]) > 1e-6).all()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"folds": 1}, "folds must be a whole number of at least 2"),
        ({"subsamples": 1}, "subsamples must be a whole number of at least 2"),
        ({"thresholds": []}, "thresholds is empty"),
        ({"thresholds": [-1]}, "thresholds must be"),
        ({"lambdas": [0.1, -2]}, "lambdas must be"),
        ({"folds": 300}, "cannot be divided into 300 folds"),
    ],
)
def test_what_makes_no_sense_is_refused(data, wrong, said):
    with pytest.raises(ValueError, match=said):
        rs.advise(rs.Notears(), data.X, **wrong)


def test_rows_beyond_all_measure_are_refused_with_a_sentence(data):
    X = data.X.copy()
    X.iloc[7, 0] = 1e149
    with pytest.raises(ValueError, match="so far from the others"):
        rs.advise(rs.Linear(), X)


def test_the_figure_marks_the_point_and_leaves_matplotlib_alone(found):
    import matplotlib

    before = dict(matplotlib.rcParams)
    figure = found.figure()
    assert [len(axes.lines) for axes in figure.axes] == [2, 2, 2]
    for axes, name in zip(figure.axes, ("log_likelihood", "stability", "edges"), strict=True):
        (mark,) = axes.collections[0].get_offsets().data.tolist()
        point = found.table[found.table["recommended"]].iloc[0]
        assert mark == pytest.approx([point["threshold"], point[name]])
    assert dict(matplotlib.rcParams) == before
