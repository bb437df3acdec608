from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.directions import Totals, meek, open_directions, verdict
from rescore.graph.dag import cpdag, is_dag
from rescore.moments import Cells
from rescore.protocols import Problem
from rescore.solvers.order_search import OrderSearch


def free(d):
    return ~np.eye(d, dtype=bool), np.zeros((d, d), dtype=bool)


def random_dag(rng, d, share=0.5):
    order = rng.permutation(d)
    return np.triu(rng.random((d, d)) < share, 1)[np.ix_(order, order)]


def colliders(A):
    joined = A | A.T
    return {
        (a, c, b)
        for c in range(len(A))
        for a, b in combinations(np.flatnonzero(A[:, c]).tolist(), 2)
        if not joined[a, b]
    }


def equivalent(A):
    """All DAGs with the skeleton and v-structures of A."""
    own = colliders(A)
    return (B for B in ways(A) if colliders(B) == own)


def ways(A):
    """All DAGs with the edges of A, any of them turned."""
    pairs = np.argwhere(A)
    for turned in product((False, True), repeat=len(pairs)):
        B = np.zeros_like(A)
        for (i, j), turn in zip(pairs, turned, strict=True):
            B[(j, i) if turn else (i, j)] = True
        if is_dag(B):
            yield B


def obedient(members, allowed, required):
    return [B for B in members if (allowed >= B).all() and (required <= B).all()]


def union(members):
    return np.logical_or.reduce(members)


def knowledge_of(A, rng):
    """Some edges of A required, and some that it does not have forbidden."""
    required = A & (rng.random(A.shape) < 0.15)
    return ((rng.random(A.shape) < 0.8) & free(len(A))[0]) | A, required


def nothing(A):
    return 0.0


@pytest.mark.parametrize("seed", range(30))
def test_without_knowledge_or_charge_the_answer_is_the_class(seed):
    rng = np.random.default_rng(seed)
    A = random_dag(rng, 2 + seed % 5)
    P = open_directions(A, *free(len(A)), nothing, price=1.0)
    np.testing.assert_array_equal(P, open_directions(A, *free(len(A)), None, price=1.0))
    assert P.dtype == np.int8
    np.testing.assert_array_equal(P, cpdag(A))
    np.testing.assert_array_equal(P, union(list(equivalent(A))))


@pytest.mark.parametrize("seed", range(30))
def test_meeks_rules_direct_what_v_structures_compel(seed):
    """From the skeleton with nothing but its v-structures directed to the whole class."""
    A = random_dag(np.random.default_rng(seed), 3 + seed % 4)
    P = A | A.T
    for a, c, b in colliders(A):
        P[c, [a, b]] = False
    np.testing.assert_array_equal(meek(P), cpdag(A))
    np.testing.assert_array_equal(meek(meek(P)), meek(P))


RULES = {  # arrows, and lines of which the first is directed as it is written
    "no new v-structure": ([(2, 0)], [(0, 1)]),
    "no cycle": ([(0, 2), (2, 1)], [(0, 1)]),
    "two ways to a collider": ([(2, 1), (3, 1)], [(0, 1), (0, 2), (0, 3)]),
    "a way through another": ([(3, 2), (2, 1)], [(0, 1), (0, 2), (0, 3)]),
}


@pytest.mark.parametrize("rule", RULES)
def test_each_of_meeks_rules_directs_what_every_dag_with_the_arrows_has(rule):
    arrows, lines = RULES[rule]
    P = np.zeros((4, 4), dtype=bool)
    for i, j in arrows:
        P[i, j] = True
    given = colliders(P)
    for i, j in lines:
        P[i, j] = P[j, i] = True
    directed = P & ~P.T
    skeleton = np.triu(P | P.T)
    every = [B for B in ways(skeleton) if (directed <= B).all() and colliders(B) <= given]
    assert not union(every)[lines[0][::-1]]
    np.testing.assert_array_equal(meek(P), union(every))


@pytest.mark.parametrize("seed", range(30))
def test_what_follows_from_a_new_direction_is_near_it(seed):
    rng = np.random.default_rng(seed)
    P = meek(cpdag(random_dag(rng, 12, share=0.25)) != 0)
    for i, j in np.argwhere(P & P.T):
        if P[j, i]:
            P[j, i] = False
            near = meek(P, [(int(i), int(j))])
            np.testing.assert_array_equal(near, meek(P))
            P = near


