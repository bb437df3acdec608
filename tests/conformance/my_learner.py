"""A whole learner, as another package would bring it; test_adding_a_learner.py copies it there."""

from dataclasses import dataclass

import numpy as np

from rescore.graph.dag import cut_to_dag
from rescore.learners.base import LinearLearner
from rescore.learners.straight_lines import Regressed


@dataclass(frozen=True)
class MyBackbone(Regressed):
    its_option: int = 1

    def graph(self, problem, w, moments):
        S = moments.covariance
        variance = np.maximum(np.diag(S), np.finfo(float).tiny)
        wider = problem.allowed & (variance[:, None] < variance)
        r2 = np.where(wider, S**2 / np.outer(variance, variance), 0.0)
        weakest = np.sort(r2, axis=0)[-self.its_option]
        strength = np.where((r2 >= np.maximum(weakest, 0.1)) | problem.required, 1 + r2, 0.0)
        return cut_to_dag(strength, keep=problem.required)[0] != 0


@dataclass(eq=False, repr=False)
class MyLearner(LinearLearner):
    """Each variable on the strongest of its correlates that vary less than it."""

    one_step = True

    its_option: int = 1

    def backbone(self):
        return self._filled(MyBackbone)
