import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from rescore.solvers.gaussian_covariance import (
    JITTER,
    Target,
    factored,
    gradient,
    half_inverse,
    kernel,
)
from rescore.solvers.gaussian_orders import Costs
from rescore.solvers.gaussian_parents import (
    Parents,
    asked_of_one,
    causes,
    joint,
    parents,
    threshold,
    worths,
)
from rescore.solvers.gaussian_prediction import predictor
from rescore.solvers.lasso import inside
from rescore.solvers.relevance import (
    ENTRY,
    RELAXED,
    Fit,
    Prior,
    cost,
    fresh,
    learned,
    maximise,
    nothing,
)


@pytest.fixture(scope="module")
def target():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)).astype(np.float32)
    y = (np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=80)).astype(np.float32)
    return Target(X, y, rng.uniform(0.5, 2, size=80))


@pytest.fixture
def theta():
    return np.array([0.8, 0.3, 0.1, 1.5, 0.2, -1.0])


def negative_evidence(theta, target, dtype=np.float32):
    """``½ yᵀ C⁻¹ y + ½ log |C|`` and its gradient (d + 2,)."""
    parts = factored(theta, target, dtype)
    return parts.value, gradient(theta, target, parts, half_inverse(parts.factor))


def test_the_evidence_is_that_of_scikit_learn(target, theta):
    A, v = np.exp(theta[-2:])
    kernel = ConstantKernel(A) * RBF(1 / np.sqrt(theta[:-2]))
    model = GaussianProcessRegressor(kernel, alpha=v * target.noise + JITTER * A, optimizer=None)
    theirs = model.fit(target.X.astype(float), target.y.astype(float)).log_marginal_likelihood()
    ours = -negative_evidence(theta, target, np.float64)[0] - 40 * np.log(2 * np.pi)
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_the_gradient_is_that_of_finite_differences(target, theta):
    _, gradient = negative_evidence(theta, target, np.float64)
    for k, step in enumerate(1e-6 * np.eye(6)):
        up, down = (negative_evidence(theta + s, target, np.float64)[0] for s in (step, -step))
        assert gradient[k] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-6)


@pytest.fixture
def grouped(target):
    """Rows of three groups, some in doubt, whose levels differ."""
    P = np.random.default_rng(7).dirichlet([0.3, 0.3, 0.3], size=80)
    return target._replace(y=(target.y + P @ [2.0, -1.0, 0.0]).astype(np.float32), groups=P)


def dense(theta, target):
    """The whole covariance at once."""
    A, v = np.exp(theta[-2:])
    functions = kernel(theta, target.X, target.X)
    return functions + target.groups @ target.groups.T + np.diag(v * target.noise + JITTER * A)


def test_levels_of_groups_are_part_of_the_covariance(grouped, theta):
    alone = np.r_[np.zeros(4), theta[-2:]]
    for at in (theta, alone):
        theirs = -multivariate_normal.logpdf(grouped.y, np.zeros(80), dense(at, grouped))
        theirs -= 40 * np.log(2 * np.pi)
        assert negative_evidence(at, grouped, np.float64)[0] == pytest.approx(theirs, rel=1e-6)
        ours = cost(at, grouped, Prior()) - Prior().value(at)
        assert ours == pytest.approx(theirs, rel=1e-4)


def test_the_gradient_with_levels_is_that_of_finite_differences(grouped, theta):
    test_the_gradient_is_that_of_finite_differences(grouped, theta)


def test_noise_beside_levels_alone_is_where_the_evidence_is_largest(grouped):
    found = nothing(grouped, Prior())
    for step in (-0.05, 0.05):
        other = found.theta + np.r_[np.zeros(4), step, step]
        assert cost(other, grouped, Prior()) > found.cost


def test_rows_are_left_out_of_their_groups_too(grouped, theta):
    part = grouped.part(np.arange(1, 80))
    with_others = dense(theta, grouped)[0, 1:]
    guess = with_others @ np.linalg.solve(dense(theta, part), part.y)
    fitted = predictor(theta, grouped)
    assert fitted.left_out()[0] == pytest.approx(grouped.y[0] - guess, rel=1e-6)
    other = predictor(theta, part).noises_of(grouped.part(slice(1)))
    assert other[0] == pytest.approx(fitted.noises()[0], rel=1e-5)