@pytest.mark.parametrize("seed", range(30))
def test_knowledge_leaves_open_what_obedient_members_of_the_class_disagree_on(seed):
    rng = np.random.default_rng(seed)
    A = random_dag(rng, 3 + seed % 3, share=0.6)
    allowed, required = knowledge_of(A, rng)
    P = open_directions(A, allowed, required, nothing, price=1.0)
    np.testing.assert_array_equal(P, open_directions(A, allowed, required, None, price=1.0))
    np.testing.assert_array_equal(P, union(obedient(equivalent(A), allowed, required)))


@pytest.mark.parametrize("seed", range(30))
def test_a_total_leaves_open_only_what_a_member_turns_for_no_more_than_the_price(seed):
    """For a sum over variables as random as can be.

    Exact: what is left open, some obedient member of the class turns within the price; and the
    answer is the union of all members that have its directed edges, so that directions which
    follow from others are there, and none is that would lead to a cycle or a new v-structure.
    Which edges are directed may depend on the one member that is tried for each, and on what was
    directed before it.
    """
    rng = np.random.default_rng(seed)
    A = random_dag(rng, 3 + seed % 3, share=0.6)
    allowed, required = knowledge_of(A, rng) if seed % 2 else free(len(A))
    total = Totals(lambda j, parents: rng.exponential()).of
    P = open_directions(A, allowed, required, total, price=1.0) != 0
    members = obedient(equivalent(A), allowed, required)
    assert (P >= A).all()
    for i, j in np.argwhere(P & P.T & A):
        assert any(B[j, i] and total(B) <= total(A) + 1.0 for B in members)
    directed = P & ~P.T
    np.testing.assert_array_equal(P, union([B for B in members if (directed <= B).all()]))


@pytest.mark.parametrize("seed", range(20))
def test_a_charge_on_one_edge_directs_it_and_what_follows(seed):
    rng = np.random.default_rng(seed)
    A = random_dag(rng, 3 + seed % 3, share=0.6)
    members = list(equivalent(A))
    for i, j in np.argwhere(union(members) & union(members).T & A):
        cheap = [B for B in members if B[i, j]]
        P = open_directions(A, *free(len(A)), lambda B, i=i, j=j: 9.0 * B[j, i], price=1.0) != 0
        assert not P[j, i]
        assert (union(cheap) >= P).all()
        dear = open_directions(A, *free(len(A)), lambda B, i=i, j=j: 9.0 * B[j, i], price=9.0)
        np.testing.assert_array_equal(dear, cpdag(A))


@pytest.mark.parametrize("seed", range(10))
def test_a_total_that_only_this_graph_escapes_directs_every_edge(seed):
    A = random_dag(np.random.default_rng(seed), 5, share=0.6)
    P = open_directions(A, *free(5), lambda B: 2.0 * (B != A).any(), price=1.0)
    np.testing.assert_array_equal(P, A)


