from functools import cache
from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.optimize import minimize

import rescore as rs
from rescore.graph.dag import cpdag, is_dag
from rescore.moments import Cells
from rescore.protocols import Problem
from rescore.solvers import order_search, regression
from rescore.solvers.order_search import OrderSearch, grouped_search


def free(d):
    return ~np.eye(d, dtype=bool), np.zeros((d, d), dtype=bool)


def model(d, seed, share=0.6):
    """Clear coefficients on a random DAG (d, d), the columns in no order."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(0.6, 1.4, size=(d, d)) * rng.choice([-1, 1], size=(d, d))
    B = np.triu(size * (rng.random((d, d)) < share), 1)
    order = rng.permutation(d)
    return B[np.ix_(order, order)]


def rows_of(B, scale, n, seed):
    noise = np.random.default_rng(seed).normal(size=(n, len(B))) * scale
    return noise @ np.linalg.inv(np.eye(len(B)) - B)


def groups(d, K, seed, n=600):
    """K tables that share coefficients; from the second on, the noise has sizes of its own."""
    B, rng = model(d, seed), np.random.default_rng(seed + 1000)
    scales = np.exp(rng.uniform(-1.2, 1.2, size=(K, d)))
    return B, [rows_of(B, scale, n, seed + 7 * k) for k, scale in enumerate(scales)]


def search_of(tables, penalty=None, allowed=None, required=None, **options):
    d, n = tables[0].shape[1], np.array([len(X) for X in tables], dtype=float)
    S = np.array([np.cov(X.T, ddof=0) for X in tables])
    penalty = 0.5 * np.log(n.sum()) + np.log(d) if penalty is None else penalty
    allowed = free(d)[0] if allowed is None else allowed
    required = free(d)[1] if required is None else required
    return OrderSearch(S, np.tile(n[:, None], d), allowed, required, penalty, **options)


def half_log_variances(b, tables, j, parents):
    """½ Σ_k n_k log v_k(b), from the rows themselves."""
    left = [X[:, j] - X[:, parents] @ b for X in tables]
    return sum(0.5 * len(r) * np.log(r.var()) for r in left)


def by_scipy(tables, j, parents):
    start = np.linalg.lstsq(np.vstack(tables)[:, parents], np.vstack(tables)[:, j])[0]
    return minimize(half_log_variances, start, args=(tables, j, parents), tol=1e-10)


def gaussian_score(tables, A, penalty):
    """What a graph costs, by an optimiser that knows nothing of weighted least squares."""
    return sum(local_score(tables, j, np.flatnonzero(A[:, j])) for j in range(len(A))) + (
        penalty * A.sum()
    )


def local_score(tables, j, parents):
    if len(tables) > 1 and len(parents):
        return by_scipy(tables, j, parents).fun
    X = tables[0] - tables[0].mean(axis=0)
    b = np.linalg.lstsq(X[:, parents], X[:, j])[0]
    return half_log_variances(b, tables, j, parents)


@cache
def all_dags(d):
    pairs = list(combinations(range(d), 2))
    found = []
    for choice in product(range(3), repeat=len(pairs)):
        A = np.zeros((d, d), dtype=bool)
        for (i, j), way in zip(pairs, choice, strict=True):
            A[i, j], A[j, i] = way == 1, way == 2
        if is_dag(A):
            found.append(A)
    return found


def least_of_all_dags(tables, penalty, beyond=lambda A: 0.0):
    """Brute force; every family is scored once, and what is ``beyond`` families added."""
    d, known = tables[0].shape[1], {}
    for j in range(d):
        others = [i for i in range(d) if i != j]
        for size in range(d):
            for parents in combinations(others, size):
                score = local_score(tables, j, np.array(parents, dtype=int))
                known[j, parents] = score + penalty * size
    totals = [
        sum(known[j, tuple(np.flatnonzero(A[:, j]).tolist())] for j in range(d)) + beyond(A)
        for A in all_dags(d)
    ]
    return min(totals)


@pytest.mark.parametrize("seed", range(3))
def test_one_group_is_ordinary_least_squares(seed):
    _, (X,) = groups(5, 1, seed)
    X = X * 10.0 ** np.arange(-2, 3) + 3.0
    for j, parents in ((0, [1, 2, 3, 4]), (3, [0, 4]), (2, [])):
        others = np.array(parents, dtype=int)
        value, b, v = search_of([X]).local(j, others)
        Z = X - X.mean(axis=0)
        expected, *_ = np.linalg.lstsq(Z[:, others], Z[:, j])
        np.testing.assert_allclose(b, expected, rtol=1e-6)
        assert v[0] == pytest.approx((Z[:, j] - Z[:, others] @ expected).var())
        assert value == pytest.approx(300 * np.log(v[0]))


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_several_groups_share_the_coefficients_of_greatest_likelihood(seed, K):
    B, tables = groups(4, K, seed)
    tables = [X * [0.1, 1.0, 3.0, 20.0] for X in tables]
    for j in np.flatnonzero(B.any(axis=0)):
        parents = np.flatnonzero(B[:, j])
        value, b, v = search_of(tables).local(j, parents)
        expected = by_scipy(tables, j, parents)
        assert value == pytest.approx(expected.fun, abs=0.02)
        np.testing.assert_allclose(b, expected.x, rtol=0.01)
        np.testing.assert_allclose(v, [np.var(X[:, j] - X[:, parents] @ b) for X in tables])


@pytest.mark.parametrize("seed", range(3))
def test_with_parents_that_are_none_the_coefficients_are_still_a_least(seed):
    """Perhaps not the least of all: where groups contradict one another there may be several."""
    _, tables = groups(4, 3, seed)
    for j in range(4):
        parents = np.flatnonzero(np.arange(4) != j)
        value, b, _ = search_of(tables).local(j, parents)
        assert value == pytest.approx(half_log_variances(b, tables, j, parents))
        near = minimize(half_log_variances, b, args=(tables, j, parents), tol=1e-10)
        assert value == pytest.approx(near.fun, abs=0.02)


@pytest.mark.parametrize("seed", range(10))
def test_no_round_of_weighted_least_squares_raises_the_value(seed, monkeypatch):
    _, tables = groups(4, 3, seed)
    scores, rng = search_of(tables).scores, np.random.default_rng(seed)
    start, v, P = rng.normal(size=3), np.empty(3), np.array([1, 2, 3])
    values = [regression.variances(scores.S, scores.n, 0, P, 3, start, v)]
    for rounds in range(1, 8):
        monkeypatch.setattr(regression, "ROUNDS", rounds)
        b = start.copy()
        values.append(regression.profiled.py_func(scores.S, scores.n, 0, P, 3, b, v))
    assert (np.diff(values) <= 1e-9).all()
    assert regression.profiled(scores.S, scores.n, 0, P, 3, start, v) <= values[-1] + 1e-9


@pytest.mark.parametrize("K", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_no_dag_of_four_variables_scores_better(seed, K):
    """All 543 of them."""
    _, tables = groups(4, K, seed)
    units = np.vstack(tables).std(axis=0)
    tables = [X / units for X in tables]
    search = search_of(tables)
    found = search.best(starts=6)
    assert is_dag(found.edges)
    own = gaussian_score(tables, found.edges, search.penalty)
    assert found.score + search.in_own_units() == pytest.approx(own, abs=0.05)
    assert own == pytest.approx(least_of_all_dags(tables, search.penalty), abs=0.05)


def log_ways(A):
    """Of giving the variables as many parents each, in another order: counted one by one."""
    return np.log(len(set(permutations(A.sum(axis=0).tolist()))))


@pytest.mark.parametrize("seed", range(4))
def test_by_number_no_dag_of_four_variables_scores_better(seed):
    _, (X,) = groups(4, 1, seed)
    X = X / X.std(axis=0)
    search = search_of([X])
    found = search.best_by_number(starts=6)
    own = gaussian_score([X], found.edges, search.penalty) + log_ways(found.edges)
    assert found.score + search.in_own_units() == pytest.approx(own, abs=0.05)
    assert own == pytest.approx(least_of_all_dags([X], search.penalty, log_ways), abs=0.05)


def test_the_graphs_of_a_class_have_the_same_numbers_of_parents():
    """All 543 graphs of four variables."""
    numbers = {}
    for A in all_dags(4):
        numbers.setdefault(cpdag(A).tobytes(), set()).add(tuple(order_search.parent_numbers(A)))
    assert len(numbers) == 185
    assert all(len(each) == 1 for each in numbers.values())


@pytest.mark.parametrize("seed", range(3))
def test_by_number_hubs_with_weak_effects_are_no_effects_of_what_they_cause(seed):
    """Of a tree no direction is known; pairs of weak effects look like causes that meet."""
    rng, d = np.random.default_rng(seed), 40
    B = np.zeros((d, d))
    B[0, 1:21], B[1, 21:] = rng.uniform(0.1, 0.4, 20), rng.uniform(0.1, 0.4, d - 21)
    search = search_of([rows_of(B, np.ones(d), 2000, seed)])
    plain, found, again = search.best(6), search.best_by_number(6), search.best(6)
    directed = [(P & ~P.T).sum() for P in (cpdag(A.edges) for A in (plain, found))]
    assert directed[0] > 10
    assert directed[1] == 0
    np.testing.assert_array_equal(again.edges, plain.edges)  # at the prices of before


@pytest.mark.parametrize("seed", range(10))
def test_by_number_the_search_is_no_worse_than_the_plain_one(seed):
    """Prices of the first graph found would lead all later starts to where that one is."""
    B = np.zeros((4, 4))
    B[[0, 1], 2], B[2, 3] = 1.0, 1.5  # two causes meet in an effect that has one of its own
    search = search_of([rows_of(B, np.ones(4), 500, seed)])
    first = np.array([3, 2, 1, 0])
    plain, found = search.best(6, first), search.best_by_number(6, first)
    assert found.score <= plain.score + log_ways(plain.edges) + 1e-6


@pytest.mark.parametrize("K", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_the_units_do_not_matter(seed, K):
    _, tables = groups(6, K, seed)
    units = 10.0 ** np.random.default_rng(seed).uniform(-5, 5, size=6)
    plain, scaled = search_of(tables), search_of([X * units for X in tables])
    found, other = plain.best(starts=3), scaled.best(starts=3)
    np.testing.assert_array_equal(other.edges, found.edges)
    assert other.score == pytest.approx(found.score)
    assert scaled.in_own_units() - plain.in_own_units() == pytest.approx(
        600 * K * np.log(units).sum()
    )
    np.testing.assert_allclose(
        scaled.coefficients(found.edges),
        plain.coefficients(found.edges) * units / units[:, None],
        rtol=1e-6,
    )


@pytest.mark.parametrize("K", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_columns_in_another_order_give_the_same_graph_in_that_order(seed, K):
    _, tables = groups(7, K, seed)
    order = np.random.default_rng(seed).permutation(7)
    found = search_of(tables).best(starts=3)
    other = search_of([X[:, order] for X in tables]).best(starts=3)
    assert other.score == pytest.approx(found.score)
    np.testing.assert_array_equal(other.edges, found.edges[np.ix_(order, order)])


@pytest.mark.parametrize("seed", range(4))
def test_groups_whose_noise_differs_show_every_direction(seed):
    B, tables = groups(6, 3, seed, n=3000)
    np.testing.assert_array_equal(search_of(tables).best(starts=6).edges, B != 0)


@pytest.mark.parametrize("seed", range(4))
def test_one_group_shows_the_class(seed):
    B = model(6, seed, share=0.3)
    X = rows_of(B, np.exp(np.random.default_rng(seed).uniform(-1, 1, 6)), 20_000, seed)
    np.testing.assert_array_equal(cpdag(search_of([X]).best(starts=6).edges), cpdag(B))


def test_a_group_that_is_silent_for_a_variable_does_not_matter_there():
    _, tables = groups(4, 2, seed=0)
    strange = rows_of(model(4, 99), 1.0, 300, 0) @ np.random.default_rng(1).normal(size=(4, 4))
    S = np.array([np.cov(X.T, ddof=0) for X in (*tables, strange)])
    n = np.tile([[600.0], [600.0], [300.0]], 4)
    n[2, 1] = 0.0
    three = OrderSearch(S, n, *free(4), penalty=4.0)
    for parents in ([], [0], [0, 2, 3]):
        at = np.array(parents, dtype=int)
        value, b, v = three.local(1, at)
        expected, coefficients, variances = search_of(tables).local(1, at)
        assert value == pytest.approx(expected, abs=2e-3)  # the rounds end at 1e-3
        np.testing.assert_allclose(b, coefficients, rtol=1e-3)
        np.testing.assert_allclose(v[:2], variances, rtol=1e-3)
    assert three.local(0, np.array([1]))[0] != pytest.approx(
        search_of(tables).local(0, np.array([1]))[0], abs=1.0
    )


def known_edges(d, rng):
    """A random order's edges, of which some are required; of all others, some are forbidden."""
    order = rng.permutation(d)
    forward = np.zeros((d, d), dtype=bool)
    for a, b in combinations(order, 2):
        forward[a, b] = True
    required = forward & (rng.random((d, d)) < 0.15)
    return (rng.random((d, d)) < 0.6) & free(d)[0] | required, required


