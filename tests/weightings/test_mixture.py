from itertools import permutations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from rescore.weightings.mixture import SMALLEST, expectation_maximisation, find_mixture


def scattered(seed, n=400, share=(0.6, 0.25, 0.15), d=4):
    """Rows of groups with levels and sizes of their own, and the group of each."""
    rng = np.random.default_rng(seed)
    group = rng.choice(len(share), size=n, p=share)
    level = rng.normal(size=(len(share), d)) * 3
    size = np.exp(rng.uniform(-1, 1, size=(len(share), d)))
    return level[group] + size[group] * rng.normal(size=(n, d)), group


def by_scale(seed, n=800, d=6, share=0.2):
    rng = np.random.default_rng(seed)
    group = (rng.random(n) < share).astype(int)
    sizes = np.where(rng.random(d) < 0.5, [[1.0], [0.1]], [[0.1], [1.0]])
    return rng.normal(size=(n, d)) * sizes[group], group


def by_level(seed, n=800, d=6, share=0.2):
    rng = np.random.default_rng(seed)
    group = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, d)) + np.outer(group, rng.choice([-2.5, 2.5], d)), group


def guess(n, K, seed):
    P = np.random.default_rng(seed).random((n, K))
    return P / P.sum(axis=1, keepdims=True)


def densities(E, mixture):
    """log share_k + log N(e_i; level_k, variance_k), (n, K), by scipy."""
    return np.column_stack(
        [
            np.log(share) + multivariate_normal(level, np.diag(variance)).logpdf(E)
            for share, level, variance in zip(
                mixture.share, mixture.level, mixture.variance, strict=True
            )
        ]
    )


def agreement(mixture, group):
    return adjusted_rand_score(group, mixture.membership.argmax(axis=1))


@pytest.mark.parametrize("K", [1, 2, 4])
def test_likelihood_and_membership_are_those_of_a_mixture_of_gaussians(K):
    E, _ = scattered(0)
    counts = np.random.default_rng(0).integers(1, 4, size=len(E)).astype(float)
    mixture = expectation_maximisation(E, counts, guess(len(E), K, 0))
    log = densities(E, mixture)
    assert mixture.count == K
    assert mixture.share.sum() == pytest.approx(1)
    assert mixture.likelihood == pytest.approx(counts @ logsumexp(log, axis=1))
    np.testing.assert_allclose(
        mixture.membership, np.exp(log - logsumexp(log, axis=1, keepdims=True)), atol=1e-9
    )


def pseudo_rows(E, variance):
    """What one row of the pooled variance in every group adds: −½ (log v + pooled / v)."""
    return -0.5 * (np.log(variance) + E.var(axis=0) / variance).sum()


@pytest.mark.parametrize("seed", range(4))
def test_no_step_lowers_the_likelihood_with_the_pseudo_rows(seed):
    E, _ = scattered(seed)

    def after(steps):
        mixture = expectation_maximisation(E, np.ones(len(E)), guess(len(E), 3, seed), steps)
        assert (mixture.variance > SMALLEST * E.var(axis=0)).all()
        return mixture.likelihood + pseudo_rows(E, mixture.variance)

    assert (np.diff([after(steps) for steps in range(1, 25)]) >= -1e-8).all()


def test_one_group_has_the_mean_and_variance_of_all_rows():
    E, _ = scattered(1)
    mixture = expectation_maximisation(E, np.ones(len(E)), np.ones((len(E), 1)))
    np.testing.assert_allclose(mixture.level[0], E.mean(axis=0))
    np.testing.assert_allclose(mixture.variance[0], E.var(axis=0))


@pytest.mark.parametrize("seed", range(3))
def test_a_row_counted_twice_is_the_row_repeated(seed):
    E, _ = scattered(seed, n=300)
    counts = np.random.default_rng(seed).integers(1, 4, size=len(E))
    counted = find_mixture(E, counts.astype(float), most=5)
    repeated = find_mixture(E.repeat(counts, axis=0), np.ones(counts.sum()), most=5)
    assert counted.count == repeated.count
    np.testing.assert_allclose(counted.likelihood, repeated.likelihood, rtol=1e-4)
    np.testing.assert_allclose(
        counted.membership[:, np.argsort(counted.share)].repeat(counts, axis=0),
        repeated.membership[:, np.argsort(repeated.share)],
        atol=0.02,
    )


