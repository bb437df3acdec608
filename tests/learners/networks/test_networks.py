import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from rescore.graph.dag import is_dag
from rescore.learners.networks import inward, mlp, outward, possible_edges, prepare, weighted
from rescore.learners.networks.selection import break_even, explained, strongest_dag, substantial
from rescore.protocols import Problem

ARCHITECTURES = [((3,), "sigmoid"), ((3, 2), "relu"), ((2, 3, 2), "sigmoid")]
each_kind = pytest.mark.parametrize(("hidden", "activation"), ARCHITECTURES)
BENDS = {"sigmoid": lambda z: 1 / (1 + np.exp(-z)), "relu": lambda z: np.maximum(z, 0)}


def one_row(layers, j, row, activation):
    """Network j on one row, unit by unit."""
    values = list(row)
    for k, (W, b) in enumerate(layers):
        sums = [
            sum(W[j, unit, i] * v for i, v in enumerate(values)) + b[j, unit]
            for unit in range(W.shape[1])
        ]
        values = sums if k == len(layers) - 1 else [BENDS[activation](z) for z in sums]
    return values[0]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    X[:, 1] += np.sin(2 * X[:, 0])
    return weighted(prepare(Problem.unconstrained(X), 1.0), rng.dirichlet(np.ones(40)))


@each_kind
def test_the_forward_pass_is_that_of_each_network_on_each_row(rows, hidden, activation):
    x = mlp.initial(4, hidden, np.random.default_rng(1))
    layers = mlp.unflatten(x, 4, hidden)
    assert sum(W.size + b.size for W, b in layers) == x.size == mlp.size(4, hidden)
    out = mlp.predict(layers, jnp.asarray(rows.XT), activation)
    by_hand = [[one_row(layers, j, row, activation) for row in rows.XT.T] for j in range(4)]
    np.testing.assert_allclose(out, by_hand, atol=1e-5)


@each_kind
def test_a_network_cannot_see_a_masked_input(rows, hidden, activation):
    edges = np.random.default_rng(2).random((4, 4)) < 0.5
    x = mlp.initial(4, hidden, np.random.default_rng(1))
    layers = mlp.masked(mlp.unflatten(x, 4, hidden), edges)
    assert ((mlp.squared_norms(layers) > 0) == edges).all()
    before = mlp.predict(layers, jnp.asarray(rows.XT), activation)
    for i in range(4):
        moved = rows.XT.copy()
        moved[i] += 1
        after = mlp.predict(layers, jnp.asarray(moved), activation)
        unseen = ~edges[i]
        np.testing.assert_array_equal(np.asarray(after)[unseen], np.asarray(before)[unseen])


@each_kind
def test_what_an_input_explains_equals_freezing_it_by_hand(rows, hidden, activation):
    x = mlp.initial(4, hidden, np.random.default_rng(3))
    layers = mlp.unflatten(x, 4, hidden)
    with jax.enable_x64(True):
        D, noise = map(np.asarray, explained(x, rows, hidden, activation))

        def variances(XT):
            R = np.asarray(mlp.predict(layers, jnp.asarray(XT, float), activation))
            R = R - rows.targets
            return [np.cov(r, aweights=rows.w, ddof=0) for r in R]

        total = [np.cov(t, aweights=rows.w, ddof=0) for t in rows.targets]
        np.testing.assert_allclose(noise, np.divide(variances(rows.XT), total), rtol=1e-4)
        for i in range(4):
            frozen = rows.XT.astype(float)
            frozen[i] = frozen[i] @ rows.w
            rise = np.divide(variances(frozen), variances(rows.XT)) - 1
            np.testing.assert_allclose(D[i], rise, atol=1e-4)


def test_the_compiled_search_is_as_good_as_scipy(rows):
    edges = ~np.eye(4, dtype=bool)
    penalties = mlp.Penalties(np.full((4, 4), 0.01), 0.01, 0.1)
    x = mlp.initial(4, (3,), np.random.default_rng(4))
    double = type(rows)(*(a.astype(float) for a in rows))
    kind = {"hidden": (3,), "activation": "sigmoid", "equal": True}

    def total(x):  # the objective, written once more
        (W1, b1), (W2, b2) = mlp.unflatten(x, 4, (3,))
        W1 = W1 * edges.T[:, None, :]
        H = jax.nn.sigmoid(jnp.einsum("jmi,in->jmn", W1, double.XT) + b1[:, :, None])
        R = jnp.einsum("jm,jmn->jn", W2[:, 0], H) + b2 - double.targets
        norms = (W1**2).sum(1).T
        A = norms / (1 + norms)
        h = jnp.trace(jnp.linalg.matrix_power(jnp.eye(4) + A / 4, 4)) - 4
        value = (R**2 @ double.w).sum() / 2 + 0.01 * (jnp.sqrt(norms + 1e-4) - 0.01).sum()
        return value + 0.005 * ((W1**2).sum() + (W2**2).sum()) + 0.1 * h

    with jax.enable_x64(True):
        found = mlp.run_stage(x, double, edges, penalties, 1000, **kind)
        by_hand = jax.jit(jax.value_and_grad(total))
        value, slope = by_hand(found.x)
        theirs = minimize(by_hand, x, jac=True, method="L-BFGS-B")
        ours = float(found.objective + 0.1 * found.h)
        assert ours == pytest.approx(float(value), abs=1e-9)
    assert np.abs(slope).max() < 1e-2
    assert ours == pytest.approx(theirs.fun, rel=0.02)


