"""Methods compared with any other, scored at several cut-offs, and the released code's switches."""

import numpy as np
import pytest

import rescore as rs
from rescore.experiments import Experiment, Trial
from rescore.experiments.pages import COMPARED, MEANS, PROTOCOL, contents, html
from rescore.experiments.released import Redrawn, _redrawn
from rescore.experiments.running import dataset, learner, run_trial
from rescore.experiments.store import Store
from rescore.learners.networks import Weighted
from rescore.protocols import Problem
from rescore.pruning.cam import cam_prune
from rescore.solvers.compilation import float64

CUTS = [0.1, 0.3]
SHD_AT = {0.1: {0.1: 6, 0.3: 4}, 0.01: {0.1: 2, 0.3: 3}}  # λ -> cut-off -> SHD of seed 0


def experiment():
    def method(name, **more):
        return {"name": name, "learner": "Notears", "cut_offs": CUTS} | more

    plain = method("NOTEARS", cut_off=0.3, parameters={"lambda1": 0.1})
    weaker = method("weaker", cut_off=0.3, parameters={"lambda1": 0.01}, against="NOTEARS")
    grid = {"parameters.lambda1": [0.1, 0.01]}
    best = method("best of all", choose="truth", over=grid, against="weaker")
    return Experiment("mine", "Mine", ({"source": "simulate"},), (plain, weaker, best), seeds=3)


@pytest.fixture
def page(tmp_path):
    store = Store(tmp_path)
    scores = {"sid": 1, "tpr": 0.5, "fdr": 0.1, "edges": 9, "cpu_seconds": 1.0}
    for case in experiment().cases():
        trial = case.trial
        at = SHD_AT[trial.method["parameters"]["lambda1"]]
        shifted = [{"cut_off": cut, "shd": at[cut] + trial.seed} for cut in CUTS]
        result = scores | shifted[0] | {"cut_offs": shifted}
        store.write({"key": trial.key, "trial": trial.content, "status": "ok", "result": result})
    return contents(experiment(), store)


def test_a_method_is_compared_with_the_one_it_names(page):
    table = page.tables[COMPARED].set_index("method")
    assert table["against"].to_dict() == {"weaker": "NOTEARS", "best of all": "weaker"}
    assert PROTOCOL["mixed"] in page.paragraphs
    assert "<strong>2</strong> gain" in html(page, None, "x")
    assert table["gain"].to_dict() == {"weaker": "+1.0 ± 0.0", "best of all": "+1.0 ± 0.0"}


def test_a_trial_scored_at_many_cut_offs_is_shown_at_the_one_meant_or_at_the_best(page):
    shd = page.tables[MEANS].set_index("method")["SHD"]
    assert [shd[name].split()[0] for name in ("NOTEARS", "weaker", "best of all")] == [
        "5.0", "4.0", "3.0",
    ]  # fmt: skip
    setting = page.tables[MEANS].set_index("method")["setting"]
    assert setting["best of all"] == "lambda1=0.01, cut_off=0.1"
    assert "6 results from 6 trials" in " ".join(page.paragraphs)  # those of a grid serve twice


def test_the_verdict_of_such_a_page_names_what_is_lower(page):
    assert page.verdict == (
        "SHD lower beyond chance than what it is compared with: weaker in 1 of 1 (by 20 %), "
        "best of all in 1 of 1 (by 25 %). Higher: none."
    )


def test_cut_offs_score_the_graph_without_weaker_edges():
    data = {"source": "simulate", "nodes": 5, "samples": 300, "degree": 1}
    method = {"learner": "Notears", "parameters": {"threshold": 0.1}, "cut_offs": [0.1, 99.0]}
    found = run_trial(Trial(data, method, 0))["result"]
    low, high = found["cut_offs"]
    assert (low["shd"], low["edges"]) == (found["shd"], found["edges"])
    assert (high["shd"], high["edges"]) == (5, 0)


def test_cut_offs_of_cam_prune_one_fit_at_several():
    data = {"source": "simulate", "nodes": 5, "samples": 300, "degree": 1, "mechanism": "gp-add"}
    everything = {"learner": "GranDAG", "parameters": {"prune": "cam", "cutoff": 1.0, "h_tol": 0.1}}
    found = run_trial(Trial(data, everything | {"cam_cut_offs": [1.0, 0.001]}, 0))["result"]
    model = learner(everything, 0).fit(dataset(data, 0).X)
    for one in found["cut_offs"]:
        pruned = cam_prune(dataset(data, 0).X, model, one["cut_off"])
        assert (one["shd"], one["edges"]) == _scores(dataset(data, 0).truth, pruned)
    assert [one["edges"] < found["edges"] for one in found["cut_offs"]] == [False, True]


def _scores(truth, graph):
    scores = rs.evaluate(truth, graph)
    return scores.shd, scores.edges


def test_redrawn_weights_are_others_at_every_evaluation_and_the_same_at_the_same_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 200)).astype(np.float32)
    rows = Weighted(X, X, np.full(200, 1 / 200, np.float32))
    with float64():
        first, again, other = (
            np.asarray(_redrawn(1.0)(np.full_like(X, F), rows)) for F in (0.0, 0.0, 1e-3)
        )
        calm = np.asarray(_redrawn(1e4)(np.zeros_like(X), rows))
    np.testing.assert_array_equal(first, again)
    assert (np.abs(first - other) > 0.01).all()
    np.testing.assert_allclose(calm, np.mean(X**2, axis=1), rtol=1e-3)


def test_at_temperature_one_few_rows_have_the_weight():
    problem = Problem.unconstrained(np.zeros((2000, 2)))
    for temperature, least, most in ((1.0, 2, 300), (10.0, 1800, 2000)):
        w, _ = Redrawn(temperature).step(problem, None, 0)
        assert least < problem.effective_rows(w) < most


def test_networks_as_released_keep_their_penalty_where_few_rows_have_the_weight():
    spec = {"learner": "NotearsMLP", "parameters": {"scheme": "paper"}, "released": {}}
    asked = []

    class Networks:
        def ascend(self, problem, state, rows, fewer, errors):
            asked.append(fewer)
            return state

    backbone = learner(spec, 0).learner
    problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(20, 2)))
    w = np.r_[np.full(2, 0.5), np.zeros(18)]
    type(backbone)(Networks(), None).step(problem, w, backbone.init(problem))
    assert asked == [1.0]
