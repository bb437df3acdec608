import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, pdtrc

from rescore.data import mechanisms
from rescore.data.mechanisms import (
    MECHANISMS,
    coefficients,
    gp_additive,
    gp_joint,
    group_members,
    group_scales,
    group_sizes,
    linear,
    linear_coefficients,
    mim,
    mlp,
    propagate,
    standard_noise,
)
from rescore.data.simulate import erdos_renyi

THEORY = {
    "gauss": stats.norm(),
    "exp": stats.expon(loc=-1),
    "gumbel": stats.gumbel_r(loc=-np.euler_gamma),
    "uniform": stats.uniform(-1, 2),
}


def rbf(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The kernel by its definition, without any of the library's shortcuts."""
    return np.exp(-0.5 * ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2))


def sample_covariance(mechanism, points: np.ndarray, draws: int) -> np.ndarray:
    rngs = np.random.default_rng(0).spawn(draws)
    F = np.array([mechanism(points, rng) for rng in rngs])  # (draws, n)
    assert np.abs(F.mean(axis=0)).max() < 6 * F.std() / np.sqrt(draws)
    return F.T @ F / draws


def test_coefficients_fill_both_intervals_evenly():
    b = coefficients((100, 400), np.random.default_rng(0)).ravel()
    assert ((np.abs(b) >= 0.5) & (np.abs(b) <= 2)).all()
    assert abs((b > 0).mean() - 0.5) < 0.0125
    counts = np.histogram(np.abs(b), bins=6, range=(0.5, 2))[0] / b.size
    assert np.abs(counts - 1 / 6).max() < 0.01
    assert abs(np.corrcoef(np.sign(b), np.abs(b))[0, 1]) < 0.025


@pytest.mark.parametrize("inputs", [1, 2, 4])
def test_gp_covariance_is_the_rbf_kernel(inputs):
    points = np.random.default_rng(1).normal(0, 1.5, (6, inputs))
    draws = 8000
    error = sample_covariance(gp_joint, points, draws) - rbf(points, points)
    assert np.abs(error).max() < 5 * np.sqrt(2 / draws)  # the variance of f^2 is 2


def test_additive_gp_covariance_is_the_sum_of_the_kernels_of_the_parents():
    points = np.random.default_rng(1).normal(0, 1.5, (5, 3))
    draws = 4000
    expected = sum(rbf(points[:, [i]], points[:, [i]]) for i in range(3))
    error = sample_covariance(gp_additive, points, draws) - expected
    assert np.abs(error).max() < 5 * 3 * np.sqrt(2 / draws)


def test_the_series_has_the_kernel_as_its_exact_covariance():
    # The series is linear in its coefficients, so unit vectors in place of the random numbers
    # give its features, and features times features must be the kernel.
    x = np.random.default_rng(1).uniform(-12, 12, 40)
    terms = mechanisms._terms(float(np.abs(x).max()))

    class Unit:
        def __init__(self, k):
            self.k = k

        def standard_normal(self, size):
            assert size == terms
            return np.eye(size)[self.k]

    features = np.array([mechanisms._series(x, Unit(k)) for k in range(terms)])
    np.testing.assert_allclose(features.T @ features, rbf(x[:, None], x[:, None]), atol=1e-12)


def test_the_series_is_long_enough_up_to_its_largest_input():
    for largest in np.linspace(0, mechanisms.LARGEST_SERIES_INPUT, 301):
        assert pdtrc(mechanisms._terms(largest) - 1, largest**2) < 1e-15


def test_one_parent_beyond_the_series_takes_the_dense_route():
    far = np.array([[0.0], [100.0], [100.5], [-1e6]])
    draws = 8000
    error = sample_covariance(gp_joint, far, draws) - rbf(far, far)
    assert np.abs(error).max() < 5 * np.sqrt(2 / draws)


