"""What a fitted graph answers: predictions, likelihoods, effects, new rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rescore.equations import Equations, draw, log_likelihoods, partial_dependence
from rescore.learners.parameters import check_fitted
from rescore.learners.shown import Shown
from rescore.tables.opening import number_of, numbered
from rescore.tables.table import Table, TableLike, rows_like
from rescore.text import listing
from rescore.validation import check_integer, check_number
from rescore.weight_box import prior_weights


class Answers(Shown):
    """What can be asked of an estimator once it is fitted."""

    adjacency_matrix_: pd.DataFrame
    categories_: dict[Any, tuple[Any, ...]]
    equations_: Equations
    noise_variance_: pd.Series

    def predict(self, X: "TableLike") -> pd.DataFrame:
        """Each variable of each row of X, from its parents there; one without parents, its mean.

        Examples
        --------
        >>> from rescore import Linear, simulate
        >>> X = simulate(nodes=3, degree=1, random_state=100).X
        >>> Linear().fit(X).predict(X.head(2)).shape
        (2, 3)
        """
        table = self._rows(X)
        names = self.adjacency_matrix_.columns
        return pd.DataFrame(self.equations_.predict(table.values), table.index, names)

    def score(
        self, X: "TableLike", y: object = None, sample_weight: "ArrayLike | None" = None
    ) -> float:
        """The mean over rows of ``Σ_j log N(x_j; x̂_j, σ_j²)``, best on rows not seen by the fit.

        ``x̂`` is what `predict` says and σ² is ``noise_variance_``; y is ignored, and so are
        columns that were constant in the fit.

        Examples
        --------
        >>> from rescore import Linear, simulate
        >>> X = simulate(nodes=3, degree=1, random_state=100).X
        >>> print(f"{Linear().fit(X[:1000]).score(X[1000:]):.0f}")
        -4
        """
        table = self._rows(X)
        w = prior_weights(sample_weight, len(table.values))
        noise = np.asarray(self.noise_variance_, dtype=np.float64)
        rows = log_likelihoods(self.equations_, noise, table.values)
        return float(w[w > 0] @ rows[w > 0])

    def effect(self, X: "TableLike", cause: Any, effect: Any, *, points: int = 50) -> pd.Series:
        """How ``effect`` depends on ``cause`` along their edge (partial dependence).

        The mean of what `predict` says of ``effect`` over the rows of X, with ``cause`` set to
        each of so many values between its least and its largest.  Without an edge it is constant.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from rescore import Linear
        >>> rain = np.random.default_rng(0).normal(size=500)
        >>> X = pd.DataFrame({"rain": rain, "grass": 2 * rain + rain[::-1]})
        >>> curve = Linear().fit(X).effect(X, "rain", "grass", points=3)
        >>> bool(np.allclose(np.diff(curve) / np.diff(curve.index), 2, atol=0.2))
        True
        """
        table = self._rows(X)
        i, j = (self._position(name) for name in (cause, effect))
        least, largest = table.values[:, i].min(), table.values[:, i].max()
        values = np.linspace(least, largest, check_integer("points", points, at_least=2))
        levels = self.categories_.get(cause)
        if levels is not None:
            values = np.arange(len(levels), dtype=np.float64)
        curve = partial_dependence(self.equations_, table.values, i, j, values)
        return pd.Series(curve, pd.Index(levels or values, name=cause), name=effect)

    def sample(self, n: int, *, random_state: int = 0) -> pd.DataFrame:
        """So many new rows from the fitted equations with Gaussian noise of ``noise_variance_``.

        Examples
        --------
        >>> from rescore import Linear, simulate
        >>> model = Linear().fit(simulate(nodes=3, degree=1, random_state=100).X)
        >>> model.sample(5).shape
        (5, 3)
        """
        return self.intervene({}, n, random_state=random_state)

    def intervene(
        self, do: Mapping[Any, float], n: int = 1000, *, random_state: int = 0
    ) -> pd.DataFrame:
        """New rows as `sample` gives them, with the variables in ``do`` set to their values.

        The same ``random_state`` gives the same individuals whatever is done to them.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from rescore import Linear
        >>> rain = np.random.default_rng(0).normal(size=500)
        >>> X = pd.DataFrame({"rain": rain, "grass": 2 * rain + rain[::-1]})
        >>> model = Linear().fit(X)
        >>> dry, wet = (model.intervene({"rain": value})["grass"].mean() for value in (0, 1))
        >>> bool(1.8 < wet - dry < 2.2), bool(model.intervene({"grass": 9})["rain"].mean() < 1)
        (True, True)
        """
        check_fitted(self)
        open_ = [name for name in self.categories_ if name not in do]
        if open_:
            raise ValueError(
                f"New rows need a level of the categories {listing(open_)}, which the model does "
                f"not draw: intervene({{{open_[0]!r}: {self.categories_[open_[0]][0]!r}}}, ...)."
            )
        fixed = {self._position(name): self._set(name, value) for name, value in do.items()}
        rng = np.random.default_rng(check_integer("random_state", random_state, at_least=0))
        W = self.adjacency_matrix_
        variance = np.asarray(self.noise_variance_, dtype=np.float64)
        count = check_integer("n", n, at_least=1)
        X = pd.DataFrame(
            draw(self.equations_, W.to_numpy(), variance, count, rng, fixed), columns=W.columns
        )
        for name in self.categories_:
            X[name] = do[name]
        return X

    def _rows(self, X: Any) -> Table:
        check_fitted(self)
        coded = numbered(X, self.categories_) if self.categories_ else X
        return rows_like(coded, tuple(self.adjacency_matrix_.columns), type(self).__name__)

    def _set(self, name: Any, value: Any) -> float:
        """The value of a variable as a number: of a category, which of its levels it is."""
        levels = self.categories_.get(name)
        if levels is None:
            return check_number(f"do[{name!r}]", value)
        return number_of(name, value, levels)

    def _position(self, name: Any) -> int:
        names = list(self.adjacency_matrix_.columns)
        if name not in names:
            raise ValueError(
                f"{listing([name])} is not among the variables of the fit: {listing(names)}."
            )
        return names.index(name)
