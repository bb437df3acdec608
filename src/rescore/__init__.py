"""Causal graphs from tables, with adaptive row weights (ReScore, ICLR 2023).

>>> import rescore as rs
>>> sim = rs.simulate(graph="ER", degree=1, nodes=5, samples=500, random_state=0)
>>> model = rs.ReScore(tau=0.5).fit(sim.X)
>>> rs.evaluate(sim.truth, model).shd
0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rescore.learners import LEARNERS, load_learner

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rescore.data import Dataset as Dataset
    from rescore.data import load_sachs as load_sachs
    from rescore.data.simulate import simulate as simulate
    from rescore.exchange import equations_json as equations_json
    from rescore.exchange import to_dowhy as to_dowhy
    from rescore.exchange import to_gcm as to_gcm
    from rescore.exchange.saving import load as load
    from rescore.exchange.saving import save as save
    from rescore.known_edges import Knowledge as Knowledge
    from rescore.learners.custom import Custom as Custom
    from rescore.learners.rescore import ReScore as ReScore
    from rescore.metrics import evaluate as evaluate
    from rescore.pruning import select_neighbours as select_neighbours
    from rescore.pruning.cam import cam_prune as cam_prune
    from rescore.pruning.cam import term_p_values as term_p_values
    from rescore.reports.folder import report as report
    from rescore.scanning.passes import write_weights as write_weights
    from rescore.scanning.sources import scan as scan
    from rescore.studies.advise import Advice as Advice
    from rescore.studies.advise import advise as advise
    from rescore.studies.bootstrap import bootstrap as bootstrap
    from rescore.studies.check import Checkup as Checkup
    from rescore.studies.check import check as check
    from rescore.studies.compare import Comparison as Comparison
    from rescore.studies.compare import compare as compare
    from rescore.studies.edge_shares import Stability as Stability
    from rescore.studies.units import Units as Units
    from rescore.studies.units import units as units
    from rescore.verdicts import edges as edges

# Where each public name lives, but for the learners, which have a list of their own.  Loaded on
# first use, so that importing rescore costs nothing.
_HOMES = {
    "Advice": "rescore.studies.advise",
    "Checkup": "rescore.studies.check",
    "Comparison": "rescore.studies.compare",
    "Custom": "rescore.learners.custom",
    "Dataset": "rescore.data",
    "Knowledge": "rescore.known_edges",
    "ReScore": "rescore.learners.rescore",
    "Stability": "rescore.studies.bootstrap",
    "Units": "rescore.studies.units",
    "advise": "rescore.studies.advise",
    "bootstrap": "rescore.studies.bootstrap",
    "cam_prune": "rescore.pruning.cam",
    "check": "rescore.studies.check",
    "compare": "rescore.studies.compare",
    "edges": "rescore.verdicts",
    "equations_json": "rescore.exchange",
    "evaluate": "rescore.metrics",
    "load": "rescore.exchange.saving",
    "load_sachs": "rescore.data",
    "report": "rescore.reports.folder",
    "save": "rescore.exchange.saving",
    "scan": "rescore.scanning.sources",
    "select_neighbours": "rescore.pruning",
    "simulate": "rescore.data.simulate",
    "term_p_values": "rescore.pruning.cam",
    "to_dowhy": "rescore.exchange",
    "to_gcm": "rescore.exchange",
    "units": "rescore.studies.units",
    "write_weights": "rescore.scanning.passes",
}

__all__ = sorted([*_HOMES, *LEARNERS])


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in LEARNERS:
        return load_learner(name)
    raise AttributeError(f"module 'rescore' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*_HOMES, *LEARNERS, "__version__"]
