"""The evidence of smooth functions, beside matrices of all rows and searches of all graphs."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.optimize import minimize

from rescore.moments import Cells
from rescore.protocols import Problem
from rescore.solvers import block_regression as blocks
from rescore.solvers.smooth_features import FEATURES, Basis
from rescore.solvers.smooth_search import BENT, SmoothSearch

D, N = 4, 150


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    a, b, c, e = rng.normal(size=(4, N))
    return np.c_[a, np.sin(2 * a) + 0.5 * b, np.cos(a) + c, 0.7 * b + e]


@pytest.fixture(scope="module")
def search(rows):
    return searched(Problem.unconstrained(rows))


def searched(problem, w=None):
    return SmoothSearch.of(problem, Basis.of(problem), problem.prior if w is None else w, 0.0)


def evidence(search, j, codes):
    P, b, v = np.array([*codes, 0]), np.zeros(D * FEATURES), np.empty(len(search.S))
    return blocks.evidence(search.scores, j, P, len(codes), b, v), b, v


def by_rows(rows, j, codes):
    """½ N log v + ½ k log N + ½ log|I + M Z S Zᵀ M|, M what is orthogonal to the lines."""
    problem = Problem.unconstrained(rows)
    basis = Basis.of(problem)
    Phi, rough = basis.features(rows), basis.rough
    lines, bent, size = [np.ones(N)], [], []
    for code in codes:
        i, level = code % D, code // D
        lines.append(Phi[:, i * FEATURES])
        if level:
            own = range(i * FEATURES + 1, (i + 1) * FEATURES)
            bent += [Phi[:, f] for f in own]
            size += [BENT[level - 1] / rough[f] for f in own]
    L = np.array(lines).T
    M = np.eye(N) - L @ np.linalg.pinv(L)
    Z = M @ np.array(bent).T if bent else np.zeros((N, 0))
    V = np.eye(N) + (Z * size) @ Z.T
    y = M @ Phi[:, j * FEATURES]
    v = y @ np.linalg.solve(V, y) / N
    return (N * np.log(v) + len(codes) * np.log(N) + np.linalg.slogdet(V)[1]) / 2


@pytest.mark.parametrize("codes", [(), (0,), (8,), (4, 2), (16, 12 + 2), (8, 2, 12 + 3)])
def test_the_evidence_is_that_of_the_rows_with_coefficients_integrated_out(rows, search, codes):
    assert evidence(search, 1, codes)[0] == pytest.approx(by_rows(rows, 1, codes), abs=1e-5)


def test_straight_lines_are_least_squares(rows, search):
    value, b, v = evidence(search, 1, (0, 2))
    Phi = Basis.of(Problem.unconstrained(rows)).features(rows)[:, ::FEATURES]
    wanted, left, *_ = np.linalg.lstsq(Phi[:, [0, 2]], Phi[:, 1], rcond=None)
    assert np.allclose(b[:2], wanted)
    assert v[0] == pytest.approx(left[0] / N)
    assert value == pytest.approx(0.5 * N * np.log(v[0]) + np.log(N))


@pytest.mark.parametrize("codes", [(), (8,), (2, 12 + 3)])
def test_a_candidate_gains_what_the_evidence_says(search, codes):
    P, v = np.array([*codes, 0]), np.empty(1)
    now = blocks.evidence(search.scores, 1, P, len(codes), np.zeros(D * FEATURES), v)
    gain, found = np.empty(D), np.zeros(D, dtype=np.int64)
    blocks.screened(search.scores, 1, P, len(codes), v, gain, found)
    for i in {0, 2, 3} - {code % D for code in codes}:
        each = [
            now - evidence(search, 1, (*codes, i + D * level))[0] for level in range(1 + len(BENT))
        ]
        assert gain[i] == pytest.approx(max(each), abs=1e-6)
        assert found[i] == np.argmax(each)


def test_levels_and_parents_are_the_best_of_all(search):
    """From any start: no other levels and no parent fewer would be better."""
    for start in product(range(3), repeat=3):
        P = np.array([i + D * level for i, level in zip((0, 2, 3), start, strict=True)])
        value, k = blocks.settled(search.scores, 1, P, 3, 0, np.zeros(D * FEATURES), np.empty(1))
        kept = sorted(P[:k] % D)
        levels = product(range(1 + len(BENT)), repeat=k)
        best = min(
            evidence(search, 1, [i + D * level for i, level in zip(kept, each, strict=True)])[0]
            for each in levels
        )
        assert value == pytest.approx(best + search.penalty * k, abs=1e-6)


def test_groups_share_functions_and_have_noise_of_their_own(rows):
    half = np.repeat(np.eye(2), [60, 90], axis=0)
    noisy = rows.copy()
    noisy[60:, 1] += np.random.default_rng(1).normal(size=90)
    problem = Problem.unconstrained(noisy)
    search = searched(problem, Cells(half / N, np.ones((2, D))))
    value, b, v = evidence(search, 1, (8,))
    S, r = search.S, search.scores.ridge[2, :FEATURES]
    y, F = FEATURES, np.arange(FEATURES)

    def cost(b):
        left = [S[k, y, y] - 2 * b @ S[k, F, y] + b @ S[k][np.ix_(F, F)] @ b for k in (0, 1)]
        return sum(0.5 * n * np.log(u + r @ b**2) for n, u in zip((60, 90), left, strict=True))

    found = minimize(cost, np.zeros(FEATURES), tol=1e-10)
    assert cost(b[:FEATURES]) == pytest.approx(found.fun, abs=1e-2)
    assert v[1] > 2 * v[0]
    assert value > found.fun


def test_the_search_finds_the_least_of_all_orders(search):
    def least(j, before):
        costs = [evidence(search, j, ())[0]]
        for k in range(1, len(before) + 1):
            for parents in combinations(before, k):
                for levels in product(range(1 + len(BENT)), repeat=k):
                    codes = [i + D * level for i, level in zip(parents, levels, strict=True)]
                    costs.append(evidence(search, j, codes)[0] + search.penalty * k)
        return min(costs)

    known = {}
    for order in permutations(range(D)):
        for at, j in enumerate(order):
            key = j, tuple(sorted(order[:at]))
            known[key] = known.get(key) or least(*key)
    best = min(
        sum(known[j, tuple(sorted(order[:at]))] for at, j in enumerate(order))
        for order in permutations(range(D))
    )
    assert search.best(starts=6).score == pytest.approx(best, abs=1e-5)


def test_a_full_forest_is_made_larger(search, monkeypatch):
    monkeypatch.setattr("rescore.solvers.smooth_search.FIRST_NODES", 1)
    monkeypatch.setattr("rescore.solvers.smooth_search.FIRST_BRANCHES", 1)
    small = SmoothSearch(
        search.S, search.n, search.allowed, search.required, search.penalty,
        rough=search.rough, mean=search.mean,
    )  # fmt: skip
    assert small.best(starts=2).score == pytest.approx(search.best(starts=2).score)
