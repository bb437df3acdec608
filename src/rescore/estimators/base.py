"""What every estimator keeps of a fit, and what can be asked of it then."""

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rescore.checking import check_integer, check_number
from rescore.diagnosis import diagnose
from rescore.equations import log_likelihoods, partial_dependence
from rescore.fitting import Fitted
from rescore.graph.io import to_networkx
from rescore.protocols import Status
from rescore.row_weights import prior_weights
from rescore.sampling import draw
from rescore.tables.matching import rows_like
from rescore.tables.table import DataWarning, Table
from rescore.text import listing


class StructureLearner(BaseEstimator):
    """What all estimators share: the learned attributes, and what can be asked of them.

    Attributes
    ----------
    adjacency_matrix_ : DataFrame (d, d)
        Coefficients; ``.loc[a, b] != 0`` means a → b.  Always a DAG.
    causal_graph_ : networkx.DiGraph
        The same graph, ``weight`` on its edges.
    sample_weight_ : Series (n,)
        The row weights of the last step, on the index of X; they sum to one.
    losses_ : DataFrame (n, d)
        Squared residual of every row and variable, before the threshold.
    row_losses_ : Series (n,)
        How badly each row fits: its squared residuals, each divided by the variable's mean.
    history_ : DataFrame
        One row per outer step: objective, h, rho, edges, effective_rows, ceiling_share.
    status_ : Status
        How the fit ended, as a sentence.
    diagnostics_ : dict
        Convergence, scales, condition number, cut edges, heaviest rows, warnings as data.
    equations_ : Equations
        Each variable as a function of its parents in the graph, in the units of X.
    noise_variance_ : Series (d,)
        The weighted variance of what the equations leave unexplained.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, where X had some.
    """

    def predict(self, X: Any) -> pd.DataFrame:
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

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
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

    def effect(self, X: Any, cause: Any, effect: Any, *, points: int = 50) -> pd.Series:
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
        curve = partial_dependence(self.equations_, table.values, i, j, values)
        return pd.Series(curve, pd.Index(values, name=cause), name=effect)

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
        check_is_fitted(self, "equations_")
        fixed = {self._position(name): check_number(f"do[{name!r}]", v) for name, v in do.items()}
        rng = np.random.default_rng(check_integer("random_state", random_state, at_least=0))
        W = self.adjacency_matrix_
        variance = np.asarray(self.noise_variance_, dtype=np.float64)
        count = check_integer("n", n, at_least=1)
        X = draw(self.equations_, W.to_numpy(), variance, count, rng, fixed)
        return pd.DataFrame(X, columns=W.columns)

    def _rows(self, X: Any) -> Table:
        check_is_fitted(self, "equations_")
        return rows_like(X, tuple(self.adjacency_matrix_.columns), type(self).__name__)

    def _position(self, name: Any) -> int:
        names = list(self.adjacency_matrix_.columns)
        if name not in names:
            raise ValueError(
                f"{listing([name])} is not among the variables of the fit: {listing(names)}."
            )
        return names.index(name)

    def _store(self, X: Any, fitted: Fitted) -> Self:
        table, result = fitted.table, fitted.result
        names = pd.Index(list(table.names), tupleize_cols=False)
        self.n_features_in_ = len(names)
        self._store_feature_names(X, table.names)
        self.adjacency_matrix_ = pd.DataFrame(result.W, index=names, columns=names)
        self.causal_graph_ = to_networkx(result.W, table.names)
        self.sample_weight_ = pd.Series(result.sample_weight, index=table.index, name="weight")
        self.losses_ = pd.DataFrame(result.losses, index=table.index, columns=names, copy=False)
        self.row_losses_ = pd.Series(fitted.row_losses, index=table.index, name="loss")
        self.history_ = pd.DataFrame(list(result.history)).set_index("step")
        self.equations_ = fitted.equations
        self.noise_variance_ = pd.Series(fitted.noise_variance, index=names, name="variance")
        self.status_ = result.status
        self.diagnostics_ = diagnose(fitted)
        if result.status is Status.INTERRUPTED:  # what was reached is kept, and the caller stops
            raise KeyboardInterrupt(result.status.value)
        self._warn(fitted)
        return self

    def _store_feature_names(self, X: Any, names: tuple[Any, ...]) -> None:
        named = hasattr(X, "columns") or hasattr(X, "column_names")
        if named and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # left by an earlier fit
            del self.feature_names_in_

    def _warn(self, fitted: Fitted) -> None:
        for finding in fitted.findings:
            warnings.warn(finding.message, DataWarning, stacklevel=4)
        if fitted.result.status is not Status.CONVERGED:
            warnings.warn(fitted.result.status.value, ConvergenceWarning, stacklevel=4)