def test_predictions_hold_the_mean_level(target, theta):
    lifted = target._replace(y=target.y + np.float32(5), groups=np.ones((80, 1)))
    fitted = predictor(theta, lifted)
    predicted = kernel(theta, lifted.X, lifted.X) @ fitted.dual + fitted.level()
    assert np.abs(predicted - lifted.y).mean() < 0.5


def test_single_precision_comes_close(target, theta):
    value, gradient = negative_evidence(theta, target)
    exact, slope = negative_evidence(theta, target, np.float64)
    assert value == pytest.approx(exact, rel=1e-4)
    np.testing.assert_allclose(gradient, slope, rtol=1e-2, atol=1e-2)


def test_a_row_repeated_k_times_is_a_row_with_less_noise(target, theta):
    """Up to a constant that no parameter changes but the noise: the slopes in the rest agree."""
    k = np.random.default_rng(1).integers(1, 4, 80)
    again = Target(np.repeat(target.X, k, axis=0), np.repeat(target.y, k), np.ones(k.sum()))
    merged = target._replace(noise=1 / k)
    one = negative_evidence(theta, again, np.float64)[1][:-1]
    other = negative_evidence(theta, merged, np.float64)[1][:-1]
    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def test_rows_are_left_out_as_if_they_had_not_been_there(target, theta):
    fitted = predictor(theta, target).left_out()
    rest = np.arange(1, 80)
    part = Target(target.X[rest], target.y[rest], target.noise[rest])
    guess = kernel(theta, target.X[:1], part.X) @ predictor(theta, part).dual
    assert fitted[0] == pytest.approx(target.y[0] - guess[0], rel=1e-6)
    other = predictor(theta, part).noises_of(target.part(slice(1)))
    assert predictor(theta, target).noises()[0] == pytest.approx(other[0], rel=1e-5)


def test_the_search_ends_where_no_input_would_help(target):
    every = np.ones(4, dtype=bool)
    fit = maximise(target, every, fresh(every), 100)
    assert fit.cost < cost(fresh(every), target)
    assert (fit.stake[fit.relevance == 0] < 0.1).all()
    found = parents(target, fit, np.zeros(4, dtype=bool), 4.0, Prior())
    assert list(np.flatnonzero(found.worth)) == [0, 1]


def test_scoring_ends_where_a_quasi_newton_method_ends_too(target):
    """SciPy's, in double precision, until nothing moves; and in few factorisations."""
    inputs = np.array([True, True, False, True])

    def objective(theta):
        value, gradient = negative_evidence(theta, target, np.float64)
        return value + RELAXED.value(theta), gradient + RELAXED.slope(theta)

    bounds = [(0.0, 50.0 if free else 0.0) for free in inputs] + [(-6, 6), (-7, 1)]
    options = {"ftol": 1e-13, "gtol": 1e-7}
    theirs = minimize(objective, fresh(inputs), jac=True, bounds=bounds, options=options)
    ours = maximise(target, inputs, fresh(inputs), 12)
    assert ours.cost == pytest.approx(theirs.fun, abs=0.05)
    np.testing.assert_allclose(ours.relevance, theirs.x[:-2], atol=0.1)


def test_stakes_say_which_input_is_missing(target):
    """The score test of inputs that are not there."""
    y = np.sin(2 * target.X[:, 0]) + target.X[:, 1]
    one = np.array([True, False, False, False])
    fit = maximise(target._replace(y=y), one, fresh(one), 30)
    assert np.argmax(fit.stake[1:]) == 0
    assert fit.stake[1] > 5 > fit.stake[2:].max()


def test_a_step_inside_the_box_is_the_least_there():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(6, 6))
    F, slope, box = A @ A.T + np.eye(6), 5 * rng.normal(size=6), np.full(6, 0.4)
    best = inside(slope, F, -box, box)
    ends = minimize(lambda s: slope @ s + s @ F @ s / 2, np.zeros(6), bounds=[(-0.4, 0.4)] * 6)
    np.testing.assert_allclose(best, ends.x, atol=1e-3)


