"""Categories in a fit: taken out of the rows before it, given back to its graph afterwards.

A category may cause and is not caused.  If ``x_j = Σ b_ij x_i + Σ_l g_lj [level l] + e_j``, what
the levels leave of every variable obeys the same equations without them, so that any learner can
find the b as ever.  Which g are not zero is then a regression for each variable, in which a
category must gain more than its levels cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rescore.equations import Equations, from_arrays, residual_moments
from rescore.moments import Matrix
from rescore.protocols import Mask
from rescore.tables.opening import dummies
from rescore.tables.table import Table
from rescore.text import listing

SUFFIX = "+categories"  # of the kind of equations that have some
OWN = ("category", "level", "shift")  # the arrays of theirs
SMALLEST_SHARE = 1e-12  # of a variance that counts as noise rather than rounding
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class ShiftedEquations:
    """Equations of numbers, plus a shift for each level of the categories.

    Examples
    --------
    >>> from rescore.equations import LinearEquations
    >>> inner = LinearEquations(np.zeros((2, 2)), np.array([0.0, 5.0]))
    >>> sex = ShiftedEquations(inner, np.array([0]), np.array([1]), np.array([[0.0, 2.0]]))
    >>> sex.predict(np.array([[0.0, 9.0], [1.0, 9.0]]))
    array([[0., 5.],
           [0., 7.]])
    """

    inner: Equations
    category: NDArray[np.intp]  # (L,), the column of each level
    level: NDArray[np.intp]  # (L,)
    shift: Matrix  # (L, d)

    @property
    def kind(self) -> str:
        """That of the inner equations, and that there are categories."""
        return self.inner.kind + SUFFIX

    def predict(self, X: Matrix) -> Matrix:
        """Every variable of every row from the others, (n, d)."""
        return self.inner.predict(X) + self._levels(X) @ self.shift

    def variable(self, X: Matrix, j: int) -> Matrix:
        """Variable j alone, (n,)."""
        return self.inner.variable(X, j) + self._levels(X) @ self.shift[:, j]

    def _levels(self, X: Matrix) -> Matrix:
        return (X[:, self.category] == self.level).astype(np.float64)

    def shifted(self, by: Matrix) -> "ShiftedEquations":
        """The same with ``by`` (d,) added to every prediction."""
        return replace(self, inner=self.inner.shifted(by))

    def rescaled(self, mean: Matrix, scale: Matrix) -> "ShiftedEquations":
        """The same for variables ``mean + scale·x``; categories stay as they are."""
        return replace(self, inner=self.inner.rescaled(mean, scale), shift=self.shift * scale)

    def arrays(self) -> dict[str, Matrix]:
        """Those of the inner equations, and the shifts."""
        own = {name: np.asarray(getattr(self, name), dtype=np.float64) for name in OWN}
        return dict(self.inner.arrays()) | own


def equations_of(kind: Any, arrays: Mapping[str, Any], d: int) -> Equations:
    """The equations whose `arrays` these are, with categories or without.

    Examples
    --------
    >>> from rescore.equations import LinearEquations
    >>> equations_of("linear", LinearEquations(np.zeros((1, 1)), np.zeros(1)).arrays(), 1).kind
    'linear'
    """
    if not (isinstance(kind, str) and kind.endswith(SUFFIX)):
        return from_arrays(kind, arrays, d)
    missing = [name for name in OWN if name not in arrays]
    if missing or np.shape(arrays["shift"]) != (len(arrays["level"]), d):
        raise ValueError(f"The shapes of the arrays are not those of {d} {kind} equations.")
    inner = {name: array for name, array in arrays.items() if name not in OWN}
    category, level = (np.asarray(arrays[name]).astype(np.intp) for name in OWN[:2])
    numbers = from_arrays(kind.removesuffix(SUFFIX), inner, d)
    return ShiftedEquations(numbers, category, level, np.asarray(arrays["shift"]))


def refuse_causes_of(table: Table, required: Mask, coded: Mask) -> None:
    """Required edges (d, d) into one of the columns that are categories, ``coded`` (d,)."""
    asked = required.any(axis=0) & coded
    if asked.any():
        caused = [name for name, here in zip(table.names, asked, strict=True) if here]
        raise ValueError(
            f"Required edges lead to {listing(caused)}, which may cause and is not caused "
            "(categories='exogenous'). Drop those edges, or the column."
        )


def taken_out(table: Table, w: Matrix) -> Table:
    """The table without what the levels of its categories explain; they themselves are constant.

    Examples
    --------
    >>> from rescore.tables.opening import Opening
    >>> import pandas as pd
    >>> X = pd.DataFrame({"c": list("uuvvuv"), "a": [1.0, 2, 5, 6, 3, 7]})
    >>> table, _ = Opening(categories="exogenous").of(X)
    >>> taken_out(table, np.full(6, 1 / 6)).values[:, 1]
    array([3., 4., 3., 4., 5., 5.])
    """
    if not table.levels:
        return table
    D = dummies(table.values, table.names, table.levels)
    D = D - w @ D
    root = np.sqrt(w)[:, None]
    numbers = [j for j, name in enumerate(table.names) if name not in table.levels]
    values = np.zeros_like(table.values)
    X = table.values[:, numbers]
    B, *_ = np.linalg.lstsq(root * D, root * (X - w @ X), rcond=None)
    values[:, numbers] = X - D @ B
    values.flags.writeable = False
    return replace(table, values=values, levels={})


@dataclass(frozen=True, eq=False)
class Returned:
    """Edges from categories: coefficients, their errors and what they explain, (d, d) each."""

    W: Matrix
    errors: Matrix
    explained: Matrix
    equations: ShiftedEquations
    w: Matrix  # (n,)

    def graph(self, result: Any, directions: Any) -> tuple[Any, Any]:
        """A graph of numbers, and what is known of its directions, with these edges."""
        known = directions.cpdag | (self.W != 0).astype(np.int8)
        return replace(result, W=result.W + self.W), directions._replace(cpdag=known)

    def noise(self, table: Table) -> tuple[ShiftedEquations, Matrix]:
        """The equations, their residuals averaging to zero, and the variances of these, (d,)."""
        mean, variance = residual_moments(self.equations, table.values, self.w)
        own = np.square(table.spread.deviation) * [name not in table.levels for name in table.names]
        shifted = self.equations.shifted(np.where(own > 0, mean, 0.0))
        return shifted, np.maximum(variance, SMALLEST_SHARE * own) * (own > 0)

    def evidence(
        self, of_numbers: tuple[Matrix | None, Matrix | None]
    ) -> tuple[Matrix | None, Matrix | None]:
        """That on the edges between numbers, and on these."""
        errors, explained = of_numbers
        if errors is None or explained is None:
            return of_numbers
        here = self.W != 0
        return np.where(here, self.errors, errors), np.where(here, self.explained, explained)


def given_back(
    table: Table, w: Matrix, equations: Equations, allowed: Mask, required: Mask, rows: float
) -> Returned:
    """Which categories shift which variables, beyond what the equations of numbers explain.

    All categories enter; the one that is worth least leaves, as long as it gains less than half
    log n for each level and log d for the choice.
    """
    D, owner, level = _levels(table)
    d = len(table.names)
    shift = np.zeros((len(owner), d))
    W, errors, explained = (np.zeros((d, d)) for _ in range(3))
    for j in range(d):
        if table.names[j] in table.levels:
            continue
        rest = table.values[:, j] - equations.variable(table.values, j)
        may = [c for c in np.unique(owner) if allowed[c, j]]
        chosen = _chosen(D, owner, rest, w, may, required[:, j], rows)
        at = np.flatnonzero(np.isin(owner, chosen))
        shift[at, j], left = _regression(D[:, at], rest, w)
        for c in chosen:
            own = np.flatnonzero(owner == c)
            W[c, j] = _strength(D, own, shift[:, j], w)
            errors[c, j] = _error(D[:, own], left, w, rows)
            without = _regression(D[:, np.setdiff1d(at, own)], rest, w)[1]
            explained[c, j] = (without - left) / max(float(table.spread.deviation[j]) ** 2, TINY)
    shifted = ShiftedEquations(equations, owner, level, shift)
    return Returned(W, errors, explained, shifted, w)


def _error(D: Matrix, left: float, w: Matrix, rows: float) -> float:
    """Of the difference of two levels; of more, of what they add on average."""
    if D.shape[1] > 1:
        return float(np.sqrt(D.shape[1] * left / rows))
    spread = float(w @ np.square(D[:, 0] - w @ D[:, 0]))
    return float(np.sqrt(left / (rows * max(spread, TINY))))


def _levels(table: Table) -> tuple[Matrix, NDArray[np.intp], NDArray[np.intp]]:
    """Dummies (n, L), and the column and the level of each."""
    places = [
        (j, k)
        for j, name in enumerate(table.names)
        for k in range(1, len(table.levels.get(name, ())))
    ]
    owner, level = np.array(places, dtype=np.intp).reshape(-1, 2).T
    return dummies(table.values, table.names, table.levels), owner, level


def _chosen(
    D: Matrix, owner: NDArray[np.intp], rest: Matrix, w: Matrix, may: list[Any], must: Mask,
    rows: float,
) -> list[int]:  # fmt: skip
    """The categories that are worth their levels."""
    kept = list(may)
    while True:
        left = _regression(D[:, np.isin(owner, kept)], rest, w)[1]
        worth = {}
        for c in kept:
            others = np.isin(owner, [k for k in kept if k != c])
            gain = 0.5 * rows * np.log(_regression(D[:, others], rest, w)[1] / left)
            price = 0.5 * np.log(max(rows, 2.0)) * (owner == c).sum() + np.log(max(len(must), 2))
            worth[c] = np.inf if must[c] else gain - price
        if not worth or min(worth.values()) > 0:
            return [int(c) for c in kept]
        kept.remove(min(worth, key=lambda c: worth[c]))


def _regression(D: Matrix, y: Matrix, w: Matrix) -> tuple[Matrix, float]:
    """Coefficients of y on D, and the variance that is left."""
    root = np.sqrt(w)
    Z, r = D - w @ D, y - w @ y
    b, *_ = np.linalg.lstsq(root[:, None] * Z, root * r, rcond=None)
    return np.asarray(b, np.float64), max(float(w @ np.square(r - Z @ b)), TINY)


def _strength(D: Matrix, at: NDArray[np.intp], shift: Matrix, w: Matrix) -> float:
    """Of two levels the difference; of more the deviation of what they add."""
    if len(at) == 1:
        return float(shift[at[0]])
    added = D[:, at] @ shift[at]
    return max(float(w @ np.square(added - w @ added)), TINY) ** 0.5
