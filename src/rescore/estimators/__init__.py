"""The learners as scikit-learn estimators, one file each."""

from rescore.estimators.base import StructureLearner
from rescore.estimators.baselines import Empty, Random, SortNRegress
from rescore.estimators.cdnod import CDNOD
from rescore.estimators.custom import Custom
from rescore.estimators.dagma import Dagma
from rescore.estimators.dicd import DICD, DICDMLP
from rescore.estimators.ges import GES
from rescore.estimators.golem import Golem
from rescore.estimators.gran_dag import GranDAG
from rescore.estimators.learner import GraphLearner
from rescore.estimators.linear import Linear
from rescore.estimators.notears import Notears
from rescore.estimators.notears_mlp import NotearsMLP
from rescore.estimators.rescored import ReScore

__all__ = [
    "CDNOD",
    "DICD",
    "DICDMLP",
    "GES",
    "Custom",
    "Dagma",
    "Empty",
    "Golem",
    "GranDAG",
    "GraphLearner",
    "Linear",
    "Notears",
    "NotearsMLP",
    "Random",
    "ReScore",
    "SortNRegress",
    "StructureLearner",
]