def test_gp_takes_equal_values_at_equal_rows():
    points = np.random.default_rng(0).normal(size=(50, 3))
    f = gp_joint(np.vstack([points, points]), np.random.default_rng(1))
    assert np.abs(f[:50] - f[50:]).max() < 1e-3
    assert f[:50].std() > 0.3


def test_gp_refuses_a_matrix_that_would_not_fit():
    with pytest.raises(ValueError, match="Lower samples"):
        gp_joint(np.zeros((mechanisms.MOST_ROWS + 1, 2)), np.random.default_rng(0))


def test_one_dimensional_gp_has_no_limit_on_rows():
    x = np.random.default_rng(0).normal(size=(mechanisms.MOST_ROWS + 1, 1))
    assert np.isfinite(gp_joint(x, np.random.default_rng(0))).all()


def test_mlp_is_a_network_of_a_hundred_sigmoids():
    X = np.random.default_rng(0).normal(size=(30, 3))
    rng = np.random.default_rng(4)
    hidden, output = coefficients((3, 100), rng), coefficients(100, rng)
    np.testing.assert_allclose(mlp(X, np.random.default_rng(4)), expit(X @ hidden) @ output)
    # Far out every unit is 0 or 1, and opposite points light up complementary units.
    far = mlp(np.array([[1e6], [-1e6]]), np.random.default_rng(4))
    total = mlp(np.zeros((1, 1)), np.random.default_rng(4))[0] * 2
    assert far.sum() == pytest.approx(total)


def test_mim_is_bounded_and_has_the_right_slope_at_zero():
    X = np.random.default_rng(0).normal(size=(500, 2)) * 100
    assert np.abs(mim(X, np.random.default_rng(1))).max() <= 3
    step = 1e-6
    values = mim(np.array([[0.0], [step], [-step]]), np.random.default_rng(1))
    b = coefficients((1, 3), np.random.default_rng(1))[0]
    # tanh and sin are odd with slope one, cos is even: the slope is a + c, the curvature from b.
    assert (values[1] - values[2]) / (2 * step) == pytest.approx(b[0] + b[2], rel=1e-6)


def test_linear_is_linear():
    X, Y = np.random.default_rng(0).normal(size=(2, 20, 3))
    f = [linear(M, np.random.default_rng(1)) for M in (X, Y, 2 * X - 3 * Y)]
    np.testing.assert_allclose(f[2], 2 * f[0] - 3 * f[1], atol=1e-12)


def test_linear_data_solve_the_structural_equations():
    A = erdos_renyi(12, 3, np.random.default_rng(0))
    E = np.random.default_rng(1).normal(size=(40, 12))
    X = propagate(A, E, "linear", np.random.default_rng(2))
    B = linear_coefficients(A, np.random.default_rng(2))
    np.testing.assert_array_equal(B != 0, A == 1)
    np.testing.assert_allclose(X, E @ np.linalg.inv(np.eye(12) - B), atol=1e-9)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_without_edges_the_data_are_the_noise(mechanism):
    E = np.random.default_rng(0).normal(size=(10, 4))
    X = propagate(np.zeros((4, 4), np.int8), E, mechanism, np.random.default_rng(0))
    np.testing.assert_array_equal(X, E)
    assert X is not E


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_only_descendants_move_with_a_variable(mechanism):
    chain_and_loner = np.zeros((4, 4), np.int8)  # 0 -> 1 -> 2, and 3 alone
    chain_and_loner[0, 1] = chain_and_loner[1, 2] = 1
    E = np.random.default_rng(0).normal(size=(30, 4))
    moved = E.copy()
    moved[:, 1] += 1
    X, Y = (propagate(chain_and_loner, M, mechanism, np.random.default_rng(9)) for M in (E, moved))
    np.testing.assert_array_equal(X[:, [0, 3]], Y[:, [0, 3]])
    np.testing.assert_allclose(Y[:, 1] - X[:, 1], 1)
    assert np.abs(Y[:, 2] - X[:, 2]).max() > 0.1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_noise_is_left_alone(mechanism):
    A = erdos_renyi(6, 2, np.random.default_rng(0))
    E = np.random.default_rng(0).normal(size=(10, 6))
    before = E.copy()
    E.flags.writeable = False
    propagate(A, E, mechanism, np.random.default_rng(0))
    np.testing.assert_array_equal(E, before)


