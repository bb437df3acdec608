"""Estimators keep scikit-learn's contract without inheriting from it."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import rescore as rs


@pytest.mark.filterwarnings("ignore:The graph has no edge")  # with a threshold of 9
def test_a_search_over_parameters_finds_the_better_threshold(chain):
    wrapped = rs.ReScore(rs.Linear(), weighting="uniform")
    search = GridSearchCV(wrapped, {"estimator__threshold": [0.1, 9.0]}, cv=3).fit(chain)
    assert search.best_params_ == {"estimator__threshold": 0.1}
    assert search.best_estimator_.adjacency_matrix_.to_numpy().any()


def test_cross_validation_scores_rows_that_were_left_out(chain):
    scores = cross_val_score(rs.Linear(), chain, cv=3)
    by_hand = rs.Linear().fit(chain[100:]).score(chain[:100])
    assert scores[0] == pytest.approx(by_hand)


def test_parameters_of_the_learner_inside_are_reached_by_their_path():
    model = rs.ReScore(rs.Notears(lambda1=0.2), tau=0.5)
    assert model.get_params()["estimator__lambda1"] == 0.2
    assert "estimator__lambda1" not in model.get_params(deep=False)
    assert model.set_params(estimator__lambda1=0.3, tau=0.1) is model
    assert (model.estimator.lambda1, model.tau) == (0.3, 0.1)


def test_a_parameter_that_is_none_is_refused_by_name():
    with pytest.raises(ValueError, match="Linear has no parameter 'lambda1'; it has categories, "):
        rs.Linear().set_params(lambda1=1)


def test_copies_have_the_same_parameters_and_nothing_learned(chain):
    model = rs.Linear(threshold=0.2).fit(chain)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        copy.predict(chain)


def test_a_pickled_model_predicts_the_same(chain):
    model = rs.Linear().fit(chain)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(chain), model.predict(chain))


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (rs.Linear(), "Linear()"),
        (rs.Notears(0.2, polish=False), "Notears(lambda1=0.2, polish=False)"),
        (rs.ReScore(rs.GES(), tau=0.5), "ReScore(estimator=GES(), tau=0.5)"),
    ],
)
def test_it_is_written_as_the_call_that_makes_it(model, text):
    assert repr(model) == text
    assert type(model).__name__ in model._repr_html_()
