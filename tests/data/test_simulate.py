import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rescore.data.mechanisms import MECHANISMS, NOISES, linear_coefficients
from rescore.data.simulate import simulate, streams


def residuals(data, seed: int) -> np.ndarray:
    """What is left of linear data after the true coefficients: the noise, (n, d)."""
    B = linear_coefficients(data.truth.to_numpy(), streams(seed).mechanism)
    return data.X.to_numpy() @ (np.eye(len(B)) - B)


@pytest.mark.parametrize("graph", ["ER", "SF"])
def test_linear_gaussian_covariance_is_the_theoretical_one(graph):
    data = simulate(graph, degree=2, nodes=8, samples=20_000, noise_scale=0.5, random_state=1)
    B = linear_coefficients(data.truth.to_numpy(), streams(1).mechanism)
    D = np.diag(np.where(residuals(data, 1).std(axis=0) < 0.75, 0.25, 1.0))
    assert np.diag(D).sum() == 4 * 0.25 + 4
    root = np.linalg.inv(np.eye(8) - B)
    theory = root.T @ D @ root
    # Whitened by the theory, the sample covariance must be the identity within sampling error.
    whiten = np.linalg.inv(np.linalg.cholesky(theory))
    error = whiten @ np.cov(data.X.T) @ whiten.T - np.eye(8)
    assert np.abs(error).max() < 5 * np.sqrt(2 / 20_000)


@pytest.mark.parametrize(("scale_is", "low"), [("std", 0.01), ("variance", 0.1)])
def test_group_noise_variances_are_recovered(scale_is, low):
    data = simulate(
        nodes=11,
        samples=8000,
        groups=(0.6, 0.4),
        noise_scale=0.1,
        scale_is=scale_is,
        random_state=2,
    )
    R = residuals(data, 2)
    quiet = []
    for label in ("g0", "g1"):
        rows = (data.groups == label).to_numpy()
        v = R[rows].var(axis=0)
        expected = np.where(v < 0.5, low, 1.0)
        assert np.abs(v / expected - 1).max() < 5 * np.sqrt(2 / rows.sum())
        quiet.append(v < 0.5)
    assert quiet[0].sum() == 5
    assert (quiet[0] == ~quiet[1]).all()


def test_groups_differ_in_spread_only_for_skewed_noise():
    data = simulate(
        nodes=6, samples=20_000, noise="exp", groups=(0.5, 0.5), noise_scale=0.1, random_state=3
    )
    R = residuals(data, 3)
    for label in ("g0", "g1"):
        rows = (data.groups == label).to_numpy()
        z = R[rows].mean(axis=0) / (R[rows].std(axis=0) / np.sqrt(rows.sum()))
        assert np.abs(z).max() < 5


@pytest.mark.parametrize("noise", NOISES)
def test_the_noise_asked_for_is_the_noise_in_the_data(noise):
    data = simulate(nodes=5, degree=1, samples=4000, noise=noise, random_state=4)
    law = {
        "gauss": stats.norm(),
        "exp": stats.expon(loc=-1),
        "gumbel": stats.gumbel_r(loc=-np.euler_gamma),
        "uniform": stats.uniform(-1, 2),
    }[noise]
    for column in residuals(data, 4).T:
        assert stats.kstest(column, law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.8, 0.1, 0.1), (1.0,)])
def test_group_shares_are_exact_and_rows_are_mixed(shares):
    data = simulate(nodes=5, samples=1000, groups=shares, noise_scale=0.1)
    counts = data.groups.value_counts()
    assert [counts[f"g{k}"] for k in range(len(shares))] == [round(1000 * s) for s in shares]
    assert (data.groups.index == data.X.index).all()
    if len(shares) > 1:
        assert not data.groups.is_monotonic_increasing


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_corruption_is_an_exact_share_and_keeps_the_other_rows(mechanism):
    choices = {"nodes": 6, "samples": 200, "mechanism": mechanism, "random_state": 5}
    clean, dirty = simulate(**choices), simulate(**choices, corrupt=0.05)
    corrupted = (dirty.groups == "corrupted").to_numpy()
    assert corrupted.sum() == 10
    assert clean.groups is None
    assert set(dirty.groups[~corrupted]) == {"g0"}
    same = (clean.X == dirty.X).to_numpy()
    assert same[~corrupted].all()
    assert not same[corrupted].any()
    pd.testing.assert_frame_equal(clean.truth, dirty.truth)


