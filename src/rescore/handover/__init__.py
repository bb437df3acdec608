"""A fitted model for other programmes: its equations as JSON, and models of DoWhy.

The graph alone is handed over by `rescore.graph.io`.
"""

from rescore.handover.dowhy_models import to_dowhy, to_gcm
from rescore.handover.network_json import equations_json

__all__ = ["equations_json", "to_dowhy", "to_gcm"]
