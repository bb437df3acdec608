"""Bad values and parameters at the level of a fit: each row has its answer, none is silent."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import rescore as rs
from rescore.graph.dag import is_dag
from rescore.tables.convert import DataWarning

LEARNERS = [rs.Notears(), rs.ReScore(rs.Notears())]
each_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda e: type(e).__name__)


@pytest.fixture
def frame(chain):
    return pd.DataFrame(chain.copy(), columns=list("abcde"))


def fit(learner, X, **kw):
    """The fitted model and the codes of what it warned about; fails on warnings not recorded."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = clone(learner).fit(X, **kw)
    recorded = [w["message"] for w in model.diagnostics_["warnings"]]
    if not model.diagnostics_["converged"]:
        recorded.append(model.diagnostics_["status"])
    assert sorted(str(w.message) for w in caught) == sorted(recorded)
    assert is_dag(model.adjacency_matrix_.to_numpy())
    assert np.isfinite(model.adjacency_matrix_.to_numpy()).all()
    return model, {w["code"] for w in model.diagnostics_["warnings"]}


# Values


@each_learner
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e151])
def test_nan_inf_and_overflow_raise_with_the_column(learner, frame, bad):
    frame.loc[3, "c"] = bad
    with pytest.raises(ValueError, match="'c'"):
        clone(learner).fit(frame)


@each_learner
def test_pd_na_raises_with_the_column(learner, frame):
    nullable = frame.convert_dtypes()
    nullable.loc[3, "c"] = pd.NA
    with pytest.raises(ValueError, match="'c'"):
        clone(learner).fit(nullable)


@each_learner
def test_a_constant_column_is_an_isolated_node(learner, frame):
    frame["c"] = 3.0
    model, codes = fit(learner, frame)
    assert "constant" in codes
    assert model.causal_graph_.degree("c") == 0
    assert model.causal_graph_.has_edge("a", "b")


@each_learner
@pytest.mark.parametrize("code", ["duplicated", "collinear"])
def test_dependent_columns_are_named_and_the_result_is_a_dag(learner, frame, code):
    frame["e"] = frame["a"] * (2 if code == "duplicated" else 1) + (
        0 if code == "duplicated" else frame["c"]
    )
    model, codes = fit(learner, frame)
    assert code in codes
    (finding,) = [w for w in model.diagnostics_["warnings"] if w["code"] == code]
    assert {"a", "e"} <= set(finding["columns"])


@each_learner
def test_fewer_rows_than_columns_warn_and_run(learner, frame):
    _, codes = fit(learner, frame.head(4))
    assert "few_rows" in codes


@each_learner
@pytest.mark.parametrize("rows", [0, 1])
def test_no_row_and_one_row_raise(learner, frame, rows):
    with pytest.raises(ValueError, match=f"{rows} sample"):
        clone(learner).fit(frame.head(rows))


@each_learner
def test_no_column_raises_and_one_column_is_the_empty_graph(learner, frame):
    with pytest.raises(ValueError, match="0 feature"):
        clone(learner).fit(frame[[]])
    model, _ = fit(learner, frame[["a"]])
    assert list(model.causal_graph_.nodes) == ["a"]
    assert model.causal_graph_.number_of_edges() == 0


@pytest.mark.parametrize("scale", [1e12, 1e-6])
def test_all_data_scaled_give_the_same_graph_when_standardised(frame, scale):
    learner = rs.ReScore(rs.Notears(standardize=True, threshold=0.1))
    expected, _ = fit(learner, frame)
    model, codes = fit(learner, frame * scale)
    assert set(model.causal_graph_.edges) == set(expected.causal_graph_.edges)
    assert not codes & {"scale", "scale_ratio"}


@each_learner
@pytest.mark.parametrize("scale", [1e12, 1e-6])
def test_all_data_scaled_warn_otherwise(learner, frame, scale):
    model, codes = fit(learner, frame * scale)
    assert "scale" in codes
    assert model.causal_graph_.number_of_edges() or "empty" in codes


