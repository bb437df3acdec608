import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import rescore as rs
from rescore.graph.dag import is_dag
from rescore.learners.baselines import r2, sorted_causes

NAMES = [f"x{i}" for i in range(10)]


def simulated(seed, **options):
    return rs.simulate("ER", nodes=10, degree=2, samples=2000, random_state=seed, **options)


def test_empty_has_the_required_edges_alone_and_no_warning_about_it(chain):
    assert rs.Empty().fit(chain).causal_graph_.size() == 0
    must = rs.Empty(required=[("x0", "x4")]).fit(chain)
    assert list(must.causal_graph_.edges) == [("x0", "x4")]
    np.testing.assert_allclose(rs.Empty().fit(chain).predict(chain), chain.mean(0) + 0 * chain)


def test_random_graphs_have_the_number_of_edges_asked_for():
    X = simulated(100).X
    for degree, edges in ((0, 0), (1, 10), (2, 20), (2.5, 25), (4.5, 45), (99, 45)):
        assert rs.Random(degree=degree).fit(X).causal_graph_.size() == edges


def test_random_graphs_depend_on_the_seed_and_not_on_the_data():
    X = simulated(100).X
    one, same, other = (rs.Random(random_state=seed).fit(X).adjacency_matrix_ for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, same)
    elsewhere = rs.Random(random_state=1).fit(simulated(101).X).adjacency_matrix_
    assert ((one != 0) == (elsewhere != 0)).all(axis=None)
    assert ((one != 0) != (other != 0)).any(axis=None)


def test_random_graphs_treat_all_pairs_alike():
    """5 of the 10 pairs of 5 variables: each ordered pair is joined in a quarter of all graphs."""
    X = np.random.default_rng(0).normal(size=(30, 5))
    graphs = [rs.Random(1, random_state=s).fit(X).adjacency_matrix_ != 0 for s in range(400)]
    share = np.mean(graphs, axis=0)[~np.eye(5, dtype=bool)]
    assert np.abs(share - 0.25).max() < 4 * np.sqrt(0.25 * 0.75 / 400)


@pytest.mark.parametrize("seed", range(5))
def test_random_graphs_honour_knowledge(seed):
    X = simulated(100).X
    must, must_not = [("x0", "x1"), ("x1", "x2")], [("x2", "x3"), ("x3", "x2")]
    model = rs.Random(4, required=must, forbidden=must_not, random_state=seed).fit(X)
    assert set(must) <= set(model.causal_graph_.edges)
    assert not set(must_not) & set(model.causal_graph_.edges)
    assert is_dag(model.adjacency_matrix_)
    assert model.causal_graph_.size() == 40


def test_coefficients_are_weighted_regressions_on_the_parents():
    X = simulated(102).X
    w = np.random.default_rng(0).uniform(0.5, 2, len(X))
    W = rs.Random().fit(X, sample_weight=w).adjacency_matrix_
    for effect in W.columns:
        causes = W.index[W[effect] != 0]
        if len(causes):
            reference = LinearRegression().fit(X[causes], X[effect], sample_weight=w)
            np.testing.assert_allclose(W.loc[causes, effect], reference.coef_, rtol=1e-5)


def test_r2_is_that_of_regressions_on_all_others():
    X = simulated(103).X
    expected = [
        LinearRegression().fit(X.drop(columns=name), X[name]).score(X.drop(columns=name), X[name])
        for name in X
    ]
    np.testing.assert_allclose(r2(np.cov(X.to_numpy().T, ddof=0)), expected, rtol=1e-6)


def test_the_order_is_that_of_the_criterion_with_required_causes_first():
    nothing = np.zeros((4, 4), dtype=bool)
    values = np.array([3.0, 1.0, 2.0, 0.0])
    assert sorted_causes(values, nothing) == [3, 1, 2, 0]
    must = nothing.copy()
    must[0, 3] = must[2, 1] = True
    assert sorted_causes(values, must) == [2, 1, 0, 3]


def test_edges_follow_the_variance_or_r2():
    X = simulated(104).X
    for criterion, values in (("variance", X.var()), ("r2", r2(np.cov(X.to_numpy().T)))):
        W = rs.SortNRegress(criterion).fit(X).adjacency_matrix_.to_numpy()
        causes, effects = np.nonzero(W)
        assert len(causes) > 5
        assert (np.asarray(values)[causes] < np.asarray(values)[effects]).all()


def test_variances_give_away_simulated_graphs_and_standardised_ones_do_not():
    own = rs.evaluate(simulated(105).truth, rs.SortNRegress().fit(simulated(105).X)).shd
    alike = rs.SortNRegress(standardize=True).fit(simulated(105).X)
    assert own <= 8
    assert rs.evaluate(simulated(105).truth, alike).shd > own


def test_r2_does_not_depend_on_units():
    X = simulated(106).X
    one = rs.SortNRegress("r2").fit(X).adjacency_matrix_ != 0
    other = rs.SortNRegress("r2").fit(X * 10.0 ** np.arange(-5, 5)).adjacency_matrix_ != 0
    assert (one == other).all(axis=None)


def test_weights_reach_the_order():
    """Among the first rows x0 is the wider variable, among the others x1 is."""
    x = np.random.default_rng(0).normal(size=(400, 2))
    X = x * np.where(np.arange(400) < 200, [[3], [1]], [[1], [3]]).T
    X[:, 1] += 0.5 * X[:, 0]
    for first, cause in ((10, "x1"), (0.1, "x0")):
        w = np.where(np.arange(400) < 200, first, 1.0)
        model = rs.SortNRegress().fit(X, sample_weight=w)
        assert [edge[0] for edge in model.causal_graph_.edges] == [cause]


@pytest.mark.parametrize("kind", [rs.Empty, rs.Random, rs.SortNRegress])
def test_a_constant_column_is_alone(kind):
    X = simulated(107).X.assign(same=1.0)
    with pytest.warns(match="Constant"):
        model = kind().fit(X)
    assert "same" not in {end for edge in model.causal_graph_.edges for end in edge}


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (rs.Random(degree=-1), "degree must be a number of at least 0, got -1"),
        (rs.Random(random_state=-1), "random_state must be a whole number of at least 0"),
        (rs.SortNRegress("size"), "criterion must be one of variance, r2; got 'size'"),
    ],
)
def test_bad_parameters_are_named(model, words, chain):
    with pytest.raises(ValueError, match=words):
        model.fit(chain)


@pytest.mark.parametrize("kind", [rs.Empty, rs.Random, rs.SortNRegress])
def test_baselines_can_be_saved_and_reweighted(kind, chain, tmp_path):
    model = rs.ReScore(kind(), tau=0.5).fit(chain)
    rs.save(model, tmp_path)
    pd.testing.assert_frame_equal(rs.load(tmp_path).adjacency_matrix_, model.adjacency_matrix_)
