"""Fitted models for other programmes.  DoWhy and pgmpy are asked where they are installed."""

import json
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.exchange import Fitted

ODD = ['the "dose"', "<script>alert('x')</script>", "a -> b, c", "温度\n\\"]
TRUE = pd.DataFrame(  # a confounder, a mediator, and an effect of both
    [[0, 1.0, 0, -1.5], [0, 0, 0.5, 0.3], [0, 0, 0, 2.0], [0, 0, 0, 0]],
    index=["z", "x", "m", "y"],
    columns=["z", "x", "m", "y"],
)
TOTAL = 0.3 + 0.5 * 2.0  # of x on y, along both directed paths


@pytest.fixture(scope="module")
def frame():
    noise = np.random.default_rng(100).normal(size=(3000, 4))
    X = noise @ np.linalg.inv(np.eye(4) - TRUE.to_numpy()) + [5.0, -3.0, 0.0, 100.0]
    return pd.DataFrame(X, columns=list(TRUE))


@pytest.fixture(scope="module")
def linear(frame):
    return rs.Linear().fit(frame)


@pytest.fixture(scope="module")
def network():
    X = rs.simulate(nodes=4, degree=1, samples=300, mechanism="gp", random_state=100).X
    return rs.NotearsMLP().fit(X), X


def linear_prediction(equation, X):
    constant = equation["coefficients"]["(Intercept)"][0]
    return constant + sum(equation["coefficients"][p][0] * X[p] for p in equation["parents"])


def network_prediction(equation, X):
    if not equation["parents"]:
        return np.full(len(X), equation["offset"])
    activation = {"sigmoid": lambda Z: 1 / (1 + np.exp(-Z))}[equation["activation"]]
    Z = (X[equation["parents"]].to_numpy() - equation["centre"]) / np.array(equation["spread"])
    for k, layer in enumerate(equation["layers"]):
        Z = (activation(Z) if k else Z) @ np.transpose(layer["weights"]) + layer["bias"]
    return equation["offset"] + equation["scale"] * Z[:, 0]


# Equations as JSON.


@pytest.mark.parametrize(
    "learner", [rs.Linear(), rs.Notears(standardize=True), rs.ReScore(rs.GES()), rs.Empty()]
)
def test_linear_equations_can_be_computed_from_the_file_alone(learner, frame):
    model = learner.fit(frame)
    told = json.loads(rs.equations_json(model))
    assert told["nodes"] == list(frame)
    assert [tuple(arc) for arc in told["arcs"]] == list(model.causal_graph_.edges)
    for name, equation in told["cpds"].items():
        assert equation["parents"] == list(model.causal_graph_.predecessors(name))
        assert equation["variance"] == [model.noise_variance_[name]]
        again = linear_prediction(equation, frame)
        np.testing.assert_allclose(again, model.predict(frame)[name], rtol=1e-9)


def test_the_equations_say_which_arcs_could_point_the_other_way(frame):
    model = rs.GES().fit(frame[["x", "m"]])
    told = json.loads(rs.equations_json(model))
    assert told["open"] == told["arcs"] != []
    assert not any(directed for *_, directed in model.causal_graph_.edges(data="directed"))
    assert nx.is_directed_acyclic_graph(model.causal_graph_)


def test_networks_can_be_computed_from_the_file_alone(network):
    model, X = network
    told = json.loads(rs.equations_json(model))
    assert "cpds" not in told
    assert len(told["arcs"]) > 0
    for name, equation in told["networks"].items():
        assert equation["parents"] == list(model.causal_graph_.predecessors(name))
        np.testing.assert_allclose(network_prediction(equation, X), model.predict(X)[name])


@pytest.mark.parametrize("names", [ODD, [0, 1, 2, 3]])
def test_names_of_any_kind_become_text(frame, names):
    model = rs.Linear().fit(frame.set_axis(names, axis="columns"))
    text = rs.equations_json(model)
    assert text.isascii()
    assert json.loads(text)["nodes"] == [str(name) for name in names]
    assert list(json.loads(text)["cpds"]) == [str(name) for name in names]


def test_names_that_cannot_be_told_apart_are_refused(frame):
    clash = rs.Linear().fit(frame.set_axis([1, "1", "a", "b"], axis="columns"))
    with pytest.raises(ValueError, match=r"'1'.*more than once"):
        rs.equations_json(clash)
    constant = rs.Linear().fit(frame.rename(columns={"x": "(Intercept)"}))
    with pytest.raises(ValueError, match=r"'\(Intercept\)'.*rename"):
        rs.equations_json(constant)


@pytest.mark.filterwarnings("ignore::rescore.tables.convert.DataWarning")
def test_a_number_beyond_float64_is_null(frame):
    wide = pd.DataFrame({"x": frame["x"] * 1e-160, "m": frame["m"] * 1e149})
    model = rs.Notears(standardize=True, required=[("x", "m")]).fit(wide)
    coefficients = json.loads(rs.equations_json(model))["cpds"]["m"]["coefficients"]
    assert coefficients["x"] == [None]


# Everything that can be asked of a fit, also after saving and loading.


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_a_loaded_model_answers_as_the_saved_one(kind, frame, request, tmp_path):
    fitted = request.getfixturevalue(kind)
    model, X = (fitted, frame) if kind == "linear" else fitted
    rs.save(model, tmp_path)
    again = rs.load(tmp_path)
    first = X.columns[0]
    pd.testing.assert_frame_equal(again.predict(X), model.predict(X))
    pd.testing.assert_frame_equal(again.sample(20), model.sample(20))
    pd.testing.assert_frame_equal(
        again.intervene({first: 1.5}, 20), model.intervene({first: 1.5}, 20)
    )
    assert again.score(X) == model.score(X)
    assert np.isfinite(model.score(X))
    assert rs.equations_json(again) == rs.equations_json(model)


