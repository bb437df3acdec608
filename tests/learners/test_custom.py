import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import rescore as rs
from rescore.learners.custom import systematic_counts
from rescore.learners.custom_answers import returned_graph
from rescore.protocols import State, Status
from rescore.weightings import Exact


def upper(S, at=0.3):
    """Regress every column on those to its left."""
    W = np.zeros_like(S)
    for j in range(1, len(S)):
        W[:j, j] = np.linalg.solve(S[:j, :j], S[:j, j])
    return np.where(np.abs(W) > at, W, 0)


def black_box(X):
    return upper(np.cov(X.T))


def weighted(X, sample_weight):
    return upper(np.cov(X.T, aweights=sample_weight))


def from_covariance(cov, n):
    return upper(cov)


def from_long_names(n_rows, covariance):
    return upper(covariance)


class Stepper:
    """Four methods; half of the way to the regressions at each of three steps."""

    threshold = 0.1

    def init(self, problem):
        return State((0, np.zeros(problem.allowed.shape)))

    def step(self, problem, w, state):
        count, W = state.params
        goal = np.zeros_like(W)
        used = np.flatnonzero(problem.allowed.any(axis=0))
        S = problem.rows.moments(w).covariance[np.ix_(used, used)]
        goal[np.ix_(used, used)] = upper(S)
        done = count == 2
        status = Status.CONVERGED if done else Status.RUNNING
        return State((count + 1, goal if done else (W + goal) / 2), status)

    def losses(self, problem, state):
        mean = problem.prior @ problem.rows.matrix()
        return problem.rows.squared_residuals(state.params[1], mean)

    def adjacency(self, state):
        return state.params[1]


FUNCTIONS = [black_box, weighted, from_covariance, from_long_names]
LEARNERS = [*FUNCTIONS, Stepper()]
WEIGHABLE = FUNCTIONS[1:]


def name_of(learner):
    return getattr(learner, "__name__", type(learner).__name__)


@pytest.fixture
def frame(chain):
    return pd.DataFrame(chain, columns=list("abcde"))


@pytest.mark.parametrize("learner", LEARNERS, ids=name_of)
def test_every_kind_offers_what_an_estimator_offers(learner, frame):
    model = rs.Custom(learner).fit(frame)
    assert list(model.causal_graph_.edges) == [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]
    assert model.status_ is Status.CONVERGED
    assert model.losses_.shape == frame.shape
    assert model.predict(frame).shape == frame.shape
    assert model.score(frame) > rs.Custom(lambda X: np.eye(5, k=4)).fit(frame).score(frame)
    around = rs.ReScore(learner, tau=0.5).fit(frame)
    assert set(around.causal_graph_.edges) == set(model.causal_graph_.edges)
    assert around.sample_weight_.max() == pytest.approx(2 / len(frame))
    assert around.history_["effective_rows"].iloc[-1] < len(frame)


@pytest.mark.parametrize(
    ("function", "plain"),
    [
        (black_box, lambda X: black_box(X)),
        (weighted, lambda X: weighted(X, np.ones(len(X)))),
        (from_covariance, lambda X: from_covariance(np.cov(X.T, ddof=0), len(X))),
    ],
)
@pytest.mark.parametrize("n", [49, 300])  # 49 · (1/49) is not one in floating point
def test_equal_weights_are_the_plain_function(function, plain, n, chain):
    for model in (rs.Custom(function), rs.ReScore(function, tau=1.0)):
        W = model.fit(chain[:n]).adjacency_matrix_.to_numpy()
        np.testing.assert_allclose(W, plain(chain[:n]), rtol=1e-9)


def test_a_black_box_gets_the_very_rows_if_all_weights_are_equal(chain):
    seen = []

    def note(X):
        seen.append(X.copy())
        X[:] = 0.0  # what it does to its rows is its own affair
        return np.eye(5, k=1)

    before = chain.copy()
    rs.Custom(note, random_state=3).fit(chain)
    assert (seen[0] == before).all()
    assert (chain == before).all()


@pytest.mark.parametrize("function", WEIGHABLE, ids=name_of)
def test_permuted_rows_give_the_same_graph_and_permuted_weights(function, chain):
    order = np.random.default_rng(1).permutation(len(chain))
    one, other = (rs.ReScore(function, tau=0.5).fit(X) for X in (chain, chain[order]))
    np.testing.assert_allclose(one.adjacency_matrix_, other.adjacency_matrix_, atol=1e-9)
    np.testing.assert_allclose(one.sample_weight_[order], other.sample_weight_, atol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS, ids=name_of)
def test_a_row_repeated_k_times_equals_weight_k(function, chain):
    counts = np.random.default_rng(0).integers(1, 4, size=len(chain))
    repeated = rs.Custom(function).fit(np.repeat(chain, counts, axis=0))
    by_weight = rs.Custom(function).fit(chain, sample_weight=counts)
    np.testing.assert_allclose(repeated.adjacency_matrix_, by_weight.adjacency_matrix_, rtol=1e-9)