def test_all_go_where_nothing_is_worth_it_but_what_is_required(target, theta):
    required = np.array([False, False, True, False])
    fit = Fit(cost(theta, target), theta, np.zeros(4), np.zeros(5))
    found = parents(target, fit, required, 1e9, Prior())
    assert set(np.flatnonzero(found.worth)) <= {2}


def test_forbidden_causes_are_no_candidates(target):
    allowed = ~np.eye(4, dtype=bool)
    allowed[0, 3] = False
    fit = Costs(target.X, np.ones((80, 4)), allowed).fit(3, [0, 1, 2])
    assert fit.relevance[0] == 0


def test_more_pairs_ask_for_more_evidence():
    assert threshold(0.5, 1000) > threshold(0.5, 100) > threshold(5, 100)


@pytest.mark.parametrize("relaxed", [False, True])
def test_the_slope_of_the_prior_is_that_of_finite_differences(theta, relaxed):
    prior = Prior(2.0, 0.7, 0.3, 0.5, relaxed)
    for k, step in enumerate(1e-6 * np.eye(6)):
        change = prior.value(theta + step) - prior.value(theta - step)
        assert prior.slope(theta)[k] == pytest.approx(change / 2e-6, rel=1e-5)


def test_an_input_that_is_not_there_costs_nothing(theta):
    prior = Prior(ratio=0.4, width=0.1)
    theta[:-2] = 0.0, 1.0, 0.0, 0.0
    one = prior.value(theta)
    theta[1] = 0.0
    assert prior.value(theta) == pytest.approx(one)  # relevance one is the level


def test_relations_that_agree_make_a_narrow_prior():
    """Inputs of the same relevance; those not worth enough have no say."""
    theta = np.array([2.0, 3.0, 0.1, 0.9, 0.4])
    fit = Fit(0.0, theta, np.array([50.0, 50.0, 0.1]), np.full(4, 0.01))
    few, many = (learned([fit] * k, sure=4.0) for k in (1, 30))
    assert many.spread < 0.5 * few.spread
    assert many.width < 0.5 * few.width
    assert many.level == pytest.approx(np.log1p(np.array([2.0, 3.0]) / ENTRY).mean())
    assert many.ratio == pytest.approx(0.5)
    assert learned([fit], sure=100.0) == Prior()


