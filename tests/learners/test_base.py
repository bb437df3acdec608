import pickle
import subprocess
import sys
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import rescore as rs
from rescore.learners import LEARNERS, load_learner
from rescore.protocols import Status
from rescore.weightings.neural import Neural

LINEAR = {name: load_learner(name) for name in LEARNERS if load_learner(name).linear}
# These do not find every chain: of its class any member will do, or the data do not matter.
NOT_EVERY_CHAIN = ("GES", "Random", "Empty")
CHECKED = [kind() for kind in LINEAR.values() if not kind.needs_groups]
CHECKED += [rs.ReScore(), rs.ReScore(tau=0.5), rs.ReScore(rs.GES(), tau=0.5)]
ESTIMATORS = [e for e in CHECKED if type(e.plain).__name__ not in NOT_EVERY_CHAIN]
NAMES = ["Raf", "Mek", "Erk", "Akt", "PKA"]


# One of the checks has 15 rows of 30 columns, on which GOLEM alone takes half a minute to converge.
BRIEF = [rs.Golem(max_steps=2) if isinstance(e, rs.Golem) else e for e in CHECKED]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(BRIEF)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture
def frame(chain):
    index = pd.date_range("2020-01-01", periods=len(chain), name="day")
    return pd.DataFrame(chain, columns=NAMES, index=index)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_pandas_in_pandas_out_with_names_index_and_order(estimator, frame):
    model = clone(estimator).fit(frame)
    assert list(model.adjacency_matrix_.index) == list(model.adjacency_matrix_.columns) == NAMES
    assert list(model.causal_graph_.nodes) == NAMES
    assert nx.is_directed_acyclic_graph(model.causal_graph_)
    assert set(model.causal_graph_.edges) == set(pairwise(NAMES))
    for cause, effect, weight in model.causal_graph_.edges(data="weight"):
        assert model.adjacency_matrix_.loc[cause, effect] == weight
    pd.testing.assert_index_equal(model.sample_weight_.index, frame.index)
    pd.testing.assert_index_equal(model.losses_.index, frame.index)
    assert model.sample_weight_.sum() == pytest.approx(1)
    told = {"objective", "h", "edges", "effective_rows", "ceiling_share"}
    assert told <= set(model.history_.columns)
    assert model.diagnostics_["converged"]
    assert model.diagnostics_["status"].startswith("Converged")


def test_every_container_gives_the_same_graph(frame):
    import polars as pl
    import pyarrow as pa

    plain = frame.reset_index(drop=True)
    expected = rs.Notears().fit(plain).adjacency_matrix_
    for X in (pl.from_pandas(plain), pa.Table.from_pandas(plain)):
        pd.testing.assert_frame_equal(rs.Notears().fit(X).adjacency_matrix_, expected)
    unnamed = rs.Notears().fit(plain.to_numpy()).adjacency_matrix_
    assert (unnamed.to_numpy() == expected.to_numpy()).all()
    assert list(unnamed.columns) == ["x0", "x1", "x2", "x3", "x4"]


def test_parameters_are_stored_as_given_and_nested():
    model = rs.ReScore(rs.Notears(lambda1=0.2), tau=0.4)
    assert model.get_params()["estimator__lambda1"] == 0.2
    assert clone(model).set_params(estimator__threshold=0.1).estimator.threshold == 0.1
    assert rs.Notears(lambda1="nonsense").lambda1 == "nonsense"  # refused at fit, not here


def test_the_wrapped_learner_is_left_as_it_was(frame):
    inner = rs.Notears()
    rs.ReScore(inner).fit(frame)
    assert not hasattr(inner, "adjacency_matrix_")


def test_a_refit_forgets_the_names_of_an_earlier_fit(frame):
    model = rs.Notears().fit(frame)
    assert list(model.feature_names_in_) == NAMES
    assert not hasattr(model.fit(frame.to_numpy()), "feature_names_in_")


def test_progress_is_reported_step_by_step(frame):
    seen = []
    model = rs.ReScore(rs.Notears()).fit(frame, on_step=seen.append)
    assert len(seen) == len(model.history_)


def test_the_heaviest_rows_are_listed_by_their_labels(frame):
    model = rs.ReScore(rs.Notears(), tau=0.3).fit(frame)
    top = model.diagnostics_["heaviest_rows"]
    assert top[0]["row"] in frame.index
    assert top[0]["weight"] == pytest.approx(model.sample_weight_.max())


