"""Groups of rows found in a sample, made those of all rows: EM whose every turn is a pass.

What a turn needs of the rows are the groups' moments, or squared residuals; who belongs to a group
follows from a row by a rule, so that nothing is kept of the rows themselves.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rescore.equations import Equations
from rescore.moments import Cells, Matrix
from rescore.protocols import Losses, Mask, Problem, Weighting
from rescore.scanning.digest import Digest
from rescore.scanning.statistics import Rule, Sums, scatters
from rescore.weightings import groups as variances
from rescore.weightings.balanced import NOISE_SHARE, plain_noise
from rescore.weightings.environments import Environments, Found, cells_of
from rescore.weightings.mixture import Mixture
from rescore.weightings.precision import Precision, Seen, cell_weights
from rescore.weightings.regimes import Mechanisms, expected, mechanisms

if TYPE_CHECKING:
    from rescore.algorithm import Result

SETTLED = 1e-5  # log-likelihood per row that a pass must gain for another to be made
MOST_TURNS = 4  # passes of EM under one graph
ROUNDS = 3  # of groups and graph in turn


@dataclass(frozen=True)
class Given:
    """Weights that were found elsewhere, and what was told of them."""

    weights: Any
    told: Any
    tau: float = 1.0

    def init(self, n: int, d: int) -> None:
        """Nothing to remember."""

    def step(self, problem: Problem, losses: Losses, state: None) -> tuple[Any, None]:
        """Those given."""
        return self.weights, None

    def explain(self, state: None) -> Any:
        """What was told."""
        return self.told


@dataclass(frozen=True, eq=False)
class ByMechanisms:
    """Who belongs to groups that differ in noise, level or coefficients: a rule for any rows."""

    groups: tuple[Mechanisms, ...]
    varies: Mask

    def __call__(self, X: Matrix, room: Matrix | None = None) -> tuple[Matrix, Matrix, Matrix]:
        """Memberships, log-likelihoods, and no squares."""
        P, logs = expected(X, list(self.groups), self.varies, room)
        return P, logs, np.empty((len(X), 0))


@dataclass(frozen=True, eq=False)
class ByResiduals:
    """Who belongs to groups that differ in noise or level around functions: a rule for any rows."""

    equations: Equations
    share: Matrix  # (K,)
    variance: Matrix  # (K, d)
    level: Matrix  # (K, d)

    def __call__(self, X: Matrix, room: Matrix | None = None) -> tuple[Matrix, Matrix, Matrix]:
        """Memberships, log-likelihoods, and squared residuals beside residuals."""
        looks = looked_at(X, self.equations)
        squares, left = np.hsplit(looks, 2)
        slope = self.level / self.variance
        shifted = slope @ left.T - (slope * self.level).sum(axis=1)[:, None] / 2
        P, logs = variances.expected(squares, self.share, self.variance, shifted)
        return P.T, logs, looks


def looked_at(X: Matrix, equations: Equations) -> Matrix:
    """Squared residuals beside residuals, (n, 2 d)."""
    E = X - equations.predict(X)
    return np.hstack((np.square(E), E))


@dataclass(frozen=True, eq=False)
class OfMechanisms:
    """How `Environments` goes on from a sample to all rows."""

    weighting: Environments
    aside: Mask  # (K,)
    own: Mask  # (K, d)

    @classmethod
    def of(cls, weighting: Environments, start: "Result") -> "OfMechanisms":
        """From what was found in the sample."""
        told, d = start.weighting, len(start.W)
        own = np.zeros((told["groups"], d), dtype=bool)
        for one in told["interventions"]:
            own[one["group"], one["variable"]] = True
        return cls(weighting, np.array(told["noise"], dtype=bool), own)

    def rule(self, problem: Problem, found: "Result", sums: Sums) -> Rule:
        """Of the groups with these moments, under the graph found."""
        parts = problem, found.W != 0, sums.moments, self.aside, self.own
        varies = np.diag(problem.moments(problem.prior).covariance) > 0
        return ByMechanisms(tuple(mechanisms(*parts)), varies)

    def weigh(self, problem: Problem, found: "Result", rule: Any) -> Given:
        """Every cell by its group's precision, and what to tell."""
        rows, edges = problem.rows, found.W != 0
        assert isinstance(rows, Digest)
        P, sums = rows.memberships(), rows.sums()
        weights = cells_of(problem, edges, P, self.aside, self.own, self.weighting.tau)
        mean, S = problem.moments(problem.prior)
        unit = np.sqrt(np.where(np.diag(S) > 0, np.diag(S), 1.0))
        eye = np.eye(len(S))
        level = np.array([(g.mean - mean) @ (eye - g.W) for g in rule.groups]) / unit
        variance = np.array([g.v for g in rule.groups]) / unit**2
        mixture = Mixture(sums.mass / sums.mass.sum(), level, variance, P, float(sums.likelihood))
        state = Found(mixture, self.aside, self.own, weights, sums.mass, 0.0, False)
        return Given(weights, self.weighting.explain(state), self.weighting.tau)


