import numpy as np
import pytest

import rescore as rs
from rescore.algorithm import rescore
from rescore.learners.additive import AdditiveBackbone
from rescore.learners.linear import OrderBackbone
from rescore.learners.networks.notears_mlp import NotearsMLPBackbone
from rescore.learners.notears import NotearsBackbone
from rescore.learners.wrappers import Repeated, Starts
from rescore.protocols import Problem
from rescore.weightings import Uniform
from rescore.weightings.precision import Precision


def objective(model):
    return model.history_["objective"].iloc[-1]


@pytest.mark.parametrize("learner", [rs.Notears, rs.Dagma, rs.Golem])
def test_more_starts_never_end_higher(learner, chain):
    one, more = learner().fit(chain), learner(n_starts=3).fit(chain)
    assert objective(more) <= objective(one)


@pytest.mark.parametrize("scheme", ["path", "paper"])
def test_networks_from_several_starts_never_end_higher(scheme, chain):
    one, more = (rs.NotearsMLP(scheme, n_starts=n).fit(chain) for n in (1, 2))
    assert objective(more) <= objective(one)
    again = rs.NotearsMLP(scheme, n_starts=2).fit(chain)
    np.testing.assert_array_equal(more.adjacency_matrix_, again.adjacency_matrix_)


def test_networks_start_differently_and_follow_the_seed(chain):
    problem = Problem.unconstrained(chain)
    first, second = (s.params.x for s in Starts(NotearsMLPBackbone(), 2).init(problem).params)
    assert (first != second).any()
    again = Starts(NotearsMLPBackbone(), 2).init(problem).params[1].params.x
    np.testing.assert_array_equal(second, again)


def test_starts_differ_respect_the_mask_and_follow_the_seed(chain):
    problem = Problem.unconstrained(chain)
    states = Starts(NotearsBackbone(), n_starts=3).init(problem).params
    W = [s.params.W for s in states]
    assert not W[0].any()
    assert (W[1] != W[2]).any()
    assert not np.diag(W[1]).any()
    again = Starts(NotearsBackbone(), n_starts=3).init(problem).params
    assert (W[2] == again[2].params.W).all()
    other = Starts(NotearsBackbone(), n_starts=3, seed=1).init(problem).params
    assert (W[2] != other[2].params.W).any()


def test_starts_are_drawn_in_the_units_of_the_variables(chain):
    units = np.array([1e-3, 1.0, 1e3, 1.0, 1.0])
    W, V = (
        Starts(NotearsBackbone(), n_starts=2).init(Problem.unconstrained(X)).params[1].params.W
        for X in (chain, chain * units)
    )
    np.testing.assert_allclose(V, W * units / units[:, None], rtol=1e-9)


@pytest.mark.parametrize("n_starts", [0, 1.5, True])
def test_n_starts_is_a_whole_number(n_starts, chain):
    with pytest.raises((TypeError, ValueError), match="n_starts"):
        rs.Notears(n_starts=n_starts).fit(chain)


class Watched(OrderBackbone):
    """Remembers the weights of its steps."""

    def step(self, problem, w, state):
        self.__dict__.setdefault("weights", []).append(np.asarray(w))
        return super().step(problem, w, state)


def test_a_scout_shows_groups_before_the_first_fit():
    rng = np.random.default_rng(0)
    minority = (np.arange(400) < 40)[:, None]
    X = rng.normal(size=(400, 4)) * np.where(minority, [1, 0.1, 1, 0.1], [0.1, 1, 0.1, 1])
    X[:, 1] += np.sin(3 * X[:, 0])
    problem, learner = Problem.unconstrained(X), Watched()
    rescore(problem, Repeated(learner, scout=AdditiveBackbone()), Precision())
    assert all(w.ndim == 2 and np.ptp(w) > 0 for w in learner.weights)


def test_a_scout_leaves_no_trace_where_rows_are_alike(chain):
    problem = Problem.unconstrained(chain)
    plain = rescore(problem, OrderBackbone(), Uniform())
    found = rescore(problem, Repeated(OrderBackbone(), scout=AdditiveBackbone()), Precision())
    np.testing.assert_array_equal(found.W, plain.W)
    np.testing.assert_array_equal(found.losses, plain.losses)
    assert found.weighting["groups"] == 1
