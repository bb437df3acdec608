from itertools import product

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.graph.dag import cpdag, is_dag
from rescore.learners.ges import GESBackbone, equivalence_search
from rescore.protocols import Problem, Status

NOTHING = np.zeros((5, 5), dtype=bool)


def simulated(seed, nodes=8, degree=1, samples=2000):
    return rs.simulate("ER", nodes=nodes, degree=degree, samples=samples, random_state=seed)


def gaussian_bic(S, A, rows):
    """By determinants: a variable's residual variance is det(family) / det(parents)."""
    total = 0.0
    for j in range(len(S)):
        parents = np.flatnonzero(A[:, j]).tolist()
        dets = [np.linalg.slogdet(S[np.ix_(k, k)])[1] for k in ([*parents, j], parents)]
        total -= rows * (1 + dets[0] - dets[1]) / 2 + (len(parents) + 1) * np.log(rows) / 2
    return total


@pytest.mark.parametrize(("seed", "nodes", "degree"), [(100, 8, 1), (101, 8, 2), (102, 10, 3)])
def test_it_finds_what_causal_learn_finds_with_the_same_score(seed, nodes, degree):
    ges = pytest.importorskip("causallearn.search.ScoreBased.GES").ges
    X = simulated(seed, nodes, degree).X.to_numpy()
    theirs = ges(X)
    ends = theirs["G"].graph
    model = rs.GES().fit(X)
    assert (model.cpdag_.to_numpy() == ((ends == -1) & (ends.T != 0))).all()
    assert -model.history_["objective"].iloc[0] == pytest.approx(theirs["score"], rel=1e-7)


def test_the_objective_is_minus_the_bic():
    X = simulated(103).X
    model = rs.GES().fit(X)
    S = np.cov(X.to_numpy().T, ddof=0)
    expected = -gaussian_bic(S, model.adjacency_matrix_.to_numpy(), len(X))
    assert model.history_["objective"].iloc[0] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("seed", [104, 105])
def test_with_many_rows_it_finds_the_class_of_a_sparse_graph(seed):
    data = simulated(seed, samples=20000)
    assert (rs.GES().fit(data.X).cpdag_.to_numpy() == cpdag(data.truth.to_numpy())).all()


def test_no_class_of_four_variables_is_better_than_the_one_found():
    """All 543 DAGs, on data where greed has nothing to stumble over."""
    X = simulated(106, nodes=4, samples=5000).X.to_numpy()
    S, pairs = np.cov(X.T, ddof=0), np.argwhere(~np.eye(4, dtype=bool))
    graphs = np.zeros((2**12, 4, 4), dtype=bool)
    graphs[:, pairs[:, 0], pairs[:, 1]] = list(product([False, True], repeat=12))
    best = max(gaussian_bic(S, A, len(X)) for A in graphs if is_dag(A))
    assert -rs.GES().fit(X).history_["objective"].iloc[0] == pytest.approx(best, rel=1e-9)


def test_the_units_do_not_matter_for_the_class():
    X = simulated(107, degree=2).X
    scaled = X * 10.0 ** np.arange(-4, 4)
    pd.testing.assert_frame_equal(rs.GES().fit(X).cpdag_, rs.GES().fit(scaled).cpdag_)


def test_repeated_rows_are_weights_in_covariance_and_number_of_rows():
    X = simulated(108, samples=150).X
    counts = np.random.default_rng(0).integers(0, 5, size=len(X))
    weighted = rs.GES().fit(X, sample_weight=counts)
    repeated = rs.GES().fit(X.loc[X.index.repeat(counts)])
    np.testing.assert_allclose(weighted.adjacency_matrix_, repeated.adjacency_matrix_, atol=1e-9)
    np.testing.assert_allclose(weighted.history_["objective"], repeated.history_["objective"])


def test_moments_alone_give_the_same_graph():
    X = simulated(109).X
    rows = rs.GES().fit(X)
    moments = rs.GES().fit_moments(X.cov(ddof=0), n_rows=len(X))
    np.testing.assert_allclose(moments.adjacency_matrix_, rows.adjacency_matrix_, atol=1e-9)


