"""Causal graphs from tables, with adaptive row weights (ReScore, ICLR 2023).

>>> import rescore as rs
>>> sim = rs.simulate(graph="ER", degree=1, nodes=5, samples=500, random_state=0)
>>> model = rs.ReScore(rs.Notears(), tau=0.5).fit(sim.X)
>>> rs.evaluate(sim.truth, model).shd
0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rescore.advice import Advice as Advice
    from rescore.advice import advise as advise
    from rescore.checkup import Checkup as Checkup
    from rescore.checkup import check as check
    from rescore.comparison import Comparison as Comparison
    from rescore.comparison import compare as compare
    from rescore.dataset import Dataset as Dataset
    from rescore.datasets.sachs import load_sachs as load_sachs
    from rescore.estimators import CDNOD as CDNOD
    from rescore.estimators import DICD as DICD
    from rescore.estimators import DICDMLP as DICDMLP
    from rescore.estimators import GES as GES
    from rescore.estimators import Custom as Custom
    from rescore.estimators import Dagma as Dagma
    from rescore.estimators import Empty as Empty
    from rescore.estimators import Golem as Golem
    from rescore.estimators import GranDAG as GranDAG
    from rescore.estimators import Linear as Linear
    from rescore.estimators import Notears as Notears
    from rescore.estimators import NotearsMLP as NotearsMLP
    from rescore.estimators import Random as Random
    from rescore.estimators import ReScore as ReScore
    from rescore.estimators import SortNRegress as SortNRegress
    from rescore.handover import equations_json as equations_json
    from rescore.handover import to_dowhy as to_dowhy
    from rescore.handover import to_gcm as to_gcm
    from rescore.knowledge import Knowledge as Knowledge
    from rescore.metrics import evaluate as evaluate
    from rescore.neighbours import select_neighbours as select_neighbours
    from rescore.pruning import cam_prune as cam_prune
    from rescore.pruning import term_p_values as term_p_values
    from rescore.saving import load as load
    from rescore.saving import save as save
    from rescore.simulation import simulate as simulate
    from rescore.stability import Stability as Stability
    from rescore.stability import bootstrap as bootstrap
    from rescore.units_changed import Units as Units
    from rescore.units_changed import units as units

# Where each public name lives.  Loaded on first use, so that importing rescore costs nothing.
_HOMES = {
    "Advice": "rescore.advice",
    "CDNOD": "rescore.estimators",
    "Checkup": "rescore.checkup",
    "Comparison": "rescore.comparison",
    "Custom": "rescore.estimators",
    "DICD": "rescore.estimators",
    "DICDMLP": "rescore.estimators",
    "Dagma": "rescore.estimators",
    "Dataset": "rescore.dataset",
    "Empty": "rescore.estimators",
    "GES": "rescore.estimators",
    "Golem": "rescore.estimators",
    "GranDAG": "rescore.estimators",
    "Knowledge": "rescore.knowledge",
    "Linear": "rescore.estimators",
    "Notears": "rescore.estimators",
    "NotearsMLP": "rescore.estimators",
    "Random": "rescore.estimators",
    "ReScore": "rescore.estimators",
    "SortNRegress": "rescore.estimators",
    "Stability": "rescore.stability",
    "Units": "rescore.units_changed",
    "advise": "rescore.advice",
    "bootstrap": "rescore.stability",
    "cam_prune": "rescore.pruning",
    "check": "rescore.checkup",
    "compare": "rescore.comparison",
    "equations_json": "rescore.handover",
    "evaluate": "rescore.metrics",
    "load": "rescore.saving",
    "load_sachs": "rescore.datasets.sachs",
    "save": "rescore.saving",
    "select_neighbours": "rescore.neighbours",
    "simulate": "rescore.simulation",
    "term_p_values": "rescore.pruning",
    "to_dowhy": "rescore.handover",
    "to_gcm": "rescore.handover",
    "units": "rescore.units_changed",
}

__all__ = [
    "CDNOD",
    "DICD",
    "DICDMLP",
    "GES",
    "Advice",
    "Checkup",
    "Comparison",
    "Custom",
    "Dagma",
    "Dataset",
    "Empty",
    "Golem",
    "GranDAG",
    "Knowledge",
    "Linear",
    "Notears",
    "NotearsMLP",
    "Random",
    "ReScore",
    "SortNRegress",
    "Stability",
    "Units",
    "advise",
    "bootstrap",
    "cam_prune",
    "check",
    "compare",
    "equations_json",
    "evaluate",
    "load",
    "load_sachs",
    "save",
    "select_neighbours",
    "simulate",
    "term_p_values",
    "to_dowhy",
    "to_gcm",
    "units",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rescore' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
