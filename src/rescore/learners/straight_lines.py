"""What learners of straight lines share: coefficients and means, and scores from second moments."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rescore.equations import Equations, LinearEquations
from rescore.moments import Matrix, Moments, Weights, half_squared_residuals, row_weights
from rescore.protocols import Mask, Problem, State, Status
from rescore.solvers.ordered_regression import steady_inverse

if TYPE_CHECKING:
    from jax import Array

SPREAD = 0.3  # of the random coefficients at a start, in standard deviations, over √d
SMALLEST_SHARE = 1e-8  # of a variance that counts as noise rather than rounding


class StraightLines:
    """The half of the protocol that reads ``W`` (d, d) and ``mean`` (d,) of ``state.params``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> params = SimpleNamespace(W=np.array([[0.0, 2.0], [0.0, 0.0]]), mean=np.zeros(2))
    >>> problem = Problem.unconstrained(np.array([[1.0, 2.0], [1.0, 3.0]]))
    >>> StraightLines().losses(problem, State(params))
    array([[1., 0.],
           [1., 1.]])
    """

    def restart(self: Any, problem: Problem, rng: np.random.Generator) -> State:
        """The start with small random coefficients, in the units of the variables."""
        first: State = self.init(problem)
        S = problem.moments(problem.prior).covariance
        deviations = np.sqrt(np.diag(S))
        units = deviations / np.where(deviations > 0, deviations, 1.0)[:, None]
        W = SPREAD * rng.normal(size=S.shape) * units / len(S) ** 0.5
        return replace(first, params=first.params._replace(W=np.where(problem.allowed, W, 0.0)))

    def losses(self, problem: Problem, state: State) -> Matrix:
        """``(x_i − x_i W)_j²`` with W as it is before the threshold, (n, d)."""
        return problem.rows.squared_residuals(state.params.W, state.params.mean)

    def adjacency(self, state: State) -> Matrix:
        """The coefficients W, (d, d)."""
        return np.array(state.params.W)

    def equations(self, problem: Problem, state: State, W: Matrix) -> Equations:
        """Straight lines with the coefficients W, (d, d), through the mean."""
        return LinearEquations(W, state.params.mean)


class Found(NamedTuple):
    """A graph, the means its straight lines go through, and directions that it left open."""

    W: Matrix  # (d, d)
    mean: Matrix  # (d,)
    undecided: Mask | None = None  # (d, d)


def on_parents(S: Matrix, A: Mask) -> Matrix:
    """Coefficients W (d, d) of every variable on its parents in ``A`` (d, d), from moments.

    Examples
    --------
    >>> S = np.array([[5.0, 2.0], [2.0, 1.0]])
    >>> on_parents(S, np.array([[False, False], [True, False]])).round(6)
    array([[0., 0.],
           [2., 0.]])
    """
    W = np.zeros(S.shape)
    for j in np.flatnonzero(A.any(axis=0)):
        parents = np.flatnonzero(A[:, j])
        W[parents, j] = steady_inverse(S[np.ix_(parents, parents)]) @ S[parents, j]
    return W


class Regressed(StraightLines):
    """A backbone whose only step is a whole search; a subclass says how it finds its graph."""

    threshold = 0.0  # the search itself decides which edges there are

    def graph(self, problem: Problem, w: Matrix, moments: Moments) -> Mask:
        """A DAG (d, d) with all required edges and allowed ones only."""
        raise NotImplementedError

    def objective(self, problem: Problem, w: Matrix, S: Matrix, W: Matrix) -> float:
        """What is told of the graph found: ``½ tr (I−W)ᵀ S (I−W)``, half the squared residuals."""
        return half_squared_residuals(S, W)

    def init(self, problem: Problem) -> State:
        """No edges."""
        mean, S = problem.moments(problem.prior)
        return State(Found(np.zeros_like(S), mean))

    def step(self, problem: Problem, w: Weights, state: State) -> State:
        """Search on the weighted rows; it does not depend on the last graph."""
        w = row_weights(w)
        moments = problem.moments(w)
        W = on_parents(moments.covariance, self.graph(problem, w, moments))
        return self._found(problem, w, moments, Found(W, moments.mean))

    def _found(self, problem: Problem, w: Matrix, moments: Moments, found: Found) -> State:
        value = self.objective(problem, w, moments.covariance, found.W)
        return State(found, Status.CONVERGED, {"objective": value, "h": 0.0})


def least_squares(S: "Array", W: "Array") -> "tuple[Array, Array]":
    """``½ Σ_j (I−W)_jᵀ S_j (I−W)_j`` and its gradient ``−S_j (I−W)_j``, from covariances alone.

    S is one for all variables (d, d), which makes it ``½ tr (I−W)ᵀ S (I−W)``, or one for each.

    Examples
    --------
    >>> value, gradient = least_squares(np.eye(2), np.zeros((2, 2)))
    >>> float(value)
    1.0
    """
    import jax.numpy as jnp  # here, for learners of straight lines that compile nothing

    R = jnp.eye(len(S)) - W
    SR = by_column(S, R)
    return jnp.vdot(R, SR) / 2, -SR


def by_column(S: Any, R: Any) -> Any:
    """``S_j R_j`` for every column j of R (d, d); S is (d, d) for all of them or (d, d, d).

    Examples
    --------
    >>> by_column(np.array([[[1, 0], [0, 1]], [[2, 0], [0, 3]]]), np.ones((2, 2)))
    array([[1., 2.],
           [1., 3.]])
    """
    return S @ R if S.ndim == 2 else (S @ R.T[:, :, None])[:, :, 0].T


def own_variances(S: Any) -> Any:
    """The variance (d,) of every variable: of one covariance (d, d), or of its own in (d, d, d).

    Examples
    --------
    >>> own_variances(np.array([[[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [0.0, 4.0]]]))
    array([1., 4.])
    """
    return S.diagonal() if S.ndim == 2 else S.diagonal(axis1=1, axis2=2).diagonal()


def regression_moments(problem: Problem, w: Matrix) -> Moments:
    """The mean (d,) and the covariance (d, d) of weighted rows; of cells one for each variable.

    Cells have the mean weight 1/n, and as precisions that is ruled by the variable of least noise.
    Here they count relative to the geometric mean of the variables' weights: residuals are then in
    units of the geometric mean of the noise, which is what `noise_variance` measures.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.array([[1.0, 3.0], [-1.0, -3.0]]))
    >>> regression_moments(problem, np.array([[0.8, 0.2], [0.8, 0.2]])).covariance
    array([[[ 2. ,  6. ],
            [ 6. , 18. ]],
    <BLANKLINE>
           [[ 0.5,  1.5],
            [ 1.5,  4.5]]])
    """
    if w.ndim == 1:
        return problem.moments(w)
    typical = np.exp(np.log(_column_weights(w)).mean())
    return Moments(problem.moments(w).mean, problem.rows.cell_moments(w).covariance / typical)


def _column_weights(w: Matrix) -> Matrix:
    """What all cells of each variable count together, (d,); where none does, as the others do."""
    weights = w.sum(axis=0)
    told = weights > 0
    return np.where(told, weights, np.exp(np.log(weights[told]).mean()))


def typical_variance(problem: Problem) -> float:
    """The geometric mean of the positive variances of variables with a possible edge, else one.

    Examples
    --------
    >>> round(typical_variance(Problem.unconstrained(np.array([[1.0, 4.0], [-1.0, -4.0]]))), 6)
    4.0
    """
    variances = np.diag(_connected_covariance(problem))
    return float(np.exp(np.log(variances).mean())) if variances.size else 1.0


def noise_variance(problem: Problem) -> float:
    """``det(S)^{1/d}``: whatever the DAG, the geometric mean of its noise variances.

    ``S = (I−W)⁻ᵀ Ω (I−W)⁻¹`` and det(I−W) = 1 for a DAG, so that det S = det Ω.  Eigenvalues of
    the correlation matrix that are rounding, as among collinear variables, are floored.

    Examples
    --------
    >>> x, e = np.random.default_rng(0).normal(size=(2, 1000))
    >>> round(noise_variance(Problem.unconstrained(np.c_[3 * x, 100 * x + 3 * e])), 1)
    9.0
    """
    S = _connected_covariance(problem)
    if not S.size:
        return 1.0
    deviations = np.sqrt(np.diag(S))
    shares = np.linalg.eigvalsh(S / np.outer(deviations, deviations))
    logs = np.log(np.maximum(shares, SMALLEST_SHARE))
    return float(np.exp(logs.mean() + 2 * np.log(deviations).mean()))


def _connected_covariance(problem: Problem) -> Matrix:
    """The covariance of the variables that vary and may have an edge."""
    S = problem.moments(problem.prior).covariance
    used = (problem.allowed.any(axis=0) | problem.allowed.any(axis=1)) & (np.diag(S) > 0)
    return S[np.ix_(used, used)]


def penalties(problem: Problem, lambda1: float, w: Matrix | None = None) -> Matrix:
    """λ for every edge that may but need not be there, otherwise zero; (d, d).

    λ is a price for coefficients in a table whose variables have noise of one size.  Cells (n, d)
    are precisions, and tell how the noise of the variables compares: ``σ_j ∝ 1/√Σ_i w_ij``.  In
    units of the noise the coefficient of i → j is ``W_ij σ_i/σ_j``, and that is what pays.

    Examples
    --------
    >>> problem = Problem.unconstrained(np.eye(2))
    >>> penalties(problem, 0.1)
    array([[0. , 0.1],
           [0.1, 0. ]])
    >>> penalties(problem, 0.1, np.array([[0.8, 0.2], [0.8, 0.2]]))
    array([[0.  , 0.05],
           [0.2 , 0.  ]])
    """
    free = np.where(problem.allowed & ~problem.required, lambda1, 0.0)
    if w is None or w.ndim == 1:
        return free
    deviations = 1 / np.sqrt(_column_weights(w))
    return free * np.outer(deviations, 1 / deviations)
