from collections import Counter

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rescore as rs
from rescore.studies.differences import OUT_OF_BAG, answer, changes, interval, stabilities

RESAMPLES = 6
METHODS = ["plain", "auto", "exact", "neural", "random"]


@pytest.fixture(scope="module")
def homogeneous():
    return rs.simulate(nodes=5, degree=1, samples=300, random_state=100)


@pytest.fixture(scope="module")
def heterogeneous():
    return rs.simulate(nodes=8, degree=1, samples=700, corrupt=0.08, random_state=101)


@pytest.fixture(scope="module")
def small():
    """Rows of two groups, in the shape of the homogeneous ones."""
    return rs.simulate(nodes=5, degree=1, samples=300, corrupt=0.08, random_state=101)


@pytest.fixture(scope="module")
def found(heterogeneous):
    return rs.compare(
        heterogeneous.X, rs.Linear(), truth=heterogeneous.truth, resamples=RESAMPLES, random_state=1
    )


@pytest.fixture(scope="module")
def without_gain(homogeneous):
    return rs.compare(homogeneous.X, rs.Linear(), resamples=10)


def test_homogeneous_rows_gain_nothing(without_gain):
    result = without_gain
    assert result.answer.startswith("No gain beyond chance")
    assert "8 comparisons" in result.answer  # four weightings, likelihood and stability
    auto = result.table.loc["auto"]
    assert auto["graph_log_likelihood_low"] <= 0 <= auto["graph_log_likelihood_high"]
    assert "shd" not in result.table


def test_without_a_truth_no_gain_alone_is_said_only_of_graphs_that_stay():
    """Likelihoods cannot see directions: an answer from them says so wherever graphs differ."""
    measures = {"graph_log_likelihood": -1.0, "log_likelihood": -1.0, "stability": 1.0}
    for changed, turned in ((0, 0), (8, 2)):
        records = records_with(plain=0.0, auto=0.0).drop(columns="shd").assign(**measures)
        reweighted = records["method"] == "auto"
        records["changed"], records["turned"] = changed * reweighted, turned * reweighted
        said = answer(records)
        assert ("cannot see which way edges point" in said) == (changed > 0)
        assert said.startswith("No gain beyond chance:") == (changed == 0)
        assert not changed or "8 pairs otherwise than the plain fit, 2 of them turned" in said


def test_changes_are_those_of_the_shd():
    rng = np.random.default_rng(3)
    for _ in range(5):
        one, other = (np.triu(rng.random((5, 5)) < 0.5, 1) for _ in range(2))
        other = other if rng.random() < 0.5 else other.T
        assert changes(one, other)["changed"] == rs.evaluate(one, other).shd
        assert changes(one, other)["turned"] == (one & other.T).sum()


def test_a_gain_is_found_where_there_is_one(found):
    assert found.answer.startswith("Gain: auto weights take the SHD from")
    assert found.table.loc["auto", "shd_high"] < 0
    assert found.table.loc["random", "shd_low"] <= 0 <= found.table.loc["random", "shd_high"]


def test_the_table_is_made_of_the_records(found):
    records, table = found.records, found.table
    assert list(table.index) == METHODS
    assert len(records) == RESAMPLES * len(METHODS)
    shd = records.pivot(index="resample", columns="method", values="shd")
    differences = shd["auto"] - shd["plain"]
    assert table.loc["auto", "shd"] == shd["auto"].mean()
    assert table.loc["auto", "shd_difference"] == pytest.approx(differences.mean())
    assert (table.loc["plain", [c for c in table if c.endswith("_difference")]] == 0).all()
    assert records["stability"].between(0, 1).all()
    text = str(found)
    assert found.answer in text
    assert all(method in text for method in METHODS)


def test_all_methods_see_the_same_rows_and_the_next_resample_others(homogeneous):
    seen = []

    def note(X):
        seen.append(X.tobytes())
        return np.eye(5, k=1)

    rs.compare(homogeneous.X, rs.Custom(note, is_linear=False), resamples=3)
    times = sorted(Counter(seen).values(), reverse=True)
    assert times[:3] == [len(METHODS)] * 3  # each begins with a plain fit of the resample
    assert set(times[3:]) <= {1, 2}  # then come rows drawn by weights


def test_plain_is_the_learner_itself_scored_on_rows_it_has_not_seen(found, heterogeneous):
    child = np.random.SeedSequence(1).spawn(RESAMPLES)[0]
    n = len(heterogeneous.X)
    rows = np.sort(np.random.default_rng(child).integers(n, size=n))
    model = rs.Linear().fit(heterogeneous.X.iloc[rows].reset_index(drop=True))
    held_out = heterogeneous.X.drop(index=np.unique(rows))
    first = found.records.query("resample == 0 and method == 'plain'").iloc[0]
    assert first["log_likelihood"] == pytest.approx(model.score(held_out))
    # With equal weights the model's own equations are the regressions on its graph, but for the
    # coefficients below the threshold.
    assert first["graph_log_likelihood"] == pytest.approx(first["log_likelihood"], abs=0.05)