@pytest.mark.parametrize("kind", THEORY)
def test_noise_follows_its_centred_distribution(kind):
    E = standard_noise(kind, 20_000, 2, np.random.default_rng(0))
    law = THEORY[kind]
    assert abs(law.mean()) < 1e-12
    assert stats.kstest(E.ravel(), law.cdf).pvalue > 1e-3
    assert np.abs(E.mean(axis=0)).max() < 5 * law.std() / np.sqrt(len(E))
    assert E.var() == pytest.approx(law.var(), rel=0.05)
    assert abs(np.corrcoef(E.T)[0, 1]) < 5 / np.sqrt(len(E))


@pytest.mark.parametrize("kind", THEORY)
def test_a_longer_sample_begins_with_the_shorter_one(kind):
    short, long = (standard_noise(kind, n, 3, np.random.default_rng(5)) for n in (10, 40))
    np.testing.assert_array_equal(short, long[:10])


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(300, 1000))
def test_group_sizes_are_the_shares_to_within_one_row(parts, samples):
    shares = np.array(parts) / sum(parts)
    sizes = np.array(group_sizes(tuple(shares), samples))
    assert sizes.sum() == samples
    assert np.abs(sizes - shares * samples).max() < 1


@pytest.mark.parametrize("share", np.arange(1, 10) / 10)
def test_round_shares_lose_no_row_to_floating_point(share):
    assert group_sizes((share, 1 - share), 10) == [round(10 * share), round(10 * (1 - share))]


def test_members_are_mixed_and_not_in_blocks():
    member = group_members((0.5, 0.5), 1000, np.random.default_rng(0))
    assert np.bincount(member).tolist() == [500, 500]
    assert abs(np.corrcoef(member, np.arange(1000))[0, 1]) < 0.15
    assert 400 < np.count_nonzero(np.diff(member)) < 600


@given(st.integers(1, 5), st.integers(1, 21), st.integers(0, 2**32))
def test_half_of_the_variables_is_quiet_and_the_second_group_is_flipped(groups, nodes, seed):
    scales = group_scales(groups, nodes, 0.1, np.random.default_rng(seed))
    assert scales.shape == (groups, nodes)
    quiet = scales == 0.1
    assert ((scales == 1) | quiet).all()
    assert quiet[0].sum() == nodes // 2
    if groups > 1:
        assert (quiet[1] == ~quiet[0]).all()
    assert (quiet[2:].sum(axis=1) == nodes // 2).all()


def test_a_further_group_keeps_the_halves_of_the_earlier_ones():
    two, four = (group_scales(k, 10, 0.1, np.random.default_rng(0)) for k in (2, 4))
    np.testing.assert_array_equal(two, four[:2])
    assert not (four[2] == four[3]).all()


@pytest.mark.parametrize(
    ("shares", "error", "words"),
    [
        ((0.9, 0.2), ValueError, "sum to 1"),
        ((), ValueError, "sum to 1"),
        ((1.1, -0.1), ValueError, "above 0"),
        ((1.0, 0.0), ValueError, "above 0"),
        ((np.nan, 0.5), ValueError, "above 0"),
        ((0.999, 0.001), ValueError, "without a row"),
        ((True,), TypeError, "number"),
        (("0.5", "0.5"), TypeError, "number"),
        ("0.9", TypeError, "shares such as"),
        (0.9, TypeError, "shares such as"),
    ],
)
def test_bad_shares_are_refused(shares, error, words):
    with pytest.raises(error, match=words):
        group_sizes(shares, 100)


def test_unknown_noise_is_refused_with_the_known_kinds():
    with pytest.raises(ValueError, match="gauss, exp, gumbel, uniform"):
        standard_noise("cauchy", 10, 2, np.random.default_rng(0))