@each_learner
def test_one_column_scaled_warns(learner, frame):
    frame["b"] *= 1e6
    model, codes = fit(learner, frame)
    assert "scale_ratio" in codes
    assert model.diagnostics_["scale_ratio"] > 1e5
    assert model.causal_graph_.number_of_edges() or "empty" in codes


def test_one_huge_cell_is_said_and_its_row_listed(frame):
    frame.loc[17, "c"] = 1e6
    model, codes = fit(rs.ReScore(rs.Notears(), tau=0.3), frame)
    assert "outlying" in codes
    assert "by design" in next(
        w["message"] for w in model.diagnostics_["warnings"] if w["code"] == "outlying"
    )
    assert model.diagnostics_["heaviest_rows"][0]["row"] == 17


@each_learner
@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "float32"])
def test_small_types_are_float64_before_any_arithmetic(learner, frame, dtype):
    small = (frame * 5).clip(0, 100).astype(dtype)
    model, _ = fit(learner, small)
    expected, _ = fit(learner, small.astype(float))
    pd.testing.assert_frame_equal(model.adjacency_matrix_, expected.adjacency_matrix_)


def test_integers_beyond_float64_warn(frame):
    large = (frame * 100).astype("int64") + 2**60
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rs.Notears().fit(large)
    rounded = [w for w in caught if "more digits than float64 holds" in str(w.message)]
    assert len(rounded) == 5
    assert all(w.category is DataWarning for w in rounded)


@each_learner
def test_denormals_do_not_crash(learner, frame):
    frame["c"] = frame["c"] * 1e-310
    fit(learner, frame)


SCALES = [1e-310, 1e-160, 1e-50, 1e50, 1e147]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    "learner",
    [rs.Linear(), rs.GES(), rs.Golem(), rs.ReScore(rs.Dagma(), tau=0.5), rs.ReScore(rs.Notears())],
    ids=repr,
)
def test_columns_in_any_units_are_fitted_without_a_raw_warning(learner, frame, scale):
    """All warnings are recorded ones, or `fit` fails; numbers are finite, weights sum to one."""
    for columns in ["c"], list("abcde"):
        scaled = frame.copy()
        scaled[columns] *= scale
        model, _ = fit(learner, scaled)
        assert np.isfinite(model.losses_).all(axis=None)
        assert np.isfinite(model.row_losses_).all()
        assert np.isfinite(model.predict(scaled)).all(axis=None)
        assert model.sample_weight_.sum() == pytest.approx(1)


@pytest.mark.parametrize("cell", [1e100, None], ids=["one cell", "one column"])
def test_networks_too_are_fitted_in_units_that_single_precision_holds(frame, cell):
    frame = frame.head(60).copy()
    if cell is None:
        frame["c"] *= 1e-150
    else:
        frame.loc[3, "c"] = cell
    model, _ = fit(rs.ReScore(rs.NotearsMLP(), tau=0.5), frame)
    assert np.isfinite(model.losses_).all(axis=None)
    assert model.sample_weight_.sum() == pytest.approx(1)


def test_coefficients_are_those_of_the_units_given(frame):
    learner = rs.GES(knowledge=rs.Knowledge(tiers=[[name] for name in frame]))
    plain, _ = fit(learner, frame)
    units = pd.Series([1.0, 1e90, 1.0, 1e-120, 1.0], index=frame.columns)
    scaled, _ = fit(learner, frame * units)
    expected = plain.adjacency_matrix_.mul(units, axis=1).div(units, axis=0)
    np.testing.assert_allclose(scaled.adjacency_matrix_, expected, rtol=1e-9)
    np.testing.assert_allclose(scaled.predict(frame * units), plain.predict(frame) * units)
    np.testing.assert_allclose(scaled.losses_, plain.losses_ * units**2, rtol=1e-6)


def test_a_narrow_column_far_from_zero_is_no_constant(frame):
    """As timestamps in microseconds are; their mean alone rounds to a quarter of one."""
    frame["a"] = np.round(frame["a"] * 50)
    for standardize in (False, True):
        expected, _ = fit(rs.Linear(standardize=standardize), frame)
        far, _ = fit(rs.Linear(standardize=standardize), frame.assign(a=frame["a"] + 1.7e15))
        assert set(far.causal_graph_.edges) == set(expected.causal_graph_.edges)