def test_coefficients_are_regressions_and_undirected_edges_point_at_the_wider_variable(chain):
    model = rs.GES().fit(chain)
    assert (model.cpdag_.to_numpy() == np.eye(5, k=1) + np.eye(5, k=-1)).all()
    W = model.adjacency_matrix_.to_numpy()
    assert ((W != 0) == np.eye(5, k=1)).all()
    for j in range(1, 5):
        slope = np.polyfit(chain[:, j - 1], chain[:, j], 1)[0]
        assert W[j - 1, j] == pytest.approx(slope, rel=1e-6)


def test_a_constant_column_is_alone():
    X = simulated(110).X
    plain = rs.GES().fit(X)
    with pytest.warns(match="Constant"):
        model = rs.GES().fit(X.assign(same=5.0))
    assert not model.cpdag_.loc["same"].any()
    assert not model.cpdag_["same"].any()
    pd.testing.assert_frame_equal(model.cpdag_.iloc[:-1, :-1], plain.cpdag_)


def test_under_rescore_it_stops_when_weights_or_graph_repeat():
    X = simulated(111, samples=500).X
    model = rs.ReScore(rs.GES(), tau=0.5).fit(X)
    assert model.status_ is Status.CONVERGED
    assert 2 <= len(model.history_) < 20
    assert model.history_["effective_rows"].iloc[0] == pytest.approx(500)
    assert model.history_["effective_rows"].iloc[-1] < 499
    uniform = rs.ReScore(rs.GES(), tau=1.0).fit(X)
    assert (uniform.adjacency_matrix_ == rs.GES().fit(X).adjacency_matrix_).all(axis=None)


def test_the_bic_counts_the_effective_rows():
    """Weights that leave 40 of 400 rows must not find more than 40 rows would."""
    X = np.random.default_rng(0).normal(size=(400, 5))
    X[:, 1] += 0.3 * X[:, 0]
    problem = Problem.unconstrained(X)
    w = np.where(np.arange(400) < 40, 1 / 40, 1e-12)
    learner = GESBackbone()
    weighted = learner.step(problem, w / w.sum(), learner.init(problem))
    few = Problem.unconstrained(X[:40])
    alone = learner.step(few, few.prior, learner.init(few))
    np.testing.assert_allclose(weighted.params.W, alone.params.W, atol=1e-6)


@pytest.mark.parametrize("seed", range(100, 110))
def test_masks_hold_whatever_the_data_say(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5))
    order = rng.permutation(5)
    required = NOTHING.copy()
    required[order[0], order[1]] = required[order[1], order[2]] = True
    allowed = (rng.random((5, 5)) < 0.7) & ~np.eye(5, dtype=bool) | required
    A = equivalence_search(np.corrcoef(X.T), 300.0, allowed, required, 4)
    assert is_dag(A)
    assert not (A & ~allowed).any()
    assert (A & required == required).all()


def test_a_required_direction_decides_within_the_class(chain):
    names = [f"x{i}" for i in range(5)]
    backwards = rs.GES(required=[(names[4], names[3])]).fit(chain)
    assert (backwards.cpdag_ == rs.GES().fit(chain).cpdag_).all(axis=None)
    assert ((backwards.adjacency_matrix_.to_numpy() != 0) == np.eye(5, k=-1)).all()


def test_parents_are_limited_by_the_rows_and_by_the_caller():
    data = simulated(112, nodes=10, degree=3)
    assert (rs.GES(max_parents=1).fit(data.X).cpdag_.sum() <= 9).all()
    assert (rs.GES(max_parents=1).fit(data.X).adjacency_matrix_ != 0).sum().max() == 1
    tiny = np.random.default_rng(0).normal(size=(12, 10))
    assert (rs.GES().fit(tiny, sample_weight=np.ones(12)).adjacency_matrix_ != 0).sum().max() <= 1
    with pytest.raises(ValueError, match="max_parents must be a whole number of at least 1, got 0"):
        rs.GES(max_parents=0).fit(data.X)


def test_the_class_needs_a_fit_and_survives_saving(chain, tmp_path):
    assert not hasattr(rs.GES(), "cpdag_")
    model = rs.GES().fit(chain)
    rs.save(model, tmp_path)
    pd.testing.assert_frame_equal(rs.load(tmp_path).cpdag_, model.cpdag_)
