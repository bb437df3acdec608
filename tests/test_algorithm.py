from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from rescore.algorithm import rescore
from rescore.equations import LinearEquations
from rescore.learners.notears import NotearsBackbone
from rescore.protocols import Problem, State, Status
from rescore.weight_box import likelihood_units
from rescore.weightings import Exact


class Recorder:
    """A backbone that learns nothing and notes the weights it was given."""

    threshold = 0.0

    def __init__(self, steps):
        self.steps, self.weights = steps, []

    def init(self, problem):
        return State(0)

    def step(self, problem, w, state):
        self.weights.append(w)
        done = state.params + 1 == self.steps
        return State(state.params + 1, Status.CONVERGED if done else Status.RUNNING)

    def losses(self, problem, state):
        return problem.rows.matrix() ** 2

    def adjacency(self, state):
        return np.zeros((5, 5))

    def equations(self, problem, state, W):
        return LinearEquations(W, np.zeros(5))


class Drifting:
    """Gives the first row more at every call."""

    tau = 0.01

    def init(self, n, d):
        return 0

    def step(self, problem, losses, state):
        w = np.array(problem.prior)
        w[0] = (state + 1) / 10
        return w, state + 1

    def explain(self, state):
        return {}


@pytest.mark.parametrize("warmup", [0, 1, 3])
def test_weights_move_only_after_the_warm_up(warmup, chain):
    recorder = Recorder(steps=5)
    problem = Problem.unconstrained(chain)
    found = rescore(problem, recorder, Exact(0.5), warmup=warmup)
    moved = [not np.array_equal(w, problem.prior) for w in recorder.weights]
    assert moved == [step >= warmup for step in range(5)]
    assert found.sample_weight is recorder.weights[-1]  # the weights the graph was learned with


def test_losses_are_computed_for_a_weighting_that_looks(chain):
    class Counting(Recorder):
        asked = 0

        def losses(self, problem, state):
            self.asked += 1
            return super().losses(problem, state)

    looking, blind = Counting(steps=5), Counting(steps=5)
    rescore(Problem.unconstrained(chain), looking, Exact(0.5), warmup=1)
    rescore(Problem.unconstrained(chain), blind, Drifting(), warmup=1)
    assert (looking.asked, blind.asked) == (5, 1)  # those of the result are always there


def test_any_object_with_the_five_methods_is_a_backbone(chain):
    found = rescore(Problem.unconstrained(chain), Recorder(steps=2), Exact(0.5))
    assert found.status is Status.CONVERGED
    assert not found.W.any()


def test_a_learner_that_never_stops_ends_at_the_step_limit(chain):
    found = rescore(Problem.unconstrained(chain), Recorder(steps=99), Exact(0.5), max_steps=4)
    assert found.status is Status.STEP_LIMIT
    assert len(found.history) == 4


def stop_at(step):
    def on_step(record):
        if record["step"] == step:
            raise KeyboardInterrupt

    return on_step


def test_ctrl_c_ends_with_what_was_reached(chain):
    recorder = Recorder(steps=99)
    problem = Problem.unconstrained(chain)
    found = rescore(problem, recorder, Exact(0.5), on_step=stop_at(3))
    assert found.status is Status.INTERRUPTED
    assert len(found.history) == 3
    assert found.sample_weight is recorder.weights[-1]


def test_ctrl_c_before_the_first_step_is_not_caught(chain):
    class Impatient(Recorder):
        def step(self, problem, w, state):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rescore(Problem.unconstrained(chain), Impatient(steps=9), Exact(0.5))


class InParts(Recorder):
    """Its states are settled after every third step."""

    def step(self, problem, w, state):
        return replace(super().step(problem, w, state), settled=state.params % 3 == 2)


def test_weights_wait_until_the_learner_has_settled(chain):
    learner = InParts(steps=7)
    rescore(Problem.unconstrained(chain), learner, Drifting())
    assert [w[0] for w in learner.weights] == [learner.weights[0][0]] * 3 + [0.1] * 3 + [0.2]


def test_ctrl_c_goes_back_to_the_last_settled_step(chain):
    learner = InParts(steps=99)
    found = rescore(Problem.unconstrained(chain), learner, Drifting(), on_step=stop_at(5))
    assert found.sample_weight is learner.weights[2]


def test_the_inner_step_is_never_below_uniform_weights(chain):
    problem = Problem.unconstrained(chain)
    backbone, weighting = NotearsBackbone(), Exact(0.5)
    state = backbone.init(problem)
    w = problem.prior
    for _ in range(4):
        state = backbone.step(problem, w, state)
        losses = backbone.losses(problem, state)
        w, _ = weighting.step(problem, partial(np.array, losses), None)
        loss = likelihood_units(losses, problem.prior)
        assert w @ loss >= problem.prior @ loss


def test_the_minority_gets_its_weight_and_the_graph_improves():
    """On rows whose noise pattern differs, ReScore lowers the SHD without labels."""
    from rescore.data.simulate import simulate
    from rescore.metrics import shd
    from rescore.weightings import Uniform

    gains, masses = [], []
    for seed in range(4):
        data = simulate(
            nodes=10, samples=1000, groups=(0.9, 0.1), noise_scale=0.1, random_state=seed
        )
        problem = Problem.unconstrained(data.X.to_numpy())
        plain = rescore(problem, NotearsBackbone(), Uniform())
        found = rescore(problem, NotearsBackbone(), Exact(0.2))
        gains.append(shd(data.truth, plain.W) - shd(data.truth, found.W))
        masses.append(found.sample_weight[(data.groups == "g1").to_numpy()].sum())
    assert np.mean(masses) > 0.3  # of the weight, for 0.1 of the rows
    assert np.mean(gains) > 0


class Diverging(Recorder):
    """Its numbers are not finite from some step on."""

    def __init__(self, at):
        super().__init__(steps=99)
        self.at = at

    def adjacency(self, state):
        return np.full((5, 5), np.nan if state.params >= self.at else 0.0)


class Counting(Drifting):
    def explain(self, state):
        return {"moved": state}


def test_a_step_that_leaves_the_range_of_numbers_is_taken_back(chain):
    learner = Diverging(at=4)
    found = rescore(Problem.unconstrained(chain), learner, Counting(), warmup=0)
    assert found.status is Status.DIVERGED
    assert len(found.history) == 3
    assert found.sample_weight is learner.weights[2]
    assert found.weighting == {"moved": 3}  # of the weights that are returned, not of the next


def test_ctrl_c_within_a_fit_explains_the_weights_that_are_returned(chain):
    learner = InParts(steps=99)
    found = rescore(Problem.unconstrained(chain), learner, Counting(), warmup=0, on_step=stop_at(5))
    assert found.sample_weight is learner.weights[2]
    assert found.weighting == {"moved": 1}


def test_a_learner_without_any_finite_step_is_an_error(chain):
    with pytest.raises(ValueError, match="standardize=True"):
        rescore(Problem.unconstrained(chain), Diverging(at=1), Exact(0.5))


def test_losses_that_are_not_finite_are_an_error_before_they_move_weights(chain):
    class Lossy(Recorder):
        def losses(self, problem, state):
            return np.full(problem.rows.shape, np.inf)

    with pytest.raises(ValueError, match="far from all others"):
        rescore(Problem.unconstrained(chain), Lossy(steps=2), Exact(0.5))
