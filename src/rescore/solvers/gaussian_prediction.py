"""What a Gaussian process says about rows: those it was fitted to, left out, and others."""

from typing import NamedTuple

import numpy as np

from rescore.moments import Matrix
from rescore.solvers.gaussian_covariance import Target, half_inverse, kernel, lower_factor


class Predictor(NamedTuple):
    """What predicts from the rows of a fit: ``C⁻¹ y`` (n,), ``C⁻¹`` (n, n) and its diagonal (n,).

    The residual of row a, predicted from all others, is ``(C⁻¹y)_a / (C⁻¹)_aa``, and its variance
    ``1 / (C⁻¹)_aa``, of which only the part ``v / precision`` is noise.
    """

    theta: Matrix
    target: Target
    dual: Matrix
    inverse: Matrix

    def left_out(self) -> Matrix:
        """What each row leaves when it is predicted from the others, (n,)."""
        return self.dual / np.diag(self.inverse)

    def level(self) -> float:
        """That of the groups' rows together, which the function does not hold."""
        P = self.target.groups
        return 0.0 if P is None else float((P @ (P.T @ self.dual)).mean())

    def noises(self) -> Matrix:
        """The same shrunk to the deviation of the noise: a function less certain is no noise."""
        size = np.exp(self.theta[-1]) * self.target.noise
        return self.left_out() * np.sqrt(np.minimum(size * np.diag(self.inverse), 1.0))

    def noises_of(self, other: Target) -> Matrix:
        """That of other rows, (n,)."""
        R = kernel(self.theta, other.X, self.target.X)
        known = np.full(len(R), np.exp(self.theta[-2]))
        if other.groups is not None and self.target.groups is not None:
            R += other.groups @ self.target.groups.T
            known += np.square(other.groups).sum(axis=1)
        unsure = known - ((R @ self.inverse) * R).sum(axis=1)
        size = np.exp(self.theta[-1]) * other.noise
        return (other.y - R @ self.dual) * np.sqrt(size / (size + np.maximum(unsure, 0.0)))


def predictor(theta: Matrix, target: Target) -> Predictor:
    """In double precision.

    Examples
    --------
    >>> target = Target(np.array([[0.0], [9.0]]), np.array([1.0, -1.0]), np.ones(2))
    >>> predictor(np.array([1.0, 0.0, 0.0]), target).left_out().round(3)
    array([ 1., -1.])
    """
    R = kernel(theta, target.X, target.X, np.float64)
    for boost in (0.0, 1e-4, 1e-2, 1.0):  # rows nearly repeated with hardly any noise
        factor, _ = lower_factor(R, theta, target.noise + boost, target.groups)
        if factor is not None:
            break
    half = half_inverse(factor)
    inverse = half + half.T
    return Predictor(theta, target, inverse @ target.y.astype(np.float64), inverse)