def test_corrupted_rows_come_from_another_graph_with_unit_noise():
    given = {"nodes": 8, "samples": 4000, "corrupt": 0.5, "random_state": 6}
    data = simulate(**given, groups=(0.5, 0.5), noise_scale=0.01)
    rows = (data.groups == "corrupted").to_numpy()
    R = residuals(data, 6)
    for label in ("g0", "g1"):  # the clean rows follow the true model with its two scales
        spread = R[(data.groups == label).to_numpy()].std(axis=0)
        assert np.abs(np.sort(spread) / ([0.01] * 4 + [1.0] * 4) - 1).max() < 0.15
    # Under the true model the outlying rows leave residuals that depend on each other.
    off = np.corrcoef(R[rows].T)[~np.eye(8, dtype=bool)]
    assert np.abs(off).max() > 0.3
    # Another acyclic model with unit noise: its covariance has determinant one.
    precision = np.linalg.inv(np.cov(data.X[rows].T))
    assert np.linalg.det(precision) == pytest.approx(1, abs=0.5)


@pytest.mark.parametrize("graph", ["ER", "SF", np.eye(8, k=1, dtype=int)], ids=["ER", "SF", "own"])
def test_corrupted_rows_have_other_roots_than_the_truth(graph):
    differ = 0
    for seed in range(5):
        data = simulate(graph, degree=1, nodes=8, samples=4000, corrupt=0.5, random_state=seed)
        spread = data.X[data.groups == "corrupted"].var()
        roots = spread < 1.12  # a root is its unit noise; a parent adds at least 0.25
        differ += (roots != (data.truth.sum() == 0)).any()
    assert differ >= 3


def test_groups_change_only_the_scale_of_the_noise():
    plain = simulate(nodes=6, samples=300, random_state=7)
    grouped = simulate(nodes=6, samples=300, groups=(0.7, 0.3), noise_scale=0.1, random_state=7)
    ratio = residuals(grouped, 7) / residuals(plain, 7)
    assert (np.isclose(ratio, 1, rtol=1e-6) | np.isclose(ratio, 0.1, rtol=1e-6)).all()


@pytest.mark.parametrize("graph", ["er", "SF"])
def test_another_mechanism_noise_or_size_keeps_the_graph(graph):
    base = simulate(graph, nodes=9, samples=30, random_state=8).truth
    others = [
        *(simulate(graph, nodes=9, samples=30, mechanism=m, random_state=8) for m in MECHANISMS),
        *(simulate(graph, nodes=9, samples=30, noise=e, random_state=8) for e in NOISES),
        simulate(graph, nodes=9, samples=60, groups=(0.5, 0.5), noise_scale=2, random_state=8),
    ]
    for other in others:
        pd.testing.assert_frame_equal(other.truth, base)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_longer_sample_begins_with_the_shorter_one(mechanism):
    short, long = (
        simulate(nodes=8, samples=n, mechanism=mechanism, random_state=9).X for n in (40, 90)
    )
    np.testing.assert_allclose(short, long[:40], atol=1e-5)  # the GP's jitter amplifies rounding


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_same_seed_gives_the_same_bits(mechanism):
    choices = {
        "nodes": 7,
        "samples": 60,
        "mechanism": mechanism,
        "groups": (0.5, 0.5),
        "noise_scale": 0.1,
    }
    one, two, three = (simulate(**choices, corrupt=0.1, random_state=s) for s in (1, 1, 2))
    pd.testing.assert_frame_equal(one.X, two.X, check_exact=True)
    assert (one.groups == two.groups).all()
    assert not (one.X == three.X).to_numpy().any()


def test_kinds_of_seeds():
    sequence = np.random.SeedSequence(11)
    by_int, by_sequence, again = (
        simulate(nodes=5, samples=20, random_state=s).X for s in (11, sequence, sequence)
    )
    pd.testing.assert_frame_equal(by_int, by_sequence)
    pd.testing.assert_frame_equal(by_int, again)
    assert sequence.n_children_spawned == 0
    rng = np.random.default_rng(11)
    first, second = (simulate(nodes=5, samples=20, random_state=rng).X for _ in range(2))
    assert not (first == second).to_numpy().any()
    fresh = simulate(nodes=5, samples=20, random_state=np.random.default_rng(11)).X
    pd.testing.assert_frame_equal(first, fresh)


def test_streams_differ_from_each_other_and_from_the_children_of_the_seed():
    children = [np.random.default_rng(s) for s in np.random.SeedSequence(3).spawn(10)]
    draws = [rng.random() for rng in (*streams(3), *children, np.random.default_rng(3))]
    assert len(set(draws)) == len(draws)


