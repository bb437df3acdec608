from itertools import permutations

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import norm
from sklearn.mixture import GaussianMixture

from rescore.graph.dag import cpdag, is_dag
from rescore.moments import Rows, Summary
from rescore.protocols import Problem
from rescore.solvers.noise import (
    Negentropies,
    Sample,
    explanations,
    improve_order,
    looks_shaped,
    negentropy,
    noise_variances,
    shape_gains,
    with_equal_noise,
    with_shaped_noise,
    with_unequal_noise,
)

LEAST = 0.005


def model(seed, d=6, share=0.4):
    rng = np.random.default_rng(seed)
    size = rng.uniform(0.6, 1.4, size=(d, d)) * rng.choice([-1, 1], size=(d, d))
    order = rng.permutation(d)
    return np.triu(size * (rng.random((d, d)) < share), 1)[np.ix_(order, order)]


def table(B, draw, seed, n=1500):
    """Rows of the model with noise of deviation one."""
    noise = getattr(np.random.default_rng(seed + 100), draw)(size=(n, len(B)))
    return noise / noise.std(axis=0) @ np.linalg.inv(np.eye(len(B)) - B)


def units(seed, d=6):
    return 10.0 ** np.random.default_rng(seed).uniform(-1, 1, size=d)


def sample_of(X, w=None, count=None, allowed=None, required=None):
    n, d = X.shape
    w = np.full(n, 1 / n) if w is None else w
    allowed = ~np.eye(d, dtype=bool) if allowed is None else allowed
    required = np.zeros((d, d), dtype=bool) if required is None else required
    return Sample.of(Problem(Rows(X), w, allowed, required, count), w, LEAST)


def best(sample):
    return min(explanations(sample, starts=4), key=lambda one: one.cost)


@pytest.mark.parametrize("seed", range(4))
def test_noise_of_one_size_in_its_own_units_is_told_and_the_graph_is_right(seed):
    B = model(seed)
    found = best(sample_of(table(B, "normal", seed)))
    assert found.name == "equal"
    np.testing.assert_array_equal(found.W != 0, B != 0)


@pytest.mark.parametrize("seed", range(4))
def test_gaussian_noise_in_other_units_is_unequal_and_the_class_is_right(seed):
    B = model(seed)
    found = best(sample_of(table(B, "normal", seed) * units(seed)))
    assert found.name == "unequal"
    np.testing.assert_array_equal(cpdag(found.W), cpdag(B))


@pytest.mark.parametrize("draw", ["exponential", "uniform"])
@pytest.mark.parametrize("seed", range(3))
def test_noise_that_is_not_gaussian_is_told_and_the_graph_is_right_in_any_units(seed, draw):
    B = model(seed)
    found = best(sample_of(table(B, draw, seed) * units(seed)))
    assert found.name == "non-Gaussian"
    np.testing.assert_array_equal(found.W != 0, B != 0)


@pytest.mark.parametrize("seed", range(3))
def test_likelihoods_of_gaussian_noise_are_sums_over_all_cells(seed):
    B = model(seed)
    X = table(B, "normal", seed) * units(seed)
    sample = sample_of(X)
    W = sample.search.coefficients(B != 0)
    R = X - X @ W
    R = R - R.mean(axis=0)
    one_size = np.sqrt(np.square(R).mean())
    equal, unequal = with_equal_noise(sample, W), with_unequal_noise(sample, W)
    assert equal.likelihood == pytest.approx(norm.logpdf(R, scale=one_size).sum())
    assert unequal.likelihood == pytest.approx(norm.logpdf(R, scale=R.std(axis=0)).sum())
    np.testing.assert_allclose(noise_variances(sample, W), R.var(axis=0))
    assert (equal.parameters, unequal.parameters) == (1, 6)
    bic = 0.5 * 6 * np.log(1500) - unequal.likelihood
    alike = np.bincount((B != 0).sum(axis=0))  # variables with as many parents
    log_ways = gammaln(6 + 1) - gammaln(alike + 1).sum()
    assert unequal.cost == pytest.approx(bic + sample.price * (B != 0).sum() + log_ways)