@each_kind
def test_an_input_goes_if_a_regression_on_those_left_can_stand_in_for_it(hidden, activation):
    """The same by hand: inputs of one network in turn, each against the rows it would be fed."""
    X = np.random.default_rng(0).normal(size=(40, 4))
    X[:, 1] += np.sin(2 * X[:, 0])
    problem = Problem.unconstrained(X)
    rows = weighted(prepare(problem, 1.0), problem.prior)
    edges = np.zeros((4, 4), dtype=bool)
    edges[[0, 1, 3], 2] = True
    x = 3 * mlp.initial(4, hidden, np.random.default_rng(3))
    layers = mlp.masked(mlp.unflatten(x, 4, hidden), edges)
    D = np.repeat([[3.0], [1.0], [0.0], [2.0]], 4, axis=1)  # tried in the order 1, 3, 0
    XT, w, y = rows.XT.astype(float), rows.w.astype(float), rows.targets[2]

    def left(inputs):
        out = mlp.predict(layers, jnp.asarray(inputs), activation)[2]
        return np.cov(out - y, aweights=w, ddof=0) / np.cov(y, aweights=w, ddof=0)

    def guessed(i, gone):
        others = [k for k in (0, 1, 3) if k not in (i, *gone)]
        design = np.c_[np.ones(40), XT[others].T]
        fed = XT.copy()
        fed[i] = design @ np.linalg.lstsq(design, XT[i], rcond=None)[0]
        return fed

    with jax.enable_x64(True):
        for least in (-0.5, 0.02, 0.2, 1.0):
            gone = []
            for i in (1, 3, 0):
                rise = left(guessed(i, gone)) - left(XT)
                assert abs(rise - least) > 1e-3  # no tie that rounding could break
                if rise < least:
                    gone.append(i)
            found = substantial(x, rows, edges, D, least, hidden=hidden, activation=activation)
            assert set(np.flatnonzero(edges[:, 2] & ~found[:, 2])) == set(gone)
            assert not found[:, [0, 1, 3]].any()


@pytest.mark.parametrize("edges", [60, 150, 250])
def test_at_break_even_as_many_edges_as_chance_inputs_are_that_strong(edges):
    """Both densities at the cut, chance inputs drawn as assumed; sparser ones meet the cap."""
    rng = np.random.default_rng(edges)
    D = np.r_[rng.exponential(0.01, 300 - edges), 0.1 + rng.exponential(0.2, edges)]
    cut = break_even(D, 0, 0.01)
    mean = D[0.01 * np.log(300) < D].mean()
    chance, real = (np.exp(-cut / m) / m for m in (0.01, mean))
    assert edges * real == pytest.approx((300 - edges) * chance, rel=0.15)
    assert cut <= 0.01 * np.log(300)


def test_pruned_edges_count_as_chance_and_without_any_sure_edge_the_cut_is_strict():
    D = np.array([0.5, 0.3, 0.01])
    assert break_even(D, 7, 0.01) == pytest.approx(break_even(np.r_[D, np.zeros(7)], 0, 0.01))
    assert break_even(D[2:], 9, 0.01) == pytest.approx(0.01 * np.log(10))
    assert break_even(np.full(5, 0.5), 0, 0.01) < break_even(np.full(5, 0.5), 50, 0.01)


@pytest.mark.parametrize("seed", range(5))
def test_the_strongest_dag_is_one_and_keeps_what_is_required(seed):
    rng = np.random.default_rng(seed)
    D = rng.uniform(-1, 1, (6, 6)) * ~np.eye(6, dtype=bool)
    required = np.zeros((6, 6), dtype=bool)
    required[2, 4] = required[4, 5] = True
    P = strongest_dag(D, 0.2, required)
    assert is_dag(P)
    assert (P | ~required).all()
    assert (D[P & ~required] > 0.2).all()


def test_inputs_do_not_depend_on_the_order_of_rows_and_columns_or_on_repeats():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 4)) + 100
    rows, columns = rng.permutation(np.repeat(np.arange(30), 2)), rng.permutation(4)
    plain = prepare(Problem.unconstrained(X), 1.4)
    other = prepare(Problem.unconstrained(X[rows][:, columns]), 1.4)
    np.testing.assert_allclose(plain.XT, other.XT, atol=1e-6)
    np.testing.assert_allclose(plain.XT.std(axis=1), 1.4, rtol=1e-6)
    A = rng.normal(size=(4, 4))
    np.testing.assert_array_equal(outward(plain, inward(plain, A)), A)
    np.testing.assert_array_equal(inward(plain, A), inward(other, A[np.ix_(columns, columns)]))
    w = rng.dirichlet(np.ones(60))
    np.testing.assert_allclose(
        weighted(other, w).w, weighted(plain, np.bincount(rows, w)).w, rtol=1e-6
    )


def test_required_edges_rule_out_all_that_would_close_a_cycle():
    problem = Problem.unconstrained(np.eye(4))
    required = np.zeros((4, 4), dtype=bool)
    required[0, 1] = required[1, 2] = True
    possible = possible_edges(Problem(problem.rows, problem.prior, problem.allowed, required))
    assert {tuple(e) for e in np.argwhere(problem.allowed & ~possible)} == {(1, 0), (2, 1), (2, 0)}
