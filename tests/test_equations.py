"""Predictions, likelihoods and effects of fitted models, against what can be worked out by hand."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence as sklearn_partial_dependence
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV

import rescore as rs
from rescore.algorithm import rescore
from rescore.equations import LinearEquations, NetworkEquations, from_arrays, residual_moments
from rescore.learners.networks.gran_dag import GranDAG, GranDAGBackbone
from rescore.learners.networks.notears_mlp import NotearsMLP, NotearsMLPBackbone
from rescore.learners.networks.notears_mlp_paper import PaperMLPBackbone
from rescore.moments import Rows
from rescore.protocols import Problem
from rescore.tables.convert import DataWarning
from rescore.weightings import Exact, Uniform

NAMES = list("abcde")
LINEAR = [
    rs.Linear(),
    rs.Notears(),
    rs.Dagma(),
    rs.Golem(),
    rs.Notears(n_starts=2, max_steps=5),
    rs.ReScore(rs.Linear(), tau=0.4),
    rs.ReScore(rs.Notears(), tau=0.4),
]
NETWORKS = [
    NotearsMLP(),
    NotearsMLP("paper", activation="relu", lambda1=0.03),  # its own default finds no parabola
    NotearsMLP(standardize=True, variance="unequal"),
    GranDAG(neighbours=None),
    rs.ReScore(NotearsMLP(), tau=0.5),
]


def named(learner):
    return type(learner).__name__


@pytest.fixture(scope="module")
def frame(chain):
    return pd.DataFrame(chain, columns=NAMES).rename(lambda i: f"row {i}") + 7.0


@pytest.fixture(scope="module")
def curved():
    """dose → answer, a parabola; an even function, of which no straight line sees anything."""
    rng = np.random.default_rng(100)
    dose = rng.normal(size=500)
    answer = dose**2 + 0.5 * rng.normal(size=500)
    return pd.DataFrame({"answer": answer - 40, "dose": dose + 9})


@pytest.fixture(scope="module", params=NETWORKS, ids=named)
def fitted(request, curved):
    return clone(request.param).fit(curved)


# Linear learners: everything by hand


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("learner", LINEAR, ids=named)
def test_linear_predictions_are_the_centred_rows_times_the_graph(learner, frame):
    model = clone(learner).fit(frame)
    mean = model.sample_weight_ @ frame
    by_hand = (frame - mean) @ model.adjacency_matrix_ + mean
    pd.testing.assert_frame_equal(model.predict(frame), by_hand, check_names=False)
    residuals = frame - by_hand
    np.testing.assert_allclose(
        model.noise_variance_, model.sample_weight_ @ residuals**2, rtol=1e-9
    )
    assert list(model.noise_variance_.index) == NAMES


@pytest.mark.parametrize("learner", [rs.Linear(), rs.Golem(), rs.ReScore(rs.Dagma(), tau=0.4)])
def test_the_score_is_the_mean_gaussian_log_likelihood_of_new_rows(learner, frame):
    model = clone(learner).fit(frame[:200])
    new, w = frame[200:], np.arange(100.0)
    deviations = np.sqrt(model.noise_variance_.to_numpy())
    rows = norm.logpdf(new, model.predict(new), deviations).sum(axis=1)
    assert model.score(new) == pytest.approx(rows.mean(), rel=1e-12)
    assert model.score(new, None, w) == pytest.approx(np.average(rows, weights=w), rel=1e-12)


def test_the_true_graph_scores_above_the_empty_one_on_both_kinds_of_rows(frame):
    learned = rs.Linear().fit(frame[:200])
    with pytest.warns(DataWarning, match="no edge"):
        empty = rs.Linear(threshold=9.0).fit(frame[:200])
    for rows in (frame[:200], frame[200:]):
        assert learned.score(rows) > empty.score(rows) + 1


def test_the_effect_along_a_linear_edge_is_a_line_with_its_coefficient(frame):
    model = rs.Linear().fit(frame)
    curve = model.effect(frame, "b", "c", points=7)
    assert (curve.index.name, curve.name, len(curve)) == ("b", "c", 7)
    assert (curve.index[0], curve.index[-1]) == (frame["b"].min(), frame["b"].max())
    slopes = np.diff(curve) / np.diff(curve.index)
    np.testing.assert_allclose(slopes, model.adjacency_matrix_.loc["b", "c"])
    flat = model.effect(frame, "c", "b")
    np.testing.assert_allclose(flat, flat.iloc[0])
    assert flat.iloc[0] == pytest.approx(model.predict(frame)["b"].mean())


def test_effects_are_the_partial_dependence_of_scikit_learn(frame):
    model = rs.Linear(threshold=0.0).fit(frame)
    parents = model.adjacency_matrix_.index[model.adjacency_matrix_["c"] != 0]
    regression = LinearRegression().fit(frame[parents], frame["c"])
    curve = model.effect(frame, "b", "c", points=20)
    theirs = sklearn_partial_dependence(
        regression, frame[parents], ["b"], custom_values={"b": curve.index.to_numpy()}
    )
    np.testing.assert_allclose(curve, theirs["average"][0], rtol=1e-6)


@pytest.mark.parametrize("learner", [rs.Notears(standardize=True), rs.Linear(standardize=True)])
def test_standardised_fits_predict_in_the_units_given(learner, frame):
    scale, shift = np.array([1e3, 1.0, 1e-4, 10.0, 1.0]), np.array([0.0, 5.0, 1.0, -3e3, 0.0])
    plain, other = clone(learner).fit(frame), clone(learner).fit(frame * scale + shift)
    moved = other.predict(frame * scale + shift)
    np.testing.assert_allclose((moved - shift) / scale, plain.predict(frame), rtol=1e-6)
    lost = np.log(scale).sum()
    assert other.score(frame * scale + shift) == pytest.approx(plain.score(frame) - lost)
    standard = clone(learner).set_params(standardize=False)
    standard = standard.fit((frame - frame.mean()) / frame.std(ddof=0))
    by_hand = standard.predict((frame - frame.mean()) / frame.std(ddof=0))
    by_hand = by_hand * frame.std(ddof=0) + frame.mean()
    np.testing.assert_allclose(plain.predict(frame), by_hand, rtol=1e-6)


def test_moments_predict_as_the_rows_do(frame):
    rows = rs.Linear().fit(frame)
    model = rs.Linear().fit_moments(frame.cov(ddof=0), len(frame), frame.mean())
    pd.testing.assert_frame_equal(model.predict(frame), rows.predict(frame), rtol=1e-6)
    assert model.score(frame) == pytest.approx(rows.score(frame))
    centred = rs.Linear().fit_moments(frame.cov(ddof=0), len(frame))
    expected = rows.predict(frame) - frame.mean()
    pd.testing.assert_frame_equal(centred.predict(frame - frame.mean()), expected, rtol=1e-6)


# Networks


def test_the_effect_along_a_curved_edge_follows_the_truth(fitted, curved):
    assert list(fitted.causal_graph_.edges) == [("dose", "answer")]
    curve = fitted.effect(curved, "dose", "answer", points=400)
    inner = curve[np.abs(curve.index - 9) < 1.5]
    np.testing.assert_allclose(inner, (inner.index - 9) ** 2 - 40, atol=0.5)
    alone = fitted.predict(curved)["answer"]  # a single cause: its curve is the prediction
    np.testing.assert_allclose(np.interp(curved["dose"], curve.index, curve), alone, atol=0.02)


def test_networks_predict_the_mean_of_a_root_and_leave_the_noise(fitted, curved):
    predicted, w = fitted.predict(curved), fitted.sample_weight_
    np.testing.assert_allclose(predicted["dose"], w @ curved["dose"], rtol=1e-9)
    residuals = curved - predicted
    np.testing.assert_allclose(w @ residuals, 0, atol=1e-9)
    np.testing.assert_allclose(fitted.noise_variance_, w @ residuals**2)
    if not isinstance(fitted, rs.ReScore):
        assert fitted.noise_variance_["answer"] == pytest.approx(0.25, rel=0.4)
    straight = LinearRegression().fit(curved[["dose"]], curved["answer"])
    linear = (curved["answer"] - straight.predict(curved[["dose"]])).var()
    assert fitted.noise_variance_["answer"] < linear / 2


@pytest.mark.parametrize(
    "backbone",
    [NotearsMLPBackbone(), PaperMLPBackbone(activation="relu", lambda1=0.03), GranDAGBackbone()],
    ids=named,
)
@pytest.mark.parametrize("weighting", [Uniform(), Exact(0.5)], ids=named)
def test_networks_leave_the_residuals_their_backbone_tells(backbone, weighting, curved):
    """Nothing in use was cut from these graphs.  The networks compute in single precision."""
    X = curved.to_numpy()
    found = rescore(Problem.unconstrained(X), backbone, weighting)
    assert found.W.any()
    squares = np.square(X - found.equations.predict(X))
    np.testing.assert_allclose(squares, found.losses, rtol=1e-3, atol=5e-3)


def test_inputs_outside_the_graph_are_frozen_at_their_mean():
    rng = np.random.default_rng(101)
    W, b = rng.normal(size=(3, 4, 3)), rng.normal(size=(3, 4))
    V, c = rng.normal(size=(3, 1, 4)), rng.normal(size=(3, 1))
    X = rng.normal(size=(50, 3)) * [1, 3, 9] + [5, 0, -5]
    moments = Rows(X).moments(np.full(50, 1 / 50))
    edges = np.array([[0, 0, 0.2], [1, 0, 0], [0, 0, 0]])
    columns, units = np.array([2, 0, 1]), np.array([2.0, 0.5, 7.0])
    equations = NetworkEquations.of(
        ((W, b), (V, c)), columns, "sigmoid", edges, moments, 1.4, units
    )
    for k, j in enumerate(columns):  # network k predicts column j
        seen = np.where(edges[:, j] != 0, X, X.mean(axis=0))
        Z = 1.4 * (seen - X.mean(axis=0)) / X.std(axis=0)
        hidden = 1 / (1 + np.exp(-(Z[:, columns] @ W[k].T + b[k])))
        by_hand = X[:, j].mean() + units[j] * (hidden @ V[k].T + c[k])[:, 0]
        np.testing.assert_allclose(equations.predict(X)[:, j], by_hand)
        np.testing.assert_allclose(equations.variable(X, j), by_hand)


@pytest.mark.parametrize("kind", ["linear", "relu"])
def test_shifts_and_scales_act_on_variables_and_predictions_alike(kind):
    rng = np.random.default_rng(102)
    if kind == "linear":
        equations = LinearEquations(np.triu(rng.normal(size=(3, 3)), 1), rng.normal(size=3))
    else:
        layers = (rng.normal(size=(3, 5, 3)), rng.normal(size=(3, 5))), (
            rng.normal(size=(3, 1, 5)), rng.normal(size=(3, 1)))  # fmt: skip
        equations = NetworkEquations(layers, rng.normal(size=3), "relu")
    X, mean, scale = rng.normal(size=(9, 3)), rng.normal(size=3), np.array([0.1, 1, 30])
    expected = mean + scale * equations.shifted(mean).predict(X)
    own = equations.shifted(mean).rescaled(mean, scale)
    np.testing.assert_allclose(own.predict(mean + scale * X), expected)
    again = from_arrays(kind, own.arrays(), 3)
    assert (again.predict(X) == own.predict(X)).all()
    w = rng.dirichlet(np.ones(9))
    average, variance = residual_moments(own, X, w)
    R = X - own.predict(X)
    np.testing.assert_allclose(average, np.average(R, axis=0, weights=w))
    np.testing.assert_allclose(variance, np.diag(np.cov(R.T, aweights=w, ddof=0)))


# What can go wrong


def test_constant_and_deterministic_columns_score_without_nan(frame):
    frame = frame.assign(c=0.1, d=2 * frame["a"])
    with pytest.warns(DataWarning):
        model = rs.Linear().fit(frame)
    assert model.noise_variance_["c"] == 0
    assert np.isfinite(model.score(frame))
    assert model.score(frame.assign(c=99.0)) == model.score(frame)  # it contributes nothing
    np.testing.assert_allclose(model.predict(frame)["c"], 0.1)


@pytest.mark.parametrize("standardize", [False, True])
def test_rows_of_weight_zero_are_not_there(frame, standardize):
    learner = rs.ReScore(rs.Linear(standardize=standardize), tau=0.5)
    w = np.repeat([1.0, 0.0], 150)
    model, expected = clone(learner).fit(frame, sample_weight=w), learner.fit(frame[:150])
    np.testing.assert_allclose(model.predict(frame), expected.predict(frame))
    np.testing.assert_allclose(model.noise_variance_, expected.noise_variance_)


def test_columns_are_matched_by_name_and_arrays_by_position(frame):
    import polars as pl

    model = rs.Linear().fit(frame)
    expected = model.predict(frame)
    pd.testing.assert_frame_equal(model.predict(frame[NAMES[::-1]]), expected)
    unnamed = model.predict(frame.to_numpy())
    assert list(unnamed.columns) == NAMES
    assert (unnamed.to_numpy() == expected.to_numpy()).all()
    one = model.predict(frame.iloc[[5]])
    pd.testing.assert_frame_equal(one, expected.iloc[[5]])
    foreign = model.predict(pl.from_pandas(frame.reset_index(drop=True))[:, ::-1])
    assert (foreign.to_numpy() == expected.to_numpy()).all()
    assert model.score(frame[NAMES[::-1]]) == model.score(frame.to_numpy())


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda m, X: m.predict(X.to_numpy()[:, :3]), "X has 3 features, but Linear is expecting"),
        (lambda m, X: m.predict(X.rename(columns={"a": "z"})), "'a' missing, 'z' unknown"),
        (lambda m, X: m.score(X.assign(extra=1.0)), "'extra' unknown"),
        (lambda m, X: m.predict(X[["a"]]), "'b', 'c', 'd', 'e' missing"),
        (lambda m, X: m.predict(X.where(X.iloc[2, 1] != X)), "'b'.*1 NaN"),
        (lambda m, X: m.predict(X.where(X.iloc[2, 1] != X).iloc[[2]]), "'b'.*1 NaN"),
        (lambda m, X: m.effect(X, "z", "a"), "'z' is not among the variables"),
        (lambda m, X: m.effect(X, "a", "z"), "'z' is not among the variables"),
        (lambda m, X: m.effect(X, "a", "b", points=1), "points must be a whole number"),
        (lambda m, X: m.score(X, sample_weight=[1.0]), "one weight for each"),
        (lambda m, X: m.predict(X.iloc[:0]), "0 sample"),
    ],
)
def test_bad_questions_are_refused_in_a_sentence(ask, words, frame):
    model = rs.Linear().fit(frame)
    with pytest.raises(ValueError, match=words):
        ask(model, frame)


def test_a_model_must_be_fitted_first(frame):
    for ask in (lambda m: m.predict(frame), lambda m: m.score(frame)):
        with pytest.raises(NotFittedError):
            ask(rs.ReScore(rs.Linear()))


def test_the_score_chooses_a_penalty(frame):
    search = GridSearchCV(rs.Notears(), {"lambda1": [0.05, 3.0]}, cv=2).fit(frame)
    assert search.best_params_ == {"lambda1": 0.05}


@pytest.mark.parametrize("scale", [[1e140, 1e-140, 1, 1, 1], [1, 1e-300, 1, 1e148, 1]])
def test_ratios_of_units_beyond_float64_do_not_matter_when_standardised(scale, chain):
    expected = rs.Linear(standardize=True).fit(chain).predict(chain)
    moved = rs.Linear(standardize=True).fit(chain * scale).predict(chain * scale)
    np.testing.assert_allclose(moved / scale, expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("learner", [rs.Linear(), rs.ReScore(rs.Linear(), tau=0.5)], ids=named)
def test_few_rows_give_the_same_to_the_last_bit_repeated_weighted_or_reordered(learner):
    """Fewer rows than columns: many graphs fit perfectly, and rounding must not choose."""
    rng = np.random.default_rng(103)
    X, counts = rng.normal(size=(9, 20)), rng.integers(0, 4, size=9)
    order = rng.permutation(9)
    weighted = clone(learner).fit(X[order], sample_weight=counts[order])
    repeated = clone(learner).fit(np.repeat(X, counts, axis=0))
    assert (weighted.adjacency_matrix_ == repeated.adjacency_matrix_).all(axis=None)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X))
    totals = np.zeros(9)
    np.add.at(totals, np.repeat(np.arange(9), counts), repeated.sample_weight_)
    np.testing.assert_allclose(weighted.sample_weight_, totals[order])


# Files


def test_saved_networks_predict_as_before(fitted, curved, tmp_path):
    rs.save(fitted, tmp_path)
    again = rs.load(tmp_path)
    pd.testing.assert_frame_equal(again.predict(curved), fitted.predict(curved))
    pd.testing.assert_series_equal(again.noise_variance_, fitted.noise_variance_)
    assert again.get_params().keys() == fitted.get_params().keys()
    assert again.score(curved) == fitted.score(curved)
    hidden = {k: v for k, v in again.get_params().items() if k.endswith("hidden")}
    assert hidden == {k: v for k, v in fitted.get_params().items() if k.endswith("hidden")}


@pytest.mark.parametrize("standardize", [False, True])
def test_saved_lines_predict_as_before(standardize, frame, tmp_path):
    model = rs.ReScore(rs.Linear(standardize=standardize), tau=0.5).fit(frame)
    rs.save(model, tmp_path)
    pd.testing.assert_frame_equal(rs.load(tmp_path).predict(frame), model.predict(frame))


def spoiled(folder, **changes):
    with np.load(folder / "arrays.npz") as archive:
        np.savez(folder / "arrays.npz", **(dict(archive) | changes))


@pytest.mark.parametrize("array", ["equations_weights0", "equations_bias1", "equations_centre"])
def test_equations_that_do_not_fit_the_names_are_refused(array, fitted, tmp_path):
    rs.save(fitted, tmp_path)
    spoiled(tmp_path, **{array: np.zeros((2, 2, 2, 2))})
    with pytest.raises(ValueError, match="shapes"):
        rs.load(tmp_path)


def test_equations_of_an_unknown_kind_are_refused(frame, tmp_path):
    rs.save(rs.Linear().fit(frame), tmp_path)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"equations": "spline"}))
    with pytest.raises(ValueError, match="'spline'"):
        rs.load(tmp_path)