@pytest.mark.parametrize("seed", range(2))
def test_the_likelihood_of_shaped_noise_is_that_of_mixtures_of_the_residuals(seed):
    B = model(seed)
    X = table(B, "exponential", seed) * units(seed)
    sample = sample_of(X)
    W = sample.search.coefficients(B != 0)
    R = X - X @ W
    expected = 0.0
    for column in (R - R.mean(axis=0)).T[:, :, None]:
        fits = [GaussianMixture(K, n_init=1, random_state=0).fit(column) for K in (1, 2, 3)]
        expected += max(fit.score(column) for fit in fits) * len(X)
    gained = with_shaped_noise(sample, W).likelihood - with_unequal_noise(sample, W).likelihood
    possible = expected - with_unequal_noise(sample, W).likelihood
    assert 0.9 * possible < gained < 1.1 * possible


SHAPES = {
    "exponential": lambda rng, n: rng.exponential(size=n),
    "uniform": lambda rng, n: rng.uniform(size=n),
    "laplace": lambda rng, n: rng.laplace(size=n),
    "two heaps": lambda rng, n: rng.normal(size=n) + 4 * (rng.random(n) < 0.3),
    "two scales": lambda rng, n: rng.normal(size=n) * np.where(rng.random(n) < 0.2, 4, 1),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_mixture_gains_is_what_scikit_learn_gains(shape):
    z = SHAPES[shape](np.random.default_rng(0), 2000)
    z = ((z - z.mean()) / z.std())[:, None]
    (gain,), (parameters,) = shape_gains(z, np.full(2000, 1 / 2000), 2000.0)
    plain = norm.logpdf(z).sum()
    fits = {K: GaussianMixture(K, n_init=1, random_state=0).fit(z) for K in (2, 3)}
    theirs = fits[1 + int(parameters) // 3].score(z) * 2000 - plain
    assert gain > 0.93 * theirs
    assert gain - 0.5 * parameters * np.log(2000) > 0


@pytest.mark.parametrize("seed", range(5))
def test_gaussian_noise_gains_nothing_by_its_shape(seed):
    Z = np.random.default_rng(seed).normal(size=(1000, 4))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    gain, parameters = shape_gains(Z, np.full(1000, 1 / 1000), 1000.0)
    assert not gain.any()
    assert not parameters.any()


def quantiles(of, n=20_001):
    return of((np.arange(n) + 0.5) / n), np.full(n, 1 / n)


def test_negentropy_is_zero_for_a_gaussian_and_for_nothing_else():
    assert negentropy(*quantiles(norm.ppf)) == pytest.approx(0, abs=1e-6)
    for of in (np.log, np.sqrt, lambda u: u, lambda u: norm.ppf(u) ** 3, lambda u: u > 0.1):
        assert negentropy(*quantiles(of)) > 0.005


def test_negentropy_depends_on_neither_unit_nor_origin_nor_sign():
    r, w = np.random.default_rng(0).exponential(size=500), np.full(500, 1 / 500)
    for other in (r * 1e6 + 5, 3 - r / 1e4, -r):
        assert negentropy(other, w) == pytest.approx(negentropy(r, w), rel=1e-6)
    assert negentropy(np.ones(500), w) < 100  # a constant is no error


def test_lopsided_noise_is_further_from_gaussian_than_with_its_mirror_image():
    r, w = quantiles(np.log)
    both = np.r_[r - r.mean(), r.mean() - r]
    assert negentropy(r, w) > negentropy(both, np.r_[w, w] / 2) + 0.05


def test_the_approximation_orders_shapes_as_the_integral_does():
    """Entropies of unit variance: ½ log 2πe less log √12, log √2 + 1 and 1."""
    gaussian = 0.5 * np.log(2 * np.pi * np.e)
    exact = {
        "uniform": gaussian - np.log(np.sqrt(12)),
        "laplace": gaussian - 1 - 0.5 * np.log(2),
        "exponential": gaussian - 1,
    }
    laplace = quantiles(lambda u: np.sign(u - 0.5) * np.log1p(-2 * np.abs(u - 0.5)))
    found = {
        "uniform": negentropy(*quantiles(lambda u: u)),
        "laplace": negentropy(*laplace),
        "exponential": negentropy(*quantiles(np.log)),
    }
    assert found["exponential"] == max(found.values())
    for shape, value in found.items():
        assert 0.3 * exact[shape] < value < 2 * exact[shape]


def random_score(seed):
    """Of a variable and those before it; each family has a value of its own."""
    rng, known = np.random.default_rng(seed), {}
    return lambda j, before: known.setdefault((j, before.tobytes()), rng.normal())


def total(order, score):
    before, value = np.zeros(len(order), dtype=bool), 0.0
    for j in order:
        value += score(int(j), before)
        before[j] = True
    return value


def moved_once(order):
    for v in order:
        rest = [u for u in order if u != v]
        yield from ([*rest[:p], v, *rest[p:]] for p in range(len(order)))


@pytest.mark.parametrize("seed", range(10))
def test_no_move_of_one_variable_improves_an_improved_order(seed):
    score, start = random_score(seed), np.random.default_rng(seed).permutation(5)
    value, order = improve_order(start, score)
    assert value == pytest.approx(total(order, score))
    assert value <= total(start, score)
    assert value <= min(total(other, score) for other in moved_once(order)) + 2e-6


@pytest.mark.parametrize("seed", range(5))
def test_from_some_start_the_best_of_all_orders_is_found(seed):
    score = random_score(seed)
    orders = list(permutations(range(4)))
    found = min(improve_order(np.array(order), score)[0] for order in orders)
    assert found == pytest.approx(min(total(order, score) for order in orders))


@pytest.mark.parametrize("seed", range(5))
def test_where_every_variable_has_a_place_any_start_leads_there(seed):
    rng = np.random.default_rng(seed)
    wanted = rng.permutation(5)
    after = np.triu(np.ones((5, 5)), 1)[np.ix_(np.argsort(wanted), np.argsort(wanted))]
    value, order = improve_order(rng.permutation(5), lambda j, before: float(after[j] @ before))
    assert value == 0
    np.testing.assert_array_equal(order, wanted)


@pytest.mark.parametrize("seed", range(4))
def test_known_edges_are_obeyed_under_every_hypothesis(seed):
    B = model(seed)
    X = table(B, "exponential", seed) * units(seed)
    allowed, required = ~np.eye(6, dtype=bool), np.zeros((6, 6), dtype=bool)
    (i, j), (k, m) = np.argwhere(B)[:2]
    required[j, i] = True  # against the truth
    allowed[i, j] = allowed[k, m] = False
    every = list(explanations(sample_of(X, allowed=allowed, required=required), starts=2))
    assert [one.name for one in every] == ["equal", "unequal", "non-Gaussian"]
    for one in every:
        assert is_dag(one.W)
        assert one.W[j, i] != 0
        assert not one.W[~allowed].any()


@pytest.mark.parametrize("draw", ["normal", "exponential", "uniform"])
@pytest.mark.parametrize("seed", range(2))
def test_a_row_repeated_is_a_row_of_that_weight(seed, draw):
    X = table(model(seed), draw, seed, n=500) * units(seed)
    counts = np.random.default_rng(seed).integers(1, 5, size=len(X))
    weighted = sample_of(X, counts / counts.sum(), count=float(counts.sum()))
    repeated = sample_of(X.repeat(counts, axis=0))
    assert weighted.rows == pytest.approx(repeated.rows)
    one, other = best(weighted), best(repeated)
    assert one.name == other.name
    np.testing.assert_allclose(one.W, other.W, atol=1e-6)
    assert one.cost == pytest.approx(other.cost)


@pytest.mark.parametrize("seed", range(3))
def test_the_shape_of_noise_is_the_same_for_rows_repeated_and_rows_of_that_weight(seed):
    rng = np.random.default_rng(seed)
    Z = np.c_[rng.exponential(size=300), rng.uniform(size=300), rng.normal(size=300)]
    counts = rng.integers(1, 5, size=300)
    w = counts / counts.sum()
    Z = Z - w @ Z
    Z /= np.sqrt(w @ np.square(Z))
    rows = float(counts.sum())
    found = shape_gains(Z, w, rows)
    again = shape_gains(Z.repeat(counts, axis=0), np.full(counts.sum(), 1 / rows), rows)
    np.testing.assert_allclose(found, again, rtol=1e-6)


def test_evidence_of_a_shape_counts_repeated_rows_as_rows_of_that_weight():
    """Between what 200 rows and what 3,000 rows show there is a skewness that only these show."""
    z = np.random.default_rng(0).gamma(25.0, size=200)
    X = np.c_[z, np.random.default_rng(1).normal(size=200)]
    counts = np.full(200, 15)
    counts[:10] = 14
    W = np.zeros((2, 2))
    weighted = sample_of(X, counts / counts.sum(), count=float(counts.sum()))
    assert not looks_shaped(sample_of(X), W)
    assert looks_shaped(sample_of(X.repeat(counts, axis=0)), W)
    assert looks_shaped(weighted, W)


def test_moments_alone_have_no_shape():
    X = table(model(0), "exponential", 0)
    rows = Summary.of(X.mean(axis=0), np.cov(X.T, ddof=0))
    nothing = np.zeros((6, 6), dtype=bool)
    problem = Problem(rows, np.full(12, 1 / 12), ~np.eye(6, dtype=bool), nothing, count=1500)
    names = [one.name for one in explanations(Sample.of(problem, problem.prior, LEAST), starts=2)]
    assert names[0] == "equal"
    assert "non-Gaussian" not in names


def test_equal_noise_that_nothing_contradicts_needs_no_other_search():
    X = _chain_of_unit_noise()
    assert [one.name for one in explanations(sample_of(X), starts=2)] == ["equal"]
    in_other_units = X * np.array([1.0, 20.0, 1.0, 0.1])
    assert len(list(explanations(sample_of(in_other_units), starts=2))) > 1


def _chain_of_unit_noise():
    X = np.random.default_rng(1).normal(size=(800, 4))
    for j in range(1, 4):
        X[:, j] += X[:, j - 1]
    return X


def test_a_constant_column_has_no_noise_and_no_edge():
    B = model(2)
    X = np.insert(table(B, "exponential", 2) * units(2), 3, 7.0, axis=1)
    for one in explanations(sample_of(X), starts=2):
        assert np.isfinite(one.cost)
        assert not one.W[3].any()
        assert not one.W[:, 3].any()


def test_costs_are_remembered_for_each_variable_and_its_parents():
    sample = sample_of(table(model(1), "uniform", 1))
    costs, fresh = Negentropies(sample), Negentropies(sample)
    before = np.array([True, True, False, True, False, False])
    first = costs.score(2, before)
    costs.score(4, before)
    assert costs.score(2, before) == first == fresh.score(2, before)


@pytest.mark.parametrize("only", ["unequal", "non-Gaussian"])
def test_a_search_from_the_order_of_a_graph_is_no_worse_than_that_graph(only):
    """So that a first answer can start from the last fit, however that was found."""
    draw = {"unequal": "normal", "non-Gaussian": "exponential"}[only]
    lost = []
    for seed in range(4):
        sample = sample_of(table(model(seed, 8, 0.5), draw, seed, n=200) * units(seed, 8))
        whole = next(explanations(sample, 20, only))
        (warm,) = explanations(sample, 1, only, sample.order(whole.W))
        assert warm.cost <= whole.cost + 1e-6
        lost.append(next(explanations(sample, 1, only)).cost - whole.cost)
    assert only != "unequal" or max(lost) > 1  # from nothing, one start is not enough


def test_a_near_order_that_contradicts_what_is_known_is_changed():
    X = table(model(0), "normal", 0) * units(0)
    cause, effect = np.argwhere(next(explanations(sample_of(X), 2, "unequal")).W)[0]
    required = np.zeros((6, 6), dtype=bool)
    required[effect, cause] = True
    sample = sample_of(X, allowed=~np.eye(6, dtype=bool) & ~required.T, required=required)
    order = np.r_[cause, effect, np.setdiff1d(np.arange(6), [cause, effect])]
    (found,) = explanations(sample, 1, "unequal", order)
    assert found.W[effect, cause] != 0
