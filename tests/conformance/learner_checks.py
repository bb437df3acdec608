"""What every learner must do, as functions of an estimator: `check_learner` calls them all."""

import networkx as nx
import numpy as np
import pandas as pd
from sklearn.base import clone

import rescore as rs

NAMES = ["rain", "grass", "mud", "sun"]


def rows(n=120):
    """A chain of the four variables, and two places that the rows come from."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, 4))
    for j in range(1, 4):
        X[:, j] += 1.5 * X[:, j - 1]
    return pd.DataFrame(X, columns=NAMES), np.where(rng.random(n) < 0.5, "here", "there")


def fitted(learner, X, places, **more):
    needed = {"groups": places} if learner.needs_groups else {}
    return clone(learner).fit(X, **needed, **more)


def graph(model):
    return model.adjacency_matrix_


def assert_same(A, B):
    pd.testing.assert_frame_equal(A, B, rtol=1e-4, atol=1e-6)


def check_parameters(learner):
    """They are kept as given, and a copy has the same."""
    params = learner.get_params(deep=False)
    assert {"standardize", "forbidden", "required", "knowledge", "max_steps"} <= params.keys()
    assert {name: getattr(clone(learner), name) for name in params} == params


def check_graph(learner):
    """A DAG with the names and the order of the columns, and weights that sum to one."""
    X, places = rows()
    model = fitted(learner, X, places)
    assert list(graph(model).index) == list(graph(model).columns) == NAMES
    assert nx.is_directed_acyclic_graph(model.causal_graph_)
    assert np.isclose(model.sample_weight_.sum(), 1)
    assert np.isfinite(model.predict(X)).all(axis=None)


def check_knowledge(learner):
    """A forbidden edge is not there, a required one is, and receipts say so."""
    X, places = rows()
    known = rs.Knowledge(forbidden=[("rain", "grass")], required=[("sun", "rain")])
    model = fitted(clone(learner).set_params(knowledge=known), X, places)
    assert graph(model).loc["rain", "grass"] == 0
    assert graph(model).loc["sun", "rain"] != 0
    told = model.diagnostics_["knowledge"]
    assert [receipt["holds"] for receipt in told] == [True, True]


def check_equal_weights(learner):
    """Equal weights of any size, and ReScore without weights, are the plain learner."""
    X, places = rows()
    plain = graph(fitted(learner, X, places))
    assert_same(graph(fitted(learner, X, places, sample_weight=np.ones(len(X)))), plain)
    assert_same(graph(fitted(rs.ReScore(learner, weighting="uniform"), X, places)), plain)


def check_repeated_rows(learner):
    """A row repeated k times is a row of weight k."""
    X, places = rows()
    k = np.random.default_rng(1).integers(1, 4, len(X))
    repeated = X.loc[X.index.repeat(k)].reset_index(drop=True)
    weighted = graph(fitted(learner, X, places, sample_weight=k))
    assert_same(graph(fitted(learner, repeated, np.repeat(places, k))), weighted)


def check_order_of_rows(learner):
    """Rows in another order give the same graph."""
    X, places = rows()
    order = np.random.default_rng(2).permutation(len(X))
    assert_same(
        graph(fitted(learner, X.iloc[order], places[order])), graph(fitted(learner, X, places))
    )


def check_order_of_columns(learner):
    """Columns in another order give the same graph in that order."""
    X, places = rows()
    order = ["mud", "sun", "rain", "grass"]
    found = graph(fitted(learner, X[order], places))
    assert_same(found, graph(fitted(learner, X, places)).loc[order, order])


def check_learner(learner):
    """All of them."""
    check_parameters(learner)
    check_graph(learner)
    check_knowledge(learner)
    check_equal_weights(learner)
    check_repeated_rows(learner)
    check_order_of_rows(learner)
    check_order_of_columns(learner)
