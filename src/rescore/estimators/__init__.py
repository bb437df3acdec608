"""The learners as scikit-learn estimators, one file each."""

from rescore.estimators.base import GraphLearner, StructureLearner
from rescore.estimators.notears import Notears
from rescore.estimators.rescored import ReScore

__all__ = ["GraphLearner", "Notears", "ReScore", "StructureLearner"]