@pytest.mark.parametrize("seed", range(3))
def test_rows_and_columns_in_another_order_give_the_same_groups_in_that_order(seed):
    E, _ = scattered(seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(E)), rng.permutation(E.shape[1])
    found = find_mixture(E, np.ones(len(E)), most=5)
    other = find_mixture(E[np.ix_(rows, columns)], np.ones(len(E)), most=5)
    np.testing.assert_allclose(other.likelihood, found.likelihood)
    mine, its = np.argsort(found.share), np.argsort(other.share)  # which is first is chance
    np.testing.assert_allclose(
        other.membership[:, its], found.membership[np.ix_(rows, mine)], atol=1e-3
    )
    np.testing.assert_allclose(other.level[its], found.level[np.ix_(mine, columns)], atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_units_and_origin_do_not_matter(seed):
    E, _ = scattered(seed)
    units = 10.0 ** np.random.default_rng(seed).uniform(-4, 4, size=E.shape[1])
    found = find_mixture(E, np.ones(len(E)), most=5)
    other = find_mixture((E - 2.0) * units, np.ones(len(E)), most=5)
    mine, its = np.argsort(found.share), np.argsort(other.share)
    np.testing.assert_allclose(other.membership[:, its], found.membership[:, mine], atol=1e-3)
    shift = len(E) * np.log(units).sum()
    assert other.likelihood == pytest.approx(found.likelihood - shift)


@pytest.mark.parametrize("made", [by_level, by_scale])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("seed", range(2))
def test_two_groups_are_found_by_level_and_by_scale(made, share, seed):
    E, group = made(seed, share=share)
    found = find_mixture(E, np.ones(len(E)), most=6)
    assert found.count == 2
    assert agreement(found, group) > 0.95


@pytest.mark.parametrize("made", [by_level, by_scale])
@pytest.mark.parametrize("share", [0.06, 0.2])
def test_columns_with_the_other_sign_show_the_same_groups(made, share):
    E, group = made(4, share=share)
    signs = np.where(np.arange(6) % 2, 1.0, -1.0)
    for flipped in (E, -E, E * signs):
        assert agreement(find_mixture(flipped, np.ones(len(E)), most=6), group) > 0.95


@pytest.mark.parametrize("n", [50, 300, 2000])
@pytest.mark.parametrize("seed", range(3))
def test_gaussian_rows_are_one_group(n, seed):
    rng = np.random.default_rng(seed)
    E = rng.normal(size=(n, 5)) * [0.01, 1.0, 1.0, 5.0, 100.0] + 3.0
    assert find_mixture(E, np.ones(n), most=6).count == 1


def by_scikit_learn(E, K):
    return GaussianMixture(K, covariance_type="diag", n_init=3, random_state=0).fit(E)


@pytest.mark.parametrize("seed", range(4))
def test_as_likely_as_what_scikit_learn_finds_with_as_many_groups(seed):
    """Under the same pseudo-rows; without them its groups of few rows may be narrower."""
    E, _ = scattered(seed)
    found = find_mixture(E, np.ones(len(E)), most=5)
    theirs = by_scikit_learn(E, found.count)
    likelihood = theirs.score(E) * len(E)
    assert found.likelihood > 1.01 * likelihood  # of less than zero
    ours = found.likelihood + pseudo_rows(E, found.variance)
    assert ours > likelihood + pseudo_rows(E, theirs.covariances_) - 1.0


@pytest.mark.parametrize("seed", range(3))
def test_no_other_number_of_groups_has_a_better_bic(seed):
    E, _ = scattered(seed)
    found = find_mixture(E, np.ones(len(E)), most=6)
    assert found.count == min(range(1, 5), key=lambda K: by_scikit_learn(E, K).bic(E))


def test_no_more_groups_than_asked_for():
    E, _ = scattered(0)
    assert find_mixture(E, np.ones(len(E)), most=2).count == 2
    assert find_mixture(E, np.ones(len(E)), most=1).count == 1


@pytest.mark.parametrize(
    "E", [np.zeros((20, 2)), np.ones((1, 3)), np.c_[np.arange(9.0), np.ones(9)]]
)
def test_constant_and_few_rows_are_one_group_of_finite_likelihood(E):
    found = find_mixture(E, np.ones(len(E)), most=4)
    assert found.count == 1
    assert np.isfinite(found.likelihood)


def test_three_groups_are_matched_by_their_levels():
    rng = np.random.default_rng(0)
    levels = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    group = rng.integers(3, size=900)
    E = levels[group] + rng.normal(size=(900, 2))
    found = find_mixture(E, np.ones(900), most=6)
    assert found.count == 3
    nearest = min(np.abs(found.level[list(p)] - levels).max() for p in permutations(range(3)))
    assert nearest < 0.3
    np.testing.assert_allclose(np.sort(found.share), np.sort(np.bincount(group) / 900), atol=0.02)