@pytest.mark.parametrize("seed", range(10))
def test_columns_in_another_order_open_the_same_directions(seed):
    """Of a graph with one order only; otherwise several turned graphs are as near."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((5, 5)) < 0.4, 2) | np.eye(5, k=1, dtype=bool)
    charge = rng.exponential(size=(5, 5))
    order = rng.permutation(5)
    block = np.ix_(order, order)
    P = open_directions(A, *free(5), lambda B: charge[B].sum(), price=0.5)
    Q = open_directions(A[block], *free(5), lambda B: charge[block][B].sum(), price=0.5)
    np.testing.assert_array_equal(Q, P[block])


def chain_with_fork(draw, n=1500):
    """x0 → x1 → x2, x0 → x3: nothing is compelled."""
    X = draw(size=(n, 4))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 1]
    X[:, 3] -= X[:, 0]
    return X, np.array([[0, 1, 0, -1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0.0]])


UNITS = np.array([1.0, 0.2, 30.0, 4.0])


def in_units(X, W):
    return X * UNITS, W * UNITS / UNITS[:, None]


def checked(found, W):
    """What every verdict must have."""
    P = found.cpdag != 0
    assert ((W != 0) <= P).all()
    assert (((W != 0) | (W != 0).T) == (P | P.T)).all()
    both = int((P & P.T).sum() // 2)
    assert found.noise["edges"] == np.count_nonzero(W)
    assert found.noise["open_directions"] == both
    costs = found.noise["costs"]
    if costs:
        assert found.noise["hypothesis"] == min(costs, key=costs.get)
    said = found.noise["summary"]
    assert said.startswith("The rows support ")
    assert said.endswith(f"{both} could as well be turned." if both else "has a direction.")
    return found.noise["hypothesis"], P


@pytest.mark.parametrize("seed", range(3))
def test_noise_of_one_size_in_its_own_units_directs_every_edge(seed):
    X, W = chain_with_fork(np.random.default_rng(seed).normal)
    problem = Problem.unconstrained(X)
    name, P = checked(verdict(problem, W, problem.prior), W)
    assert name == "equal"
    np.testing.assert_array_equal(P, W != 0)


@pytest.mark.parametrize("seed", range(3))
def test_gaussian_noise_in_other_units_directs_what_the_class_does(seed):
    X, W = in_units(*chain_with_fork(np.random.default_rng(seed).normal))
    problem = Problem.unconstrained(X)
    name, P = checked(verdict(problem, W, problem.prior), W)
    assert name == "unequal"
    np.testing.assert_array_equal(P, cpdag(W))


@pytest.mark.parametrize("draw", ["exponential", "uniform", "laplace"])
@pytest.mark.parametrize("seed", range(2))
def test_noise_that_is_not_gaussian_directs_every_edge_in_any_units(seed, draw):
    rng = np.random.default_rng(seed)
    X, W = in_units(*chain_with_fork(lambda size: getattr(rng, draw)(size=size)))
    problem = Problem.unconstrained(X)
    name, P = checked(verdict(problem, W, problem.prior), W)
    assert name == "non-Gaussian"
    np.testing.assert_array_equal(P, W != 0)


@pytest.mark.parametrize("seed", range(3))
def test_groups_that_differ_in_noise_direct_every_edge_in_any_units(seed):
    rng = np.random.default_rng(seed)
    scale = np.repeat([[1.0, 1.0, 1.0, 1.0], [3.0, 0.5, 2.0, 0.4]], 750, axis=0)
    X, W = in_units(*chain_with_fork(lambda size: rng.normal(size=size) * scale))
    problem = Problem.unconstrained(X)
    membership = np.repeat(np.eye(2), 750, axis=0) / 1500
    cells = Cells(membership, np.array([[0.6, 1.4, 0.8, 1.5], [1.4, 0.6, 1.2, 0.5]]))
    name, P = checked(verdict(problem, W, cells), W)
    assert name == "groups"
    np.testing.assert_array_equal(P, W != 0)


def test_what_is_known_is_not_open():
    X, W = in_units(*chain_with_fork(np.random.default_rng(0).normal))
    problem = Problem.unconstrained(X)
    allowed, required = free(4)
    required[0, 1] = True
    known = Problem(problem.rows, problem.prior, allowed, required)
    _, P = checked(verdict(known, W, known.prior), W)
    members = obedient(equivalent(W != 0), allowed, required)
    np.testing.assert_array_equal(P, union(members))


def test_a_graph_without_edges_says_so():
    problem = Problem.unconstrained(np.random.default_rng(0).normal(size=(200, 3)))
    found = verdict(problem, np.zeros((3, 3)), problem.prior)
    assert not found.cpdag.any()
    assert found.noise["summary"].endswith("There is no edge.")


def test_totals_are_sums_over_families_whatever_is_remembered():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4))
    S = np.cov(X.T, ddof=0)
    search = OrderSearch(S[None], np.full((1, 4), 300.0), *free(4), penalty=1.0)
    totals = Totals(lambda j, parents: search.local(j, parents)[0])
    complete = [
        np.triu(np.ones((4, 4), dtype=bool), 1)[np.ix_(o, o)] for o in ([0, 1, 2, 3], [2, 0, 3, 1])
    ]
    for A in (*complete, *complete):  # any order of all variables leaves the determinant
        assert totals.of(A) == pytest.approx(150 * np.linalg.slogdet(S)[1])


@pytest.mark.parametrize("units", [np.ones(4), UNITS])
def test_the_learner_shows_the_directions_that_its_diagnostics_count(units):
    X, _ = chain_with_fork(np.random.default_rng(1).normal)
    model = rs.Linear().fit(pd.DataFrame(X * units, columns=list("abcd")))
    W, P = model.adjacency_matrix_.to_numpy(), model.cpdag_.to_numpy()
    said = model.diagnostics_["noise"]
    assert said["hypothesis"] == ("equal" if (units == 1).all() else "unequal")
    assert said["edges"] == np.count_nonzero(W)
    assert said["open_directions"] == (P & P.T).sum() // 2
    assert ((P != 0) >= (W != 0)).all()
    np.testing.assert_array_equal(P, cpdag(W) if said["open_directions"] else W != 0)
