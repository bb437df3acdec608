"""Everything that fits a model more than once, or looks at a table before any fit.

Here is what all studies share: the same model again, on other rows, weights or units.
"""

import warnings
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rescore.moments import Matrix
from rescore.protocols import Status
from rescore.tables.convert import DataWarning
from rescore.tables.opening import STRICT, Opening, opened
from rescore.tables.table import row_labels
from rescore.weight_box import prior_weights

Positions = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Given:
    """The rows of a study, their weights and groups: checked before the first fit."""

    X: pd.DataFrame  # (n, d)
    sample_weight: Matrix | None = None  # (n,)
    groups: NDArray[Any] | None = None  # (n,), labels

    @classmethod
    def of(
        cls, X: Any, sample_weight: Any = None, groups: Any = None, opening: Opening = STRICT
    ) -> "Given":
        """What the caller of a study gave, or the sentence that refuses it.

        Examples
        --------
        >>> Given.of([[1, 2], [3, 4]], sample_weight=2).sample_weight
        array([2., 2.])
        """
        table, sample_weight = opening.of(X, sample_weight, groups)
        n = len(table.values)
        if sample_weight is not None:
            prior_weights(sample_weight, n)
            sample_weight = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n)
        labels = None if groups is None else row_labels(groups, table.index)
        return cls(table.frame.copy(), sample_weight, labels)

    @property
    def prior(self) -> Matrix:
        """The weights as a probability vector, (n,)."""
        return prior_weights(self.sample_weight, len(self.X))

    @property
    def values(self) -> Matrix:
        """The numbers alone, (n, d); of categories, those of their levels."""
        return opened(self.X).values

    def in_units(self, factors: Matrix) -> "Given":
        """The same rows with every column but categories multiplied by its factor, (d,).

        Examples
        --------
        >>> Given.of([[1, 2], [3, 4]]).in_units(np.array([10.0, 1.0])).values
        array([[10.,  2.],
               [30.,  4.]])
        """
        scaled = self.X.copy()
        for name, factor in zip(scaled.columns, factors, strict=True):
            if not isinstance(scaled[name].dtype, pd.CategoricalDtype):
                scaled[name] = scaled[name] * factor
        return replace(self, X=scaled)

    def part(self, rows: Positions) -> "Given":
        """These rows, numbered anew; one that is named twice is there twice.

        Examples
        --------
        >>> Given.of([[1], [3]], sample_weight=[5, 7]).part(np.array([1, 1])).sample_weight
        array([7., 7.])
        """
        weight, groups = (
            None if each is None else each[rows] for each in (self.sample_weight, self.groups)
        )
        return Given(self.X.iloc[rows].reset_index(drop=True), weight, groups)


def opening_of(model: Any) -> Opening:
    """What the model does to a table before a fit; a learner of one's own, nothing.

    Examples
    --------
    >>> from rescore import Linear, ReScore
    >>> opening_of(ReScore(Linear(missing="drop"))).missing
    'drop'
    """
    asked = getattr(getattr(model, "plain", model), "opening", None)
    return STRICT if asked is None else asked()


def check_groups(model: Any, groups: Any) -> None:
    """Groups are refused if the model does not need them and missed if it does.

    Examples
    --------
    >>> from rescore import Linear
    >>> check_groups(Linear(), ["u", "v"])
    Traceback (most recent call last):
        ...
    ValueError: Linear learns without groups; leave them out.
    """
    name = type(model).__name__
    if groups is None and model.needs_groups:
        raise ValueError(f"{name} needs the group of each row: groups=...")
    if groups is not None and not model.needs_groups:
        raise ValueError(f"{name} learns without groups; leave them out.")


def refit(model: Any, given: Given) -> Any:
    """A clone of the model, fitted; the model stays as it is.

    What `fit` would warn of is not said, because a study would say it a hundred times: it counts
    the fits that did not converge instead.

    Examples
    --------
    >>> from rescore import Linear
    >>> refit(Linear(), Given.of(np.eye(3))).status_.name
    'CONVERGED'
    """
    known = {"groups": given.groups} if given.groups is not None and model.needs_groups else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).fit(given.X, sample_weight=given.sample_weight, **known)


def converged(model: Any) -> bool:
    """Whether the fit of a model came to its end."""
    return model.status_ is Status.CONVERGED


class Refits:
    """Many refits, in as many processes as wanted, and counted.

    Examples
    --------
    >>> list(Refits(n_jobs=1, on_done=print).made(abs, [(-3,), (4,)]))
    1
    2
    [3, 4]
    """

    def __init__(self, n_jobs: int | None, on_done: Callable[[int], Any] | None) -> None:
        self.n_jobs, self.on_done, self.done = n_jobs, on_done, 0

    def made(
        self, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]
    ) -> Generator[Any, None, None]:
        """What the function returns for each of the arguments, in their order."""
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        results = parallel(delayed(function)(*each) for each in arguments)
        try:
            yield from self.counted(results)
        finally:  # let other processes go; fits that nobody waits for are no cause for a warning
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results.close()

    def counted(self, results: Iterable[Any]) -> Generator[Any, None, None]:
        """The results, each told of once the caller has it, so that Ctrl-C loses none."""
        for result in results:
            yield result
            self.done += 1
            if self.on_done is not None:
                self.on_done(self.done)