def test_many_weak_causes_are_kept_by_what_other_relations_show():
    """Six inputs that show themselves only together: each alone looks idle where any relevance,
    however small, is as likely as any other; a prior from other relations tells."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 6)).astype(np.float32)
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2) / 2) + 1e-6 * np.eye(300)
    y = np.linalg.cholesky(K) @ rng.normal(size=300) + rng.normal(size=300)
    one = Target(X, (y / y.std()).astype(np.float32), np.ones(300))
    every = np.ones(6, dtype=bool)

    def kept(prior):
        found = maximise(one, every, fresh(every), 30, prior)
        kept = joint(one, parents(one, found, ~every, 4.0, prior), ~every, 4.0, prior, among=6)
        return (kept.worth > 0).sum()

    assert kept(Prior(spread=3.0)) == 0
    assert kept(Prior(spread=0.3, width=0.3)) >= 5


def test_inputs_that_only_together_fit_the_noise_are_no_parents():
    """Of many that mean nothing some cannot be spared one by one, but all together can."""
    least, none = threshold(0.2, pairs=45), np.zeros(10, dtype=bool)
    for seed in (10, 54):  # where two or three would stay if each alone were asked
        X = np.random.default_rng(seed).normal(size=(150, 10)).astype(np.float32)
        costs = Costs(
            (X - X.mean(axis=0)) / X.std(axis=0), np.ones(X.shape), ~np.eye(10, dtype=bool)
        )
        fit = costs.fit(0, range(1, 10))
        assert len(fit.inputs) > 1
        found = parents(costs.target(0), fit, none, least, Prior())
        kept = joint(costs.target(0), found, none, least, Prior(), among=9)
        assert len(kept.fit.inputs) == 0


def test_many_causes_are_no_surprise_where_there_are_many_edges(target, theta):
    """Four of twenty inputs must be worth the choice among sets of four, or less odds for each."""
    fit = Fit(cost(theta, target, Prior()), theta, np.full(4, 9.0), np.zeros(5))
    found = Parents(fit, np.array([5.0, 6.0, 7.0, 0.0]), together=5.5)
    none = np.zeros(4, dtype=bool)
    kept = joint(target, found, none, 4.0, Prior(), among=20, odds=0.4)
    assert kept is found
    kept = joint(target, found, none, 4.0, Prior(), among=20)
    assert kept is not found


def test_a_cause_beside_others_is_an_even_bet_where_the_prior_knows_how_relevant_causes_are():
    """And chance is charged by the threshold where it does not."""
    knows, least = Prior(level=3.4, spread=0.35), threshold(0.2, pairs=190)
    assert asked_of_one(least, odds=0.3, prior=knows) == 0.3
    assert asked_of_one(least, odds=-1.0, prior=knows) == 0
    assert asked_of_one(least, odds=9.0, prior=knows) == least
    straight = Prior(level=float(np.log1p(0.1 / ENTRY)), spread=1.0)  # relations hardly bend
    assert asked_of_one(least, odds=0.3, prior=straight) == least


def test_chance_gains_nothing_under_a_prior_that_knows():
    """An unrelated input beside two that matter, fitted from as relevant as others are."""
    knows = Prior(level=float(np.log1p(1 / ENTRY)), spread=0.35, width=0.4)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 3)).astype(np.float32)
        K = np.exp(-np.square(X[:, None, :2] - X[:, :2]).sum(axis=2) / 2) + 1e-6 * np.eye(200)
        y = np.linalg.cholesky(K) @ rng.normal(size=200) + rng.normal(size=200)
        one, every = Target(X, (y / y.std()).astype(np.float32), np.ones(200)), np.ones(3, bool)
        with_it = maximise(one, every, fresh(every, knows), 40, knows)
        two = np.array([True, True, False])
        assert maximise(one, two, fresh(two, knows), 40, knows).cost < with_it.cost


def test_the_table_tells_the_odds_at_which_many_weak_causes_are_kept(target, theta):
    """Joint causes that are worth little together stay where other relations have many too."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 6)).astype(np.float32)
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2) / 2) + 1e-6 * np.eye(300)
    every, prior = np.ones(6, dtype=bool), Prior(spread=0.3, width=0.3)

    def relation(signal):
        y = signal * np.linalg.cholesky(K) @ rng.normal(size=300) + rng.normal(size=300)
        return Target(X, (y / y.std()).astype(np.float32), np.ones(300))

    targets = {0: relation(3.0), 1: relation(1.2)}
    fits = {j: maximise(one, every, fresh(every, prior), 30, prior) for j, one in targets.items()}
    none, among = np.zeros((6, 2), dtype=bool), np.array([19, 19])
    few, many = (causes(targets, fits, none, among, pairs, 0.2, prior) for pairs in (1000, 14))
    for found in (few, many):
        assert len(found[0].fit.inputs) >= 5
    assert len(many[1].fit.inputs) > len(few[1].fit.inputs)


def test_what_is_clear_on_a_part_of_the_rows_is_asked_no_further():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3)).astype(np.float32)
    y = (np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=800)).astype(np.float32)
    one, both = Target(X, y, np.ones(800)), np.array([True, True, False])
    fit = maximise(one, both, fresh(both), 20)
    some, all_of_it = worths(one, fit, Prior(), enough=20.0), worths(one, fit, Prior())
    assert 20 < some[0] < all_of_it[0]
    assert some[1] == pytest.approx(all_of_it[1])
    assert some[2] == all_of_it[2] == 0


def test_noise_alone_is_fitted_as_well_as_by_the_search(target):
    none = np.zeros(4, dtype=bool)
    alone = maximise(target, none, fresh(none), 30)
    for step in (-0.1, 0.1):
        theta = alone.theta + np.r_[np.zeros(5), step]
        assert cost(theta, target) > alone.cost
    assert alone.cost == pytest.approx(
        factored(alone.theta, target).value + RELAXED.value(alone.theta), abs=1e-3
    )
