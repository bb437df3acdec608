"""Learners without a penalty on coefficients, for which the scales of the columns are no matter."""

from dataclasses import replace
from typing import Any, Self

from rescore.estimators.learner import GraphLearner
from rescore.fitting import SCALE_FINDINGS, Fitted


class Unpenalised(GraphLearner):
    """A learner that says nothing of what matters to penalised ones only."""

    silenced = frozenset(SCALE_FINDINGS)

    def _learn(self, *data: Any, **options: Any) -> Fitted:
        return self._quietened(super()._learn(*data, **options))

    def _store(self, X: Any, fitted: Fitted) -> Self:
        return super()._store(X, self._quietened(fitted))

    def _quietened(self, fitted: Fitted) -> Fitted:
        told = tuple(finding for finding in fitted.findings if finding.code not in self.silenced)
        return replace(fitted, findings=told)
