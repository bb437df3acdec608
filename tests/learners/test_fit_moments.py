import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.tables.convert import DataWarning

LEARNERS = [rs.Linear(), rs.Notears(), rs.Dagma(), rs.Golem(), rs.Golem(variance="unequal")]


def named(learner):
    return f"{type(learner).__name__}-{getattr(learner, 'variance', '')}"


@pytest.fixture(scope="module")
def frame():
    return rs.simulate(nodes=5, degree=1, samples=400, random_state=3).X + 5.0


def moments(frame):
    return frame.cov(ddof=0), len(frame), frame.mean()


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("learner", LEARNERS, ids=named)
def test_moments_alone_give_the_graph_of_the_rows(learner, standardize, frame):
    learner.set_params(standardize=standardize)
    rows = learner.fit(frame)
    W, objective = rows.adjacency_matrix_, rows.history_["objective"].iloc[-1]
    losses = rows.losses_.mean()
    found = learner.fit_moments(*moments(frame))
    pd.testing.assert_frame_equal(found.adjacency_matrix_, W, rtol=1e-6, atol=1e-7)
    assert found.history_["objective"].iloc[-1] == pytest.approx(objective, rel=1e-8)
    np.testing.assert_allclose(found.losses_.loc["all rows"], losses, rtol=1e-5)
    assert found.diagnostics_["effective_rows"] == pytest.approx(400)


def test_what_is_known_of_the_columns_is_told_and_nothing_of_the_rows(frame):
    wide = frame * np.array([1, 1e4, 1, 1, 1])
    with pytest.warns(DataWarning, match="standard deviations") as caught:
        model = rs.Notears().fit_moments(*moments(wide))
    assert len(caught) == 1
    assert model.diagnostics_["scale_ratio"] > 1e3


def test_a_fit_from_moments_can_be_saved(frame, tmp_path):
    model = rs.Notears().fit_moments(*moments(frame))
    rs.save(model, tmp_path / "run")
    again = rs.load(tmp_path / "run")
    pd.testing.assert_frame_equal(again.adjacency_matrix_, model.adjacency_matrix_)


@pytest.mark.parametrize(
    ("covariance", "n_rows", "mean", "message"),
    [
        (np.ones((2, 3)), 9, None, "square"),
        ([[1.0, 0.5], [0.4, 1.0]], 9, None, "symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], 9, None, "negative variance"),
        ([[-1.0, 0.0], [0.0, 1.0]], 9, None, "negative variance"),
        (np.eye(2), 1, None, "n_rows must be a number above 1"),
        (np.eye(2), 9, [0.0], "mean must hold 2"),
        (np.eye(2), 9, [0.0, np.nan], "mean must hold 2"),
        (pd.DataFrame(np.eye(2), columns=["a", "b"]), 9, None, "same names"),
    ],
)
def test_what_is_no_covariance_is_refused(covariance, n_rows, mean, message):
    with pytest.raises(ValueError, match=message):
        rs.Linear().fit_moments(covariance, n_rows, mean)