@pytest.mark.parametrize("K", [1, 2])
@pytest.mark.parametrize("seed", range(10))
def test_known_edges_are_obeyed_from_any_start_and_the_answer_is_a_dag(seed, K):
    rng = np.random.default_rng(seed)
    allowed, required = known_edges(6, rng)
    search = search_of(groups(6, K, seed)[1], allowed=allowed, required=required)
    ends = [search.best(starts=2), search.improved(rng.permutation(6))]
    for found in ends:
        assert is_dag(found.edges)
        assert (found.edges >= required).all()
        assert (found.edges <= allowed).all()
        place = np.argsort(found.order)
        assert (place[:, None] < place)[found.edges].all()


def test_a_variable_that_may_only_be_a_cause_comes_first():
    """Otherwise its edges would be lost, not turned."""
    _, tables = groups(5, 1, seed=3)
    allowed = free(5)[0]
    plain = search_of(tables).best(starts=6)
    sink = int(plain.order[-1])
    allowed[:, sink] = False
    found = search_of(tables, allowed=allowed).best(starts=6)
    assert found.order[0] == sink
    assert found.edges[sink].any()


@pytest.mark.parametrize("K", [1, 2])
def test_a_forest_that_fills_up_is_made_larger(K, monkeypatch):
    _, tables = groups(7, K, seed=5)
    found = search_of(tables).best(starts=3)
    monkeypatch.setattr(order_search, "FIRST_NODES", 8)
    monkeypatch.setattr(order_search, "FIRST_BRANCHES", 1)
    small = search_of(tables)
    again = small.best(starts=3)
    np.testing.assert_array_equal(again.edges, found.edges)
    assert again.score == found.score
    every = np.arange(7) != 0
    small._grow(8, 1)
    np.testing.assert_array_equal(small.parents(0, every), search_of(tables).parents(0, every))


