"""What scikit-learn asks of an estimator, without importing it: that alone takes half a second.

Its `clone`, its searches over parameters and its `check_estimator` ask for these methods, and not
for a base class.
"""

import inspect
from collections import defaultdict
from typing import Any, Self

__all__ = ["Parametrised", "check_fitted"]


class Parametrised:
    """An estimator that keeps the parameters of its constructor under their own names.

    Examples
    --------
    >>> from rescore import Linear, ReScore
    >>> ReScore(Linear()).set_params(tau=0.5, estimator__threshold=0.1)
    ReScore(estimator=Linear(threshold=0.1), tau=0.5)
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; ``deep``: also those of an estimator inside, as outer__inner."""
        own = {name: getattr(self, name) for name in self._get_param_names()}
        parts = {name: part for name, part in own.items() if deep and _has_parameters(part)}
        return own | {
            f"{name}__{inner}": value
            for name, part in parts.items()
            for inner, value in part.get_params().items()
        }

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; ``outer__inner`` sets one of an estimator inside."""
        inside: dict[str, dict[str, Any]] = defaultdict(dict)
        known = self._get_param_names()
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}."
                )
            if inner:
                inside[name][inner] = value
            else:
                setattr(self, name, value)
        for name, values in inside.items():
            getattr(self, name).set_params(**values)
        return self

    def __repr__(self) -> str:
        """The call that makes it, without the parameters that are at their defaults."""
        usual = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(usual[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def _repr_html_(self) -> str:
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))


def _has_parameters(part: Any) -> bool:
    return hasattr(part, "get_params") and not isinstance(part, type)


def check_fitted(model: Any) -> None:
    """Raise scikit-learn's `NotFittedError` unless the model has been fitted.

    Examples
    --------
    >>> from rescore import Linear
    >>> check_fitted(Linear())
    Traceback (most recent call last):
        ...
    sklearn.exceptions.NotFittedError: This Linear instance is not fitted yet...
    """
    if not hasattr(model, "adjacency_matrix_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model, "adjacency_matrix_")
