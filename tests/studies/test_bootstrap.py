import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import rescore as rs
from rescore.protocols import Status
from rescore.studies.bootstrap import draw, fitted, resample, rows_behind, study_of
from rescore.studies.edge_shares import Outcome, edge_table, row_table

D = 6


def chain(n=300, strength=2.0, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    for j in (1, 2):
        X[:, j] += strength * X[:, j - 1]
    return pd.DataFrame(X, columns=list("abc"))


@pytest.fixture(scope="module", name="X")
def few_rows():
    """Few enough rows that resamples disagree."""
    return rs.simulate(nodes=D, degree=2, samples=120, random_state=103).X


@pytest.fixture(scope="module")
def found(X):
    return rs.bootstrap(rs.Linear(), X, resamples=60)


def seeds(count, seed=0):
    return np.random.SeedSequence(seed).spawn(count)


def repeated(X, counts):
    """The rows of a resample themselves."""
    return X.iloc[np.repeat(np.arange(len(X)), counts)].reset_index(drop=True)


@pytest.mark.parametrize("scheme", ["bootstrap", "subsample"])
@pytest.mark.parametrize("model", [rs.Linear(), rs.Notears(), rs.ReScore(rs.Linear(), tau=0.5)])
def test_a_strong_chain_is_certain(model, scheme):
    result = rs.bootstrap(model, chain(), resamples=10, scheme=scheme)
    expected = pd.DataFrame(np.eye(3, k=1), list("abc"), list("abc"))
    pd.testing.assert_frame_equal(result.edges, expected)
    assert result.table["coefficient"].between(1.7, 2.1).all()
    assert (result.table["low"] <= result.table["coefficient"]).all()
    assert (result.table["coefficient"] <= result.table["high"]).all()
    assert result.not_converged == 0


def test_shares_of_both_directions_add_up(found):
    P = found.edges.to_numpy()
    assert ((P > 0) & (P < 1)).any()  # otherwise nothing is tested
    np.testing.assert_array_equal(found.adjacent, P + P.T)
    assert found.adjacent.to_numpy().max() <= 1
    assert (np.diag(P) == 0).all()
    for line in found.table.itertuples():
        assert line.probability == found.edges.loc[line.cause, line.effect]
        assert line.adjacent == found.adjacent.loc[line.cause, line.effect]
        assert line.direction == pytest.approx(line.probability / line.adjacent)
    assert len(found.table) == (P > 0).sum()
    assert found.table["probability"].is_monotonic_decreasing


@pytest.mark.parametrize("model", [rs.Linear(), rs.SortNRegress()])
def test_permuted_columns_permute_the_shares(model, X):
    order = np.random.default_rng(1).permutation(D)
    moved = rs.bootstrap(model, X.iloc[:, order], resamples=20)
    kept = rs.bootstrap(model, X, resamples=20)
    pd.testing.assert_frame_equal(moved.edges.loc[X.columns, X.columns], kept.edges)


@pytest.mark.parametrize(
    "model",
    [
        rs.Linear(),
        rs.Notears(),
        rs.ReScore(rs.Notears(), tau=0.5),
        rs.ReScore(rs.Notears()),
        rs.GES(),
        rs.Linear(standardize=True),
    ],
    ids=str,
)
def test_other_learners_find_what_fit_finds_on_the_rows_themselves(X, model):
    study = study_of(model, X, "bootstrap", None, None)
    for seed in seeds(3):
        outcome = resample(study, seed)
        alone = study.model.fit(repeated(X, outcome.counts))
        np.testing.assert_allclose(outcome.W, alone.adjacency_matrix_, rtol=1e-4, atol=1e-5)
        assert study.by_weight
        if outcome.weight is not None:  # of each copy, times the number of rows
            copies = alone.sample_weight_.to_numpy() * len(X)
            rows = np.repeat(np.arange(len(X)), outcome.counts)
            np.testing.assert_allclose(outcome.weight[rows], copies, rtol=1e-4)
            assert np.isnan(outcome.weight[outcome.counts == 0]).all()


def test_weights_that_are_no_counts_go_with_their_rows(X):
    s = np.random.default_rng(0).uniform(0.5, 2, size=len(X))
    study = study_of(rs.Linear(), X, "bootstrap", s, None)
    counts = study.draw(seeds(1)[0])
    rows = np.repeat(np.arange(len(X)), counts)
    alone = study.model.fit(X.iloc[rows].reset_index(drop=True), sample_weight=s[rows])
    np.testing.assert_allclose(fitted(study, counts).W, alone.adjacency_matrix_, rtol=1e-12)
    assert not rs.bootstrap(rs.Linear(), X, sample_weight=s, resamples=3).weights_vary


def test_a_row_of_weight_k_is_drawn_as_k_rows():
    rows = np.array([1, 0, 3, 6])
    every = np.repeat(np.arange(4), rows)
    rng = np.random.default_rng(0)
    for scheme, size, replace in (("bootstrap", 10, True), ("subsample", 5, False)):
        ours = np.array([draw(rows, scheme, None, rng) for _ in range(4000)])
        theirs = [np.bincount(rng.choice(every, size, replace), minlength=4) for _ in range(4000)]
        assert (ours.sum(axis=1) == size).all()
        np.testing.assert_allclose(ours.mean(axis=0), np.mean(theirs, axis=0), atol=0.1)
        np.testing.assert_allclose(ours.var(axis=0), np.var(theirs, axis=0), rtol=0.15)
    assert rows_behind(np.full(3, 4e8), 3) is None  # numpy could not draw from so many


def test_functions_see_the_rows_of_the_resample_once(X):
    seen = []

    def note(Z):
        seen.append(np.array(Z))
        return np.zeros((D, D))

    rs.bootstrap(note, X, resamples=2)
    study = study_of(rs.Linear(), X, "bootstrap", None, None)
    for Z, seed in zip(seen, seeds(2), strict=True):
        np.testing.assert_array_equal(Z, repeated(X, study.draw(seed)))


def test_groups_keep_their_sizes():
    groups = np.repeat(["u", "v", "w"], [40, 2, 60])
    seen = []

    class Note:
        threshold, needs_groups, tau = 0.0, True, 1.0

        def init(self, n, d):
            return None

        def step(self, problem, losses, state):
            seen.append(np.bincount(problem.groups))
            return problem.prior, None

        def explain(self, state):
            return {}

    X = np.random.default_rng(0).normal(size=(102, 3))
    model = rs.ReScore(rs.Linear(), weighting=Note(), warmup=0)
    rs.bootstrap(model, X, groups=groups, resamples=3)
    assert {tuple(sizes) for sizes in seen} == {(40, 2, 60)}
    seen.clear()
    rs.bootstrap(model, X, groups=groups, resamples=3, scheme="subsample")
    assert {tuple(sizes) for sizes in seen} == {(20, 2, 30)}


def test_known_edges_are_certain(X):
    for model in (rs.Linear, rs.Notears):
        known = model(forbidden=[("x3", "x4")], required=[("x1", "x3")])
        result = rs.bootstrap(known, X, resamples=5)
        assert result.edges.loc["x3", "x4"] == 0
        assert result.edges.loc["x1", "x3"] == 1


def test_the_same_seed_gives_the_same_answer_however_many_jobs(X, found):
    again = rs.bootstrap(rs.Linear(), X, resamples=60)
    pd.testing.assert_frame_equal(found.table, again.table)
    other = rs.bootstrap(rs.Linear(), X, resamples=60, random_state=1)
    assert not other.table.equals(found.table)
    model = rs.ReScore(rs.Linear(), tau=0.5)
    with joblib.parallel_config(backend="threading"):  # processes would take long to start
        one, two = (rs.bootstrap(model, X, resamples=4, n_jobs=jobs) for jobs in (1, 2))
    pd.testing.assert_frame_equal(one.table, two.table)
    pd.testing.assert_frame_equal(one.row_weights, two.row_weights)


def test_the_model_is_not_changed(X):
    model = rs.Linear()
    rs.bootstrap(model, X, resamples=2)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    before = model.fit(X).adjacency_matrix_.copy()
    rs.bootstrap(model, X, resamples=2)
    pd.testing.assert_frame_equal(model.adjacency_matrix_, before)


def test_row_weights_by_brute_force_also_with_labels_that_repeat(X):
    twice = X.set_axis(np.arange(len(X)) % 7)
    result = rs.bootstrap(rs.ReScore(rs.Linear(), tau=0.5), twice, resamples=8)
    study = study_of(rs.ReScore(rs.Linear(), tau=0.5), X, "bootstrap", None, None)
    outcomes = [resample(study, seed) for seed in seeds(8)]
    pd.testing.assert_index_equal(result.row_weights.index, twice.index)
    for i, line in enumerate(result.row_weights.itertuples(index=False)):
        values = [o.weight[i] for o in outcomes if o.counts[i] > 0]
        expected = [np.mean(values), *np.quantile(values, [0.05, 0.95])]
        np.testing.assert_allclose([line.mean, line.low, line.high], expected)
        assert line.drawn == sum(o.counts[i] for o in outcomes)
    assert result.weights_vary
    assert result.row_weights["low"].min() >= 0.5 - 1e-9
    assert result.row_weights["high"].max() <= 2 + 1e-9


def test_plain_rows_weigh_one_and_rows_never_drawn_nothing(X):
    result = rs.bootstrap(rs.Linear(), X, resamples=1)
    never = (result.row_weights["drawn"] == 0).to_numpy()
    assert 0 < never.sum() < len(X)
    assert (result.row_weights["mean"].to_numpy()[~never] == 1).all()
    assert np.isnan(result.row_weights["mean"].to_numpy()[never]).all()
    assert not result.weights_vary


def test_coefficients_are_those_of_the_graphs_that_have_the_edge():
    rng = np.random.default_rng(0)
    graphs = rng.normal(size=(30, 3, 3)) * (rng.random((30, 3, 3)) < 0.4) * np.tri(3, k=-1)
    table = edge_table(graphs, pd.Index(list("abc")))
    for line in table.itertuples():
        values = graphs[:, "abc".index(line.cause), "abc".index(line.effect)]
        values = values[values != 0]
        assert line.probability == len(values) / 30
        expected = [values.mean(), *np.quantile(values, [0.05, 0.95])]
        np.testing.assert_allclose([line.coefficient, line.low, line.high], expected)


def test_many_rows_are_summarised_in_parts(monkeypatch):
    rng = np.random.default_rng(0)
    outcomes = []
    for _ in range(5):
        counts = rng.integers(0, 3, size=50)
        weight = np.where(counts > 0, rng.random(50), np.nan)
        outcomes.append(Outcome(np.zeros((1, 1)), counts, Status.CONVERGED, weight))
    whole = row_table(outcomes, pd.RangeIndex(50))
    monkeypatch.setattr("rescore.studies.edge_shares.CHUNK", 7)
    pd.testing.assert_frame_equal(row_table(outcomes, pd.RangeIndex(50)), whole)


def test_fits_that_did_not_converge_are_counted_and_told(X):
    result = rs.bootstrap(rs.Notears(max_steps=1), X, resamples=4)
    assert result.statuses == {"STEP_LIMIT": 4}
    assert result.not_converged == 4
    assert "4 fit(s) did not converge" in str(result)
    assert result.edges.to_numpy().max() > 0  # and they count


def test_it_reads_well(X, found):
    text = str(found)
    assert text.startswith("60 bootstrap resamples of 120 rows; all fits converged.")
    assert f"and {len(found.table) - 20} more" in text or len(found.table) <= 20
    assert "100 %" in text
    assert "No resample has an edge." in str(rs.bootstrap(rs.Empty(), X, resamples=3))


# In processes: threads share their filters of warnings, and one may undo what another has set.
@pytest.mark.parametrize(
    ("model", "jobs"), [(rs.Linear(), 1), (rs.Linear(), 2), (rs.SortNRegress(), 1)]
)
def test_ctrl_c_keeps_what_was_done(X, model, jobs):
    def stop(done):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="after 3 of 20 resamples"):
        result = rs.bootstrap(model, X, resamples=20, n_jobs=jobs, on_resample=stop)
    assert result.interrupted
    assert "Stopped by Ctrl-C" in str(result)
    whole = rs.bootstrap(model, X, resamples=3)
    assert not whole.interrupted
    pd.testing.assert_frame_equal(result.table, whole.table)