def test_auto_finds_environments_whatever_the_units_and_is_exact_where_tau_is_given(frame):
    def decided(**options):
        learner = rs.Linear(standardize=options.pop("standardize", False))
        return rs.ReScore(learner, **options).fit(frame).diagnostics_["weighting"]

    assert decided() == decided(weighting="environments")
    assert decided()["groups"] == decided(standardize=True)["groups"] == 1
    assert decided(weighting="balanced")["groups"] >= 1
    assert decided(tau=0.5) == decided(weighting="exact") == {}


def test_rescore_alone_wraps_the_recommended_learner(frame):
    model = rs.ReScore().fit(frame)
    assert isinstance(model.plain, rs.Linear)
    told = rs.ReScore(rs.Linear()).fit(frame)
    pd.testing.assert_frame_equal(model.adjacency_matrix_, told.adjacency_matrix_)
    assert clone(model).estimator is None


def test_the_seed_reaches_the_network_behind_neural_weights(frame):
    def player(**options):
        model = rs.ReScore(rs.NotearsMLP(), weighting="neural", **options)
        return model._player(model.plain).weighting

    assert player(random_state=3) == Neural(0.5, "nll", (10, 10), seed=3)
    assert player() == player(random_state=0)
    with pytest.raises(ValueError, match="random_state"):
        rs.ReScore(random_state=-1).fit(frame)


def test_row_losses_are_free_of_units_and_average_to_the_number_of_variables(frame):
    model = rs.Notears().fit(frame)
    assert model.row_losses_.mean() == pytest.approx(frame.shape[1])
    ratios = model.losses_ / model.losses_.mean()
    np.testing.assert_allclose(model.row_losses_, ratios.sum(axis=1))


def test_standardising_makes_the_graph_independent_of_units(frame):
    model = rs.Notears(standardize=True, threshold=0.1)
    expected = clone(model).fit(frame).adjacency_matrix_ != 0
    scaled = frame * [1e6, 1e-3, 1, 1e12, 1e-9]
    assert ((clone(model).fit(scaled).adjacency_matrix_ != 0) == expected).all(axis=None)


def test_knowledge_by_name_is_honoured(frame):
    model = rs.Notears(forbidden=[("Raf", "Mek")], required=iter([("Raf", "PKA")])).fit(frame)
    assert not model.causal_graph_.has_edge("Raf", "Mek")
    assert model.causal_graph_.has_edge("Raf", "PKA")


def test_a_fitted_estimator_survives_pickling_by_its_users(frame):
    model = rs.ReScore(rs.Notears()).fit(frame)
    again = pickle.loads(pickle.dumps(model))
    pd.testing.assert_frame_equal(again.adjacency_matrix_, model.adjacency_matrix_)


def test_evaluate_takes_the_estimator_itself(frame):
    truth = pd.DataFrame(np.eye(5, k=1, dtype=int), NAMES, NAMES)
    assert rs.evaluate(truth, rs.Notears().fit(frame)).shd == 0


def test_the_public_names_are_what_the_package_lists():
    assert set(rs.__all__) <= set(dir(rs))
    for name in rs.__all__:
        assert ">>>" in getattr(rs, name).__doc__, f"{name} has no runnable example"
    with pytest.raises(AttributeError, match="nonsense"):
        rs.nonsense  # noqa: B018


def test_importing_rescore_changes_and_loads_nothing():
    code = (
        "import sys, os, warnings, logging, random\n"
        "def state():\n"
        "    return dict(os.environ), warnings.filters[:], random.getstate(), logging.root.level\n"
        "before = state()\n"
        "import rescore\n"
        "assert before == state()\n"
        "heavy = {'jax', 'numpy', 'pandas', 'sklearn', 'matplotlib', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "rescore.Notears, rescore.simulate, rescore.evaluate, rescore.load_sachs\n"
        "import jax\n"
        "assert not jax.config.jax_enable_x64\n"
        "assert before[0] == dict(os.environ)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ctrl_c_keeps_what_was_reached_and_stops_the_caller(chain):
    def stop(record):
        raise KeyboardInterrupt

    model = rs.ReScore(rs.Notears(), tau=0.5)
    with pytest.raises(KeyboardInterrupt, match="Stopped by Ctrl-C"):
        model.fit(chain, on_step=stop)
    assert model.status_ is Status.INTERRUPTED
    assert model.adjacency_matrix_.shape == (5, 5)
    assert not model.diagnostics_["converged"]