def test_the_score_of_networks_is_a_held_out_likelihood(network):
    model, X = network
    fresh = rs.simulate(nodes=4, degree=1, samples=200, mechanism="gp", random_state=100).X
    residual = fresh - model.predict(fresh)
    variance = model.noise_variance_
    by_hand = -(np.log(2 * np.pi * variance) + residual**2 / variance).sum(axis=1) / 2
    assert model.score(fresh) == pytest.approx(by_hand.mean())
    rng = np.random.default_rng(0)
    shuffled = X.apply(rng.permutation)
    assert model.score(shuffled) < model.score(X)


# DoWhy.


def test_requests_that_make_no_sense_are_sentences(linear, frame):
    with pytest.raises(ValueError, match="treatment 'rain' is not among"):
        rs.to_dowhy(linear, frame, "rain", "y")
    with pytest.raises(ValueError, match="both 'y'"):
        rs.to_dowhy(linear, frame, "y", "y")
    with pytest.raises(ValueError, match="'m' missing"):
        rs.to_dowhy(linear, frame.drop(columns="m"), "x", "y")


def test_without_dowhy_the_error_says_what_to_install(linear, frame, monkeypatch):
    monkeypatch.setitem(sys.modules, "dowhy", None)
    monkeypatch.setitem(sys.modules, "dowhy.gcm", None)
    for ask in (lambda: rs.to_dowhy(linear, frame, "x", "y"), lambda: rs.to_gcm(linear)):
        with pytest.raises(ImportError, match=r'pip install "rescore\[dowhy\]"'):
            ask()


def test_an_equation_predicts_from_its_parents_in_any_order(linear, frame):
    names = list(frame)
    parents = [names.index(name) for name in reversed(list(linear.causal_graph_.predecessors("y")))]
    equation = Fitted(linear.equations_, names.index("y"), parents, len(names))
    found = equation.clone().predict(frame.to_numpy()[:, parents])
    np.testing.assert_allclose(found[:, 0], linear.predict(frame)["y"])


# The programmes themselves.


def test_pgmpy_reads_the_equations_and_implies_the_same_covariance(linear, tmp_path):
    networks = pytest.importorskip("pgmpy.models")
    (tmp_path / "equations.json").write_text(rs.equations_json(linear))
    read = networks.LinearGaussianBayesianNetwork.load(str(tmp_path / "equations.json"))
    _, covariance = read.to_joint_gaussian()  # in a topological order
    order = list(nx.topological_sort(read))
    A = np.linalg.inv(np.eye(4) - linear.adjacency_matrix_)
    implied = pd.DataFrame(A.T @ np.diag(linear.noise_variance_) @ A, list(TRUE), list(TRUE))
    np.testing.assert_allclose(covariance, implied.loc[order, order], atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")  # of pyparsing, in pgmpy
def test_pgmpy_reads_our_dagitty(linear):
    base = pytest.importorskip("pgmpy.base")
    from rescore.graph.dagitty import to_dagitty

    names = ["wet grass", "x.1", "q (a)", "y"]
    W = linear.adjacency_matrix_.to_numpy()
    read = base.DAG.from_dagitty(to_dagitty(W, names))
    assert set(read.nodes) == set(names)
    found = {(parent, cpd.variable): beta for cpd in read.get_cpds()
             for parent, beta in zip(cpd.evidence, cpd.beta[1:], strict=True)}  # fmt: skip
    expected = {(names[i], names[j]): W[i, j] for i, j in np.argwhere(W)}
    assert found == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:The copy keyword is deprecated")  # pandas 3, in statsmodels
@pytest.mark.parametrize("names", [list(TRUE), ODD, [0, 1, 2, 3]])
def test_dowhy_recovers_the_total_effect(frame, names):
    renamed = frame.set_axis(names, axis="columns")
    asked = rs.to_dowhy(rs.Linear().fit(renamed), renamed, treatment=names[1], outcome=names[3])
    estimand = asked.identify_effect()
    assert estimand.get_backdoor_variables() == [str(names[0])]
    estimate = asked.estimate_effect(estimand, method_name="backdoor.linear_regression")
    error = np.asarray(estimate.get_standard_error()).item()
    assert estimate.value == pytest.approx(TOTAL, abs=4 * error)
    assert error < 0.05


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_dowhys_structural_model_answers_as_ours(kind, request):
    from dowhy import gcm

    fitted = request.getfixturevalue(kind)
    model = fitted if kind == "linear" else fitted[0]
    names, first = list(model.adjacency_matrix_), model.adjacency_matrix_.columns[0]
    causal = rs.to_gcm(model)
    gcm.util.general.set_random_seed(100)
    theirs = gcm.interventional_samples(causal, {first: lambda _: 1.0}, num_samples_to_draw=5000)
    ours = model.intervene({first: 1.0}, 5000)
    spread = ours.std() + 1e-9
    assert ((theirs[names].mean() - ours.mean()).abs() < 5 * spread * np.sqrt(2 / 5000)).all()
    assert ((theirs[names].std() - ours.std()).abs() < 0.1 * spread).all()
    rows = model.sample(5)
    done = {first: lambda value: value + 1}
    changed = gcm.counterfactual_samples(causal, done, observed_data=rows)[names]
    low, high = (model.intervene({first: value}, 1) for value in (0.0, 1.0))
    if kind == "linear":  # everybody moves by the total effect
        np.testing.assert_allclose(changed - rows, np.tile(high - low, (5, 1)), atol=1e-8)
    else:
        noise = rows - model.predict(rows)
        again = model.predict(changed) + noise
        np.testing.assert_allclose(again.drop(columns=first), changed.drop(columns=first))