def test_ctrl_c_in_the_first_fit_stops(X):
    def stop(Z):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rs.bootstrap(stop, X, resamples=3)


def test_progress_is_told(X):
    seen = []
    rs.bootstrap(rs.SortNRegress(), X, resamples=3, on_resample=seen.append)
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"resamples": 0}, ValueError, "resamples must be a whole number of at least 1"),
        ({"scheme": "jackknife"}, ValueError, "scheme must be one of bootstrap, subsample"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"model": "linear"}, TypeError, "A learner such as"),
        ({"model": rs.Linear(threshold=-1)}, ValueError, "threshold must be"),
        ({"X": np.eye(5)}, ValueError, "at least 10 rows"),
        ({"sample_weight": [1.0]}, ValueError, "sample_weight must be 1D"),
        ({"groups": ["a"]}, ValueError, "learns without groups"),
        ({"model": rs.DICD()}, ValueError, "DICD needs the group of each row"),
    ],
)
def test_bad_input_is_refused_in_words(change, error, words, X):
    call = {"model": rs.Linear(), "X": X, "resamples": 2} | change
    with pytest.raises(error, match=words):
        rs.bootstrap(**call)


def test_a_resample_that_cannot_be_fitted_is_told_from_the_rows():
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[:, 1] = np.arange(30) == 7
    with pytest.raises(ValueError, match="In a resample of the rows: Required edges touch"):
        rs.bootstrap(rs.Linear(required=[("x0", "x1")]), X, resamples=20)