@pytest.mark.parametrize("seed", range(5))
def test_two_causes_that_cancel_each_other_are_both_found(seed):
    """Each alone explains next to nothing."""
    rng = np.random.default_rng(seed)
    shared, noise = rng.normal(size=2000), rng.normal(size=(3, 2000))
    a, b = shared + 0.5 * noise[0], shared + 0.5 * noise[1]
    X = np.c_[a, b, a - b * (a @ a) / (a @ b) + 0.1 * a + 0.5 * noise[2]]
    search = search_of([X])
    alone, one = search.local(2, np.array([], dtype=int))[0], search.local(2, np.array([0]))[0]
    assert alone - one < 0.1 * (alone - search.local(2, np.array([0, 1]))[0])
    assert search.parents(2, np.array([True, True, False])).tolist() == [True, True, False]


@pytest.mark.parametrize("seed", range(4))
def test_no_worse_by_bic_than_greedy_equivalence_search(seed):
    B = model(8, seed, share=0.35)
    X = rows_of(B, 1.0, 400, seed)
    bic = 0.5 * np.log(400)
    ours = search_of([X], penalty=bic).best(starts=6).edges
    theirs = rs.GES().fit(X).adjacency_matrix_.to_numpy() != 0
    assert gaussian_score([X], ours, bic) <= gaussian_score([X], theirs, bic) + 1e-6


