"""Real data with a known graph, bundled with the library."""

from rescore.datasets.sachs import load_sachs

__all__ = ["load_sachs"]
