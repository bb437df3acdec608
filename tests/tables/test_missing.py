"""Gaps against numerical maximum likelihood, and against the table that had none."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import rescore as rs
from rescore.tables.missing import completed, likeliest
from rescore.tables.opening import Opening


def chain(n=400, seed=0, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        X[:, j] += 0.9 * X[:, j - 1]
    return X


def with_gaps(X, share, seed=1):
    gaps = np.random.default_rng(seed).random(X.shape) < share
    return np.where(gaps, np.nan, X)


def equal(n):
    return np.full(n, 1 / n)


def observed_likelihood(X, mean, S):
    """Row by row, by the definition."""
    total = 0.0
    for x in X:
        o = ~np.isnan(x)
        r, A = x[o] - mean[o], S[np.ix_(o, o)]
        total -= 0.5 * (np.linalg.slogdet(2 * np.pi * A)[1] + r @ np.linalg.solve(A, r))
    return total / len(X)


def test_without_gaps_the_moments_are_those_of_the_rows():
    X = chain()
    w = np.random.default_rng(0).random(len(X))
    w /= w.sum()
    found = likeliest(X, w)
    np.testing.assert_allclose(found.mean, w @ X, atol=1e-12)
    np.testing.assert_allclose(found.covariance, np.cov(X.T, aweights=w, ddof=0), atol=1e-12)
    assert np.array_equal(completed(X, w), X)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_the_likelihood_never_falls_and_is_the_one_of_the_definition(share):
    X = with_gaps(chain(), share)
    found = likeliest(X, equal(len(X)))
    assert (np.diff(found.likelihoods) > -1e-12).all()
    told = observed_likelihood(X, found.mean, found.covariance)
    assert told == pytest.approx(found.likelihoods[-1], abs=1e-6)


def test_the_maximum_is_that_of_a_numerical_search():
    X = with_gaps(chain(n=60, d=2), 0.3)

    def unpack(v):
        L = np.array([[np.exp(v[2]), 0.0], [v[3], np.exp(v[4])]])
        return v[:2], L @ L.T

    best = minimize(
        lambda v: -observed_likelihood(X, *unpack(v)), np.zeros(5), method="BFGS", tol=1e-10
    )
    mean, S = unpack(best.x)
    found = likeliest(X, equal(len(X)))
    np.testing.assert_allclose(found.mean, mean, atol=1e-4)
    np.testing.assert_allclose(found.covariance, S, atol=1e-4)


def test_completed_rows_keep_what_is_there_and_have_the_moments_of_em():
    X = with_gaps(chain(), 0.3)
    w, there = equal(len(X)), ~np.isnan(X)
    found, filled = likeliest(X, w), completed(X, w, seed=3)
    assert np.array_equal(filled[there], X[there])
    np.testing.assert_allclose(np.cov(filled.T, ddof=0), found.covariance, atol=1e-4)
    np.testing.assert_allclose(filled.mean(axis=0), found.mean, atol=1e-4)
    assert np.array_equal(filled, completed(X, w, seed=3))
    assert not np.array_equal(filled, completed(X, w, seed=4))


def test_groups_are_completed_by_their_own_moments():
    X = np.vstack([chain(300), 5 + chain(300, seed=5) * 3])
    groups = np.repeat([0, 1], 300)
    filled = completed(with_gaps(X, 0.3), equal(600), groups)
    for k in (0, 1):
        own, true = filled[groups == k], X[groups == k]
        np.testing.assert_allclose(own.mean(axis=0), true.mean(axis=0), atol=0.25 * true.std())
        np.testing.assert_allclose(own.std(axis=0), true.std(axis=0), rtol=0.1)


def test_dropped_rows_count_nothing_and_em_loses_little():
    truth = rs.simulate(nodes=6, degree=2, samples=600, random_state=3)
    X = pd.DataFrame(with_gaps(truth.X.to_numpy(), 0.1), columns=truth.X.columns)
    dropped = rs.Linear(missing="drop").fit(X)
    complete = X.dropna()
    alone = rs.Linear().fit(complete)
    np.testing.assert_allclose(dropped.adjacency_matrix_, alone.adjacency_matrix_, atol=1e-9)
    assert (dropped.sample_weight_[X.isna().any(axis=1)] == 0).all()
    told = dropped.diagnostics_["table"]["missing"]
    assert told["rows"] == len(X) - len(complete)
    assert told["cells"] == {k: int(v) for k, v in X.isna().sum().items() if v}
    filled = rs.Linear(missing="em").fit(X)
    assert rs.evaluate(truth.truth, filled).shd <= rs.evaluate(truth.truth, alone).shd + 1
    assert filled.diagnostics_["table"]["missing"]["how"] == "em"


def test_missing_cells_are_refused_unless_asked_and_the_remedy_says_how():
    X = with_gaps(chain(), 0.1)
    with pytest.raises(ValueError, match=r"missing='drop'.*missing='em'"):
        rs.Linear().fit(X)
    with pytest.raises(ValueError, match="missing must be one of refuse, drop, em"):
        rs.Linear(missing="mean").fit(X)
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"'x1' hold.*drop=\['x1'\]"):
        rs.Linear(missing="em").fit(X)


def test_studies_open_the_table_as_the_model_does():
    X = pd.DataFrame(with_gaps(chain(), 0.1), columns=list("abcd"))
    X["site"] = np.random.default_rng(0).choice(["u", "v"], len(X))
    model = rs.ReScore(rs.Linear(missing="em", categories="exogenous"))
    shares = rs.bootstrap(model, X, resamples=3).edges
    assert list(shares.columns) == [*"abcd", "site"]
    assert (shares["site"] == 0).all()
    assert rs.units(model, X).factors.shape[1] == 5


def test_a_row_without_any_cell_is_left_out():
    X = with_gaps(chain(), 0.1)
    X[5] = np.nan
    table, weight = Opening("em").of(X)
    assert weight[5] == 0
    assert table.receipt["missing"]["rows"] == 1
    assert np.isfinite(table.values).all()
