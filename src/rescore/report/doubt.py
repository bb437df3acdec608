"""How sure the edges of a run are, edge by edge."""

from typing import Any

import numpy as np

from rescore.handover.network_json import text_names
from rescore.report.run import Run

__all__ = ["doubts"]

NOTEWORTHY = 0.1  # share of resamples from which an edge is listed that the graph has not


def doubts(run: Run, shares: Any) -> list[dict[str, Any]]:
    """The edges of the graph, and others found now and then, the least sure first.

    ``shares`` (d, d) are those of the resamples with each edge.  Each line has the ``cause``, the
    ``effect``, the ``probability`` of the edge, the probability that the two are ``adjacent``, that
    of this ``direction`` if they are, and whether the edge is ``in_graph``.

    Examples
    --------
    >>> from rescore import Notears
    >>> run = Run(Notears(required=[("x0", "x1")]).fit([[0.0, 0.0], [1.0, 2.0], [2.0, 3.0]]))
    >>> (line,) = doubts(run, np.array([[0.0, 0.75], [0.05, 0.0]]))
    >>> line["cause"], line["effect"], line["probability"], line["direction"], line["in_graph"]
    ('x0', 'x1', 0.75, 0.9375, True)
    """
    P, W, names = np.asarray(shares), run.model.adjacency_matrix_.to_numpy(), text_names(run.model)
    either = np.minimum(P + P.T, 1.0)
    direction = np.divide(P, P + P.T, out=np.zeros_like(P), where=P + P.T > 0)
    edges = np.argwhere((W != 0) | ((P >= NOTEWORTHY) & ~np.eye(len(P), dtype=bool)))
    lines = [
        {
            "cause": names[i],
            "effect": names[j],
            "probability": float(P[i, j]),
            "adjacent": float(either[i, j]),
            "direction": float(direction[i, j]),
            "in_graph": bool(W[i, j] != 0),
        }
        for i, j in edges.tolist()
    ]
    return sorted(lines, key=lambda line: line["probability"])
