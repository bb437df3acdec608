import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import rescore as rs
from rescore.studies import Given, Refits, check_groups, converged, refit
from rescore.tables.convert import DataWarning


@pytest.fixture(scope="module", name="X")
def rows():
    return rs.simulate(nodes=4, degree=1, samples=100, random_state=100).X


def test_a_refit_is_the_fit_of_the_same_rows_and_leaves_the_model_alone(X):
    model, weight = rs.Linear(), np.random.default_rng(0).uniform(1, 2, size=100)
    rows = np.array([3, 3, *range(50)])
    found = refit(model, Given.of(X, weight).part(rows))
    own = rs.Linear().fit(X.iloc[rows].reset_index(drop=True), sample_weight=weight[rows])
    pd.testing.assert_frame_equal(found.adjacency_matrix_, own.adjacency_matrix_)
    pd.testing.assert_series_equal(found.sample_weight_, own.sample_weight_)
    assert not hasattr(model, "adjacency_matrix_")


def test_a_refit_is_quiet_and_says_whether_it_converged(X):
    odd = X.assign(constant=1.0)
    with pytest.warns(DataWarning), pytest.warns(ConvergenceWarning):  # alone it would say so
        rs.Notears(max_steps=1).fit(odd)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not converged(refit(rs.Notears(max_steps=1), Given.of(odd)))
        assert converged(refit(rs.Linear(), Given.of(odd)))


def test_groups_reach_models_that_need_them_and_no_others(X):
    labels = np.repeat(["u", "v"], 50)
    given = Given.of(X, groups=labels)
    refit(rs.Linear(), given)  # `compare` gives the same rows to both kinds
    grouped = rs.ReScore(rs.Linear(), weighting="inverse-propensity")
    refit(grouped, given.part(np.arange(20, 80)))
    with pytest.raises(ValueError, match="needs the group of each row"):
        refit(grouped, Given.of(X))
    with pytest.raises(ValueError, match="ReScore needs the group of each row"):
        check_groups(grouped, None)
    for study in (rs.bootstrap, rs.advise, rs.units):
        with pytest.raises(ValueError, match="Linear learns without groups"):
            study(rs.Linear(), X, groups=labels)


def test_names_weights_and_labels_are_kept_as_they_came():
    X = pd.DataFrame(np.eye(4), index=list("abcd"), columns=[("u", 1), "v", 3, None])
    given = Given.of(X.set_axis([("u", 1), "v", 3, "w"], axis=1), 2, ["p", "p", "q", "q"])
    assert list(given.X.columns) == [("u", 1), "v", 3, "w"]
    assert list(given.X.index) == list("abcd")
    part = given.part(np.array([2, 0, 2]))
    assert part.groups.tolist() == ["q", "p", "q"]
    np.testing.assert_array_equal(part.values, np.eye(4)[[2, 0, 2]])
    np.testing.assert_allclose(part.prior, 1 / 3)
    with pytest.raises(ValueError, match="sample_weight must be 1D"):
        Given.of(X.iloc[:, 1:3], [1.0])


def test_what_is_in_hand_when_ctrl_c_comes_is_kept():
    def stop(done):
        if done == 2:
            raise KeyboardInterrupt

    found = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(Refits(1, stop).made(abs, ((-k,) for k in range(9))))
    assert found == [0, 1]


def test_the_count_goes_on_from_one_batch_to_the_next():
    told = []
    refits = Refits(1, told.append)
    assert list(refits.made(abs, ((-k,) for k in range(2)))) == [0, 1]
    assert list(refits.counted("ab")) == ["a", "b"]
    assert told == [1, 2, 3, 4]