@dataclass(frozen=True, eq=False)
class OfResiduals:
    """How `Precision` goes on from a sample to all rows."""

    weighting: Precision
    levels: bool  # whether these differ between groups

    @classmethod
    def of(cls, weighting: Precision, start: "Result") -> "OfResiduals":
        """From what was found in the sample."""
        return cls(weighting, "level" in start.weighting)

    def rule(self, problem: Problem, found: "Result", sums: Sums) -> Rule:
        """Of groups with these residuals around the functions found."""
        squares, left = np.hsplit(sums.squares, 2)
        pooled = np.maximum(squares.sum(axis=0) / sums.mass.sum(), 1e-300)
        mass = np.maximum(sums.mass[:, None], 1e-300)
        level = left / mass if self.levels else np.zeros_like(left)
        parts = variances.maximised(squares - mass * np.square(level), sums.mass, pooled)
        return ByResiduals(found.equations, *parts, level)

    def weigh(self, problem: Problem, found: "Result", rule: Any) -> Given:
        """Every cell by its group's precision, and what to tell."""
        rows = problem.rows
        assert isinstance(rows, Digest)
        P, sums = rows.memberships(), rows.sums()
        groups = variances.Groups(rule.share, rule.variance, P, float(sums.likelihood), 0.0)
        noise = plain_noise(groups, NOISE_SHARE)
        weights = cell_weights(problem, groups, noise, self.weighting.tau)
        level = rule.level if self.levels else None
        told = self.weighting.explain(Seen(groups, noise, weights, sums.mass, 1, level))
        return Given(weights, told, self.weighting.tau)


REFINED: dict[type[Any], Any] = {Environments: OfMechanisms, Precision: OfResiduals}


def can_refine(weighting: Weighting) -> bool:
    """Whether groups of this weighting can be found in passes.

    Examples
    --------
    >>> can_refine(Environments())
    True
    """
    return type(weighting) in REFINED


def first_sums(rows: Digest, start: "Result") -> Sums:
    """Of the sample alone, in the groups that were found there."""
    assert isinstance(start.weights, Cells)
    P = start.weights.membership * len(rows.matrix())  # with what the caller says of the rows
    parts = scatters(rows.matrix(), P)
    looks = looked_at(rows.matrix(), start.equations)
    return Sums(*parts, P.T @ P, np.zeros(()), P.T @ looks)


def settled(refined: Any, problem: Problem, found: "Result", sums: Sums, most: int) -> Problem:
    """The problem with its rows in groups where another turn of EM gains nothing."""
    rows, last = problem.rows, -np.inf
    assert isinstance(rows, Digest)
    for _ in range(max(most, 1)):
        rows = rows.grouped(refined.rule(problem, found, sums))
        sums = rows.sums()
        if sums.likelihood - last < SETTLED * sums.mass.sum():
            break
        last = float(sums.likelihood)
    return replace(problem, rows=rows)


def exact_rows(c: Matrix, sums: Sums) -> float:
    """``(Σ w)² / Σ w²`` of all rows, each weighing what ``c`` (K,) says of its groups.

    Examples
    --------
    >>> two = Sums(np.array([3.0, 1.0]), None, None, np.diag([3.0, 1.0]), None, None)
    >>> exact_rows(np.ones(2), two)
    4.0
    """
    return float((sums.mass @ c) ** 2 / (c @ sums.overlap @ c))
