import numpy as np
import pytest

import rescore as rs
from rescore.solvers.curvature_orders import RIDGE, by_curvature, curvature


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).normal(size=(12, 2))


def kernel(x, y, width):
    return np.exp(-np.square(x - y).sum() / (2 * width))


def test_it_is_the_ridge_estimate_with_slopes_of_the_kernel_by_finite_differences(rows):
    n, d = rows.shape
    width = np.mean([np.square(a - b).sum() for a in rows for b in rows])
    K = np.array([[kernel(a, b, width) for b in rows] for a in rows]) + RIDGE * np.eye(n)
    for j in range(d):
        step = 1e-4 * np.eye(d)[j]
        slopes, bends = np.zeros(n), np.zeros(n)
        for b in rows:  # derivatives at the rows that the expectations run over
            below, at, above = (
                np.array([kernel(a, b + move, width) for a in rows]) for move in (-step, 0, step)
            )
            slopes += (above - below) / 2e-4
            bends += (above - 2 * at + below) / 1e-8
        score = np.linalg.solve(K, -slopes)
        expected = np.linalg.solve(K, bends) - score**2
        np.testing.assert_allclose(
            curvature(rows, np.ones(n))[:, j], expected, rtol=1e-3, atol=1e-2
        )


def test_a_row_repeated_counts_as_often(rows):
    counts = np.arange(12) % 3 + 1
    repeated = np.repeat(rows, counts, axis=0)
    many = curvature(repeated, np.ones(len(repeated)))
    once = curvature(rows, counts.astype(float))
    np.testing.assert_allclose(many, np.repeat(once, counts, axis=0), atol=1e-6)


def test_of_a_normal_density_it_is_minus_the_precision():
    rng = np.random.default_rng(0)
    C = np.array([[1.0, 0.6], [0.6, 1.0]])
    X = rng.multivariate_normal([0, 0], C, size=800)
    bend = np.median(curvature(X, np.ones(800)), axis=0)
    np.testing.assert_allclose(bend, -np.diag(np.linalg.inv(C)), rtol=0.15)


def test_permuted_columns_permute_the_order(rows):
    X = np.column_stack((rows, np.sin(3 * rows)))
    order = by_curvature(X, np.ones(12))
    turned = by_curvature(X[:, ::-1], np.ones(12))
    assert [3 - v for v in turned] == order


@pytest.mark.parametrize("seed", [0, 1])
def test_joint_causes_come_first_in_standard_units(seed):
    data = rs.simulate("ER", 2, 8, 600, "gp", random_state=seed)
    X = data.X.to_numpy()
    place = np.argsort(by_curvature((X - X.mean(axis=0)) / X.std(axis=0), np.ones(600)))
    causes, effects = np.nonzero(data.truth.to_numpy())
    assert (place[causes] > place[effects]).mean() <= 0.25  # of a random order one half


def test_constant_columns_are_no_fault():
    X = np.column_stack((np.zeros(20), np.ones(20), np.linspace(0, 1, 20)))
    assert sorted(by_curvature(X, np.ones(20))) == [0, 1, 2]