@each_learner
def test_a_table_of_constants_has_no_edges_and_no_raw_warning(learner, frame):
    model, codes = fit(learner, frame * 0 + 3)
    assert codes == {"constant"}
    assert model.causal_graph_.number_of_edges() == 0


@pytest.mark.parametrize("learner", [rs.Dagma(), rs.Notears(), rs.Golem()], ids=repr)
def test_swaps_of_neighbours_do_not_gain_by_rounding_for_ever(learner):
    X = np.random.default_rng(0).normal(size=(5, 5))
    X[:, 2] *= 1e15
    fit(learner, X)


@each_learner
def test_an_empty_graph_over_large_correlations_is_said(learner, frame):
    penalised = clone(learner).set_params(
        **({"lambda1": 100.0} if isinstance(learner, rs.Notears) else {"estimator__lambda1": 100.0})
    )
    model, codes = fit(penalised, frame)
    assert model.causal_graph_.number_of_edges() == 0
    assert "empty" in codes


# Containers


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X[::-1].copy()[::-1],
        lambda X: pd.DataFrame(X, index=[5] * len(X)),
    ],
    ids=["fortran", "strides", "negative strides", "odd index"],
)
def test_layouts_give_the_same_result_and_stay_untouched(chain, layout):
    X = layout(chain)
    before = np.array(X)
    model, _ = fit(rs.ReScore(rs.Notears()), X)
    expected, _ = fit(rs.ReScore(rs.Notears()), chain)
    np.testing.assert_allclose(
        model.adjacency_matrix_.to_numpy(), expected.adjacency_matrix_.to_numpy(), atol=1e-10
    )
    assert (np.array(X) == before).all()
    if isinstance(X, pd.DataFrame):
        pd.testing.assert_index_equal(model.sample_weight_.index, X.index)


def test_a_memory_map_gives_the_same_result(chain, tmp_path):
    np.save(tmp_path / "X.npy", chain)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model, _ = fit(rs.Notears(), mapped)
    expected, _ = fit(rs.Notears(), chain)
    assert (model.adjacency_matrix_ == expected.adjacency_matrix_).all(axis=None)


# Parameters


@pytest.mark.parametrize("tau", [0, -1, 1.5, np.nan, True, "half", None])
def test_tau_outside_its_range_raises_at_fit(frame, tau):
    model = rs.ReScore(rs.Notears(), tau=tau)
    with pytest.raises((ValueError, TypeError), match="tau"):
        model.fit(frame)


def test_tau_one_equals_the_plain_learner_exactly(frame):
    plain, _ = fit(rs.Notears(), frame)
    model, _ = fit(rs.ReScore(rs.Notears(), tau=1), frame)
    pd.testing.assert_frame_equal(
        model.adjacency_matrix_, plain.adjacency_matrix_, check_exact=True
    )


def test_too_few_rows_at_the_ceiling_warn(frame):
    _, codes = fit(rs.ReScore(rs.Notears(), tau=0.01), frame)
    assert "few_heavy_rows" in codes


@each_learner
@pytest.mark.parametrize(
    "weights",
    [
        np.full(300, -1.0),
        np.r_[np.nan, np.ones(299)],
        np.r_[np.inf, np.ones(299)],
        np.ones(299),
        np.ones((300, 2)),
        np.zeros(300),
        ["heavy"] * 300,
    ],
    ids=["negative", "NaN", "inf", "wrong length", "two columns", "all zero", "text"],
)
def test_bad_sample_weights_raise(learner, frame, weights):
    with pytest.raises((ValueError, TypeError), match="sample_weight"):
        clone(learner).fit(frame, sample_weight=weights)


@each_learner
def test_a_zero_weight_equals_deleting_the_row(learner, frame):
    frame.loc[0] = 50.0
    w = np.ones(300)
    w[0] = 0
    model, _ = fit(learner, frame, sample_weight=w)
    expected, _ = fit(learner, frame.iloc[1:])
    pd.testing.assert_frame_equal(model.adjacency_matrix_, expected.adjacency_matrix_)
    assert model.sample_weight_.iloc[0] == 0
    assert model.sample_weight_.sum() == pytest.approx(1)