def test_the_global_random_state_is_neither_read_nor_changed():
    before = np.random.get_state()  # noqa: NPY002
    data = simulate(nodes=5, samples=30, mechanism="gp", corrupt=0.1)
    after = np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2:] == after[2:]
    np.random.seed(1)  # noqa: NPY002
    again = simulate(nodes=5, samples=30, mechanism="gp", corrupt=0.1)
    np.random.set_state(before)  # noqa: NPY002
    pd.testing.assert_frame_equal(data.X, again.X)


def test_names_types_and_shapes():
    data = simulate(nodes=3, degree=1, samples=50)
    assert list(data.names) == ["x0", "x1", "x2"]
    assert data.X.shape == (50, 3)
    assert (data.X.dtypes == np.float64).all()
    assert (data.truth.dtypes == np.int8).all()
    assert data.source.startswith("simulate('ER', degree=1, nodes=3, samples=50")
    assert "\n" not in simulate(nodes=5, samples=5, random_state=np.random.SeedSequence(1)).source


def test_an_own_graph_is_kept_with_its_names():
    graph = pd.DataFrame(np.eye(3, k=1, dtype=int), index=list("abc"), columns=list("abc"))
    data = simulate(graph, samples=2000, random_state=1)
    pd.testing.assert_frame_equal(data.truth, graph.astype(np.int8))
    assert list(data.X.columns) == ["a", "b", "c"]
    B = linear_coefficients(graph.to_numpy(), streams(1).mechanism)
    assert data.X["a"].cov(data.X["b"]) == pytest.approx(B[0, 1], rel=0.15)
    dirty = simulate(graph.to_numpy(), samples=100, corrupt=0.1, random_state=1)
    assert (dirty.groups == "corrupted").sum() == 10


def test_a_single_variable_is_its_noise():
    data = simulate(nodes=1, degree=0, samples=2, mechanism="gp")
    assert data.X.shape == (2, 1)
    assert data.truth.to_numpy().tolist() == [[0]]


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"nodes": 0}, "nodes must be a whole number of at least 1"),
        ({"nodes": 5, "degree": 3}, "Lower degree to 2"),
        ({"graph": "SF", "nodes": 5, "degree": 5}, "at most 4"),
        ({"degree": -1}, "degree must be a whole number of at least 0"),
        ({"samples": 0}, "samples must be a whole number of at least 1"),
        ({"graph": "BA"}, "ER, SF"),
        ({"graph": np.ones((2, 2))}, "has a cycle"),
        ({"mechanism": "quadratic"}, "linear, gp, gp-add, mlp, mim"),
        ({"noise": "cauchy"}, "gauss, exp, gumbel, uniform"),
        ({"scale_is": "sd"}, "std, variance"),
        ({"groups": (0.9, 0.2), "noise_scale": 0.1}, "sum to 1"),
        ({"groups": (), "noise_scale": 0.1}, "sum to 1"),
        ({"groups": (1.5, -0.5), "noise_scale": 0.1}, "above 0"),
        ({"groups": (0.9, 0.1)}, "Give noise_scale too"),
        ({"noise_scale": 0.0}, "above 0"),
        ({"noise_scale": -1}, "above 0"),
        ({"noise_scale": np.nan}, "above 0"),
        ({"noise_scale": np.inf}, "above 0"),
        ({"corrupt": 1.0}, "below 1"),
        ({"corrupt": -0.1}, "below 1"),
        ({"corrupt": np.nan}, "below 1"),
        ({"corrupt": 0.01, "samples": 10}, "none of them"),
        ({"corrupt": 0.99, "samples": 10}, "all of them"),
        ({"random_state": -1}, "non-negative"),
    ],
)
def test_bad_values_are_refused_in_a_sentence(choices, words):
    with pytest.raises(ValueError, match=words) as caught:
        simulate(**choices)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "choices",
    [
        {"nodes": True},
        {"degree": True},
        {"samples": True},
        {"samples": 100.0},
        {"nodes": "20"},
        {"degree": None},
        {"graph": None},
        {"graph": 3},
        {"mechanism": None},
        {"noise": 1},
        {"scale_is": None},
        {"groups": 0.9, "noise_scale": 0.1},
        {"groups": {0.9, 0.1}, "noise_scale": 0.1},
        {"noise_scale": "0.1"},
        {"noise_scale": True},
        {"corrupt": None},
        {"corrupt": False},
        {"random_state": None},
        {"random_state": True},
        {"random_state": 1.5},
        {"random_state": np.random.RandomState(0)},
    ],
)
def test_bad_types_are_refused_in_a_sentence(choices):
    with pytest.raises(TypeError) as caught:
        simulate(**choices)
    assert str(caught.value).endswith(".")