def test_a_constant_column_is_alone_and_changes_nothing():
    _, tables = groups(5, 2, seed=1)
    constant = [np.insert(X, 2, 4.0, axis=1) for X in tables]
    penalty = search_of(tables).penalty
    found = search_of(constant, penalty=penalty).best(starts=4).edges
    assert not found[2].any()
    assert not found[:, 2].any()
    without = np.delete(np.delete(found, 2, axis=0), 2, axis=1)
    np.testing.assert_array_equal(without, search_of(tables).best(starts=4).edges)


@pytest.mark.parametrize("K", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_copies_and_combinations_of_columns_end_in_a_dag(seed, K):
    _, tables = groups(4, K, seed)
    tables = [np.c_[X, X[:, 0], 3 * X[:, 1], X[:, 2] - X[:, 3], np.ones(len(X))] for X in tables]
    search = search_of(tables)
    found = search.best(starts=3)
    assert is_dag(found.edges)
    assert np.isfinite(found.score)
    assert np.isfinite(search.coefficients(found.edges)).all()
    assert (found.edges | found.edges.T)[[0, 1], [4, 5]].all()  # a copy is joined to its original


def test_a_variable_has_no_more_parents_than_it_may():
    _, (X,) = groups(6, 1, seed=0)
    found = search_of([X], penalty=0.0, most_parents=2).best(starts=2)
    assert found.edges.sum(axis=0).max() == 2
    few = search_of([X[:15]], penalty=0.0).best(starts=2)
    assert few.edges.sum(axis=0).max() <= 3  # one for every five rows


def test_cells_are_groups_and_arrays_are_variables_with_rows_of_their_own():
    _, tables = groups(4, 2, seed=2)
    problem = Problem.unconstrained(np.vstack(tables))
    membership = np.repeat(np.eye(2), 600, axis=0) / 1200
    cells = grouped_search(problem, Cells(membership, np.full((2, 4), [[0.5], [1.5]])), 0.0)
    expected = search_of(tables)
    np.testing.assert_allclose(cells.S, expected.S)
    np.testing.assert_allclose(cells.n, expected.n)
    np.testing.assert_array_equal(cells.best(3).edges, expected.best(3).edges)
    w = np.tile([1 / 600, 0.0], (1200, 2)) * np.repeat([[1.0], [0.0]], 600, axis=0)
    w += np.tile([0.0, 1 / 600], (1200, 2)) * np.repeat([[0.0], [1.0]], 600, axis=0)
    own = grouped_search(problem, w, 0.0)
    for j in range(4):
        parents = np.flatnonzero(np.arange(4) != j)
        alone = search_of([tables[j % 2]]).local(j, parents)
        assert own.local(j, parents)[0] == pytest.approx(alone[0])
        np.testing.assert_allclose(own.local(j, parents)[1], alone[1], rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_no_order_of_five_is_better_than_the_one_found(seed):
    """Brute force over all 120 orders, parents chosen as the search chooses them."""
    _, tables = groups(5, 2, seed)
    search = search_of(tables)

    def score(order):
        before, total = np.zeros(5, dtype=bool), 0.0
        for j in order:
            parents = np.flatnonzero(search.parents(j, before))
            total += search.local(j, parents)[0] + search.penalty * len(parents)
            before[j] = True
        return total

    best = min(score(order) for order in permutations(range(5)))
    found = search.best(starts=6)
    assert score(found.order) == pytest.approx(best, abs=0.01)


def test_a_set_of_parents_without_a_score_asks_for_no_more_room(monkeypatch):
    """As of a group of one row whose variance is rounding; it once took all memory there was."""
    S = np.eye(3)[None].repeat(2, axis=0)
    S[1, 0, 1] = S[1, 1, 0] = np.nan
    free, nothing = ~np.eye(3, dtype=bool), np.zeros((3, 3), dtype=bool)
    nothing[0, 1] = True  # so that it is tried
    search = OrderSearch(S, np.full((2, 3), 50.0), free, nothing, penalty=2.0)
    monkeypatch.setattr(OrderSearch, "_grow", lambda *_: pytest.fail("more room"))
    assert is_dag(search.best(starts=1).edges)


@pytest.mark.parametrize("K", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_no_variable_has_a_better_place_where_the_search_ends(seed, K):
    """Scored whole: what a move does not touch is not scored again while it is looked for."""
    d = 12
    _, tables = groups(d, K, seed)
    S = np.array([np.cov(table.T) for table in tables])
    search = OrderSearch(S, np.full((K, d), 600.0), *free(d), penalty=5.0)
    found = search.improved(np.random.default_rng(seed).permutation(d))
    for v in range(d):
        rest = [u for u in found.order if u != v]
        for place in range(d):
            order = np.array([*rest[:place], v, *rest[place:]])
            edges = np.zeros((d, d), dtype=np.bool_)
            parts = search._compiled.chosen(search.scores, search._forest, order, edges)
            assert not parts.sum() < found.score - 1e-5  # nan is a forest that is full