def test_weights_and_rows_add_up_to_the_effective_rows(chain):
    seen = {}

    def note_weights(X, sample_weight):
        seen["weights"] = sample_weight
        return np.eye(5, k=1)

    def note_rows(X):
        seen["rows"] = len(X)
        return np.eye(5, k=1)

    def note_count(cov, n):
        seen["n"] = n
        return np.eye(5, k=1)

    for function in (note_weights, note_rows, note_count):
        model = rs.ReScore(function, tau=0.5).fit(chain)
    rows = model.diagnostics_["effective_rows"]
    assert rows < 0.7 * len(chain)
    assert seen["weights"].sum() == pytest.approx(rows)
    assert seen["rows"] == seen["n"] == round(rows)


@given(
    st.lists(st.floats(0.01, 1), min_size=1, max_size=40),
    st.integers(1, 100),
    st.floats(0, 1, exclude_max=True),
)
def test_counts_are_within_one_of_what_the_weights_ask_for(weights, draws, offset):
    w = np.array(weights) / np.sum(weights)
    counts = systematic_counts(w, draws, offset)
    assert counts.sum() == draws
    assert (np.abs(counts - draws * w) < 1 + 1e-6).all()


@given(st.integers(1, 500), st.integers(1, 3), st.floats(0, 1, exclude_max=True))
def test_equal_weights_draw_every_row_equally_often(n, times, offset):
    assert (systematic_counts(np.full(n, 1 / n), times * n, offset) == times).all()


def test_over_all_offsets_the_mean_count_is_the_weight():
    w = np.array([0.4, 0.05, 0.25, 0.3])
    counts = [systematic_counts(w, 7, offset) for offset in np.arange(0.0005, 1, 0.001)]
    np.testing.assert_allclose(np.mean(counts, axis=0), 7 * w, atol=2e-3)


@pytest.mark.parametrize(
    "returned",
    [
        nx.DiGraph([(0, 1)]),  # nodes without edges may be left out
        pd.DataFrame([[0, 0, 0], [0, 0, 0], [0, 1, 0]], [1, 2, 0], [0, 1, 2]),
        [[False, True, False], [False, False, False], [False, False, False]],
    ],
)
def test_graphs_are_understood_in_every_form(returned):
    assert np.argwhere(returned_graph(returned, 3)).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "returned None, which is no graph"),
        ("a graph", "no graph"),
        (np.zeros((5, 4)), r"shape \(5, 4\) for 5 columns"),
        (np.full((5, 5), np.nan), "25 NaN"),
        (np.eye(5), "self-loop"),
        (nx.Graph([(0, 1)]), "networkx.DiGraph"),
        (nx.DiGraph([("a", "b")]), "labels 'a', 'b'"),
        (pd.DataFrame(np.zeros((5, 5)), list("abcde"), list("abcde")), "numbered 0 to 4"),
        (np.eye(5, k=1) - np.eye(5, k=-1), "graph == -1"),
    ],
)
def test_what_is_no_graph_is_refused_in_a_sentence(returned, words, chain):
    with pytest.raises((TypeError, ValueError), match=words) as caught:
        rs.Custom(lambda X: returned).fit(chain)
    assert str(caught.value).endswith(".") or "lambda" in str(caught.value)


class _Fit:
    def fit(self, X):
        return self


class _Half:
    def init(self, problem): ...

    def step(self, problem, w, state): ...


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        (_Fit(), "lambda X: _Fit().fit(X).adjacency_matrix_.T"),
        (rs.Notears, "Notears is a class; give an object of it, Notears()"),
        (rs.ReScore(rs.Notears()), "cannot be wrapped"),
        ("notears", "A learner such as Notears()"),
        (_Half(), "lacks losses, adjacency"),
        (lambda cov: cov, "Add a second parameter: f(cov, n)"),
    ],
)
def test_what_is_no_learner_is_refused_with_the_remedy(learner, words, chain):
    for model in (rs.ReScore(learner), rs.Custom(learner)):
        with pytest.raises(TypeError, match=re.escape(words)):
            model.fit(chain)


def test_an_error_in_the_users_code_is_the_users_to_see(chain):
    class MineError(Exception):
        pass

    def fails(X):
        raise MineError("my own words")

    with pytest.raises(MineError, match=r"^my own words$"):
        rs.ReScore(fails).fit(chain)


def test_cycles_are_cut_and_told(chain):
    def undirected(X):
        return np.eye(5, k=1) + np.eye(5, k=-1)

    with pytest.warns(UserWarning, match="closed a cycle"):
        model = rs.Custom(undirected).fit(chain)
    assert nx.is_directed_acyclic_graph(model.causal_graph_)
    assert len(model.diagnostics_["removed_edges"]) == 4


