"""The learners as scikit-learn estimators, one file each."""

from rescore.estimators.base import GraphLearner, StructureLearner
from rescore.estimators.dagma import Dagma
from rescore.estimators.golem import Golem
from rescore.estimators.linear import Linear
from rescore.estimators.notears import Notears
from rescore.estimators.rescored import ReScore

__all__ = ["Dagma", "Golem", "GraphLearner", "Linear", "Notears", "ReScore", "StructureLearner"]
