import numpy as np
import pytest

from rescore.pruning.cam import smooth_term


def equal(n):
    return np.full(n, 1 / n)


@pytest.mark.parametrize("seed", range(3))
def test_columns_are_centred_and_orthonormal_under_the_weights(seed):
    rng = np.random.default_rng(seed)
    x, w = rng.gumbel(size=300), rng.dirichlet(np.ones(300))
    Z, penalty = smooth_term(x, w, 10)
    assert Z.shape == (300, 9)
    np.testing.assert_allclose(w @ Z, 0, atol=1e-10)
    np.testing.assert_allclose((Z.T * w) @ Z, np.eye(9), atol=1e-8)
    assert penalty[0] == 0
    assert penalty[1] == pytest.approx(1)
    assert (np.diff(penalty) >= 0).all()


def test_the_first_column_is_the_straight_line():
    x = np.random.default_rng(0).exponential(size=200)
    Z = smooth_term(x, equal(200), 10).columns
    assert abs(np.corrcoef(Z[:, 0], x)[0, 1]) == pytest.approx(1, abs=1e-9)


def test_the_penalty_is_the_integral_of_the_squared_second_derivative():
    """Second differences on a fine grid of rows are the independent reference."""
    x = np.linspace(-1, 3, 20_001)
    Z, penalty = smooth_term(x, equal(len(x)), 8)
    step = x[1] - x[0]
    second = (Z[2:] - 2 * Z[1:-1] + Z[:-2]) / step**2
    roughness = (second.T @ second) * step
    np.testing.assert_allclose(
        roughness / roughness[1, 1], np.diag(penalty), atol=2e-3 * penalty[-1]
    )
    np.testing.assert_allclose(np.diag(roughness)[1:] / roughness[1, 1], penalty[1:], rtol=5e-3)


def test_a_row_repeated_is_a_row_with_weight():
    rng = np.random.default_rng(1)
    x, times = rng.normal(size=60), rng.integers(1, 4, size=60)
    weighted = smooth_term(x, times / times.sum(), 7)
    repeated = smooth_term(np.repeat(x, times), equal(times.sum()), 7)
    np.testing.assert_allclose(weighted.penalty, repeated.penalty, rtol=1e-7)
    # The sign of a column is arbitrary.
    same = np.abs(np.repeat(weighted.columns, times, axis=0))
    np.testing.assert_allclose(same, np.abs(repeated.columns), atol=1e-8)


@pytest.mark.parametrize(("values", "columns"), [(1, 0), (2, 1), (3, 2), (4, 3), (6, 5), (30, 9)])
def test_few_distinct_values_make_few_columns(values, columns):
    x = np.arange(120.0) % values
    assert smooth_term(x, equal(120), 10).columns.shape == (120, columns)


def test_two_functions_are_a_straight_line():
    x = np.random.default_rng(0).normal(size=50)
    Z, penalty = smooth_term(x, equal(50), 2)
    assert Z.shape == (50, 1)
    assert (penalty == 0).all()


@pytest.mark.parametrize("spread", ["cauchy", "huge", "tiny", "one far", "almost equal"])
def test_odd_columns_stay_finite(spread):
    rng = np.random.default_rng(2)
    x = {
        "cauchy": rng.standard_cauchy(500) ** 3,
        "huge": rng.normal(size=500) * 1e149,
        "tiny": rng.normal(size=500) * 1e-300,
        "one far": np.append(rng.normal(size=499), 1e12),
        "almost equal": 1 + rng.integers(0, 5, size=500) * 2.0**-52,
    }[spread]
    Z, penalty = smooth_term(x, equal(500), 10)
    assert Z.shape[1] >= 1
    assert np.isfinite(Z).all()
    assert np.isfinite(penalty).all()
    assert (penalty >= 0).all()
    np.testing.assert_allclose(Z.T @ Z / 500, np.eye(Z.shape[1]), atol=1e-4)