@pytest.mark.parametrize("learner", LEARNERS, ids=name_of)
@pytest.mark.filterwarnings("ignore::rescore.tables.convert.DataWarning")
def test_a_constant_column_is_an_isolated_node(learner, frame):
    frame.insert(2, "still", 7.0)
    model = rs.ReScore(learner, tau=0.5).fit(frame)
    assert set(model.causal_graph_.edges) == {("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")}
    assert (model.predict(frame)["still"] == 7.0).all()
    assert np.isfinite(model.score(frame))


def test_a_function_refuses_knowledge_and_an_object_must_obey_it(frame):
    with pytest.raises(ValueError, match="no way to obey"):
        rs.Custom(black_box, forbidden=[("a", "b")]).fit(frame)
    with pytest.raises(ValueError, match=r"from column 0 to column 1.*problem\.allowed"):
        rs.Custom(Stepper(), forbidden=[("a", "b")]).fit(frame)


def test_an_object_must_return_states_and_finite_losses(chain):
    class NoState(Stepper):
        def step(self, problem, w, state):
            return 1.0

    class Diverged(Stepper):
        def losses(self, problem, state):
            return np.full(problem.rows.shape, np.inf)

    with pytest.raises(TypeError, match=r"step must return a rescore\.protocols\.State"):
        rs.Custom(NoState()).fit(chain)
    with pytest.raises(ValueError, match=r"table of losses with .* NaN or infinite"):
        rs.ReScore(Diverged(), tau=0.5).fit(chain)


def test_an_object_may_bring_its_own_equations(chain):
    from rescore.learners.linear import OrderBackbone

    ours, wrapped = rs.Linear().fit(chain), rs.Custom(OrderBackbone()).fit(chain)
    pd.testing.assert_frame_equal(wrapped.adjacency_matrix_, ours.adjacency_matrix_)
    pd.testing.assert_frame_equal(wrapped.predict(chain), ours.predict(chain))


def test_automatic_weights_are_balanced_before_a_linear_fit_and_between_others(chain):
    calls = []

    def counted(cov, n):
        calls.append(n)
        return upper(cov)

    rs.ReScore(counted).fit(chain)
    assert len(calls) == 1
    rs.ReScore(rs.Custom(counted, is_linear=False)).fit(chain)
    assert len(calls) == 2  # homogeneous rows keep their weights, so there is no third
    rs.ReScore(counted, weighting=Exact(0.5)).fit(chain)
    assert len(calls) > 3
    assert rs.Custom(black_box).linear is False
    assert rs.Custom(Stepper()).linear is False


def test_a_torch_model_is_weighted_like_the_same_model_in_numpy(chain):
    torch = pytest.importorskip("torch")

    class Torch(Stepper):
        def losses(self, problem, state):
            W = torch.nn.Parameter(torch.tensor(state.params[1]))
            X = torch.tensor(problem.rows.matrix() - problem.prior @ problem.rows.matrix())
            return (X - X @ W).square()

        def adjacency(self, state):
            return torch.nn.Parameter(torch.tensor(state.params[1]))

    one, other = (rs.ReScore(learner(), tau=0.3).fit(chain) for learner in (Stepper, Torch))
    np.testing.assert_allclose(one.adjacency_matrix_, other.adjacency_matrix_, atol=1e-9)
    np.testing.assert_allclose(one.sample_weight_, other.sample_weight_, atol=1e-12)


@pytest.mark.parametrize("learner", LEARNERS, ids=name_of)
def test_clone_parameters_and_text_are_as_of_any_estimator(learner, chain):
    model = rs.ReScore(rs.Custom(learner, threshold=0.2), tau=0.4)
    again = clone(model)
    assert again.get_params()["estimator__threshold"] == 0.2
    assert "Custom" in repr(again)
    assert name_of(learner) in repr(clone(rs.ReScore(learner)))
    W = again.fit(chain).adjacency_matrix_
    pd.testing.assert_frame_equal(W, model.fit(chain).adjacency_matrix_)


@pytest.mark.parametrize("learner", LEARNERS, ids=name_of)
def test_code_is_not_saved(learner, chain, tmp_path):
    for model in (rs.Custom(learner), rs.ReScore(learner)):
        with pytest.raises(TypeError, match="is code, not data"):
            rs.save(model.fit(chain), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_neural_weights_by_name_are_a_line_for_linear_learners_and_a_network_for_others(chain):
    from rescore.weightings.neural import Neural

    for learner, hidden in ((from_covariance, ()), (black_box, (10, 10))):
        by_name = rs.ReScore(learner, weighting="neural", tau=0.4).fit(chain)
        own = rs.ReScore(learner, weighting=Neural(0.4, hidden=hidden)).fit(chain)
        assert (by_name.sample_weight_ == own.sample_weight_).all()
        assert by_name.sample_weight_.max() > 1.5 / len(chain)