def test_the_same_seed_gives_the_same_records_however_many_jobs(homogeneous):
    timeless = "cpu_seconds"
    with joblib.parallel_config(backend="threading"):  # processes would take long to start
        one, again, two = (
            rs.compare(homogeneous.X, rs.Linear(), resamples=2, random_state=7, n_jobs=jobs)
            for jobs in (1, 1, 2)
        )
    for other in (again, two):
        pd.testing.assert_frame_equal(
            one.records.drop(columns=timeless), other.records.drop(columns=timeless)
        )
    assert one.answer == again.answer
    different = rs.compare(homogeneous.X, rs.Linear(), resamples=2, random_state=8)
    assert (different.records["log_likelihood"] != one.records["log_likelihood"]).all()


def test_the_truth_scores_and_does_nothing_else(homogeneous, without_gain):
    truth = homogeneous.truth
    one, other = (
        rs.compare(homogeneous.X, rs.Linear(), truth=known, resamples=10).records
        for known in (truth, truth.T)
    )
    same = ["log_likelihood", "graph_log_likelihood", "stability", "edges", "effective_rows"]
    for records in (one, other):
        pd.testing.assert_frame_equal(records[same], without_gain.records[same])
    assert (one["shd"] != other["shd"]).any()


def test_groups_add_the_labelled_yardstick_and_weights_reach_fit_and_score(small):
    X, labels = small.X, small.groups
    result = rs.compare(X, rs.Linear(), groups=labels, resamples=2)
    assert list(result.table.index) == [*METHODS, "inverse-propensity"]
    counts = np.where(np.arange(len(X)) % 2, 2.0, 1.0)
    by_weight = rs.compare(X, rs.Linear(), sample_weight=counts, resamples=2)
    assert (by_weight.records["log_likelihood"] != result.records["log_likelihood"][:10]).all()


def test_progress_is_told_and_ctrl_c_stops(homogeneous):
    seen = []
    rs.compare(homogeneous.X, rs.Linear(), resamples=3, on_resample=seen.append)
    assert seen == [1, 2, 3]

    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rs.compare(homogeneous.X, rs.Linear(), resamples=3, on_resample=stop)


def test_the_interval_is_students_widened_for_shared_rows():
    differences = np.random.default_rng(0).normal(0.3, 1, size=12)
    low, high = interval(differences, 0.9)
    plain = stats.t.interval(0.9, 11, differences.mean(), stats.sem(differences))
    widening = (high - low) / (plain[1] - plain[0])
    assert widening == pytest.approx(np.sqrt(1 + 12 * OUT_OF_BAG))
    assert (low + high) / 2 == pytest.approx(differences.mean())


def test_rows_left_out_are_as_many_as_the_interval_says():
    rng = np.random.default_rng(0)
    drawn = [len(np.unique(rng.integers(1000, size=1000))) for _ in range(200)]
    assert (1000 - np.mean(drawn)) / np.mean(drawn) == pytest.approx(OUT_OF_BAG, rel=0.01)


def test_stability_is_one_minus_the_shd_in_pairs_adjacent_in_either():
    rng = np.random.default_rng(2)
    graphs = [np.triu(rng.random((4, 4)) < 0.5, 1) for _ in range(3)]
    graphs[1] = graphs[1].T
    expected = []
    for k, graph in enumerate(graphs):
        others = [other for m, other in enumerate(graphs) if m != k]
        shares = [1 - rs.evaluate(o, graph).shd / np.triu((o | o.T) | (graph | graph.T)).sum()
                  for o in others]  # fmt: skip
        expected.append(np.mean(shares))
    np.testing.assert_allclose(stabilities(graphs), expected)
    assert stabilities([np.zeros((2, 2), bool)] * 2) == [1.0, 1.0]


def records_with(**shd):
    """Ten resamples in which every method has the given SHD, within one."""
    noise = np.random.default_rng(0).normal(0, 0.3, size=10)
    rows = [
        {"method": method, "resample": k, "shd": value + noise[(k + i) % 10], "edges": 5,
         "effective_rows": 9.0, "converged": True, "cpu_seconds": 0.1}
        for i, (method, value) in enumerate(shd.items()) for k in range(10)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_sentence_names_the_best_the_others_and_the_control():
    best = answer(records_with(plain=9.0, auto=2.0, exact=5.0, random=9.0))
    assert best.startswith("Gain: auto weights take the SHD from 9.03 to 2.03")
    assert "exact too" in best
    assert "random" not in best
    assert "3 comparisons" in best
    control = answer(records_with(plain=9.0, auto=5.0, random=4.0))
    assert "random weights do as well" in control
    assert answer(records_with(plain=9.0, auto=9.0, random=2.0)).startswith("No gain")
    worse = answer(records_with(plain=3.0, auto=3.0, exact=9.0, random=3.0))
    assert "exact weights make it worse" in worse


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"tau": 0}, ValueError, "tau must be"),
        ({"resamples": 1}, ValueError, "resamples must be a whole number of at least 2"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"truth": np.zeros((3, 3))}, ValueError, "3 node"),
        ({"learner": rs.ReScore(rs.Linear())}, TypeError, "cannot be wrapped"),
        ({"X": np.eye(5)}, ValueError, "at least 10 rows"),
        ({"sample_weight": [1.0]}, ValueError, "sample_weight must be 1D"),
        ({"groups": ["a"]}, ValueError, "groups must hold one label"),
    ],
)
def test_bad_input_is_refused_before_the_first_fit(change, error, words, homogeneous):
    call = {"X": homogeneous.X, "learner": rs.Linear(), "resamples": 2} | change
    with pytest.raises(error, match=words):
        rs.compare(**call)
