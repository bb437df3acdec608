"""The order search for sums of smooth functions: every candidate is a block of spline features."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rescore.graph.dag import precedence
from rescore.moments import Cells, GroupMoments, Matrix, Weights, simplest
from rescore.protocols import Mask, Problem
from rescore.solvers.order_search import (
    FIRST_BRANCHES,
    FIRST_NODES,
    ROWS_PER_PARENT,
    Ordered,
    OrderSearch,
    edge_price,
)
from rescore.solvers.smooth_features import FEATURES, Basis

BENT = (0.1, 2.0, 40.0, 800.0)  # variances of what is not straight, in units of the noise
ROOM = 8  # times that of straight lines: what is forgotten when it is full costs more here


@dataclass(eq=False)
class SmoothSearch(OrderSearch):
    """The order search with a block of features for every candidate; S is (K, d·m, d·m).

    Examples
    --------
    >>> x, e = np.random.default_rng(0).normal(size=(2, 500))
    >>> problem = Problem.unconstrained(np.c_[x, x**2 + e])
    >>> search = SmoothSearch.of(problem, Basis.of(problem), problem.prior, 0.0)
    >>> search.best(starts=1).edges.astype(int)
    array([[0, 1],
           [0, 0]])
    """

    scores: Any = field(init=False)
    rough: Matrix = field(kw_only=True)  # (d·m,) of the features
    mean: Matrix = field(kw_only=True)  # (d·m,) of the features, all rows together

    @classmethod
    def of(cls, problem: Problem, basis: Basis, w: Weights, least_share: float) -> "SmoothSearch":
        """The features of weighted rows, or of groups of rows with noise of their own."""
        w, d = simplest(w), problem.rows.shape[1]
        rows = problem.effective_rows(w if w.ndim == 1 else problem.prior)
        (mass, means, S), n = _groups(problem, basis, w, rows)
        price = edge_price(rows, d, least_share) - 0.5 * np.log(max(rows, 2.0))
        mean = mass @ means / mass.sum()
        known = problem.allowed, problem.required
        return cls(S, n, *known, price, rough=basis.rough, mean=mean)

    def __post_init__(self) -> None:
        from rescore.solvers import block_regression, grow_shrink  # compiled

        self._compiled, self._blocks = grow_shrink, block_regression
        self._must = np.ascontiguousarray(precedence(self.allowed, self.required))
        self.deviations = np.ones(len(self.allowed))
        rows = self.n.sum(axis=0).max()
        line = np.arange(len(self.rough)) % FEATURES == 0
        ridge = np.stack([np.where(line, 0.0, self.rough / (a * rows)) for a in (1.0, *BENT)])
        most = min(self.most_parents, len(self.allowed) - 1, max(int(rows / ROWS_PER_PARENT), 1))
        self.scores = block_regression.BlockScores(
            np.ascontiguousarray(self.S),
            np.ascontiguousarray(self.n),
            ridge,
            np.array([1, *(FEATURES for _ in BENT)]),
            np.ascontiguousarray(self.allowed & ~self.required),
            np.ascontiguousarray(self.required),
            float(self.penalty),
            most,
        )
        self._grow(ROOM * FIRST_NODES, ROOM * FIRST_BRANCHES)

    def best(self, starts: int, first: NDArray[np.int64] | None = None) -> Ordered:
        """Where the search leads from the likeliest order, and again from the best one, shaken."""
        found = self.improved(self._likeliest() if first is None else first)
        return self._shaken(found, starts - 1, self.improved)

    def _likeliest(self) -> NDArray[np.int64]:
        """First the variables whose features explain more of others than others' of them."""
        rows = self.n.max(axis=1)
        S = np.tensordot(rows / rows.sum(), self.S, axes=1)
        d = len(self.allowed)
        R = np.square(S[::FEATURES]).reshape(d, d, FEATURES).sum(axis=2)  # [j, i]
        return self.obedient(np.argsort(R.sum(axis=1) - R.sum(axis=0), kind="stable"))

    def local(self, j: int, parents: NDArray[Any]) -> tuple[float, Any, Matrix]:
        """What variable j costs with these parents, their codes, and the coefficients (d·m,)."""
        d, k = len(self.allowed), len(parents)
        codes = (parents + d * (len(self.scores.width) // 2)).astype(np.int64)
        b, v = np.zeros(max(k, 1) * FEATURES), np.empty(len(self.S))
        value, _ = self._blocks.settled(self.scores, j, codes, k, k, b, v)
        F = np.empty(max(k, 1) * FEATURES, dtype=np.int64)
        p = self._blocks.gathered(self.scores, codes, k, F, np.empty(len(F)))
        placed = np.zeros(len(self.rough))
        placed[F[:p]] = b[:p]
        return float(value), codes, placed

    def functions(self, edges: Mask) -> tuple[Matrix, Matrix]:
        """Coefficients (d·m, d), and every function's variance in units of the noise, (d, d)."""
        d, rows = len(edges), self.n / np.maximum(self.n.sum(axis=0), 1e-300)
        B, strength = np.zeros((len(self.rough), d)), np.zeros((d, d))
        for j, parents in parent_sets(edges):
            B[:, j] = b = self.local(j, parents)[2]
            S = np.tensordot(rows[:, j], self.S, axes=1)
            left = b.copy()
            left[j * FEATURES] -= 1.0
            noise_variance = max(float(left @ S @ left), 1e-12)
            for i in parents:
                own = slice(i * FEATURES, (i + 1) * FEATURES)
                strength[i, j] = b[own] @ S[own, own] @ b[own] / noise_variance
        return B, strength

    def level(self, B: Matrix) -> Matrix:
        """What must be added to ``Σ f`` so that residuals average to zero, in deviations, (d,)."""
        return np.asarray(self.mean[::FEATURES] - self.mean @ B)


def _groups(problem: Problem, basis: Basis, w: Weights, rows: float) -> tuple[GroupMoments, Matrix]:
    """The features' moments in every group, and how many rows count in each variable, (K, d).

    Cells that count nothing in a variable's regression are not there for it.
    """
    features, d = problem.rows.expanded(basis.features, basis.width), problem.rows.shape[1]
    if isinstance(w, Cells):
        moments = features.group_moments(w.membership)
        return moments, rows * moments.mass[:, None] * (w.precision > 0)
    if w.ndim == 1:
        mean, S = features.moments(w)
        return GroupMoments(np.ones(1), mean[None], S[None]), np.full((1, d), rows)
    mass = np.maximum(w.sum(axis=0), 1e-300)
    each = [features.moments(column) for column in (w / mass).T]
    mean, S = (np.array(part) for part in zip(*each, strict=True))
    n = np.diag([problem.effective_rows(column) for column in (w / mass).T])
    return GroupMoments(mass, mean, S), n


def parent_sets(edges: Mask) -> list[tuple[int, NDArray[np.intp]]]:
    """The variables with parents, and these.

    Examples
    --------
    >>> parent_sets(np.array([[False, True], [False, False]]))
    [(1, array([0]))]
    """
    return [(int(j), np.flatnonzero(edges[:, j])) for j in np.flatnonzero(edges.any(axis=0))]