def test_weights_so_large_that_their_sum_overflows_are_fine(frame):
    model, _ = fit(rs.Notears(), frame, sample_weight=np.full(300, 1e308))
    expected, _ = fit(rs.Notears(), frame)
    np.testing.assert_allclose(model.adjacency_matrix_, expected.adjacency_matrix_, atol=1e-8)


@pytest.mark.parametrize(
    "bad",
    [
        {"lambda1": -0.1},
        {"lambda1": np.nan},
        {"lambda1": True},
        {"lambda1": "0.1"},
        {"threshold": -1},
        {"h_tol": 0},
        {"rho_max": 1},
        {"max_steps": 0},
        {"max_steps": True},
        {"max_steps": 2.5},
        {"constraint": "cubic"},
        {"standardize": "yes"},
        {"standardize": 1},
    ],
    ids=str,
)
def test_bad_learner_parameters_raise_at_fit(frame, bad):
    model = rs.Notears(**bad)
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        model.fit(frame)


@pytest.mark.parametrize(
    "bad",
    [
        {"weighting": "magic"},
        {"loss": "l3"},
        {"warmup": -1},
        {"warmup": True},
    ],
    ids=str,
)
def test_bad_rescore_parameters_raise_at_fit(frame, bad):
    model = rs.ReScore(rs.Notears(), **bad)
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        model.fit(frame)


@pytest.mark.parametrize(
    "bad",
    [
        {"random_state": "x"},
        {"random_state": -1},
        {"hidden": ()},
        {"hidden": (0,)},
        {"hidden": (True,)},
        {"hidden": (2.5,)},
        {"activation": "cosine"},
        {"scheme": "magic"},
        {"lambda1": -1.0},
        {"threshold": float("nan")},
    ],
    ids=str,
)
def test_bad_network_parameters_raise_at_fit(frame, bad):
    model = rs.NotearsMLP(**bad)
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        model.fit(frame)


def test_something_else_than_a_learner_raises(frame):
    with pytest.raises(TypeError, match="Notears"):
        rs.ReScore("notears").fit(frame)


@pytest.mark.parametrize(
    ("knowledge", "words"),
    [
        ({"required": [("a", "b"), ("b", "a")]}, "cycle"),
        ({"required": [("a", "b")], "forbidden": [("a", "b")]}, "both required and forbidden"),
        ({"forbidden": [("a", "nobody")]}, "nobody"),
    ],
)
def test_contradicting_knowledge_raises(frame, knowledge, words):
    with pytest.raises(ValueError, match=words):
        rs.Notears(**knowledge).fit(frame)


def test_a_required_edge_at_a_constant_column_raises(frame):
    frame["c"] = 1.0
    with pytest.raises(ValueError, match="constant"):
        rs.Notears(required=[("a", "c")]).fit(frame)


def test_the_same_seed_gives_the_same_bits(frame):
    first, _ = fit(rs.ReScore(rs.NotearsMLP(random_state=3)), frame)
    second, _ = fit(rs.ReScore(rs.NotearsMLP(random_state=3)), frame)
    pd.testing.assert_series_equal(first.sample_weight_, second.sample_weight_, check_exact=True)


# Numerics


def test_no_convergence_is_a_warning_and_a_status_and_still_a_dag(frame):
    with pytest.warns() as caught:
        model = rs.Notears(max_steps=1).fit(frame)
    assert any(w.category is ConvergenceWarning and "max_steps" in str(w.message) for w in caught)
    assert not model.diagnostics_["converged"]
    assert is_dag(model.adjacency_matrix_.to_numpy())


def test_cut_edges_are_listed_by_name(frame):
    model, codes = fit(rs.Notears(max_steps=1, threshold=0.0), frame)
    assert "cycle_cut" in codes
    assert {"from", "to", "weight"} == set(model.diagnostics_["removed_edges"][0])
